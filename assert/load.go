package assert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// These are limits on deviations from the planned load. A measurement beyond a limit is invalid.
const (
	// inputTolerance is the allowed deviation from the declared input length, as a share, or one
	// token if that is more. It applies if the prompts were not made by the server's own count.
	inputTolerance = 0.01
	// templateTokens is the number of tokens of a prompt that may always come from a cache, because
	// every prompt begins with the same chat template. In a short prompt, at most half of the
	// tokens may.
	templateTokens = 64
	// cacheTolerance is the share of a prompt that may come from a cache in addition to
	// templateTokens.
	cacheTolerance = 0.02
)

// load judges from recorded facts whether the load of a level was as planned. Failed requests do
// not make a measurement invalid, because thresholds count them.
func (s *subject) load(v *verdict.Verdict, kind metric.LoadKind, level plan.Level, thresholds []judgedThreshold) {
	l := s.level
	samples := l.MeasuredSamples()
	completed, failed, failures := 0, 0, map[string]int{}
	for _, x := range samples {
		switch {
		case x.Completed():
			completed++
		case !x.Canceled():
			failed++
			failures[verdict.OneLine(words(x))]++
		}
	}
	v.N = s.n
	_, rounds := l.RoundNames()
	v.Message = fmt.Sprintf("%d of %d requests completed in %s", completed-atLimit(samples), s.n, verdict.Count(len(l.Rounds), rounds))
	often := mostFrequent(failures)
	if failed > 0 {
		v.Message = fmt.Sprintf("%d of %d requests completed and %d failed; the most frequent failure: %s", completed-atLimit(samples), s.n, failed, often)
	}

	var problems []string
	var cause verdict.Cause // cause of the first problem
	invalid := func(of verdict.Cause, format string, args ...any) {
		problems, cause = append(problems, fmt.Sprintf(format, args...)), cmp.Or(cause, of)
	}
	overrun := completed == 0 && s.overrun(thresholds)
	if s.n == 0 {
		invalid(verdict.CauseInvalid, "no request was due")
	} else if completed == 0 && failed > 0 && !overrun {
		invalid(verdict.CauseServer, "none of %s completed: %s", verdict.Count(s.n, "requests"), often)
	}
	s.checkComplete(kind, level, samples, invalid)
	if completed == 0 && len(problems) == 0 && !overrun {
		invalid(verdict.CauseServer, "none of %s completed, and no failure was recorded", verdict.Count(s.n, "requests"))
	}
	if !l.Mixed() { // in a mix, the lengths are checked for each part
		s.lengths(v, samples, invalid)
	}
	believable(samples, invalid)
	generated(l.Answers, invalid)
	s.loaded(v, invalid)
	s.voided(v, invalid)
	s.gpus(v, invalid)
	s.generator(v, thresholds, invalid)
	s.opened(v, thresholds, invalid)
	s.lockStep(v, thresholds)
	balanced(v, l)
	v.Note(s.windowed()...)
	v.Note(s.drift()...)
	v.Note(witnessed(s.level)...)
	v.Note(oddities(l, samples)...)
	v.Note(keptBack(samples)...)
	v.Outcome = verdict.Pass
	if len(problems) > 0 {
		v.Outcome, v.Cause, v.Message = verdict.Error, cause, problems[0]
		v.Notes = append(verdict.Remarks(problems[1:]...), v.Notes...)
	}
}

// atLimit counts the requests that were in flight when their leg reached its limit of time.
func atLimit(samples []*metric.Sample) (n int) {
	for _, x := range samples {
		if x.Finish == metric.FinishLimit {
			n++
		}
	}
	return n
}

// oddities lists unusual behaviour of the server that does not make the level invalid.
func oddities(l *metric.Level, samples []*metric.Sample) []string {
	var notes []string
	if _, lacking := l.Told(); lacking != "" {
		notes = append(notes, lacking)
	}
	reconnects, asked, longest := 0, 0, time.Duration(0)
	for _, x := range samples {
		reconnects += x.Reconnects
		if x.RetryAfter > 0 {
			asked, longest = asked+1, max(longest, x.RetryAfter)
		}
	}
	if reconnects > 0 {
		notes = append(notes, fmt.Sprintf("sent again, because a reused connection died before the first byte: %s", verdict.Count(reconnects, "requests")))
	}
	if asked > 0 {
		notes = append(notes, fmt.Sprintf("the server refused %s with Retry-After, and the slots of these requests waited for up to %s", verdict.Count(asked, "requests"), plan.PlainDuration(longest)))
	}
	if l.Answers != nil && l.Answers.Note != "" {
		notes = append(notes, verdict.OneLine(l.Answers.Note))
	}
	if slices.ContainsFunc(l.Rounds, func(r *metric.Round) bool { return r.Telemetry != nil && r.Telemetry.Restarted }) {
		notes = append(notes, "the server's own counters went backwards under load: either the server restarted, or its metrics page covers several servers")
	}
	return notes
}

// lockStep adds a note if the slots of a closed loop send at the same times. It adds the note to
// the verdict on the load, and to thresholds on TTFT and TTFA.
func (s *subject) lockStep(v *verdict.Verdict, thresholds []judgedThreshold) {
	l := s.level
	if sync := l.Synchrony(); l.Kind == metric.ClosedLoop && sync.OK && sync.V >= sample.LockStep {
		note := fmt.Sprintf("lock-step: the slots send at the same times (synchrony %.2f), so their prompts are processed together, and TTFT is longer than for requests that are spread over time", sync.V)
		v.Note(note)
		for i := range thresholds {
			if name := thresholds[i].threshold.Metric.Name; name == "ttft" || name == "ttfa" {
				thresholds[i].Caution(note)
			}
		}
	}
}

// windowed returns a note if rates are computed over the time of all measured requests, or if some
// measured requests were sent before every slot had started.
func (s *subject) windowed() []string {
	if s.policy.Window == metric.All {
		return []string{`rates cover the time from the start of the first measured request to the end of the last (window = "all")`}
	}
	if n := s.level.OnRamp(); n > 0 {
		return []string{fmt.Sprintf(`ramp: %d of %s were sent before every slot had started, and they are measured. With warmup = "auto", requests that are not measured fill the ramp`,
			n, verdict.Count(s.n, "requests"))}
	}
	return nil
}

func (s *subject) checkComplete(kind metric.LoadKind, level plan.Level, samples []*metric.Sample, invalid objection) {
	if s.level.Kind != kind || s.level.N != level.N || s.level.Rate != level.Rate {
		invalid(verdict.CauseInvalid, "the load of the level is %s (%s), but the plan asks for %s (%s)",
			s.level.Kind.Text(s.level.N, s.level.Rate), s.level.Kind, kind.Text(level.N, level.Rate), kind)
	}
	due := s.level.Due()
	// If a level at a rate was given up, or a leg reached its limit of time, its earlier requests are
	// still judged.
	givenUp := s.level.GivenUp()
	if due < level.Requests && !s.shed(level) && !givenUp {
		invalid(verdict.CauseInvalid, "cut short: only %d of %d planned requests were due", due, level.Requests)
	}
	if took := timed(s.level.Rounds); took < level.Duration && !s.shed(level) && !givenUp {
		invalid(verdict.CauseInvalid, "cut short: requests were sent for only %s of the planned %s", plan.PlainDuration(took.Round(time.Millisecond)), plan.PlainDuration(level.Duration))
	}
	round, rounds := s.level.RoundNames()
	unended := 0 // rounds of which a look judges requests, but whose end is not recorded
	for _, r := range s.level.Rounds {
		switch {
		case r.Complete && r.Unended:
			unended++
		case !r.Complete:
			invalid(verdict.CauseInvalid, "%s %d was cut short%s", round, r.Index+1, verdict.Because(r.Stopped))
		}
		switch n := len(r.MeasuredSamples()); {
		case n < r.Due:
			invalid(verdict.CauseInvalid, "the record lacks %d of the %d requests that were due in %s %d", r.Due-n, r.Due, round, r.Index+1)
		case n > r.Due:
			invalid(verdict.CauseInvalid, "%s %d has records of %d requests, but only %d were due", round, r.Index+1, n, r.Due)
		}
	}
	if unended > 0 {
		invalid(verdict.CauseInvalid, "the recording lacks the end of %s, so it is not known whether the load generator kept up", verdict.Count(unended, rounds))
	}
	canceled := 0
	for _, x := range samples {
		if x.Canceled() {
			canceled++
		}
	}
	if canceled > 0 {
		invalid(verdict.CauseInvalid, "the run itself cancelled %s", verdict.Count(canceled, "requests"))
	}
}

// timed returns for how long, in total, the rounds started measured requests. A round with a fixed
// number of requests counts until the end of its last request.
func timed(rounds []*metric.Round) time.Duration {
	sum := time.Duration(0)
	for _, r := range rounds {
		took := r.Time
		if took == 0 {
			took = r.End - r.Start
		}
		sum += max(took, 0)
	}
	return sum
}

// shed reports whether the level has fewer rounds than planned because the budget was short. All
// its rounds must be complete. Such a measurement is smaller but valid.
func (s *subject) shed(level plan.Level) bool {
	l := s.level
	return l.Shed > 0 && len(l.Rounds) >= leastRounds && len(l.Rounds)+l.Shed == max(level.Rounds, 1)
}

// lengths checks that prompts and answers had the requested lengths, as counted by the server. It
// also checks that they did not come from a cache.
func (s *subject) lengths(v *verdict.Verdict, samples []*metric.Sample, invalid objection) {
	var noUsage, input, output, cached, silent, completed int
	var anInput, anOutput, aCached *metric.Sample
	for _, x := range samples {
		if !x.Completed() {
			continue
		}
		completed++
		if x.Usage == nil {
			noUsage++
			continue
		}
		if !s.asLong(x) {
			input, anInput = input+1, cmp.Or(anInput, x)
		}
		if x.Vectors == 0 && (!s.level.Natural && x.Usage.Output != x.OutputAsked || x.Usage.Output < 1) {
			output, anOutput = output+1, cmp.Or(anOutput, x)
		}
		template := min(templateTokens, x.Usage.Input/2)
		switch {
		case x.Usage.Cached < 0:
			silent++
		case float64(x.Usage.Cached) > float64(template)+(x.MostCached()+cacheTolerance)*float64(x.Usage.Input):
			cached, aCached = cached+1, cmp.Or(aCached, x)
		}
	}
	if noUsage > 0 {
		invalid(verdict.CauseInvalid, "%d of %d answers came without usage, so their lengths are unknown; the server must honour stream_options.include_usage", noUsage, completed)
	}
	if input > 0 {
		invalid(verdict.CauseInvalid, "input length: %d of %d prompts did not have the requested length; one had %d tokens instead of %d", input, completed, anInput.Usage.Input, anInput.InputAsked)
	}
	switch {
	case output > 0 && s.level.Natural:
		invalid(verdict.CauseInvalid, "output length: by the server's usage, %d of %d answers have no tokens", output, completed)
	case output > 0:
		invalid(verdict.CauseInvalid, "output length: %d of %d answers did not have the requested length; one had %d tokens instead of %d. Either name the server's engine, so that tokgate can make the server ignore the end of sequence, or set natural = true in output_tokens", output, completed, anOutput.Usage.Output, anOutput.OutputAsked)
	}
	if cached > 0 {
		invalid(verdict.CauseInvalid, "cache: %d of %d prompts had more cached tokens than expected; one had %d of its %d tokens in a cache, %s",
			cached, completed, aCached.Usage.Cached, aCached.Usage.Input, unexplained(aCached.MostCached(), "it"))
	}
	if silent > 0 {
		v.Note(s.countedHits(samples, invalid))
	} else if said := hits(samples); said != "" {
		v.Note(said)
	}
	if again := repeated(samples); again > 0 {
		v.Note(fmt.Sprintf("%d of %d prompts may be in a cache, because they were sent before or because two rows of the data set are equal", again, len(samples)))
	}
}

// asLong reports whether a prompt has the declared length. It is true if the plan declares no
// length.
func (s *subject) asLong(x *metric.Sample) bool {
	tolerance := 0.0
	if !s.level.Exact {
		tolerance = math.Max(inputTolerance*float64(x.InputAsked), 1)
	}
	if x.Turn > 1 { // the prompt includes earlier answers of unknown length
		return 2*x.Usage.Input >= x.InputAsked
	}
	return x.InputAsked == 0 || math.Abs(float64(x.Usage.Input-x.InputAsked)) <= tolerance
}

// repeated returns how many requests sent a row of a data set again. A server's cache may still
// have this row.
func repeated(samples []*metric.Sample) int {
	n := 0
	for _, x := range samples {
		if x.Row > 0 && x.Shared >= 1 {
			n++
		}
	}
	return n
}

// hits says how much of the prompts the server found in a cache, beside how much was sent before; "" if no
// prompt begins like one that was sent before.
func hits(samples []*metric.Sample) string {
	found, sent := metric.CacheHitRate(samples), metric.ImpliedHitRate(samples)
	if !sent.OK {
		return ""
	}
	return fmt.Sprintf("%s of the prompts' tokens came from a cache, %s", metric.Format(metric.Ratio, found.V), implied(sent.V))
}

func implied(share float64) string {
	return "of " + metric.Format(metric.Ratio, share) + " that had been sent before"
}

// unexplained says why cached tokens are suspicious: no part of the prompts, or only the share that
// is given, was sent before.
func unexplained(share float64, prompts string) string {
	if share == 0 {
		return "although no part of " + prompts + " had been sent before"
	}
	return "although only " + metric.Format(metric.Ratio, share) + " of " + prompts + " had been sent before"
}

// countedHits checks the server's own count of cached prompt tokens, for a server whose usage does
// not report them. It returns a note on what it checked. In each prompt, the tokens of the chat
// template may come from a cache.
func (s *subject) countedHits(samples []*metric.Sample, invalid objection) string {
	told, lacking := s.level.Told()
	queries, hits := told.Added(metric.CacheQueries), told.Added(metric.CacheHits)
	why := cmp.Or(queries.Why, hits.Why, sample.Elsewhere(s.level))
	if preempted := told.Added(metric.Preempted); why == "" && preempted.OK && preempted.V > 0 {
		why = "a preempted request that restarts finds its own prompt in the cache"
	}
	if why == "" && queries.V <= 0 {
		why = "no prompt was looked up in the cache"
	}
	if why != "" {
		return "cache hits were not checked: the server's usage does not report cached tokens, and its counters cannot be used instead: " + verdict.OneLine(why)
	}
	if lacking != "" {
		samples = told.MeasuredSamples()
	}
	sent, shared := 0.0, 0.0
	for _, x := range samples {
		if x.Usage != nil {
			sent, shared = sent+float64(x.Usage.Input), shared+x.MostCached()*float64(x.Usage.Input)
		}
	}
	each := sent / float64(len(samples))
	share := shared / math.Max(sent, 1)
	template := math.Min(templateTokens, each/2) / math.Max(each, 1)
	if hits.V > queries.V*(template+share+cacheTolerance) {
		invalid(verdict.CauseInvalid, "cache: by the server's own count, %.0f of %.0f prompt tokens came from a cache, %s", hits.V, queries.V, unexplained(share, "the prompts"))
	}
	said := fmt.Sprintf("the number of cached tokens comes from the server's counters (%.0f of %.0f prompt tokens), because the server's usage does not report it", hits.V, queries.V)
	if before := metric.ImpliedHitRate(samples); before.OK {
		said += fmt.Sprintf("; it is %s of them, %s", metric.Format(metric.Ratio, hits.V/queries.V), implied(before.V))
	}
	return said
}

// loaded checks that the load was as declared: all slots were busy, or all requests of a burst were
// sent at the same time. If only some rounds had less load, the function generator checks whether
// these rounds could have decided a threshold.
func (s *subject) loaded(v *verdict.Verdict, invalid objection) {
	if s.batched() {
		switch idle, byServer := s.level.Idle(s.level.Window()); {
		case idle != "" && byServer:
			v.Note(idle + "; requests failed")
		case idle != "":
			invalid(verdict.CauseGenerator, "%s", idle)
		}
	}
	none := !slices.ContainsFunc(s.level.Rounds, func(r *metric.Round) bool { return !s.light(r) })
	if s.level.Kind == metric.OpenLoop && !slices.ContainsFunc(s.level.Rounds, func(r *metric.Round) bool { return r.Leg != nil }) {
		if late := s.level.Late(); late != "" {
			invalid(verdict.CauseGenerator, "%s", late)
		}
	}
	for _, r := range s.level.Rounds {
		if d := s.level.Disturbed(r); d.Load != "" {
			if none || s.level.Kind == metric.OpenLoop {
				invalid(verdict.CauseGenerator, "round %d: %s", r.Index+1, d.Load)
			}
		} else if idle, byServer := s.level.Idle(r); s.level.Kind != metric.Burst && !s.batched() && byServer {
			v.Note(fmt.Sprintf("round %d: %s; requests failed", r.Index+1, idle))
		}
	}
}

// voided adds a note on every round that was measured again. The measurement is invalid if there
// are too many such rounds, or if one of them was not disturbed on any server.
func (s *subject) voided(v *verdict.Verdict, invalid objection) {
	l := s.level
	round, rounds := l.RoundNames()
	for _, r := range l.Voided {
		if !disturbed(l, r) && !slices.ContainsFunc(s.pairs, func(other *metric.Level) bool {
			return slices.ContainsFunc(other.Voided, func(p *metric.Round) bool {
				return r.Leg != nil && p.Leg != nil && p.Index == r.Index && disturbed(other, p)
			})
		}) {
			invalid(verdict.CauseInvalid, "%s %d was left out, although nothing had disturbed it", round, r.Index+1)
		}
		v.Note(fmt.Sprintf("%s %d was measured again: %s", round, r.Index+1, verdict.OneLine(r.Void)))
	}
	if most := metric.MostVoided(len(l.Rounds) + l.Shed); len(l.Voided) > most {
		invalid(verdict.CauseInvalid, "%d of %s were left out, but at most %d may be left out", len(l.Voided), verdict.Count(len(l.Rounds)+len(l.Voided), rounds), most)
	}
}

func disturbed(l *metric.Level, r *metric.Round) bool {
	return l.Disturbed(r) != metric.Disturbance{}
}

// mostFrequent returns the most frequent message with its count; "" if there are no messages.
func mostFrequent(messages map[string]int) string {
	best := ""
	for _, m := range slices.Sorted(maps.Keys(messages)) {
		if best == "" || messages[m] > messages[best] {
			best = m
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("%s (%d×)", best, messages[best])
}

// words explains why a request failed, in the words of the server. The HTTP status comes first if
// it was the reason.
func words(x *metric.Sample) string {
	w := cmp.Or(x.Failure.Message, string(x.Failure.Kind))
	if x.Failure.Kind == metric.FailStatus && x.Status != 0 {
		w = fmt.Sprintf("HTTP %d: %s", x.Status, w)
	}
	return w
}
