package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// Restart says when a comparison restarts a server.
type Restart string

const (
	// RestartLeg gives each leg a fresh server. The comparison is judged
	// after each round from LeastRounds on, and ends when it is decided.
	RestartLeg Restart = "leg"
	// RestartNever starts each server once. Both servers stay up, and the verdict holds only for
	// these two starts.
	RestartNever Restart = "never"
)

// Compare is a compare block, which compares a candidate server with a control. It compares every
// workload that runs on both servers. Claims are the bounds on the changes.
type Compare struct {
	Name      string
	Control   Control
	Candidate *Server
	Restart   Restart
	// Rounds is the largest number of rounds. The comparison is first judged after LeastRounds; 0 means
	// that it is judged only at its end. MostRounds is the number of rounds to which an undecided
	// comparison is extended; 0 means that it is not. With SideBySide all are even.
	Rounds, LeastRounds, MostRounds int
	Heeded                          string // why an earlier comparison raised LeastRounds; "" if none did
	// SideBySide runs both legs of a round at the same time. The servers swap their GPUs after each
	// round, so a pair of rounds is one observation. SideBySide requires RestartLeg and an even
	// number of rounds.
	SideBySide bool `plan:"side_by_side"`
	// Changed lists in which facts and settings the two servers may differ. The key "flags"
	// includes "flags.max-model-len".
	Changed []string `plan:"changed"`
	Claims  []*Claim
	// Answers is set if both servers answer the same prompts and the control scores all answers.
	// The control must then be a server.
	Answers *Answering
	// Skip is the reason why the two servers are not compared; "" if they are compared. Unchanged
	// is set if the reason is that both servers are equal.
	Skip      string
	Unchanged bool
	// BaseMissing is set if the base branch lacks the plan or the server, so there is nothing to
	// compare with. It says what this decides; otherwise it is "".
	BaseMissing BaseMissing
	Policy      Policy // of the gate
	Range       hcl.Range
}

// BaseMissing says what a comparison with the base branch decides if the base branch lacks the plan
// or the server, as it does in the pull request that adds them.
type BaseMissing string

const (
	// BaseMissingOthers leaves the decision to the other requirements of the plan. If there are
	// none, the comparison is inconclusive.
	BaseMissingOthers BaseMissing = "others"
	// BaseMissingFail fails the comparison.
	BaseMissingFail BaseMissing = "fail"
	// BaseMissingPass passes the comparison.
	BaseMissingPass BaseMissing = "pass"
)

// BaseMissings lists the values of BaseMissing; the first is the default.
var BaseMissings = []string{string(BaseMissingOthers), string(BaseMissingFail), string(BaseMissingPass)}

// Looks lists after how many rounds the comparison is judged, in ascending order. It ends at the
// first look that decides.
func (c *Compare) Looks() []int {
	most := max(c.Rounds, c.MostRounds)
	if c.Restart == RestartNever && most > c.Rounds {
		return []int{c.Rounds, most}
	}
	var out []int
	if c.LeastRounds > 0 {
		// Of many rounds not each is worth a look.
		for n := c.LeastRounds; n < most; n += max(c.Unit(), n/8/c.Unit()*c.Unit()) {
			out = append(out, n)
		}
	}
	return append(out, most)
}

// Alike reports whether all rounds of the comparison ask for the same work. If not, only the two legs
// of a round do.
func (c *Compare) Alike(p *Plan) bool {
	return !slices.ContainsFunc(c.Workloads(p), func(w *Workload) bool { return !w.Alike() })
}

// Alike reports whether all rounds of a comparison can send the workload with the same lengths at the
// same times: generated prompts and answers whose length is set, in closed loops or bursts. Rounds of
// a trace, a rate, users, a data set, a conversation or a mix differ in what they send.
func (w *Workload) Alike() bool {
	return w.Root() == w && len(w.Whole()) == 1 && w.Prompt.Dataset == nil && !w.Prompt.Turns.Several() && !w.Output.Natural &&
		!slices.ContainsFunc(w.Loads, func(l *Load) bool { return l.Open != nil || l.People != nil })
}

// Unit is the number of rounds that count as one observation.
func (c *Compare) Unit() int {
	if c.SideBySide {
		return 2
	}
	return 1
}

// Requires reports whether something in the comparison can fail the plan.
func (c *Compare) Requires() bool {
	return c.Answers != nil || slices.ContainsFunc(c.Claims, (*Claim).MustHold)
}

// MustHold reports whether the claim can fail the plan.
func (c *Claim) MustHold() bool { return c.Severity == SeverityError }

// Answering holds the settings of a comparison's answers block.
type Answering struct {
	Prompts   int `plan:"prompts"`    // prompts that each server answers, over all workloads and rounds
	MaxTokens int `plan:"max_tokens"` // of an answer
	Range     hcl.Range
}

// Control is what a candidate is compared with. It is a server of the plan, a server of the same
// plan on the base branch, or a recorded run.
type Control struct {
	Server *Server // nil for a recorded run, or if the base branch lacks the server
	// Baseline is the folder of a recorded run; "" if the control is a server. It is absolute or
	// relative to the plan's folder. BaselineServer is the control's address in that run. If it is
	// "", the control is the server with the candidate's address, or the run's only server.
	Baseline       string
	BaselineServer string
	Base           bool // Server is in the plan on the base branch
	Range          hcl.Range
}

// Claim is one tolerate or improve block of a comparison.
type Claim struct {
	Improve   bool
	Workloads []*Workload // workloads that the block names; all compared workloads if it names none
	At        []string    // names of the levels; they do not include the capacity
	Severity  Severity    `plan:"severity"`
	Changes   []*ChangeBound
	Range     hcl.Range
}

// ChangeBound is one bound on the change of a metric from control to candidate: "p95
// +10%".
type ChangeBound struct {
	Metric metric.Def // the metric that the bound is on; its Name may be "capacity"
	Stat   metric.Stat
	// Limit is the change as the plan writes it, with its sign. It is a share of the control's
	// value: 0.10 for "+10%". If Points is set, it is a difference in base units: -0.01 for "-1pp".
	// Points is only for metrics that are shares.
	Limit  float64
	Points bool
	// TwoSided limits a change in both directions, from −Limit to +Limit: "mean +-10%". Limit is
	// then positive.
	TwoSided bool
	Text     string // the bound as the plan writes it
	Range    hcl.Range
	Accept   *Accept      // sets Limit and Text; nil if no accept block does
	Own      *ChangeBound // the bound without Accept; nil without one
}

// Workloads lists the compared workloads in the order of the plan. These are the workloads of the
// candidate that also run on the control, if the control is a server.
func (c *Compare) Workloads(p *Plan) []*Workload {
	var out []*Workload
	for _, w := range p.Workloads {
		if slices.Contains(w.Servers, c.Candidate) && (c.Control.Server == nil || slices.Contains(w.Servers, c.Control.Server)) {
			out = append(out, w)
		}
	}
	return out
}

// SkipNoBase is the Skip of a comparison with a base branch if there is no checkout
// of it.
const SkipNoBase = "no --base was given"

// Loss is the largest relative change for the worse that the comparison tolerates at a level, such as
// 0.05; 0 if it tolerates none.
func (c *Compare) Loss() (most float64) {
	for _, claim := range c.Claims {
		for _, ch := range claim.Changes {
			if !claim.Improve && !ch.Points && ch.Metric.Name != "capacity" {
				most = max(most, math.Abs(ch.Limit))
			}
		}
	}
	return most
}

// Live reports whether the comparison runs both servers in turns. It does so unless it is skipped
// or has a recorded run as its control.
func (c *Compare) Live() bool { return c.Skip == "" && c.Control.Server != nil }

// Allows reports whether the servers may differ in the key.
func (c *Compare) Allows(key string) bool { return Allows(c.Changed, key) }

// Allows reports whether a comparison allows a difference in the key. Its list changed must name
// the key, a group with the key ("flags" for "flags.max-model-len"), or a cause of the key ("image"
// for "version").
func Allows(changed []string, key string) bool {
	fact, _ := metric.FactOf(key)
	return slices.ContainsFunc(changed, func(c string) bool {
		root, _, _ := strings.Cut(c, ".")
		return key == c || strings.HasPrefix(key, c+".") || slices.Contains(fact.Follows, root) || root == "up" && len(fact.Follows) > 0
	})
}

// Declared returns the plan's declarations of the server that may change what is measured. The keys
// are those of compare.changed: engine, model, image and so on, and "flags." with the name of a
// flag. Addresses and ports are left out. Values may contain secrets.
func (s *Server) Declared() map[string]string {
	out := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			out[key] = value
		}
	}
	set("engine", s.Engine)
	set("model", s.Model)
	for _, f := range s.Flags {
		if f.Name == "port" || f.Name == "host" {
			continue
		}
		if words, p := flagWords(engine.Of(s.Engine), f); p == nil && len(words) > 0 {
			set("flags."+f.Name, strings.Join(words, " "))
		}
	}
	set("args", strings.Join(s.Args, " "))
	if p := s.Process; p != nil {
		set("command", strings.Join(p.Command, " "))
		setEnv(p.Env, set)
		set("gpus", p.GPUs.String())
	}
	if c := s.Container; c != nil {
		set("image", c.Image)
		set("runtime", c.Runtime)
		set("entrypoint", c.Entrypoint)
		set("command", strings.Join(c.Command, " "))
		setEnv(c.Env, set)
		set("gpus", s.GPUs().String())
		set("volumes", strings.Join(c.Volumes, " "))
		set("shm_size", c.SharedMem)
		set("network", c.Network)
		set("user", c.User)
		set("options", strings.Join(c.Options, " "))
	}
	if s.Pod != nil {
		s.Pod.declare(set)
	}
	if x := s.Stack; x != nil {
		set("up", strings.Join(x.Up, " "))
		set("up.dir", x.Folder)
		setEnv(x.Env, set)
		for name, value := range x.Declares {
			set("declares."+name, value)
		}
	}
	if s.BuiltIn() {
		set("profile", s.Simulator.Profile)
	}
	return out
}

func setEnv(env map[string]string, set func(key, value string)) {
	for name, value := range env {
		sum := sha256.Sum256([]byte(value))
		set("env."+name, "sha256:"+hex.EncodeToString(sum[:4]))
	}
}

// Differences lists the keys in which two declarations differ, in ascending order.
func Differences(a, b map[string]string) []string {
	var keys []string
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Groups returns the groups of servers that are measured in turns, with their comparisons.
// Comparisons that share a server are in the same group. Everything is in the order of the plan.
func Groups(p *Plan) []Group {
	var out []Group
	for _, c := range p.Compares {
		if !c.Live() {
			continue
		}
		g := Group{Servers: []*Server{c.Control.Server, c.Candidate}, Compares: []*Compare{c}}
		rest := out[:0:0]
		for _, other := range out {
			if !slices.ContainsFunc(other.Servers, func(s *Server) bool { return slices.Contains(g.Servers, s) }) {
				rest = append(rest, other)
				continue
			}
			for _, s := range g.Servers {
				if !slices.Contains(other.Servers, s) {
					other.Servers = append(other.Servers, s)
				}
			}
			g.Servers, g.Compares = other.Servers, append(other.Compares, g.Compares...)
		}
		out = append(rest, g)
	}
	return out
}

// Group is a set of servers that take turns.
type Group struct {
	Servers  []*Server // a control first
	Compares []*Compare
}

// Workloads lists the workloads of the group's comparisons, in the order of the plan.
func (g Group) Workloads(p *Plan) []*Workload {
	var out []*Workload
	for _, w := range p.Workloads {
		if slices.ContainsFunc(g.Compares, func(c *Compare) bool { return slices.Contains(c.Workloads(p), w) }) {
			out = append(out, w)
		}
	}
	return out
}

// ControlOnly reports whether the workload runs on the server only as the control of a comparison.
// If so, no threshold is checked on this server.
func (p *Plan) ControlOnly(s *Server, w *Workload) bool {
	control := false
	for _, c := range p.Compares {
		if !slices.Contains(c.Workloads(p), w) {
			continue
		}
		if c.Candidate == s {
			return false
		}
		control = control || c.Live() && c.Control.Server == s
	}
	return control
}

// Compared reports whether a comparison compares the workload's answers on the server at this
// address with those of another server.
func (p *Plan) Compared(server string, w *Workload) bool {
	return slices.ContainsFunc(p.Compares, func(c *Compare) bool {
		return c.Skip == "" && !c.Unchanged && (c.Candidate.Address() == server || c.Live() &&
			c.Control.Server.Address() == server) && slices.Contains(c.Workloads(p), w)
	})
}

// Idle reports whether the workload need not run on the server. This is so if only comparisons use
// the result, and all of them are skipped because their servers are equal.
func (p *Plan) Idle(s *Server, w *Workload) bool {
	w = w.Root()
	required := slices.ContainsFunc(w.Whole(), func(w *Workload) bool { return len(w.SLAs) > 0 })
	if required || w.Capacity != nil || len(p.Asserts) > 0 || p.Gate.MeasureOnly {
		return false
	}
	idle := false
	for _, c := range p.Compares {
		if c.Candidate != s || !slices.Contains(c.Workloads(p), w) {
			continue
		}
		if !c.Unchanged {
			return false
		}
		idle = true
	}
	return idle
}

// Searches reports whether a capacity search for the workload runs on the server. If the server is
// only a control, a comparison must bound the capacity.
func (p *Plan) Searches(s *Server, w *Workload) bool {
	if w.Capacity == nil || !slices.Contains(w.Servers, s) {
		return false
	}
	return !p.ControlOnly(s, w) || slices.ContainsFunc(p.Compares, func(c *Compare) bool {
		return c.Live() && c.Control.Server == s && c.Capacity(w) != nil
	})
}

// Paired lists the changes of the comparison on metrics with the field Paired.
func (c *Compare) Paired() []*ChangeBound {
	var out []*ChangeBound
	for _, claim := range c.Claims {
		for _, ch := range claim.Changes {
			if ch.Metric.Paired {
				out = append(out, ch)
			}
		}
	}
	return out
}

// Unread explains why the control cannot report log-probabilities of the answers to some workloads;
// "" if it should be able to.
func (c *Compare) Unread(work []*Workload) string {
	if c.Control.Server == nil {
		return ""
	}
	texts := slices.DeleteFunc(slices.Clone(work), func(w *Workload) bool { return w.API.Embeds() })
	if len(work) > 0 && len(texts) == 0 {
		return ""
	}
	e := engine.Of(c.Control.Server.Engine)
	if len(e.ScoreForms()) == 0 {
		return fmt.Sprintf("%s does not report how likely a given text is (%s)", e.Title, e.Without["Scores"])
	}
	for _, w := range texts {
		if w.API != Completions && e.Dialect.Tokenizer == engine.SGLangTokenizer {
			return fmt.Sprintf("%s cannot turn chat messages into tokens, so it cannot report how likely the answers of workload.%s are", e.Title, w.Address())
		}
	}
	return ""
}

// Capacity is the strictest of the bounds on the capacity of a workload; nil without a bound.
func (c *Compare) Capacity(w *Workload) *ChangeBound {
	var out *ChangeBound
	for _, claim := range c.Claims {
		for _, ch := range claim.Changes {
			if ch.Metric.Name == "capacity" && slices.Contains(claim.Workloads, w) && (out == nil || ch.Limit > out.Limit) {
				out = ch
			}
		}
	}
	return out
}
