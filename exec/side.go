package exec

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// side is one of the servers that are measured in turns.
type side struct {
	server *plan.Server
	cases  []Case
	runs   []*levelRun // one for each case; nil until the first measurement
	levels []*metric.Level
	found  *metric.ServerRun
	target *Target       // nil while the server is not running
	starts int           // number of starts of the server so far
	began  time.Duration // time of the last start
	ready  time.Duration // time at which the server was ready after its last start
	gpus   []string      // GPUs that the server got at its last start
	// longest is the longest leg so far of each case, from the first measured request to the end of
	// the last.
	longest map[place]time.Duration
	// fingerprints holds the server's first fingerprint on its own GPUs, and its first on the other
	// side's GPUs.
	fingerprints [2]metric.Fingerprint

	// heard holds answers that are compared with those of the other server, and not measured. The
	// rounds with an index below asked have sent their requests for such answers.
	heard     []*response
	asked     int
	unscored  string // why the server cannot report how likely a text is; "" if it can
	questions int    // number of texts whose likelihood the server was asked for
}

// at makes the runner use the durations that requests took on the side's server, so that a slower
// server is not expected to be as fast as the other.
func (t *alternation) at(x *side) {
	if t.durations[x] == nil {
		t.durations[x] = map[*plan.Workload]time.Duration{}
	}
	t.runner.durations = t.durations[x]
}

// placed returns a copy of the server that runs on the GPUs of this round, and these GPUs. With
// side_by_side, both servers run at once: in even rounds each has its own GPUs, and in odd rounds
// they swap. Without side_by_side it returns the server itself and nil.
func (t *alternation) placed(x *side, s *plan.Server) (*plan.Server, []string) {
	if s.Pod != nil {
		out, pod := *s, *s.Pod
		pod.Place, out.Pod = t.place(x), &pod
		return &out, nil
	}
	if !t.parallel {
		return s, nil
	}
	of := x.server
	if t.rounds%2 == 1 {
		for _, other := range t.sides {
			if other != x {
				of = other.server
			}
		}
	}
	gpus := of.GPUs()
	out := *s
	if p := s.Process; p != nil {
		process := *p
		process.GPUs, out.Process = gpus, &process
	}
	if c := s.Container; c != nil {
		container := *c
		container.GPUs, out.Container = gpus, &container
	}
	return &out, gpus.IDs
}

// place returns where in a cluster the pod of a side must start: on the node of the comparison's first
// start. Side by side the first starts take two nodes, which the servers swap every round.
func (t *alternation) place(x *side) plan.Place {
	away := plan.Place{}
	for _, of := range t.sides {
		node := ""
		if of.found != nil {
			node = of.found.Fingerprint["node"]
		}
		switch {
		case node == "":
		case !t.parallel || (of == x) == (t.rounds%2 == 0):
			return plan.Place{Node: node}
		default:
			away = plan.Place{Node: node, Away: true}
		}
	}
	return away
}

// known compares a restarted server with its first start. If a fact shows that it is another
// server, known returns the fact's key in the fingerprint, and its value at the first start.
// Otherwise key is "". Facts that depend on the GPUs are compared only between starts on the same
// GPUs.
func (t *alternation) known(x *side, found metric.Fingerprint) (key, was string) {
	before := x.found.Fingerprint
	if was := before["gpu_ids"]; t.Continue != nil && !t.parallel && was != found["gpu_ids"] {
		return "gpu_ids", was // another card is not equally fast
	}
	if t.parallel {
		first := &x.fingerprints[t.rounds%2]
		if *first == nil {
			*first = found
		}
		if key := compareStarts(*first, found); key != "" {
			return key, (*first)[key]
		}
		before = maps.Clone(before)
		maps.DeleteFunc(before, func(key, _ string) bool { return plan.Allows([]string{"gpus"}, key) })
	}
	key = compareStarts(before, found)
	return key, before[key]
}

// start starts the server of a side, one of the compared servers, and prepares its cases.
func (t *alternation) start(x *side) bool { return t.launched(x) && t.prepare(x) }

// startAll starts the servers that run during the whole comparison. They start at the same time,
// unless two of them share a GPU. Then they start one after the other, because an engine measures
// the free memory of a GPU while it starts.
func (t *alternation) startAll() bool {
	var sides []*side
	for _, x := range t.sides {
		if len(x.cases) > 0 {
			sides = append(sides, x)
		}
	}
	if !separateGPUs(sides) {
		for _, x := range sides {
			if !t.start(x) || !t.compareServers() {
				return false
			}
		}
		return true
	}
	var strands []func()
	if slices.ContainsFunc(sides, func(x *side) bool { return x.server.Started() }) {
		strands = append(strands, t.calibrate)
	}
	for _, x := range sides {
		strands = append(strands, func() { t.launched(x) })
	}
	t.sideBySide(strands...)
	for _, x := range sides {
		if x.target == nil {
			return false
		}
	}
	for _, x := range sides {
		if !t.prepare(x) || !t.compareServers() {
			return false
		}
	}
	return true
}

// separateGPUs reports whether all servers get different GPUs. A server that asks for a number of
// GPUs gets free ones. A server that takes all GPUs, or a local process that names none, shares
// them with the others. The node of a pod is known only after its start.
func separateGPUs(sides []*side) bool {
	seen := map[string]bool{}
	all, some := 0, 0
	for _, x := range sides {
		g := x.server.GPUs()
		switch {
		case x.server.Pod != nil:
			return false
		case g == nil && x.server.Process != nil, g != nil && g.All:
			all++
		case g == nil || g.Count == 0 && len(g.IDs) == 0:
		default:
			some++
		}
		if g == nil {
			continue
		}
		for _, id := range g.IDs {
			if seen[id] {
				return false
			}
			seen[id] = true
		}
	}
	return all == 0 || all == 1 && some == 0
}

// launched starts the server of a side, one of the compared servers. It reports whether the server
// is ready.
func (t *alternation) launched(x *side) bool {
	if x.found == nil {
		x.found = &metric.ServerRun{
			Address: x.server.Address(), Declared: t.redacted(x.server.Declared()), Series: x.server.Telemetry.Prometheus.Defs(),
		}
		t.runner.run.Servers = append(t.runner.run.Servers, x.found)
	}
	x.began = t.Clock.Now()
	server, gpus := t.placed(x, newStart(x.server, x.starts))
	x.gpus = gpus
	x.target, x.ready = t.launch(server, x.found)
	x.starts++
	return x.target != nil
}

// prepare checks the started server of a side and prepares its cases. It returns false if the
// server cannot be measured.
func (t *alternation) prepare(x *side) bool {
	first := len(x.found.Starts) == 0
	t.at(x)
	target := x.target
	found := target.Fingerprint
	if first {
		x.found.Fingerprint = found
	}
	if key, was := t.known(x, found); key != "" {
		t.lost(x.found, target, fmt.Errorf("start %d found another server: %s was %q and is now %q", x.starts, key, was, found[key]))
		return false
	}
	start := target.started(x.began, x.ready)
	if start.GPUs = x.gpus; t.parallel && x.server.Pod != nil {
		start.GPUs = []string{found["node"]}
	}
	x.found.Starts = append(x.found.Starts, start)
	t.observe(metric.ServerReady{Server: x.found})
	for i, c := range x.cases {
		if first {
			x.levels = append(x.levels, t.newLevel(c))
		}
		s, lost := t.runOf(target, c, x.levels[i])
		if s == nil {
			if lost == nil {
				lost = fmt.Errorf("%s", x.levels[i].Skipped)
			}
			t.lost(x.found, target, lost)
			t.done(x.levels[i])
			return false
		}
		if len(x.runs) == i {
			x.runs = append(x.runs, s)
		} else {
			x.runs[i] = s
		}
	}
	return true
}

// newStart returns the server for one of its starts. A simulator gets a new seed for its noise at
// each start, because a real server differs from start to start too.
func newStart(s *plan.Server, start int) *plan.Server {
	if s.Simulator == nil {
		return s
	}
	out, sim := *s, *s.Simulator
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", sim.Seed, s.Address(), start)
	sim.Seed = int64(h.Sum64() >> 11)
	out.Simulator = &sim
	return &out
}

// close ends a server after its leg, its turn in the comparison.
func (t *alternation) close(x *side) bool {
	if x.target == nil {
		return true
	}
	for _, s := range x.runs {
		if s.examine(); slices.ContainsFunc(s.asks, func(a *asking) bool { return a.level.Answers != nil }) {
			t.done(s.level)
		}
	}
	target := x.target
	x.target = nil
	t.takeDown(target, x.found)
	return x.found.Error == ""
}

func (t *alternation) closeAll() {
	for _, x := range t.sides {
		t.close(x)
	}
}
