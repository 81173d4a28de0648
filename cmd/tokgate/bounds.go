package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan"
)

// Each function and each file has its own, lower limit. The bounds stop a plan that uses many of
// them.
type bounds struct {
	cpu    time.Duration // not elapsed time, so that a busy machine refuses no plan
	memory uint64        // bytes of the heap
}

var loadBounds = bounds{cpu: 2 * time.Second, memory: 256 << 20}

// dataBounds limits the resources for a plan together with its data files. One data file costs
// little, but for_each may read the same file ten thousand times.
var dataBounds = bounds{cpu: time.Minute, memory: 4 << 30}

type loaded struct {
	read  *plan.Plan
	diags hcl.Diagnostics
}

// spending measures the CPU time and the memory for loading a plan. It does not count data files,
// because they have bounds of their own.
type spending struct {
	bounds
	all  bounds // limits for the plan and its data files together
	mu   sync.Mutex
	cpu  time.Duration // CPU time before loading and for data files, which the bounds ignore
	heap uint64        // heap before loading and for data files, in bytes, which the bounds ignore
	data bool          // a data file is being read
}

func spendingNow(b bounds) *spending {
	cpu, heap := spent()
	return &spending{bounds: b, all: bounds{cpu + dataBounds.cpu, heap + dataBounds.memory}, cpu: cpu, heap: heap}
}

func (s *spending) reading(read func()) {
	s.mu.Lock()
	s.data = true
	s.mu.Unlock()
	debug.SetMemoryLimit(math.MaxInt64)
	cpu, heap := spent()
	defer func() {
		cpuNow, heapNow := spent()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cpu, s.heap, s.data = s.cpu+cpuNow-cpu, s.heap+max(heapNow, heap)-heap, false
		s.collect()
	}()
	read()
}

// collect lets the garbage collector start when the heap reaches three quarters of the memory
// bound. Otherwise garbage would count towards the bound.
func (s *spending) collect() { debug.SetMemoryLimit(int64(s.heap + s.memory/4*3)) }

func (s *spending) exceeded() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch cpu, heap := spent(); {
	case cpu > s.all.cpu:
		return fmt.Sprintf("more than %v of processor time with its data files", dataBounds.cpu)
	case heap > s.all.memory:
		return fmt.Sprintf("more than %d MiB of memory with its data files", dataBounds.memory>>20)
	case s.data:
	case cpu > s.cpu+s.bounds.cpu:
		return fmt.Sprintf("more than %v of processor time", s.bounds.cpu)
	case heap > s.heap+s.memory:
		return fmt.Sprintf("more than %d MiB of memory", s.memory>>20)
	}
	return ""
}

// within calls the function load, which loads a plan. It returns an error if this call exceeds the
// bounds b. The caller must then end the process, because nothing else can stop the function.
//
// Data files have bounds of their own. So the function load must read each of them inside a call of
// its argument, the function reading.
func (b bounds) within(path string, load func(reading func(read func())) loaded) loaded {
	if b == (bounds{}) {
		return load(nil)
	}
	s := spendingNow(b)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	s.collect()
	done := make(chan loaded, 1)
	go func() { done <- load(s.reading) }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case l := <-done:
			return l
		case <-look.C:
		}
		if what := s.exceeded(); what != "" {
			return tooCostly(path, what)
		}
	}
}

func tooCostly(path, what string) loaded {
	return loaded{&plan.Plan{Path: path, Files: map[string]*hcl.File{}}, hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Plan too costly",
		Detail:  "Reading the plan takes " + what + ", the limit. Look for lists that are built from other lists, and for long texts that are repeated.",
		Subject: &hcl.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos},
	}}}
}

func spent() (cpu time.Duration, heap uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	cpu, _ = server.CPUTime()
	return cpu, sample[0].Value.Uint64()
}
