package assert

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// balance is how a gateway spread a level over its replicas.
type balance struct {
	busiest metric.Replica
	share   float64 // of the output tokens that the busiest replica made
	of      int     // replicas
	// units is how many requests or conversations of equal length would be worth as much, if the
	// gateway spread them at random.
	units float64
	noun  string // "requests" or "conversations"
}

// balanceOf returns how the level was spread. If that is not known, why says so.
//
// A gateway may send all turns of a conversation to one replica, so only conversations are
// independent. Their numbers of turns differ by about their mean, so two count as one. Requests of
// unequal length count as (Σw)²/Σw² of equal length (Kish's effective number), w being the tokens.
func balanceOf(l *metric.Level) (x balance, why string) {
	if x.busiest, x.share, x.of, why = l.Busiest(); why != "" {
		return x, why
	}
	sum, squares, conversations, turns := 0.0, 0.0, 0, false
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			w := float64(s.Chunks) // a cancelled request has no usage
			if s.Usage != nil {
				w = float64(s.Usage.Output)
			}
			sum, squares, turns = sum+w, squares+w*w, turns || s.Turn > 1
			if s.Turn == 1 {
				conversations++
			}
		}
	}
	switch x.noun = "requests"; {
	case turns:
		x.noun, x.units = "conversations", float64(conversations)/2
	case squares > 0:
		x.units = sum * sum / squares
	}
	return x, ""
}

// Limits of what is said about the spread of a level without a threshold. A spread is uneven if the
// busiest replica certainly gets more than unevenly times its fair share: with an error of at most
// balanceAlpha for all replicas together. A larger share than byChance that is not certain is said to
// be chance.
const (
	unevenly     = 1.2
	byChance     = 1.5
	balanceAlpha = 0.001
)

// test compares the busiest replica's share with a share that is allowed. Any of the replicas could
// have been the busiest, so Above allows for all of them.
func (x balance) test(allowed, alpha float64) stat.Side {
	d := stat.Share(x.share*x.units, x.units, allowed, alpha)
	if d == stat.Above && stat.Share(x.share*x.units, x.units, allowed, alpha/float64(x.of)) != stat.Above {
		return stat.Open
	}
	return d
}

func (x balance) String() string {
	of := float64(x.of)
	return fmt.Sprintf("%s made %s of the output tokens, %s times its fair share of %s", x.busiest.URL,
		metric.Format(metric.Ratio, x.share), metric.Format(metric.Count, x.share*of), metric.Format(metric.Ratio, 1/of))
}

// balanced says that a gateway spread the level unevenly, and whether chance explains it.
func balanced(v *verdict.Verdict, l *metric.Level) {
	x, why := balanceOf(l)
	if why != "" {
		return
	}
	fair := 1 / float64(x.of)
	switch {
	case x.test(min(unevenly*fair, 1), balanceAlpha) == stat.Above:
		v.Caution(fmt.Sprintf("the replicas are loaded unevenly: %s, and chance does not explain it", x))
	case x.share >= byChance*fair:
		v.Note(fmt.Sprintf("%s. With so few %s chance alone may spread them as unevenly, if each stays on one replica", x, x.noun))
	}
}

// imbalanced judges a threshold on imbalance by an exact test of the busiest replica's share. It waits
// for the end of the load, because only then do the replicas' counters add up.
func (s *subject) imbalanced(v *verdict.Verdict, t *plan.Threshold) {
	x, why := balanceOf(s.level)
	if why != "" {
		noValue(v, t, why)
		return
	}
	of := float64(x.of)
	v.N, v.Value, v.Effective = s.n, metric.Some(x.share*of), x.units
	v.Message = fmt.Sprintf("%s: %s", compared(t, v.Value), x)
	if low, high, ok := stat.ClopperPearson(x.share*x.units, x.units, s.alpha); ok {
		v.Low, v.High = metric.Some(low*of), metric.Some(high*of)
	}
	allowed := t.Limit / of
	if allowed >= 1 {
		decided(v, true)
		return
	}
	if s.unfinished() {
		v.Outcome, v.More = verdict.Inconclusive, s.due-s.n
		v.Needs = "needs the whole load: the counters of the replicas add up only at its end"
		return
	}
	if s.settled(v, x.share <= allowed, x.test(allowed, s.alpha)) {
		return
	}
	n, ok := stat.Needed(x.share, allowed, s.alpha)
	if v.More = -1; !ok || x.units <= 0 {
		v.Needs = "no number of requests decides it: the value is too close to the limit"
		return
	}
	more := max(float64(s.n)*(float64(n)/x.units-1), 1)
	v.More, v.Needs = int(math.Ceil(more)), verdict.NeedsMore(int(math.Ceil(more)), "requests")
}
