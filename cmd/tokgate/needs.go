package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan"
)

// needs is what the largest load of a plan needs of the machine that sends it.
type needs struct {
	streams int       // requests in flight at once
	of      string    // the load: "w at 800"
	subject hcl.Range // of the load in the plan
	cores   int       // to read the streams
	ports   int       // local ports to one address
	files   int       // open files and connections
}

// See docs/scale.md for the figures.
const (
	// chunksOfCore is the number of chunks per second that one core reads.
	chunksOfCore = 130_000
	// chunksOfStream is the number of chunks per second that a stream is taken to bring.
	chunksOfStream = 50
	// filesBesides is the number of open files that are not connections of the load. These are the
	// recording, reports, logs, pipes, other requests, and both ends of the 64 streams that calibrate
	// the load generator.
	filesBesides = 200
)

// needsOf returns what a plan needs. Rates whose requests take an unknown time are left out. The last run
// may be nil.
func needsOf(p *plan.Plan, last *lastRun) (n needs) {
	add := func(c exec.Case, level plan.Level, load *plan.Load, of string, subject hcl.Range) {
		streams := level.N
		files := streams
		if level.Rate > 0 {
			took, _ := rateWindow{Case: c}.expects(c.Workload, last)
			// By Little's law.
			streams = min(int(math.Ceil(level.Rate*took.Seconds())), load.Open.MaxInFlight)
			if files = streams; c.Load == nil { // a search tries rates that the server cannot keep up with
				files = load.Open.MaxInFlight
			}
		}
		if c.Server.BuiltIn() {
			files *= 2 // the server is part of this process
		}
		if n.files = max(n.files, files); streams > n.streams || n.of == "" && files > 0 {
			n.streams, n.of, n.subject = streams, of, subject
		}
	}
	for _, c := range exec.Cases(p) {
		add(c, c.Level, c.Load, fmt.Sprintf("%s at %s", c.Workload.Address(), c.Level.Name), c.Load.Range)
	}
	for _, c := range exec.Searches(p) {
		s := c.Workload.Capacity
		add(c, s.Level(s.UpTo), s.Load, fmt.Sprintf("the search of %s, up to %s", c.Workload.Address(), s.Amount(s.UpTo)), c.Workload.Range)
	}
	n.ports = n.streams
	if slices.ContainsFunc(p.Compares, func(c *plan.Compare) bool { return c.SideBySide }) {
		n.files, n.streams = 2*n.files, 2*n.streams // the ports lead to two addresses
	}
	n.files += filesBesides
	n.cores = max((n.streams*chunksOfStream+chunksOfCore-1)/chunksOfCore, 1)
	if n.cores > 1 {
		n.cores++ // which sends and records
	}
	return n
}

func (n needs) String() string {
	return fmt.Sprintf("up to %s at once (%s): %s if each brings %d chunks a second, %s to one address, %d open files",
		verdict.Count(n.streams, "streams"), n.of, verdict.Count(n.cores, "cores"), chunksOfStream, verdict.Count(n.ports, "ports"), n.files)
}

// machine is what this machine offers; 0 is not known.
type machine struct{ cores, ports, files int }

func thisMachine() machine {
	files, _ := server.OpenFiles()
	return machine{runtime.GOMAXPROCS(0), server.Ports(), int(min(files, math.MaxInt32))}
}

func tooSmall(p *plan.Plan, last *lastRun) hcl.Diagnostics {
	return needsOf(p, last).beyond(thisMachine())
}

// beyond warns if the machine has less than the needs.
func (n needs) beyond(m machine) hcl.Diagnostics {
	var lacks []string
	add := func(need, has int, format string, args ...any) {
		if has > 0 && need > has {
			lacks = append(lacks, fmt.Sprintf(format, args...))
		}
	}
	add(n.cores, m.cores, "%s of %d chunks a second take about %d cores to read, but tokgate may use %d: it would be late, and the level invalid.", verdict.Count(n.streams, "streams"), chunksOfStream, n.cores, m.cores)
	add(n.ports, m.ports, "%d connections to one address take as many local ports, but this machine has %d: requests would fail. Widen net.ipv4.ip_local_port_range.", n.ports, m.ports)
	add(n.files, m.files, "The run opens about %d files and connections, but this process may open %d: it would not start. Raise the hard limit, for example with ulimit -Hn %d.", n.files, m.files, n.files)
	if len(lacks) == 0 {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagWarning, Summary: "Load larger than this machine can send", Subject: n.subject.Ptr(),
		Detail: fmt.Sprintf("The largest load is %s. %s docs/scale.md says what a machine sends.", n.of, strings.Join(lacks, " ")),
	}}
}

// checkOpenFiles returns an error if a run would open more files than limit.
func checkOpenFiles(p *plan.Plan, limit uint64) error {
	n := needsOf(p, nil)
	if uint64(n.files) <= limit {
		return nil
	}
	return measureError(fmt.Errorf("%s: %s needs about %d open files and connections, but this process may have only %d", p.Path, n.of, n.files, limit),
		fmt.Sprintf("raise the hard limit, for example with ulimit -Hn %d, or send the load from another machine", n.files))
}
