package report

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/assert"
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
	run = run.Judged()
	b := builder{run: run, declared: p, redact: redactor(p, m.Redacted)}
	d := &Document{
		Schema:      Schema,
		Tool:        run.Tool,
		Run:         run.ID,
		Plan:        b.planned(),
		Host:        m.Host,
		Folder:      m.Folder,
		Recording:   run.Recording,
		Started:     run.Started.Round(0).UTC(),
		Duration:    run.End.Seconds(),
		Salt:        strconv.FormatUint(run.Salt, 10),
		Simulated:   run.Simulated,
		Partial:     v.Partial,
		Stopped:     b.clean(run.Stopped),
		Outcome:     Outcome(v.Outcome.String()),
		Why:         b.clean(v.Why),
		ExitCode:    m.ExitCode,
		Calibration: calibration(cmp.Or(m.Calibration, run.Calibration)),
		Strength:    m.Strength,
		Servers:     []Server{},
		Capacities:  []Capacity{},
		Comparisons: []Comparison{},
		Verdicts:    []Verdict{},
	}
	for _, s := range run.Servers {
		d.Servers = append(d.Servers, b.server(s))
	}
	d.Cases = make([]Case, len(run.Levels))
	m.Each.Do(len(run.Levels), func(i int) { d.Cases[i] = b.level(run.Levels[i]) })
	if p != nil {
		for _, w := range p.Workloads {
			d.Workloads = append(d.Workloads, b.workload(w))
		}
		distinguishTitles(d.Workloads)
	}
	for _, c := range run.Capacities {
		d.Capacities = append(d.Capacities, b.capacity(c))
	}
	for _, c := range v.Comparisons {
		d.Comparisons = append(d.Comparisons, b.comparison(c))
	}
	d.Answers = b.answers(v)
	b.verdicts(d, v)
	d.join()
	d.Passages = b.passages()
	var written map[string][]string
	if p != nil {
		written = writtenKeys(p.Files)
	}
	d.inOrder(written)
	d.Timelines = b.timelines(d)
	return d
}

// verdicts adds the run's verdicts. A failed verdict on answers quotes an answer.
func (b *builder) verdicts(d *Document, v assert.Verdicts) {
	for i := range v.List {
		// Show the capacity that the verdict computed. It may differ from the search's result.
		if c := v.List[i].Capacity; c != nil {
			d.judged(b.capacity(c))
		}
		said := b.verdict(&v.List[i])
		if quote := d.quote(&v.List[i]); quote != "" {
			said.Notes, said.Quoted = slices.Insert(said.Notes, 0, quote), true
		}
		d.Verdicts = append(d.Verdicts, said)
	}
}

func (b *builder) planned() Plan {
	out := Plan{Path: b.run.Plan, Hash: b.run.PlanHash, Servers: []string{}}
	if p := b.declared; p != nil {
		out.Path, out.Hash = cmp.Or(p.Path, out.Path), cmp.Or(p.Hash, out.Hash)
		out.Confidence = numberOf(p.Gate.Confidence)
		out.Decide = string(p.Gate.Decide)
		out.Warn = p.Gate.OnInconclusive == plan.Warn
		out.Budget = p.Gate.Budget.Seconds()
		out.MeasureOnly = p.Gate.MeasureOnly
		if p.Prices != nil {
			out.Currency = b.clean(p.Prices.Currency)
		}
		out.Cover = b.cover(p)
		for _, s := range p.Servers {
			out.Servers = append(out.Servers, b.clean(s.Address()))
		}
	} else {
		for _, s := range b.run.Servers {
			out.Servers = append(out.Servers, b.clean(s.Address))
		}
	}
	out.Path = strings.ToValidUTF8(filepath.ToSlash(out.Path), "\uFFFD")
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

func calibration(c *metric.Calibration) *Calibration {
	if c == nil {
		return nil
	}
	return &Calibration{
		Streams:  c.Streams,
		Rate:     numberOf(c.Rate),
		Delay50:  c.Delay50.Seconds(),
		Delay99:  c.Delay99.Seconds(),
		CPU:      share(c.CPU),
		Duration: c.Took.Seconds(),
	}
}

// share converts a share in [0, 1]; a negative value means unknown.
func share(v float64) Number {
	if v < 0 {
		return Number{}
	}
	return numberOf(v)
}

func (b *builder) server(s *metric.ServerRun) Server {
	out := Server{Address: b.clean(s.Address), Fingerprint: []Property{}, Path: b.clean(s.Path), Error: b.clean(s.Error), Log: b.clean(s.Log)}
	if b.declared != nil {
		for _, declared := range b.declared.Servers {
			if declared.Address() == s.Address {
				out.Title, out.Description = b.clean(declared.Title), b.clean(declared.Description)
			}
		}
	}
	if b.declared != nil {
		price := b.declared.PriceOf(s.Address)
		out.ElectricityOnly = price.Hour == 0 && price.Electricity > 0
	}
	out.Program = b.clean(cmp.Or(s.Declared["image"], s.Declared["command"]))
	out.Model = b.clean(s.Declared["model"])
	for _, start := range s.Starts {
		out.Starts = append(out.Starts, (start.Ready - start.At).Seconds())
	}
	for _, key := range s.Fingerprint.Keys() {
		out.Fingerprint = append(out.Fingerprint, Property{b.clean(key), b.clean(s.Fingerprint[key])})
	}
	return out
}

func (b *builder) verdict(v *assert.Verdict) Verdict {
	out := Verdict{
		Kind: string(v.Kind), Server: b.clean(v.Server), Workload: b.clean(v.Workload), Level: b.clean(v.Level),
		Name: b.clean(v.Name), Outcome: Outcome(v.Outcome.String()),
		Severity: cmp.Or(string(v.Severity), string(plan.SeverityError)),
		Warn:     v.Warn,
		Sure:     v.Outcome == assert.Fail && v.Sure,
		Message:  b.clean(v.Message), Needs: b.clean(v.Needs), Notes: b.cleanAll(v.Notes),
		BaseMissing: v.BaseMissing, Decide: v.Decide,
		Value: number(v.Value), Why: b.clean(v.Value.Why),
		Low: number(v.Low), High: number(v.High),
		N:    v.N,
		File: b.clean(filepath.ToSlash(v.File)), Line: max(v.Line, 0),
	}
	if !out.Value.OK && v.Value.OK {
		out.Why = fmt.Sprint(v.Value.V)
	}
	if len(v.Cautions) > 0 {
		out.Cautions = b.cleanAll(v.Cautions)
	}
	if v.Confidence > 0 {
		out.Confidence = numberOf(v.Confidence)
	}
	if v.N > 0 {
		out.Effective, out.Over = numberOf(v.Effective), numberOf(v.Over)
	}
	if v.Outcome == assert.Error || v.Outcome == assert.Pending {
		out.Cause = cause(v.Cause)
	}
	if t := v.Threshold; t != nil {
		out.Threshold = b.threshold(t)
	}
	return out
}
