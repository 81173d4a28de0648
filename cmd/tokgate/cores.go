package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
