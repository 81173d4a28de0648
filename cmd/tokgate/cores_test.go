package main

import (
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record"
)

func TestOnAllCores(t *testing.T) {
	for _, n := range []int{0, 1, 1000} {
		times := make([]atomic.Int32, n)
		onAllCores(n, func(i int) { times[i].Add(1) })
		for i := range times {
			must.Hold(t, times[i].Load() == 1, "%d of %d was done %d times", i, n, times[i].Load())
		}
	}
	lost := record.Lost{}
	defer func() {
		got := recover()
		must.Hold(t, got == lost, "a panic came out as %v", got)
	}()
	onAllCores(8, func(i int) {
		if i == 5 {
			panic(lost)
		}
	})
}
