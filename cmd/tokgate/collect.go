package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// In virtual time a garbage collection delays no measurement. While little memory is kept it runs
// seldom, since most of its work is pointers of requests that are gone. Once much is kept it runs
// more often: most of that are gaps between tokens, which cost it nothing, and memory is dearer.
const (
	seldom, often = 200, 25   // GOGC
	much          = 128 << 20 // bytes that are kept
)

// collectSeldom has the collector run so until it is undone.
func collectSeldom() (undo func()) {
	var mu sync.Mutex
	before, over := debug.SetGCPercent(seldom), false
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var watch func()
	watch = func() { // once a collection
		runtime.SetFinalizer(new([16]byte), func(*[16]byte) {
			mu.Lock()
			defer mu.Unlock()
			if metrics.Read(live); over {
				return
			} else if live[0].Value.Uint64() > much {
				debug.SetGCPercent(often)
				return
			}
			watch()
		})
	}
	watch()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		debug.SetGCPercent(before)
	}
}
