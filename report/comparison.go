package report

import (
	"cmp"
	"slices"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/plan"
)

// Comparison holds the results of comparing two servers on the same prompts.
type Comparison struct {
	Name      string `json:"name"`
	Control   string `json:"control"`   // address of the control's server, or folder of a stored control
	Candidate string `json:"candidate"` // address
	// Paired means that the servers took turns, round by round. Each round is compared with its
	// partner on the other server. Otherwise the control is an earlier recording, and a drift since
	// then is possible.
	Paired  bool   `json:"paired"`
	Restart string `json:"restart,omitempty"` // "leg", "order" or "never"; "" if Paired is false
	// SideBySide means that both servers of a round ran at the same time. They swapped their GPUs
	// for the next round.
	SideBySide bool    `json:"side_by_side,omitempty"`
	Rounds     int     `json:"rounds"`  // number of judged rounds, the same for both sides
	Units      int     `json:"units"`   // number of independent observations in the judged rounds
	Outcome    Outcome `json:"outcome"` // outcome over the changes that the plan requires
	// Skipped is the reason why the comparison was not made; "" if it was.
	Skipped string `json:"skipped,omitempty"`
	// Line is the result in one line, such as "mtp: yes for decode and chat; no for long_prefill".
	Line string `json:"line"`
	// Differences lists how the two servers differ, observed or declared, sorted by key.
	Differences []Difference `json:"differences"`
	Decisions   []Decision   `json:"decisions"` // one for each workload and level, in order of the plan
	Changes     []Change     `json:"changes"`   // all measured changes, required or not
	// Answers holds the prompts on which the candidate did worst, with both answers. Absent if
	// there are none, or if their text was not recorded.
	Answers []Answer `json:"answers,omitempty"`
	Notes   []string `json:"notes"`
}

// Difference is a fact in which the two servers of a comparison differ.
type Difference struct {
	Key       string `json:"key"`       // "version", "flags.max-model-len"
	Control   string `json:"control"`   // "" if not set or unknown
	Candidate string `json:"candidate"` // likewise
	Allowed   bool   `json:"allowed"`   // named in changed
}

// Decision is the result of a comparison for one workload at one level.
type Decision struct {
	Workload string `json:"workload"`
	Level    string `json:"level"`
	// Answer is "yes" (something is better, nothing is worse), "no" (something is worse, nothing is
	// better), "mixed" (both), "no difference" (nothing is certain), or "unknown".
	Answer string `json:"answer"`
	Why    string `json:"why"` // one line for people
}

// Change says how a statistic of a metric differs between the control and the candidate.
type Change struct {
	Workload string `json:"workload"`
	Level    string `json:"level"` // "capacity" for the capacity
	Metric   string `json:"metric"`
	Stat     string `json:"stat"` // statistic, such as "p95"; "" for a metric of the whole level
	Unit     string `json:"unit"`
	Better   string `json:"better"` // "lower" or "higher"
	// Control and Candidate are means over the rounds: arithmetic means if Points is set, or else
	// geometric means. null if there is no value.
	Control   Number `json:"control"`
	Candidate Number `json:"candidate"`
	// Change is candidate / control − 1, or candidate − control if Points is set. Low and High are
	// one-sided bounds of the change. Each holds with probability Confidence.
	Points     bool   `json:"points"`
	Change     Number `json:"change"`
	Low        Number `json:"low"`
	High       Number `json:"high"`
	Confidence Number `json:"confidence"`
	// Limit is the largest change that the plan tolerates, or the smallest improvement that it
	// requires if Improve is set. null if the plan sets no limit.
	Limit   Number `json:"limit"`
	Improve bool   `json:"improve,omitempty"`
	// Certifiable is the smallest tolerance that these data would have certified.
	Certifiable Number  `json:"certifiable"`
	Outcome     Outcome `json:"outcome"` // "skipped" if there is no limit, or if the limit does not apply
	Severity    string  `json:"severity"`
	// Direction is "better" or "worse". It is "" if the interval of the change includes zero.
	Direction string `json:"direction,omitempty"`
	Message   string `json:"message"` // one line
	Why       string `json:"why,omitempty"`
	Pairs     []Pair `json:"pairs"` // one for each round; if Paired is false, Change is null
}

// Pair holds the results of both servers in one round of a comparison.
type Pair struct {
	Round     int    `json:"round"` // 0-based
	Seed      int64  `json:"seed"`
	Control   Number `json:"control"`
	Candidate Number `json:"candidate"`
	Change    Number `json:"change"`
	// Note explains why the round is an outlier; "" if it is none.
	Note string `json:"note,omitempty"`
}

func (b *builder) comparison(c *compare.Comparison) Comparison {
	out := Comparison{
		Name: b.clean(c.Name), Control: b.clean(c.Control), Candidate: b.clean(c.Candidate), Paired: c.Paired, Restart: string(c.Restart), SideBySide: c.SideBySide,
		Rounds: c.Rounds, Units: c.Units, Outcome: Outcome(c.Outcome.String()), Skipped: b.clean(c.Skipped), Line: b.clean(c.Line),
		Differences: []Difference{}, Decisions: []Decision{}, Changes: []Change{}, Notes: b.cleanAll(c.Notes),
	}
	for _, d := range c.Differences {
		out.Differences = append(out.Differences, Difference{b.clean(d.Key), b.clean(d.Control), b.clean(d.Candidate), d.Allowed})
	}
	for _, d := range c.Decisions {
		out.Decisions = append(out.Decisions, Decision{b.clean(d.Workload), b.clean(d.Level), d.Answer, b.clean(d.Why)})
	}
	for i := range c.Changes {
		out.Changes = append(out.Changes, b.change(&c.Changes[i]))
	}
	out.Answers = b.lost(c.Lost)
	return out
}

func (b *builder) change(c *compare.Change) Change {
	unit := c.Metric.UnitOf(c.Stat)
	out := Change{
		Workload: b.clean(c.Workload), Level: b.clean(c.Level), Metric: c.Metric.Name, Stat: c.Stat.String(), Unit: string(unit), Better: direction(c.Metric.Better),
		Control: number(c.Control), Candidate: number(c.Candidate), Points: c.Points, Change: number(c.Change), Low: number(c.Low), High: number(c.High),
		Confidence: numberOf(c.Confidence), Limit: number(c.Limit), Improve: c.Improve, Certifiable: number(c.Certifiable), Outcome: Outcome(c.Outcome.String()),
		Severity: cmp.Or(string(c.Severity), string(plan.SeverityError)), Direction: string(c.Direction), Message: b.clean(c.Message), Why: b.clean(c.Why), Pairs: []Pair{},
	}
	for _, p := range c.Pairs {
		out.Pairs = append(out.Pairs, Pair{p.Round, p.Seed, number(p.Control), number(p.Candidate), number(p.Change), b.clean(p.Note)})
	}
	return out
}

// Verdict returns the change in a word: its outcome if it has a limit, or else its direction. ""
// means that the direction is not certain.
func (c *Change) Verdict() string {
	if !c.Limit.OK {
		return c.Direction
	}
	return string(c.Outcome)
}

// Status is the status of the change in reports.
func (c *Change) Status() Status {
	v := Verdict{Outcome: c.Outcome, Severity: c.Severity}
	return v.Status()
}

// Binding returns, for each workload, the change that decides its comparison: the worst change with
// a limit. If no change has a limit, it is the first that was measured.
func (c *Comparison) Binding() []*Change {
	var list []*Change
	at := map[string]int{}
	for i := range c.Changes {
		x := &c.Changes[i]
		j, ok := at[x.Workload]
		if !ok {
			at[x.Workload] = len(list)
			list = append(list, x)
			continue
		}
		if worse := x.Status() < list[j].Status(); x.Limit.OK && (worse || !list[j].Limit.OK) {
			list[j] = x
		}
	}
	return list
}

// Loses reports whether something is certainly worse at the level of a decision.
func (c *Comparison) Loses(d *Decision) bool {
	return slices.ContainsFunc(c.Changes, func(x Change) bool {
		return x.Workload == d.Workload && x.Level == d.Level && x.Direction == "worse"
	})
}

// News sums up the run in one word: "red", "changed" or "same".
func (d *Document) News() string {
	if d.ExitCode != 0 || d.Outcome != Pass {
		return "red"
	}
	for i := range d.Comparisons {
		if slices.ContainsFunc(d.Comparisons[i].Decisions, func(x Decision) bool { return x.Answer == "yes" || x.Answer == "no" || x.Answer == "mixed" }) {
			return "changed"
		}
	}
	return "same"
}
