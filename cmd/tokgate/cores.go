package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"github.com/tokgate/tokgate/record"
)

// onAllCores calls the function do for each number from 0 to n-1, with one goroutine per core. If
// several calls panic, it panics with the value of the first panic. It can be used as a
// metric.Each.
func onAllCores(n int, do func(i int)) {
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		once    sync.Once
		failed  any
	)
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			defer func() {
				r := recover()
				if r == nil {
					return
				}
				if _, ok := r.(record.Lost); !ok {
					r = fmt.Sprintf("%v\n%s", r, debug.Stack())
				}
				once.Do(func() { failed = r })
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
	if failed != nil {
		panic(failed)
	}
}

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
