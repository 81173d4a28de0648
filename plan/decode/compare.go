package decode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// These are the numbers of observations of a comparison. With side_by_side an observation is a pair
// of rounds, otherwise a round.
const (
	stagedMost  = 12 // default of rounds, if the comparison is judged after each
	stagedLeast = 3  // default of least_rounds, and the fewest
	fixedRounds = 8  // default of rounds, if the comparison is judged once
	fixedLeast  = 5  // the fewest, if the comparison is judged once: an interval needs as many
	extended    = 16 // rounds of an extended comparison
	mostRounds  = 1000
)

func (d *decoder) decodeCompares() {
	if d.opts.alone {
		return // the plan of the base branch is only loaded for its servers
	}
	seen := map[string]hcl.Range{}
	sc := scope{ctx: d.base, server: true, work: true}.child(map[string]cty.Value{
		"server": values(d.servers, serverType), "workload": values(d.workloads, workloadType),
	})
	for _, blk := range d.blocks["compare"] {
		name := blk.Labels[0]
		if !d.checkName(name, blk.LabelRanges[0]) || !d.isNew(blk, seen) {
			continue
		}
		d.expand(blk, sc, func(key string, _ bool, sc *scope) { d.decodeCompare(plan.Address(name, key), blk, sc) })
	}
	d.takeTurns()
}

func (d *decoder) decodeCompare(name string, blk *hcl.Block, sc *scope) {
	b := d.open(compareBlock, blk, sc, "compare."+name)
	c := &plan.Compare{Name: name, Policy: d.out.Gate.Policy, Range: blk.DefRange}
	before := len(d.diags)
	c.Candidate = readOne(b, "candidate")
	c.Control = readControl(b, c)
	if !b.given("changed") {
		b.note("changed", "[]", "")
	}
	readRestart(b, c)
	b.bind(c)
	readSideBySide(b, c)
	var work []*plan.Workload
	switch {
	case c.Candidate == nil || len(d.diags) > before && d.diags[before:].HasErrors():
	case c.Control.Server == c.Candidate:
		d.errorf(b.rangeOf("candidate"), sumCompare, `The candidate and the control are the same server. To compare a server with itself, declare it twice: for_each = toset(["a", "b"]).`)
	default:
		if work = c.Workloads(d.out); len(work) == 0 && c.Skip == "" {
			d.errorf(blk.DefRange, sumCompare, "No workload runs on both servers. Name both servers in the `server` argument of a workload, or remove that argument.")
			break
		}
		d.out.Compares = append(d.out.Compares, c)
		checkSame(b, c)
	}
	readReading(b, c, work)
	for _, kind := range []string{"tolerate", "improve"} {
		for _, o := range b.children(kind) {
			if out := readClaim(o, c, work, kind == "improve"); out != nil {
				c.Claims = append(c.Claims, out)
			}
		}
	}
	slices.SortStableFunc(c.Claims, func(x, y *plan.Claim) int { return x.Range.Start.Byte - y.Range.Start.Byte })
	known := len(d.diags)
	if readRounds(b, c, work); d.diags[known:].HasErrors() {
		d.out.Compares = slices.DeleteFunc(d.out.Compares, func(other *plan.Compare) bool { return other == c })
	}
	for _, ch := range c.Paired() {
		if c.Answers == nil && !b.stray && len(b.blocks["answers"]) == 0 {
			d.errorf(ch.Range, sumUnread, "%s compares answers to the same prompts, but nothing scores them. Add answers {} to compare.%s.", ch.Metric.Name, c.Name)
		}
	}
}

func readReading(b *body, c *plan.Compare, work []*plan.Workload) {
	o := b.child("answers")
	if o == nil {
		return
	}
	if c.Control.Baseline != "" {
		b.d.errorf(o.rng, sumUnread, "The answers block needs a control that runs, to report how likely an answer is, but this control is a recorded run. Remove the answers block. The form of natural answers and the items of tasks are still compared.")
		return
	}
	out := &plan.Answering{Range: o.rng}
	if o.bind(out); c.Control.Server == nil || out.Prompts == 0 || out.MaxTokens == 0 {
		return // the base branch's control is unreadable, or the block has errors
	}
	c.Answers = out
	if why := c.Unread(work); why != "" {
		b.d.warnf(o.rng, sumUnread, "%s. answer_nll therefore has no value, and odd_answers checks only the form of the answers.", why)
	}
}

func readRestart(b *body, c *plan.Compare) {
	endpoint := c.Candidate != nil && c.Candidate.Endpoint != nil || c.Control.Server != nil && c.Control.Server.Endpoint != nil
	if !b.given("restart") {
		c.Restart = plan.RestartLeg
		switch {
		case c.Control.Baseline != "":
		case endpoint:
			c.Restart = plan.RestartNever
			b.note("restart", `"never"`, "an endpoint is not started")
		default:
			b.note("restart", `"leg"`, "")
		}
		return
	}
	text, ok := get(b, "restart", func(x item) (string, bool) {
		if v := x.value; v.IsKnown() && !v.IsNull() && v.Type() == cty.String && v.AsString() == "order" {
			x.errorf(sumOneOf, `restart = "order" was removed: a comparison with a fresh server for each leg decides more with as many starts, and ends when it is decided. Write restart = "leg", or remove restart.`)
			return "", false
		}
		return x.word()
	})
	if c.Restart = plan.Restart(text); !ok {
		c.Restart = plan.RestartLeg
		return
	}
	switch {
	case c.Control.Baseline != "":
		b.d.errorf(b.attrs["restart"].NameRange, sumConflict, "The control is a recorded run, so tokgate does not restart it. Remove restart.")
	case endpoint && c.Restart != plan.RestartNever:
		b.d.errorf(b.rangeOf("restart"), sumConflict, `tokgate cannot restart an endpoint, because it does not start it. Write restart = "never".`)
	case c.Restart == plan.RestartNever && c.Control.Server != nil && c.Candidate != nil:
		checkBothRun(b, c.Control.Server, c.Candidate)
	}
}

// checkBothRun refuses two servers that use the same GPU or port, because they could not run at the
// same time.
func checkBothRun(b *body, control, candidate *plan.Server) {
	x, y := control.Process, candidate.Process
	switch {
	case sharesGPU(control, candidate):
		b.d.errorf(b.rangeOf("restart"), sumConflict, `With restart = "never" both servers run at the same time, but both use the same GPU. Give the servers different GPUs, or remove restart.`)
	case x != nil && y != nil && x.Port != 0 && x.Port == y.Port:
		b.d.errorf(b.rangeOf("restart"), sumConflict, `With restart = "never" both servers run at the same time, but both use port %d. Remove port, and write {port} in command.`, x.Port)
	case control.Stack != nil && candidate.Stack != nil && control.Stack.URL == candidate.Stack.URL && control.Stack.URL != unknownText:
		b.d.errorf(b.rangeOf("restart"), sumConflict, `With restart = "never" both servers run at the same time, but both answer at %s. Give each a URL of its own, or remove restart.`, control.Stack.URL)
	}
}

func readSideBySide(b *body, c *plan.Compare) {
	if !c.SideBySide {
		return
	}
	rng := b.rangeOf("side_by_side")
	refuse := func(format string, args ...any) {
		c.SideBySide = false
		b.d.errorf(rng, sumConflict, format, args...)
	}
	control := c.Control.Server
	switch {
	case c.Control.Baseline != "":
		refuse("The control is a recorded run, so the servers cannot run at the same time. Remove side_by_side.")
		return
	case control == nil || c.Candidate == nil:
		return
	}
	for _, s := range []*plan.Server{control, c.Candidate} {
		switch g := s.GPUs(); {
		case s.Pod != nil && control.Pod != nil && c.Candidate.Pod != nil: // they swap their nodes
		case !s.Local():
			refuse("With side_by_side tokgate restarts servers to swap their GPUs, but it does not start server.%s on this machine. Use servers with a process, container or pod block.", s.Address())
			return
		case g == nil || len(g.IDs) == 0:
			refuse(`With side_by_side the servers swap their GPUs, so server.%s must list its GPUs, such as gpus = ["0"].`, s.Address())
			return
		}
	}
	if c.Restart != plan.RestartLeg {
		refuse(`With side_by_side each server is restarted for every round, to swap the GPUs. Write restart = "leg".`)
		return
	}
	if control.Pod != nil {
		return
	}
	x, y := control.GPUs().IDs, c.Candidate.GPUs().IDs
	port := control.FixedPort()
	switch {
	case sharesGPU(control, c.Candidate):
		refuse("With side_by_side both servers run at the same time, but both list the same GPU. Give the servers different GPUs.")
	case len(x) != len(y):
		refuse("With side_by_side the servers swap their GPUs, so both need the same number of GPUs. server.%s lists %d GPUs, and server.%s lists %d.", control.Address(), len(x), c.Candidate.Address(), len(y))
	case port != 0 && port == c.Candidate.FixedPort():
		refuse("With side_by_side both servers run at the same time, but both use port %d. Remove port; each server then gets a free port.", port)
	}
	// The servers swap their GPUs, so the GPUs of a round may differ.
	if !c.Allows("gpus") {
		c.Changed = append(c.Changed, "gpus")
	}
}

func sharesGPU(a, b *plan.Server) bool {
	x, y := a.GPUs(), b.GPUs()
	if x == nil || y == nil {
		return false
	}
	return x.All || y.All || slices.ContainsFunc(x.IDs, func(id string) bool { return slices.Contains(y.IDs, id) })
}

// readRounds reads after how many rounds a comparison is judged. work lists the compared workloads.
func readRounds(b *body, c *plan.Compare, work []*plan.Workload) {
	unit := c.Unit()
	staged := c.Restart == plan.RestartLeg && c.Control.Baseline == "" && c.Requires() &&
		c.Policy.Decide == plan.Certified && !b.d.out.Gate.MeasureOnly
	usual, least := fixedRounds, fixedLeast
	if staged {
		least = stagedLeast
		if !b.d.setsRequests(work) {
			usual = stagedMost
		}
	}
	c.Rounds = usual * unit
	whole := func(name string, least, most int) (int, bool) {
		return get(b, name, func(x item) (int, bool) {
			return x.like(&Attr{Bounds: Bounds{Min: float64(least), Max: float64(most)}}).integer()
		})
	}
	n, ok := whole("rounds", least*unit, mostRounds)
	switch {
	case ok && n%unit == 1:
		b.d.errorf(b.rangeOf("rounds"), sumOutOfRange, "With side_by_side two rounds count as one observation. Write an even number of rounds.")
	case ok:
		c.Rounds = n
	case !b.given("rounds"):
		why := ""
		if staged && usual == fixedRounds {
			why = "the plan sets requests, which the rounds divide"
		}
		b.note("rounds", strconv.Itoa(c.Rounds), why)
	}
	if !staged {
		if b.given("least_rounds") {
			b.d.errorf(b.attrs["least_rounds"].NameRange, sumConflict, `This comparison is judged once, after all rounds. Remove least_rounds. It needs restart = "leg", a tolerate or improve block that can fail the gate, and decide = "certified".`)
		}
		return
	}
	c.LeastRounds = min(stagedLeast*unit, c.Rounds)
	if n, ok := whole("least_rounds", stagedLeast*unit, c.Rounds); ok {
		if c.LeastRounds = n; c.LeastRounds%unit != 0 {
			b.d.errorf(b.rangeOf("least_rounds"), sumOutOfRange, "With side_by_side two rounds count as one observation. Write an even number of rounds.")
		}
	} else if !b.given("least_rounds") {
		b.note("least_rounds", strconv.Itoa(c.LeastRounds), "")
	}
}

// setsRequests reports whether the plan sets a number of requests that the rounds of a comparison
// divide. More rounds than the plan's author had in mind would then make each leg smaller.
func (d *decoder) setsRequests(work []*plan.Workload) bool {
	return slices.ContainsFunc(work, func(w *plan.Workload) bool {
		return slices.ContainsFunc(w.Loads, func(l *plan.Load) bool {
			return slices.ContainsFunc(l.Levels, func(level plan.Level) bool {
				return level.Speedup > 0 || l.Kind == metric.ClosedLoop && d.unasked[l][level.Name] == 0
			})
		})
	})
}

// readExtension decides how far an undecided comparison is extended: to 16 observations, and at
// least by a third. With restart = "never" the number of rounds doubles.
func readExtension(c *plan.Compare, work []*plan.Workload) {
	if !c.Requires() || c.Policy.OnInconclusive != plan.Extend || c.Policy.Decide != plan.Certified || c.Control.Baseline != "" {
		return
	}
	unit := c.Unit()
	most := max(extended*unit, c.Rounds+c.Rounds/3/unit*unit)
	if c.Restart == plan.RestartNever {
		most = 2 * c.Rounds
	}
	for _, w := range work {
		for _, level := range w.Levels() {
			if limit := c.Policy.MaxRequests; limit > 0 && most*level.Requests > limit*c.Rounds {
				return
			}
		}
	}
	c.MostRounds = most
}

func checkSame(b *body, c *plan.Compare) {
	if c.Control.Server == nil {
		return
	}
	var more, keys []string
	for _, key := range plan.Differences(c.Control.Server.Declared(), c.Candidate.Declared()) {
		if !c.Allows(key) {
			more = append(more, key)
			root, _, _ := strings.Cut(key, ".")
			if !slices.Contains(keys, `"`+root+`"`) {
				keys = append(keys, `"`+root+`"`)
			}
		}
	}
	if len(more) > 0 {
		for _, k := range c.Changed {
			keys = append(keys, `"`+k+`"`)
		}
		slices.Sort(keys)
		b.d.errorf(b.rangeOf("changed"), sumCompareSame, "server.%s and %s differ in %s. If you want to compare this difference, write changed = [%s].",
			c.Candidate.Address(), c.Control.Server.Address(), strings.Join(more, ", "), strings.Join(slices.Compact(keys), ", "))
	}
}

// takeTurns gives each compared workload the rounds of its comparison. Comparisons that share a
// server must have equal rounds and the same restart setting.
func (d *decoder) takeTurns() {
	for _, g := range plan.Groups(d.out) {
		first := g.Compares[0]
		if i := slices.IndexFunc(g.Compares, func(c *plan.Compare) bool { return c.SideBySide }); i >= 0 && len(g.Compares) > 1 {
			d.errorf(g.Compares[i].Range, sumConflict, "side_by_side needs two servers that no other comparison uses, but compare.%s uses one of them.", g.Compares[i].Name)
			continue
		}
		for _, c := range g.Compares[1:] {
			if c.Rounds != first.Rounds || c.LeastRounds != first.LeastRounds || c.Restart != first.Restart {
				d.errorf(c.Range, sumConflict, "compare.%s and compare.%s share a server, so all their servers take turns. Set the same `rounds`, `least_rounds` and `restart` in both.", c.Name, first.Name)
			}
		}
	}
	for _, c := range d.out.Compares {
		if c.Skip != "" {
			continue
		}
		for _, w := range c.Workloads(d.out) {
			if w.Root() != w {
				continue // the mix sets the rounds of this workload
			}
			for i, l := range w.Loads {
				d.compared(c, w, l, i)
			}
			w.ShareOut()
		}
		readExtension(c, c.Workloads(d.out))
	}
}

func (d *decoder) compared(c *plan.Compare, w *plan.Workload, l *plan.Load, index int) {
	var noted []string
	for i := range l.Levels {
		level := &l.Levels[i]
		usual := d.unasked[l][level.Name]
		if level.Batches && c.Control.Baseline != "" {
			continue // the candidate is measured as the recorded control was: in one window
		}
		level.Batches = false // a leg is one window, with one round
		switch {
		case l.Kind == metric.Burst:
			level.Requests = level.N * c.Rounds
		case level.Speedup > 0: // each server's turn in a round replays a part of the trace
			if level.Requests < c.Rounds {
				d.errorf(c.Range, sumFewRequests, "The trace has only %d requests for %d rounds, and each round needs at least one. Replay a longer part of the trace, or set fewer rounds.", level.Requests, c.Rounds)
			}
		case l.Kind == metric.OpenLoop:
			level.Requests *= c.Rounds // each round has the plan's requests for a level
		case level.Duration > 0:
			level.Requests = level.N * c.Rounds
		case usual > 0:
			level.Requests = usual * c.Rounds
			if len(noted) < 20 {
				noted = append(noted, level.Name+" = "+strconv.Itoa(level.Requests))
			}
		case level.Requests < level.N*c.Rounds:
			d.errorf(c.Range, sumFewRequests, "The level %s of workload.%s has %d requests for %d rounds. Each round needs at least as many requests as are in flight. Set requests to at least %d.",
				level.Name, w.Address(), level.Requests, c.Rounds, level.N*c.Rounds)
		}
		level.Rounds = c.Rounds
	}
	if len(noted) == 0 {
		return
	}
	path := "workload." + w.Address() + ".load"
	if len(w.Loads) > 1 {
		path += "[" + strconv.Itoa(index) + "]"
	}
	path += ".requests"
	d.out.Defaults = slices.DeleteFunc(d.out.Defaults, func(x plan.Default) bool { return x.Path == path })
	d.out.Defaults = append(d.out.Defaults, plan.Default{Path: path, Value: "{ " + strings.Join(noted, ", ") + " }", Why: "compare." + c.Name + ": each leg gets 200 requests up to level 10, else the larger of 300 and 10 × the level"})
}
