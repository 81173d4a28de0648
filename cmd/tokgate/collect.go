package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// In virtual time nothing is measured that a collection could delay. While little is
// kept it comes seldom: most of its work is pointers of requests that are gone. Once much
// is, most are gaps between tokens, which cost it nothing, and memory is dearer.
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
