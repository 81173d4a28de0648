package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// In virtual time, a garbage collection delays no request. With little live memory, collections are
// rare, because they would mostly follow the pointers of old requests. With much live memory, which
// is mostly large blocks without pointers, they are frequent and cheap.
const (
	seldom, often = 200, 25   // GOGC
	much          = 128 << 20 // bytes that are live
)

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
