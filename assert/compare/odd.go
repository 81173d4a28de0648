package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// oddNats is the difference from which an answer counts as odd, in nats per token. The control
// finds it that much less likely than its own answer to the same prompt. At 1 nat per token, an
// answer of 64 tokens is e^64 times less likely.
const oddNats = 1.0

// Oddity is an odd answer of the candidate. Why says why it is odd.
type Oddity struct {
	Workload, Level string
	Round, Order    int     // of a measured request; otherwise Order is the number of the prompt
	Sampled         bool    // it is a measured answer
	Excess          float64 // how much less likely it is than the control's answer, in nats per token; 0 if unknown
	Why             string
	// Bounded means that only a bound from the control's own answers makes it odd. A few answers of
	// any server exceed such a bound by chance.
	Bounded bool

	control, candidate *metric.PairedAnswer // control is nil for a measured answer
}

// tooOdd returns why the answer a is odd; "" if it is not. The parameter beside is an answer to the
// same prompt, for comparison. The result excess is how much less likely a is than that answer, in
// nats per token. bounded is as in Oddity.
func (u *usual) tooOdd(of group, a, beside *metric.PairedAnswer) (excess float64, why string, bounded bool) {
	if x, ok := a.PerToken(); ok {
		if y, ok := beside.PerToken(); ok {
			excess = x - y
		}
	}
	own := func(bad func(*metric.PairedAnswer) bool) bool { return bad(a) && !bad(beside) }
	switch {
	case own(func(a *metric.PairedAnswer) bool { return a.Failure != "" }):
		why = "failed"
	case a.Failure != "":
	case own(func(a *metric.PairedAnswer) bool { return a.Empty }):
		why = "empty"
	case own(func(a *metric.PairedAnswer) bool { return a.Invalid }):
		why = "with invalid text"
	case own(func(a *metric.PairedAnswer) bool { return a.Repeats }):
		why = "repetitive"
	case own((*metric.PairedAnswer).Long):
		why = "longer than asked for"
	case excess > oddNats:
		why = "improbable to the control"
	case a.Stops && !beside.Long() && (a.Finish != "length" || a.Tokens < a.Asked):
		why = "cut off in the middle"
	case a.Worst > beside.Worst+oddNats && a.Worst > u.boundsFor(of, a.Scored).worst:
		why, bounded = "with an improbable token", true
	}
	return excess, why, bounded
}

// oddSample returns why the measured answer a is odd; "" if it is not. The answers of two servers
// to the same prompt differ by chance, so a is compared with all measured answers of the control.
// The result excess is how much less likely a is than their median, in nats per token.
func (u *usual) oddSample(of group, a *metric.PairedAnswer) (excess float64, why string) {
	x, ok := a.PerToken()
	if !ok {
		return 0, ""
	}
	b := u.boundsFor(of, a.Scored)
	switch excess = x - b.median; {
	case excess > oddNats && x > b.mean:
		return excess, "measured and improbable to the control"
	case a.Worst > b.worst:
		return excess, "measured and with an improbable token"
	}
	return excess, ""
}

// oddAnswers holds the odd answers of both servers, and how many answers were checked.
type oddAnswers struct {
	odd   []Oddity // the candidate's, the oddest first
	of    int      // number of the candidate's answers that were checked
	own   int      // the number of the control's odd answers
	ownOf int      // likewise
	// bounded and ownBounded are the numbers of odd answers of both servers that are Bounded.
	bounded, ownBounded int
	unread              int // number of the candidate's measured answers that could not be scored
}

// oddities finds the odd answers. An answer at temperature 0 is odd in comparison with the control's
// first answer to the same prompt.
func (u *usual) oddities(r *metric.PairedAnswers) (out oddAnswers) {
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.Control == nil {
			continue
		}
		of := group{p.Workload, p.Level, false}
		if p.Candidate != nil {
			out.of++
			if excess, why, bounded := u.tooOdd(of, p.Candidate, p.Control); why != "" {
				out.odd = append(out.odd, Oddity{Workload: p.Workload, Level: p.Level, Order: p.Order,
					Excess: excess, Why: why, Bounded: bounded, control: p.Control, candidate: p.Candidate})
			}
		}
		for _, x := range [][2]*metric.PairedAnswer{{p.Control, p.Candidate}, {p.Again, p.Control}} {
			if x[0] == nil || x[1] == nil {
				continue
			}
			out.ownOf++
			if _, why, bounded := u.tooOdd(of, x[0], x[1]); bounded {
				out.ownBounded++
			} else if why != "" {
				out.own++
			}
		}
	}
	for i := range r.Sampled {
		s := &r.Sampled[i]
		excess, why := u.oddSample(group{s.Workload, s.Level, true}, &s.PairedAnswer)
		switch {
		case s.Candidate && s.Scored == 0:
			out.unread++
		case s.Scored == 0:
		case !s.Candidate:
			if out.ownOf++; why != "" {
				out.ownBounded++
			}
		default:
			if out.of++; why != "" {
				out.odd = append(out.odd, Oddity{Workload: s.Workload, Level: s.Level, Round: s.Round, Order: s.Order,
					Sampled: true, Excess: excess, Why: why, Bounded: true, candidate: &s.PairedAnswer})
			}
		}
	}
	slices.SortStableFunc(out.odd, func(a, b Oddity) int { return cmp.Compare(b.Excess, a.Excess) })
	out.certain()
	return out
}

// boundedAlpha is the probability of counting answers as odd by bounds although the servers are
// equal.
const boundedAlpha = 0.01

// certain leaves out the answers that only bounds make odd, unless the candidate has certainly more
// of them than the control.
func (o *oddAnswers) certain() {
	for _, x := range o.odd {
		if x.Bounded {
			o.bounded++
		}
	}
	if o.chance(o.bounded, o.ownBounded) <= boundedAlpha {
		o.own += o.ownBounded
	} else {
		o.odd = slices.DeleteFunc(o.odd, func(x Oddity) bool { return x.Bounded })
	}
}

// chance returns the probability that at least odd of odd + own odd answers are the candidate's, if
// the servers are equal.
func (o *oddAnswers) chance(odd, own int) float64 {
	if odd+own == 0 {
		return 1
	}
	return stat.AtLeast(float64(odd), float64(odd+own), float64(o.of)/float64(o.of+o.ownOf))
}

// silent reports whether the control's measured answers could be scored, but none of the
// candidate's.
func (o *oddAnswers) silent(r *metric.PairedAnswers) bool {
	scored := func(candidate bool) bool {
		return slices.ContainsFunc(r.Sampled, func(s metric.SampledAnswer) bool { return s.Candidate == candidate && s.Scored > 0 })
	}
	return o.unread > 0 && scored(false) && !scored(true)
}

// count judges how many more odd answers the candidate has than expected. The control's own odd
// answers give the expected number. If there are any, a fail also needs a difference that chance
// does not explain.
func (c *Change) count(r *metric.PairedAnswers, alpha float64) {
	o := newUsual(r).oddities(r)
	n, odd := float64(o.of), float64(len(o.odd))
	expected := math.Ceil(float64(o.own) * n / math.Max(float64(o.ownOf), 1))
	beyond := odd - expected
	c.Control, c.Candidate, c.Change = metric.Some(expected), metric.Some(odd), metric.Some(beyond)
	c.Certifiable = metric.Some(math.Max(beyond, 0))
	switch {
	case beyond <= c.Limit.V && o.silent(r):
		c.Outcome = verdict.Inconclusive
		c.Needs = fmt.Sprintf("needs measured answers that can be scored: each of %d failed, is empty or is too long", o.unread)
	case beyond <= c.Limit.V:
		c.Outcome = verdict.Pass
	case o.own == 0 || o.chance(len(o.odd), o.own) <= alpha:
		c.Outcome = verdict.Fail
	default:
		c.Outcome = verdict.Inconclusive
		c.Needs = fmt.Sprintf("needs more prompts: odd_answers counts %d of %d answers on the candidate and %d of %d on the control. Chance alone may explain the difference", len(o.odd), o.of, o.own, o.ownOf)
	}
	c.Message = fmt.Sprintf("odd_answers: %d of the candidate's %d answers are odd%s, and %d of the control's %d answers are odd; tolerated: %s more", len(o.odd), o.of, reasons(o.odd), o.own, o.ownOf, metric.Format(metric.Count, c.Limit.V))
	if _, high, ok := stat.ClopperPearson(math.Min(c.Limit.V+expected, n), n, alpha); ok && c.Outcome == verdict.Pass {
		c.Notes = append(c.Notes, fmt.Sprintf("this verdict covers only these %d answers: a share of odd answers below %s may go unnoticed", o.of, metric.Format(metric.Ratio, high)))
	}
	if len(o.odd) > 0 {
		c.Notes = append(c.Notes, o.odd[0].words())
	}
	if o.bounded > 0 && !slices.ContainsFunc(o.odd, func(x Oddity) bool { return x.Bounded }) {
		c.Notes = append(c.Notes, fmt.Sprintf("%s of the candidate and %d of the control have an improbable token, or are improbable for measured answers. Chance may explain that, so they do not count", verdict.Count(o.bounded, "answers"), o.ownBounded))
	}
}

func (o Oddity) words() string {
	which := fmt.Sprintf("prompt %d", o.Order+1)
	if o.Sampled {
		which = fmt.Sprintf("measured request %d of round %d", o.Order+1, o.Round+1)
	}
	return fmt.Sprintf("the oddest answer is the answer to %s of %s at %s: %s%s", which, o.Workload, o.Level, o.Why, o.rarity())
}

// rarity returns, in words, how much less likely the odd answer is than the control's answer.
func (o Oddity) rarity() string {
	switch {
	case o.Bounded && !o.unlikely():
		return fmt.Sprintf(", which the control gives a loss of %.1f nats", o.candidate.Worst)
	case o.Excess <= 0:
		return ""
	case o.Sampled:
		return fmt.Sprintf(", and less likely than the control's answers by %s", metric.Format(metric.NatsPerToken, o.Excess))
	}
	return fmt.Sprintf(", and less likely than the control's answer by %s", metric.Format(metric.NatsPerToken, o.Excess))
}

// unlikely reports whether the whole answer is unlikely, not only one of its tokens.
func (o Oddity) unlikely() bool { return o.Excess > oddNats }

// reasons counts the odd answers by their reason, such as " (5 improbable to the control, 2 empty)".
func reasons(odd []Oddity) string {
	var list, order []string
	n := map[string]int{}
	for _, o := range odd {
		if n[o.Why]++; n[o.Why] == 1 {
			order = append(order, o.Why)
		}
	}
	for _, why := range order {
		list = append(list, fmt.Sprintf("%d %s", n[why], why))
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}
