package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// emptyDocument returns the document of a run that was interrupted before it measured anything.
func emptyDocument() *Document {
	run := &metric.Run{ID: "r", Tool: "dev", Plan: "p.hcl", Started: time.Unix(0, 0), Stopped: "interrupted"}
	return New(run, nil, assert.Verdicts{Outcome: verdict.Error}, Meta{ExitCode: verdict.ExitInterrupted})
}

func TestDocumentRoundTrip(t *testing.T) {
	for name, d := range map[string]*Document{"rich": document(), "pass": passing(), "empty": emptyDocument()} {
		var b bytes.Buffer
		must.Do(t, d.Write(&b))
		got := must.Get(ReadDocument(bytes.NewReader(b.Bytes())))(t)
		must.Same(t, name+": Write then ReadDocument (-want +got)", d, got, cmpopts.EquateEmpty())
	}
}

func TestReadDocumentErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{``, "not a results document"},
		{`[]`, "not a results document"},
		{`{}`, `has schema ""`},
		{`{"schema": "tokgate.results/3"}`, `has schema "tokgate.results/3"; this version reads "tokgate.results/2" and "tokgate.results/1"`},
		{`{"schema": "tokgate.results/2", "plan": {"confidence": "high"}}`, "not a results document"},
		{`{"schema": "tokgate.results/2", "verdicts": [{"value": "high"}]}`, `a value is a number, "+Inf", "-Inf", null or`},
		{`{"schema": "tokgate.results/2", "verdicts": [{"outcome": "green"}]}`, `"green" is not an outcome`},
		{`{"schema": "tokgate.results/1"}`, "it has no plan"},
	}
	for _, tt := range tests {
		_, err := ReadDocument(strings.NewReader(tt.in))
		must.Hold(t, err != nil && strings.Contains(err.Error(), tt.want), "ReadDocument(%q) = %v, want %q", tt.in, err, tt.want)
	}
}

func TestNumberJSON(t *testing.T) {
	tests := []struct {
		n    metric.Value
		want string
	}{
		{metric.Some(math.Nextafter(0.3, 1)), "0.30000000000000004"}, // all digits
		{metric.Some(0), "0"},
		{metric.Some(-1.5e-9), "-1.5e-9"},
		{metric.Some(math.Inf(1)), `"+Inf"`},
		{metric.Some(math.Inf(-1)), `"-Inf"`},
		{metric.Some(math.NaN()), "null"},
		{metric.Value{V: math.NaN(), OK: true}, "null"},
		{metric.Value{V: 3}, "null"}, // OK is false, so the number is null
	}
	for _, tt := range tests {
		got, err := json.Marshal(tt.n)
		must.Hold(t, err == nil && string(got) == tt.want, "Marshal(%v) = %s, %v, want %s", tt.n, got, err, tt.want)
		var back metric.Value
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("Unmarshal(%s): %v", got, err)
		}
		must.Hold(t, tt.want == "null" || back == tt.n, "Unmarshal(%s) = %v, want %v", got, back, tt.n)
		must.Hold(t, tt.want != "null" || !back.OK, "Unmarshal(null) = %v, want no value", back)
	}
}

// The expected values for 30 requests in flight were computed by hand. In each of 2 rounds of 60,
// requests 0, 10, … 50 fail with a status, and 0, 15, 30 and 45 with a timeout. Requests 0 and 30
// count only as timeouts. So 4 requests have a status, and 4 a timeout.
func TestLoadFacts(t *testing.T) {
	c := document().Cases[1]
	if c.Due() != 120 || c.Completed != 104 || c.Failed != 16 {
		t.Errorf("due, completed, failed = %d, %d, %d, want 120, 104, 16", c.Due(), c.Completed, c.Failed)
	}
	must.Hold(t, c.Reconnects == 2, "reconnects = %d, want 2", c.Reconnects)
	got, want := c.OutputTokens, 104*21
	must.Hold(t, got == want, "output tokens = %d, want %d", got, want)
	// The measuring window of both rounds is from 2 s to 48 s: together 2 × 46 s = 92 s.
	must.Hold(t, c.Window == 92, "window = %v, want 92", c.Window)
	// The level lasts from 0 s, its first round's start, to 110 s, its second's end.
	must.Hold(t, c.begin() == 0 && c.Took() == 110, "at, duration = %v, %v, want 0, 110", c.begin(), c.Took())
	kinds := []string{}
	for _, f := range c.Failures {
		kinds = append(kinds, f.Kind)
		must.Hold(t, f.Count == 8, "%s failed %d times, want 8", f.Kind, f.Count)
	}
	must.Same(t, "kinds (-want +got)", []string{"status", "timeout"}, kinds)
	ttft := c.Summary("ttft")
	must.Hold(t, ttft.N == 120 && ttft.Worst == 16, "ttft n, worst = %d, %d, want 120, 16", ttft.N, ttft.Worst)
	// The 16 failed requests of 120, which are 13 %, count as slowest. So the p90 is a failed
	// request, and the p75 is not.
	if math.IsInf(ttft.Percentiles.P75.V, 0) || !math.IsInf(ttft.Percentiles.P90.V, 1) {
		t.Errorf("ttft p75, p90 = %v, %v, want a number, +Inf", ttft.Percentiles.P75, ttft.Percentiles.P90)
	}
	if c.Rounds[1].Health.CPU >= 0 || c.Rounds[1].Complete {
		t.Errorf("round 2: cpu %v complete %t, want unknown, false", c.Rounds[1].Health.CPU, c.Rounds[1].Complete)
	}
}

// A metric that no request has is missing, with a reason. It is not a row of zeros or infinities.
func TestNoValue(t *testing.T) {
	s := document().Cases[0].Summary("ttfa")
	if s.Mean.OK || s.Min.OK || s.Max.OK || s.Percentiles.P50.OK || s.Why != "no answer came" {
		t.Errorf("ttfa of nothing = %+v, want no values and the reason", s)
	}
	must.Hold(t, s.N == 60 && s.Worst == 60, "n, worst = %d, %d, want 60, 60", s.N, s.Worst)
}

func TestMessagesAreBounded(t *testing.T) {
	run, p, v, m := fixture()
	for i, s := range run.Levels[0].MeasuredSamples() {
		s.Failure = &metric.Failure{Kind: metric.FailStream, Message: strings.Repeat("x", 1<<20) + string(rune('a'+i%26))}
		if i < 3 {
			s.Failure.Message = "often"
		}
	}
	f := New(run, p, v, m).Cases[0].Failures
	if len(f) != 1 || f[0].Count != 60 || len(f[0].Messages) != mostMessages {
		t.Fatalf("failures = %d kinds, want 1 kind, 60 requests, %d messages", len(f), mostMessages)
	}
	for _, m := range f[0].Messages {
		must.Hold(t, len(m.Text) <= messageBytes, "a message of %d bytes was kept", len(m.Text))
	}
	must.Hold(t, f[0].Messages[0] == (Message{"often", 3}), "the first message is %+v, want the most frequent", f[0].Messages[0])
}

func TestRedaction(t *testing.T) {
	p := &plan.Plan{Secrets: []string{"", "abc", "token", "token-long"}}
	b := builder{redact: redactor(p, "")}
	// "token-long" is removed as a whole, although it begins with the secret "token". "abc" stays:
	// removing secrets of less than four bytes would damage words.
	got, want := b.clean("abc token-long token"), "abc [redacted] [redacted]"
	must.Hold(t, got == want, "clean = %q, want %q", got, want)
}

func TestPlanName(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plans/chatbot.hcl", "chatbot"}, {"chatbot.hcl.json", "chatbot"}, {"a.b.hcl", "a.b"}, {"plans/", "plans"}, {"", "plan"}, {"/", "plan"},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("planName(%q)", tt.in), tt.want, planName(tt.in))
	}
}

// Any file is either an error, or a document that every output can show.
func FuzzReadDocument(f *testing.F) {
	var b bytes.Buffer
	must.Do(f, passing().Write(&b))
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema": "tokgate.results/1", "duration_s": 1e308, "exit_code": -5,
		"servers": [{"address": "::a"}], "cases": [{"server": "::a", "metrics": [{"metric": "ttft", "of": "level"}, {"metric": "success", "percentiles": {}}], "failures": [{"messages": []}]}],
		"verdicts": [{"outcome": "no", "kind": "no", "line": -3, "threshold": {}}, {"workload": "w", "kind": "server"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		// Add a valid checksum. Without it, nearly every input would be refused.
		d, err := ReadDocument(bytes.NewReader(Seal(in)))
		if err != nil {
			return
		}
		junitOf(t, d)
		for _, f := range written {
			var out bytes.Buffer
			if err := f.write(&out, d); err != nil {
				t.Errorf("%s: %v", f.file, err)
			}
		}
	})
}

// BenchmarkNew1MSamples makes a document of a million requests: 200 levels share the same 5000
// samples, so the memory of samples does not count.
func BenchmarkNew1MSamples(b *testing.B) {
	round := &metric.Round{Due: 5000, Complete: true, End: time.Hour, WindowEnd: time.Hour}
	for i := range 5000 {
		sent := time.Duration(i) * 100 * time.Millisecond
		first := sent + time.Duration(200+i*7919%1000)*time.Millisecond
		s := &metric.Sample{Server: "s", Workload: "w", Level: "8", Slot: i % 8, Order: i, Phase: metric.Measured, Sent: sent, First: first, FirstAnswer: first,
			Chunks: 21, FirstTokens: 1, Usage: &metric.Usage{Input: 1024, Output: 21}}
		s.Last = first
		for j := range 20 {
			gap := time.Duration(10+(i+j)%15) * time.Millisecond
			s.Gaps.Add(gap)
			s.Last += gap
		}
		s.End = s.Last
		round.Samples = append(round.Samples, s)
	}
	run := &metric.Run{Servers: []*metric.ServerRun{{Address: "s"}}}
	for i := range 200 {
		run.Levels = append(run.Levels, &metric.Level{Server: "s", Workload: fmt.Sprint("w", i/10), Name: fmt.Sprint(i), Kind: metric.ClosedLoop, N: 8, Rounds: []*metric.Round{round}})
	}
	b.ReportAllocs()
	for b.Loop() {
		New(run, nil, assert.Verdicts{}, Meta{})
	}
}

// A document that was changed after it was written is an error, wherever the change is.
func TestChangedDocument(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, document().Write(&b))
	whole := b.String()
	for name, changed := range map[string]string{
		"a verdict":     strings.Replace(whole, `"fail"`, `"pass"`, 1),
		"a number":      strings.Replace(whole, `1`, `2`, 1),
		"without a sum": regexp.MustCompile(`,\s+"sum": "\w+"`).ReplaceAllString(whole, ""),
		"another sum":   whole[:len(whole)-10] + "0000000\"\n}\n",
	} {
		must.Need(t, changed != whole, "%s: nothing was changed", name)
		_, err := ReadDocument(strings.NewReader(changed))
		must.Hold(t, err != nil, "%s was changed, and nothing noticed", name)
	}
}
