package strength

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// The kinds of regressions. The size of a regression is a factor for the kinds in plan.Slower, and
// a share for Failures. All other kinds have a fixed size.
const (
	Overhead   = "overhead"   // each request takes longer to reach the engine
	Prefill    = "prefill"    // each prompt token takes longer
	Decode     = "decode"     // each decoding step takes longer
	Throughput = "throughput" // each sequence in a batch costs twice as much: half the throughput
	KV         = "kv"         // half the size of the KV cache
	Cache      = "cache"      // half the size of the prefix cache
	NoCache    = "no-cache"   // the server has no prefix cache
	Sequences  = "sequences"  // only half as many sequences run at a time
	Stalls     = "stalls"     // the engine pauses for 1 s after every 100 tokens of an answer
	Failures   = "failures"   // some of the requests fail
	Drafts     = "drafts"     // half as many draft tokens are accepted
	Cut        = "cut"        // answers end at half their length
	Queue      = "queue"      // in every tenth round each request waits 1 s longer
)

// ofText lists the kinds that only a server that writes text can have.
var ofText = []string{Decode, Throughput, Stalls, Drafts, Cut}

// Regression is one way in which a server gets worse.
type Regression struct {
	Kind string
	Size float64 // slowdown factor above 1; for Failures, the share of requests that fail; else 0
}

// All lists the regressions that are planted, in the order of the report.
func All() []Regression {
	var out []Regression
	for _, kind := range plan.Slower {
		for _, factor := range []float64{1.1, 1.25, 2, 10} {
			out = append(out, Regression{kind, factor})
		}
	}
	for _, kind := range []string{Throughput, KV, Cache, NoCache, Sequences, Drafts, Stalls, Queue} {
		out = append(out, Regression{Kind: kind})
	}
	return append(out, Regression{Failures, 0.01}, Regression{Failures, 0.05}, Regression{Kind: Cut})
}

// Demanded lists the regressions that the gate must notice by the plan's must_detect.
func Demanded(p *plan.Plan) []Regression {
	var out []Regression
	for _, d := range p.Gate.MustDetect {
		out = append(out, Regression{d.Kind, d.Factor})
	}
	return out
}

// phrases names each kind of regression in a table, and says what a server with it does. The sign %
// stands for the size.
var phrases = map[string]struct{ name, does string }{
	Overhead:   {"overhead × %", "takes % times as long before it begins"},
	Prefill:    {"prefill × %", "prefills % times slower"},
	Decode:     {"decode × %", "decodes % times slower"},
	Throughput: {"throughput ceiling halved", "has half the throughput ceiling"},
	KV:         {"KV cache halved", "has half the KV cache"},
	Cache:      {"prefix cache halved", "has half the prefix cache"},
	NoCache:    {"prefix cache off", "has no prefix cache"},
	Sequences:  {"running sequences halved", "runs half as many sequences"},
	Drafts:     {"accepted drafts halved", "accepts half as many drafts"},
	Stalls:     {"stalls of 1 s each 100 tokens", "stalls for 1 s each 100 tokens"},
	Queue:      {"1 s more in the queue, one round of ten", "lets one round of ten wait 1 s longer"},
	Failures:   {"% of requests fail", "fails % of the requests"},
	Cut:        {"answers cut to half", "cuts answers to half"},
}

// String writes the regression for a table: "decode × 1.25".
func (r Regression) String() string { return r.sized(phrases[r.Kind].name) }

func (r Regression) words() string { return r.sized(phrases[r.Kind].does) }

func (r Regression) sized(phrase string) string {
	size := strconv.FormatFloat(r.Size, 'f', -1, 64)
	if r.Kind == Failures {
		size = metric.Format(metric.Ratio, r.Size)
	}
	return strings.Replace(phrase, "%", size, 1)
}

// Changes reports whether a regression is planted in the server at an address. In a comparison, the
// control stays unchanged, unless it is also a candidate. Without a comparison every server gets
// the regression.
func Changes(p *plan.Plan, address string) bool {
	control := false
	for _, c := range p.Compares {
		if c.Candidate != nil && c.Candidate.Address() == address {
			return true
		}
		control = control || c.Control.Server != nil && c.Control.Server.Address() == address
	}
	return !control
}

// Plant puts the regression into the profile of a simulated server of the plan. It reports whether
// the profile changed. For example, a server without speculative decoding cannot lose drafts, and one
// of embeddings cannot decode slower.
func (r Regression) Plant(p *plan.Plan, to *sim.Profile) bool {
	writes := func(w *plan.Workload) bool { return !w.API.Embeds() }
	if slices.Contains(ofText, r.Kind) && !slices.ContainsFunc(p.Workloads, writes) {
		return false
	}
	switch r.Kind {
	case Overhead:
		return scale(r.Size, &to.OverheadMS, &to.FrontMSPerRequest, &to.FrontUSPerToken)
	case Prefill:
		return scale(r.Size, &to.Prefill.USPerToken, &to.Prefill.NSPerToken2, &to.Prefill.ChunkMS)
	case Decode:
		d := &to.Decode
		return scale(r.Size, &d.BaseMS, &d.PerSeqMS, &d.PerKtokenMS, &d.PerKtokenLongestMS, &d.MoEMS)
	case Throughput:
		return scale(2, &to.Decode.PerSeqMS, &to.Decode.PerKtokenMS, &to.Decode.MoEMS)
	case KV:
		before := to.Limits.KVTokens
		// Keep room for one request of the full context. Without it the server would not start.
		to.Limits.KVTokens = max(before/2, min(before, to.MaxModelLen+to.Limits.KVPerSeqTokens))
		return to.Limits.KVTokens < before
	case Cache, NoCache:
		return r.cache(to)
	case Sequences:
		before := to.Limits.MaxSeqs
		to.Limits.MaxSeqs = (before + 1) / 2
		return to.Limits.MaxSeqs < before
	case Drafts:
		if to.Speculation == nil {
			return false
		}
		to.Speculation = &sim.Speculation{Accept: slices.Clone(to.Speculation.Accept), Spread: to.Speculation.Spread}
		for i := range to.Speculation.Accept {
			to.Speculation.Accept[i] /= 2
		}
		return true
	case Stalls:
		to.Stalls = &sim.Stalls{EverySteps: max(1, int(100/to.TokensPerStep())), MS: 1000}
		return true
	}
	rules := r.rules(p)
	to.Faults = slices.Concat(to.Faults, rules)
	return len(rules) > 0
}

// cache halves or removes the prefix cache. It reports whether the server has one.
func (r Regression) cache(to *sim.Profile) bool {
	if to.PrefixCache == nil {
		return false
	}
	smaller := *to.PrefixCache
	smaller.CapacityTokens = max(smaller.CapacityTokens/2, smaller.BlockTokens)
	to.PrefixCache = &smaller
	if r.Kind == NoCache {
		to.PrefixCache = nil
	}
	return true
}

// scale multiplies costs by a factor. It reports whether any cost was above 0.
func scale(by float64, costs ...*float64) bool {
	any := false
	for _, c := range costs {
		any = any || *c > 0
		*c *= by
	}
	return any
}

// queueRounds is the number of rounds that the regression Queue slows: every tenth of the first 500
// rounds of a simulated server. That is enough for plans with several levels.
const queueRounds = 50

// rules returns the faults of a simulated server with the regression. Regressions that change the
// server's speed need no faults.
func (r Regression) rules(p *plan.Plan) sim.Script {
	shortest, round := 0, 0
	for _, w := range p.Workloads {
		if n := w.Output.Mean; shortest == 0 || n > 0 && n < shortest {
			shortest = n
		}
		for _, level := range w.Levels() {
			round = max(round, level.Requests/max(level.Rounds, 1))
		}
	}
	switch r.Kind {
	case Failures:
		return sim.Script{{Fault: "http-500", Share: r.Size}}
	case Cut:
		return sim.Script{{Fault: "early-stop", Tokens: max(1, shortest/2)}}
	case Queue:
		round = max(round, 10)
		var out sim.Script
		for i := range queueRounds {
			from := (10*i + 5) * round
			out = append(out, sim.Rule{Fault: "late", From: from, To: from + round, DelayMS: 1000})
		}
		return out
	}
	return nil
}
