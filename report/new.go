package report

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Meta holds the data of a document that do not come from the run, the plan or the verdicts.
type Meta struct {
	ExitCode    int
	Host        string              // "": not recorded
	Folder      string              // folder of the reports, as the user gave it; "" if none
	Calibration *metric.Calibration // of the load generator; nil means the run's own
	Strength    *Strength           // nil: not known
	Each        metric.Each         // runs the work on all levels; nil: one by one
	// Redacted is the text that replaces the plan's secrets; "" means "[redacted]".
	Redacted string
}

// New makes the document of a run, which must not be nil. The plan p may be nil, if a recorded run
// is shown without its plan.
func New(run *metric.Run, p *plan.Plan, v assert.Verdicts, m Meta) *Document {
	var levels, whole []*metric.Level
	sent := run.Levels
	run = run.Judged()
	for i, l := range run.Levels {
		for _, x := range l.Divided() {
			levels, whole = append(levels, x), append(whole, sent[i])
		}
	}
	b := builder{run: run, levels: levels, declared: p, redact: redactor(p, m.Redacted)}
	d := &Document{
		Schema:    Schema,
		Run:       withoutSamples(run, b.levels),
		Plan:      b.planned(),
		Host:      m.Host,
		Folder:    m.Folder,
		Recording: run.Recording,
		Partial:   v.Partial,
		Outcome:   v.Outcome,
		Why:       v.Why,
		ExitCode:  m.ExitCode,
		Cases:     make([]Case, len(b.levels)),
		Verdicts:  []verdict.Verdict{},
		Strength:  m.Strength,
		Answers:   b.answers(v),
	}
	d.Run.Calibration = cmp.Or(m.Calibration, run.Calibration)
	m.Each.Do(len(b.levels), func(i int) { d.Cases[i] = b.level(d.Run.Levels[i], b.levels[i], whole[i]) })
	d.Spent = d.spent()
	if p != nil {
		for _, w := range p.Workloads {
			d.Workloads = append(d.Workloads, b.workload(w))
		}
		distinguishTitles(d.Workloads)
	}
	for _, c := range v.Comparisons {
		x := *c
		x.Decisions, x.Changes, x.Lost = slices.Clone(c.Decisions), slices.Clone(c.Changes), nil
		d.Comparisons, d.Answers = append(d.Comparisons, &x), append(d.Answers, b.lost(c)...)
	}
	for i := range v.List {
		d.Verdicts = append(d.Verdicts, d.settled(v.List[i]))
	}
	d.join()
	d.Passages = b.passages()
	var written map[string][]string
	if p != nil {
		written = writtenKeys(p.Files)
	}
	d.inOrder(written)
	d.Timelines = b.timelines(d)
	return cleaned(d, b.clean)
}

// withoutSamples returns a copy of the run with the given levels, without the requests, the readings of
// telemetry and the answers to paired prompts.
func withoutSamples(run *metric.Run, levels []*metric.Level) *metric.Run {
	out := *run
	out.Started = run.Started.Round(0).UTC()
	out.Servers, out.Levels, out.Capacities = slices.Clone(run.Servers), nil, slices.Clone(run.Capacities)
	out.Comparisons = nil
	for _, l := range levels {
		x := *l
		x.Rounds, x.Voided = bare(l.Rounds), bare(l.Voided)
		out.Levels = append(out.Levels, &x)
	}
	return &out
}

func bare(rounds []*metric.Round) []*metric.Round {
	out := slices.Clone(rounds)
	for i, r := range rounds {
		x := *r
		x.Samples, x.Stored, x.Telemetry = nil, nil, nil
		out[i] = &x
	}
	return out
}

// settled returns a verdict as the document has it. A failed verdict on answers quotes an answer.
func (d *Document) settled(v verdict.Verdict) verdict.Verdict {
	// Show the capacity that the verdict computed. It may differ from the search's result.
	if c := v.Capacity; c != nil {
		i := slices.IndexFunc(d.Run.Capacities, func(x *metric.Capacity) bool { return x.Server == c.Server && x.Workload == c.Workload })
		if i < 0 {
			i, d.Run.Capacities = len(d.Run.Capacities), append(d.Run.Capacities, nil)
		}
		d.Run.Capacities[i], v.Capacity = c, nil
	}
	v.Severity, v.File, v.Line = cmp.Or(v.Severity, verdict.SeverityError), filepath.ToSlash(v.File), max(v.Line, 0)
	v.Sure, v.Notes = v.Outcome == verdict.Fail && v.Sure, slices.Clone(v.Notes)
	switch {
	case v.Outcome != verdict.Error && v.Outcome != verdict.Pending:
		v.Cause = ""
	case v.Cause != verdict.CauseServer && v.Cause != verdict.CauseGenerator:
		v.Cause = verdict.CauseInvalid
	}
	if quote := d.quote(&v); quote != "" {
		v.Notes = slices.Insert(v.Notes, 0, verdict.Note{Kind: verdict.Quote, Text: quote})
	}
	return v
}

func (b *builder) planned() Plan {
	out := Plan{Path: b.run.Plan, Hash: b.run.PlanHash, Servers: []Server{}}
	if p := b.declared; p != nil {
		out.Path, out.Hash = cmp.Or(p.Path, out.Path), cmp.Or(p.Hash, out.Hash)
		out.Confidence = p.Gate.Confidence
		out.Decide = string(p.Gate.Decide)
		out.Warn = p.Gate.OnInconclusive == plan.Warn
		out.Budget = p.Gate.Budget.Seconds()
		out.MeasureOnly = p.Gate.MeasureOnly
		if p.Prices != nil {
			out.Currency = p.Prices.Currency
		}
		if c := p.Cover; c.Title != "" || c.Subtitle != "" || c.Organization != "" || c.Logo != nil || len(c.Notes) > 0 {
			out.Cover = &Cover{Title: c.Title, Subtitle: c.Subtitle, Organization: c.Organization, Logo: c.Logo, Notes: c.Notes}
		}
		for _, s := range p.Servers {
			price := p.PriceOf(s.Address())
			out.Servers = append(out.Servers, Server{s.Address(), s.Title, s.Description, price.Hour == 0 && price.Electricity > 0})
		}
	} else {
		for _, s := range b.run.Servers {
			out.Servers = append(out.Servers, Server{Address: s.Address})
		}
	}
	out.Path = filepath.ToSlash(out.Path)
	out.Name = planName(out.Path)
	out.Sources = b.sources()
	return out
}

// planName is the file's name without its extensions .hcl and .hcl.json.
func planName(file string) string {
	name := path.Base(file)
	for _, ext := range []string{".json", ".hcl", ".yaml"} {
		name = strings.TrimSuffix(name, ext)
	}
	if name == "" || name == "." || name == "/" {
		return "plan"
	}
	return name
}
