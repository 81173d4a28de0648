package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// answersLevel takes the place of a level's name in verdicts on scored answers.
const answersLevel = "answers"

// usualOfPairs are the default limits on metrics that compare two answers to the same prompt. A
// tolerate block may replace each of them.
var usualOfPairs = append([]plan.ChangeBound{
	{Metric: metric.MustLookup("odd_answers"), Limit: 2, Points: true, Text: "count +2"},
	{Metric: metric.MustLookup("answer_nll"), Stat: metric.Stat{Kind: metric.Mean}, Limit: 0.05, Points: true, Text: "mean +0.05"},
}, usualOfAnswers...)

// usualOfVectors is likewise for embeddings. Noise of 3 % of a component is below it.
var usualOfVectors = []plan.ChangeBound{
	{Metric: metric.MustLookup("cosine_distance"), Stat: metric.Stat{Kind: metric.Mean}, Limit: 0.0005, Points: true, Text: "mean +0.0005"},
}

// usualPairs returns the default limits on answers to the same prompts of the compared workloads.
func (x *comparison) usualPairs() []plan.ChangeBound {
	var out []plan.ChangeBound
	work := x.Block.Workloads(x.Plan)
	if len(work) == 0 || slices.ContainsFunc(work, func(w *plan.Workload) bool { return !w.API.Embeds() }) {
		out = append(out, usualOfPairs...)
	}
	if slices.ContainsFunc(work, func(w *plan.Workload) bool { return w.API.Embeds() }) {
		out = append(out, usualOfVectors...)
	}
	return out
}

// readings returns the claims on scored answers: those in the plan, and the defaults of the answers
// block. It returns nil if the comparison has no answers block.
func (x *comparison) readings() []claimed {
	if x.Block.Answers == nil {
		return nil
	}
	var out []claimed
	for _, claim := range x.Block.Claims {
		for _, ch := range claim.Changes {
			if ch.Metric.Paired {
				out = append(out, claimed{claim: claim, change: ch})
			}
		}
	}
	x.reading = &plan.Claim{Severity: plan.SeverityError, Range: x.Block.Answers.Range}
	for _, ch := range x.usualPairs() {
		ch.Range = x.Block.Answers.Range
		if !slices.ContainsFunc(out, func(c claimed) bool { return c.change.Metric.Name == ch.Metric.Name }) {
			x.reading.Changes = append(x.reading.Changes, &ch)
			out = append(out, claimed{claim: x.reading, change: &ch})
		}
	}
	return out
}

// Readings returns the limits of a compare block on scored answers, with the defaults of its
// answers block. It also names the workloads to which they apply. Without an answers block there
// are none.
func Readings(p *plan.Plan, c *plan.Compare) (workloads string, bounds []*plan.ChangeBound) {
	x := comparison{Input: Input{Plan: p, Block: c}}
	for _, r := range x.readings() {
		workloads, bounds = x.answersRow(r.change).Workload, append(bounds, r.change)
	}
	return workloads, bounds
}

// read judges the paired answers of both servers to the same prompts. The control has scored every
// answer.
func (x *comparison) read() {
	if x.Block.Answers == nil {
		return
	}
	var r *metric.PairedAnswers
	if x.record != nil {
		r = x.record.Answers
	}
	for _, c := range x.reads {
		row := x.answersRow(c.change)
		row.Improve, row.Severity = c.claim.Improve, verdict.Severity(c.claim.Severity)
		row.bound, row.Limit = c.change, metric.Some(c.change.Limit)
		x.readOne(&row, r, c)
		if row.Outcome == verdict.Fail {
			again := row
			x.readOne(&again, answered(r), c)
			row.sure = again.Outcome == verdict.Fail
		}
		if c.claim == x.reading && !row.Metric.Paired && row.unsettled(x.whole) {
			row.showOnly()
			row.instead = "there are too few answers to judge this metric, so the metric is only shown; odd_answers counts answers with a fault that the control's answers lack"
		}
		c.index = len(x.out.Changes)
		x.claims, x.out.Changes = append(x.claims, c), append(x.out.Changes, row)
	}
	if r == nil || r.Due == 0 {
		return
	}
	for _, shown := range []func(*metric.PairedAnswers) (Change, bool){x.agreement, x.gap} {
		if row, ok := shown(r); ok {
			x.out.Changes = append(x.out.Changes, row)
		}
	}
	x.oddest(r)
	if r.Unscored != "" {
		x.out.Notes = append(x.out.Notes, "the control does not report how likely an answer is, so odd answers are found only by their form: "+verdict.OneLine(r.Unscored))
	}
}

// answered returns the paired answers without the pairs in which a request failed. A slow generator
// can make a request fail, but it cannot change the text of an answer.
func answered(r *metric.PairedAnswers) *metric.PairedAnswers {
	if r == nil {
		return nil
	}
	out := *r
	out.Embedded = answered(r.Embedded)
	out.Pairs = slices.DeleteFunc(slices.Clone(r.Pairs), func(p metric.AnswerPair) bool {
		return slices.ContainsFunc([]*metric.PairedAnswer{p.Control, p.Candidate, p.Again},
			func(a *metric.PairedAnswer) bool { return a != nil && a.Failure != "" })
	})
	return &out
}

func (x *comparison) answersRow(ch *plan.ChangeBound) Change {
	var names []string
	for _, w := range x.Block.Workloads(x.Plan) {
		if w.API.Embeds() == ofVectors(ch.Metric) {
			names = append(names, w.Address())
		}
	}
	return Change{Workload: strings.Join(names, ", "), Level: answersLevel, OfAnswers: true, Metric: ch.Metric, Stat: ch.Stat,
		Shift: x.unmeasured(ch.Points), Limit: metric.None("")}
}

// ofVectors reports whether the metric compares embeddings, and not texts.
func ofVectors(def metric.Def) bool { return def.Paired && def.OfEmbeddings() }

// readOne judges one claim on scored answers. The claim does not pass if answers or scores are
// missing.
func (x *comparison) readOne(row *Change, r *metric.PairedAnswers, c claimed) {
	if r != nil && ofVectors(row.Metric) {
		r = r.Embedded
	}
	if r == nil {
		row.lack("the record holds no answers that the control has scored")
		return
	}
	switch name := row.Metric.Name; {
	case name == "odd_answers":
		row.count(r, x.whole)
	case name == "cosine_distance":
		row.distance(r)
		row.estimate(x.whole)
		row.require(c.change, c.claim, x.Block.Policy, x.whole)
	case name == "answer_nll" && r.Unscored != "" && x.mute():
		row.inapplicable("the control does not report how likely an answer is: " + verdict.OneLine(r.Unscored))
		return
	case name == "answer_nll":
		row.loss(r)
		row.estimate(x.whole)
		row.require(c.change, c.claim, x.Block.Policy, x.whole)
	default:
		row.form(r)
		row.estimate(x.whole)
		row.require(c.change, c.claim, x.Block.Policy, x.whole)
	}
	why := lacking(r, row.Metric)
	if row.Metric.Paired && r.Unscored != "" && !x.mute() {
		why = "the control does not report how likely an answer is: " + verdict.OneLine(r.Unscored)
	}
	if why == "" && ofVectors(row.Metric) && slices.ContainsFunc(r.Pairs, unmeasured) {
		why = "the control sent no embeddings for some inputs, or some without direction, so there is nothing to compare with"
	}
	if why != "" && row.Outcome != verdict.Fail {
		row.lack(why)
	}
}

// unmeasured reports whether nothing says how far the candidate's embeddings are from the control's.
func unmeasured(p metric.AnswerPair) bool { return p.Candidate != nil && p.Candidate.Distance == nil }

// mute reports whether the control may lack scores without an error. It may if no plan requires
// scores, or if the plan's author was told before the run.
func (x *comparison) mute() bool {
	return x.Planless || x.Block.Unread(x.Block.Workloads(x.Plan)) != ""
}

func (c *Change) lack(why string) {
	c.Outcome, c.Why, c.Message, c.Needs = verdict.Error, why, c.Name()+": "+why, ""
}

// lacking explains which answers or scores are missing; "" if none is.
func lacking(r *metric.PairedAnswers, def metric.Def) string {
	asked, again, unread, silent := 0, 0, unreadSamples(r), 0
	for _, p := range r.Pairs {
		if p.Control != nil && p.Candidate != nil {
			if asked++; p.Control.Failure != "" || p.Control.Empty {
				silent++
			}
		}
		if p.Again != nil {
			again++
		}
		for _, a := range []*metric.PairedAnswer{p.Control, p.Candidate, p.Again} {
			if a != nil && a.Scored == 0 && a.Readable() {
				unread++
			}
		}
	}
	switch {
	case r.Due < 1:
		return "the comparison had no prompts to answer"
	case asked < r.Due:
		return fmt.Sprintf("both servers answered only %d of %d prompts", asked, r.Due)
	case 2*silent > asked: // most of the control's answers are bad, so a comparison shows nothing
		return fmt.Sprintf("the control failed or gave an empty answer to %d of %d prompts", silent, asked)
	case again < r.Again:
		return fmt.Sprintf("the control answered only %d of %d prompts a second time", again, r.Again)
	case unread > 0 && r.Unscored == "" && def.Paired && !ofVectors(def):
		return fmt.Sprintf("the control did not report how likely %s are", verdict.Count(unread, "answers"))
	}
	return ""
}

// unreadSamples returns how many measured answers lack a score although they can be scored.
func unreadSamples(r *metric.PairedAnswers) (n int) {
	for i := range r.Sampled {
		if a := &r.Sampled[i]; a.Scored == 0 && a.Readable() {
			n++
		}
	}
	return n
}

// loss computes the change of answer_nll.
//
// It computes how much less likely the candidate's answers are than the control's first answers.
// If the control has enough second answers, the same figure for them is subtracted. Odd answers are
// left out, because one of them could dominate the mean.
func (c *Change) loss(r *metric.PairedAnswers) {
	var own, first, theirs []float64
	for i := range r.Pairs {
		p := &r.Pairs[i]
		x, ok := p.Control.PerToken()
		if !ok {
			continue
		}
		for _, other := range []*metric.PairedAnswer{p.Candidate, p.Again} {
			y, ok := other.PerToken()
			if !ok || math.Abs(y-x) > oddNats {
				continue
			}
			if other == p.Candidate {
				c.delta.candidate, first, theirs = append(c.delta.candidate, y-x), append(first, x), append(theirs, y)
			} else {
				own = append(own, y-x)
			}
		}
	}
	c.delta.control = own
	if c.delta.unpaired = len(own) >= metric.LeastRounds; !c.delta.unpaired {
		c.delta = delta{units: c.delta.candidate}
	}
	c.Control, c.Candidate = meanOf(first), meanOf(theirs)
}

// distance computes the change of cosine_distance: how much farther the candidate's embeddings are from
// the control's first ones than the control's second ones are.
func (c *Change) distance(r *metric.PairedAnswers) {
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.Candidate != nil && p.Candidate.Distance != nil {
			c.delta.candidate = append(c.delta.candidate, *p.Candidate.Distance)
		}
		if p.Again != nil && p.Again.Distance != nil {
			c.delta.control = append(c.delta.control, *p.Again.Distance)
		}
	}
	c.Control, c.Candidate = meanOf(c.delta.control), meanOf(c.delta.candidate)
	if c.delta.unpaired = len(c.delta.control) >= metric.LeastRounds; !c.delta.unpaired {
		c.delta = delta{units: c.delta.candidate}
	}
}

// meanOf returns the mean of the values of answers.
func meanOf(xs []float64) metric.Value {
	if len(xs) == 0 {
		return metric.None("no answer was scored")
	}
	v, _ := stat.Moments(xs)
	return metric.Some(v)
}

// sampleOf converts an answer to a sample, with the fields that the method form uses.
func sampleOf(a *metric.PairedAnswer) *metric.Sample {
	s := &metric.Sample{Phase: metric.Measured, Finish: a.Finish,
		Answer: &metric.Answer{Empty: a.Empty, Repeats: a.Repeats, Invalid: a.Invalid}}
	if a.Tokens > 0 {
		s.Usage = &metric.Usage{Output: a.Tokens}
	}
	if a.Failure != "" {
		s.Failure = &metric.Failure{Kind: metric.FailStatus, Message: a.Failure}
	}
	return s
}

// form computes the change of a metric on the form of answers, such as empty or repetition. It
// compares the two answers to each prompt.
func (c *Change) form(r *metric.PairedAnswers) {
	var pairs [][2]*metric.Sample
	for i := range r.Pairs {
		if p := &r.Pairs[i]; p.Control != nil && p.Candidate != nil {
			pairs = append(pairs, [2]*metric.Sample{sampleOf(p.Control), sampleOf(p.Candidate)})
		}
	}
	if c.Metric.Name == "answer_tokens" {
		c.tokens(pairs)
		return
	}
	var o outcomes
	var bad [2]float64
	for _, p := range pairs {
		var b [2]float64
		for side, s := range p {
			if s.Bad(c.Metric) {
				b[side] = 1
				bad[side]++
			}
		}
		o.lost += math.Max(b[1]-b[0], 0)
		o.won += math.Max(b[0]-b[1], 0)
		o.all++
	}
	if o.all > 0 {
		c.delta.paired = &o
		c.Control, c.Candidate = metric.Some(bad[0]/o.all), metric.Some(bad[1]/o.all)
	}
}

func (c *Change) tokens(pairs [][2]*metric.Sample) {
	var both [2][]float64
	for _, p := range pairs {
		x, ok := p[0].Value(c.Metric.Name)
		y, known := p[1].Value(c.Metric.Name)
		if ok && known {
			both[0], both[1] = append(both[0], x), append(both[1], y)
		}
	}
	if len(both[0]) < 2 {
		c.Control, c.Candidate = metric.None(c.Metric.NoValue), metric.None(c.Metric.NoValue)
		return
	}
	a, _ := stat.Moments(both[0])
	b, _ := stat.Moments(both[1])
	c.Control, c.Candidate = metric.Some(a), metric.Some(b)
	for i := range both[0] {
		c.delta.units = append(c.delta.units, (both[1][i]-both[0][i])/a)
	}
}

// agreement returns a change without a limit. It shows how far two answers to a prompt agree from
// the start: the candidate's and the control's. For comparison it shows this for two answers of the
// control.
func (x *comparison) agreement(r *metric.PairedAnswers) (Change, bool) {
	row := x.answersRow(&plan.ChangeBound{Metric: metric.MustLookup("agreement"), Stat: metric.Stat{Kind: metric.Mean}, Points: true})
	var own, theirs []float64
	for _, p := range r.Pairs {
		if p.Control != nil && p.Candidate != nil {
			theirs = append(theirs, p.Candidate.Agrees)
		}
		if p.Control != nil && p.Again != nil {
			own = append(own, p.Again.Agrees)
		}
	}
	if len(own) < 2 || len(theirs) < 2 {
		return row, false
	}
	a, _ := stat.Moments(own)
	b, _ := stat.Moments(theirs)
	row.Control, row.Candidate, row.Change, row.Outcome = metric.Some(a), metric.Some(b), metric.Some(b-a), verdict.Skipped
	row.Message = fmt.Sprintf("agreement: on average, the first %s of the candidate's answer agree with the control's answer; the first %s of the control's second answer agree with its first answer",
		metric.Format(metric.Ratio, b), metric.Format(metric.Ratio, a))
	return row, true
}

// gap returns a row for the mean difference between the two servers' log-probabilities of the same
// token.
func (x *comparison) gap(r *metric.PairedAnswers) (Change, bool) {
	row := x.answersRow(&plan.ChangeBound{Metric: metric.MustLookup("logprob_gap"), Stat: metric.Stat{Kind: metric.Mean}, Points: true})
	sum, tokens, n, u := 0.0, 0, 0, newUsual(r)
	for _, p := range r.Pairs {
		if p.Control == nil || p.Candidate == nil || p.Candidate.Weighed == 0 {
			continue
		}
		if _, why, _ := u.tooOdd(group{p.Workload, p.Level, false}, p.Candidate, p.Control); why == "" {
			sum, tokens, n = sum+p.Candidate.Gap, tokens+p.Candidate.Weighed, n+1
		}
	}
	if tokens == 0 {
		return row, false
	}
	row.Candidate, row.Outcome = metric.Some(sum/float64(tokens)), verdict.Skipped
	row.Message = fmt.Sprintf("logprob_gap: over %d of the candidate's answers, the two servers' log-probabilities of a token differ by %s on average",
		n, metric.Format(metric.NatsPerToken, row.Candidate.V))
	return row, true
}
