package main

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan"
)

// bounds limits the resources for loading one plan. Functions and files are checked
// before they grow; this is for cases that nobody thought of.
type bounds struct {
	cpu    time.Duration // CPU time, so that a busy machine refuses no plan
	memory uint64        // bytes of the heap
}

var loadBounds = bounds{cpu: 2 * time.Second, memory: 256 << 20}

type loaded struct {
	read  *plan.Plan
	diags hcl.Diagnostics
}

// within loads a plan, and gives up if that takes more than b. Then only the end of
// the process can stop the loading, which the error causes.
func (b bounds) within(path string, load func() loaded) loaded {
	if b == (bounds{}) {
		return load()
	}
	// Garbage counts too, so collect it before the bound is reached.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(b.memory / 4 * 3)))
	done := make(chan loaded, 1)
	go func() { done <- load() }()
	began, _ := server.CPUTime()
	heap := heapBytes()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case l := <-done:
			return l
		case <-look.C:
		}
		switch used, _ := server.CPUTime(); {
		case used-began > b.cpu:
			return tooCostly(path, fmt.Sprintf("more than %v of processor time", b.cpu))
		case heapBytes() > heap+b.memory:
			return tooCostly(path, fmt.Sprintf("more than %d MiB of memory", b.memory>>20))
		}
	}
}

func tooCostly(path, what string) loaded {
	return loaded{&plan.Plan{Path: path, Files: map[string]*hcl.File{}}, hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Plan too costly",
		Detail:  "To read it takes " + what + ", which is the most that is allowed: look for lists that are made of lists, and for long texts that are repeated.",
		Subject: &hcl.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos},
	}}}
}

// heapBytes is the size of the heap, including garbage.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
