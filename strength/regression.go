package strength

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// The kinds of regressions. The kinds in plan.Slower have a factor as their size. Failures have a
// share. Every other kind has one fixed size.
const (
	Overhead   = "overhead"   // each request waits longer before it reaches the engine
	Prefill    = "prefill"    // each prompt token costs more
	Decode     = "decode"     // each decoding step takes longer
	Throughput = "throughput" // each sequence in a batch costs twice as much; the maximum throughput halves
	KV         = "kv"         // the KV cache holds half as much
	Cache      = "cache"      // the prefix cache holds half as much
	NoCache    = "no-cache"   // there is no prefix cache
	Sequences  = "sequences"  // half as many sequences run at a time
	Stalls     = "stalls"     // the engine stops for 1 s after every 100 tokens of an answer
	Failures   = "failures"   // a share of the requests fails
	Drafts     = "drafts"     // half as many draft tokens are accepted
	Cut        = "cut"        // answers end at half their length
	Queue      = "queue"      // each request of every tenth round waits 1 s longer
)

// Regression is one way in which a server gets worse.
type Regression struct {
	Kind string
	Size float64 // factor of the slowdown, above 1; for failures the share, in (0, 1]; else 0
}

// All lists the planted regressions, in the order of the report.
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

// Demanded lists the regressions that the gate must notice, as the plan requires (must_detect).
func Demanded(p *plan.Plan) []Regression {
	var out []Regression
	for _, d := range p.Gate.MustDetect {
		out = append(out, Regression{d.Kind, d.Factor})
	}
	return out
}

// String writes the regression for a table: "decode × 1.25".
func (r Regression) String() string {
	switch r.Kind {
	case Throughput:
		return "throughput ceiling halved"
	case KV:
		return "KV cache halved"
	case Cache:
		return "prefix cache halved"
	case NoCache:
		return "prefix cache off"
	case Sequences:
		return "running sequences halved"
	case Drafts:
		return "accepted drafts halved"
	case Stalls:
		return "stalls of 1 s each 100 tokens"
	case Queue:
		return "1 s more in the queue, one round of ten"
	case Failures:
		return metric.Format(metric.Ratio, r.Size) + " of requests fail"
	case Cut:
		return "answers cut to half"
	}
	return r.Kind + " × " + factor(r.Size)
}

func factor(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// words describes the slower server, such as "decodes 2 times slower".
func (r Regression) words() string {
	switch r.Kind {
	case Overhead:
		return fmt.Sprintf("takes %s times as long before it begins", factor(r.Size))
	case Prefill:
		return fmt.Sprintf("prefills %s times slower", factor(r.Size))
	case Decode:
		return fmt.Sprintf("decodes %s times slower", factor(r.Size))
	case Throughput:
		return "has half the throughput ceiling"
	case KV:
		return "has half the KV cache"
	case Cache:
		return "has half the prefix cache"
	case NoCache:
		return "has no prefix cache"
	case Sequences:
		return "runs half as many sequences"
	case Drafts:
		return "accepts half as many drafts"
	case Stalls:
		return "stalls for 1 s each 100 tokens"
	case Queue:
		return "lets one round of ten wait 1 s longer"
	case Failures:
		return "fails " + metric.Format(metric.Ratio, r.Size) + " of the requests"
	case Cut:
		return "cuts answers to half"
	}
	return r.String()
}

// Changes reports whether a regression is planted in the server at an address. Without a comparison
// every server gets the regression. In a comparison a server that is only the control stays
// unchanged, unless a candidate has the same address.
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

// Plant changes the profile of a simulated server of the plan. It reports whether the regression
// changed anything: a server without speculative decoding has no drafts to lose.
func (r Regression) Plant(p *plan.Plan, to *sim.Profile) bool {
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
		// Without room for one request of the full context the server would not start, so the cache
		// keeps that much.
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

// scale multiplies costs by a factor.
func scale(by float64, costs ...*float64) bool {
	any := false
	for _, c := range costs {
		any = any || *c > 0
		*c *= by
	}
	return any
}

// queueRounds is the number of rounds that the regression Queue can slow down. Every tenth round is
// slow, so that is enough for plans with several levels.
const queueRounds = 50

// rules returns the faults that a simulated server gets for a regression that leaves its speed
// unchanged.
func (r Regression) rules(p *plan.Plan) sim.Script {
	shortest, round := 0, 0
	for _, w := range p.Workloads {
		if n := w.Output.Mean; shortest == 0 || n > 0 && n < shortest {
			shortest = n
		}
		for _, l := range w.Loads {
			for _, level := range l.Levels {
				round = max(round, level.Requests/max(level.Rounds, 1))
			}
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
