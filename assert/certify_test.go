package assert

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// If certify calls a threshold possible, a level without a bad request must pass it. If certify
// calls a threshold impossible, no level may pass it.
func TestLongCertifyAgreesWithJudge(t *testing.T) {
	for _, name := range []struct{ metric, text string }{
		{"ttft", "p95 < 2s"}, {"ttft", "p99 < 2s"}, {"ttft", "p50 < 2s"}, {"ttft", "mean < 2s"}, {"ttft", "max < 2s"}, {"itl", "p95 < 30ms"},
		{"success", "rate >= 98%"}, {"success", "rate >= 100%"}, {"success", "observed >= 98%"}, {"success", "every"},
		{"goodput", "share >= 95%"}, {"goodput", "observed >= 95%"}, {"throughput", "> 1 req/s"},
	} {
		for _, s := range []shape{
			{n: 1, rounds: 1, perRound: 58}, {n: 1, rounds: 1, perRound: 59}, {n: 1, rounds: 1, perRound: 298}, {n: 1, rounds: 1, perRound: 299},
			{n: 4, rounds: 5, perRound: 11}, {n: 4, rounds: 5, perRound: 12}, {n: 4, rounds: 5, perRound: 59}, {n: 4, rounds: 5, perRound: 60},
			{n: 25, rounds: 1, perRound: 100}, {n: 25, rounds: 1, perRound: 249}, {n: 25, rounds: 1, perRound: 250}, {n: 25, rounds: 4, perRound: 75},
			{n: 4, rounds: 1, perRound: 4}, {n: 4, rounds: 1, perRound: 7}, {n: 4, rounds: 1, perRound: 8}, {n: 4, rounds: 2, perRound: 4}, {n: 4, rounds: 3, perRound: 30},
			{n: 1, rounds: 58, perRound: 3}, {n: 1, rounds: 59, perRound: 3}, {n: 1, rounds: 148, perRound: 2}, {n: 1, rounds: 149, perRound: 2},
		} {
			th := threshold(name.metric, name.text)
			if name.metric == "throughput" {
				th.Limit = 0.1
			}
			p, run := gate(s.level(), th)
			withGood(p)
			findings := Certify(p)
			if len(findings) == 0 {
				t.Fatal("no findings")
			}
			v := verdictOf(t, Judge(p, run, Options{}), "sla."+strings.TrimSuffix(name.metric+"."+th.Stat.String(), ".")+" at 4")
			if f := findings[0]; f.Impossible == (v.Outcome == verdict.Pass) {
				t.Errorf("%s %s with %+v: impossible %v (%s), but a perfect level is %v: %s", name.metric, name.text, s, f.Impossible, f.Remark, v.Outcome, v.Message)
			}
		}
	}
}

func TestCertify(t *testing.T) {
	p := load(t, `
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = [1, 30]
    requests    = { 1 = 60, default = 300 }
    seeds       = [1, 2, 3, 4, 5]
  }
  sla {
    at      = 30
    ttft    = ["p95 < 8s", "p99 < 8s"]
    e2e     = "mean < 9s"
    success = "every"
  }
  sla {
    at       = 1
    severity = "warn"
    ttft     = "p99 < 8s"
  }
}
workload "published" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = 5
    requests    = 20
  }
  gate { decide = "estimate" }
  sla { ttft = "p99 < 8s" }
}
`)
	type row struct {
		workload, level, requirement, planned, needed string
		impossible                                    bool
	}
	var got []row
	for _, f := range Certify(p) {
		got = append(got, row{f.Workload, f.Level, f.Requirement, f.Planned, f.Needed, f.Impossible})
	}
	want := []row{
		{"chat", "1", "ttft p99 < 8s", "60 requests, 6 batches", "299 effective requests", true},
		{"chat", "1", "success >= 98%", "60 requests, 6 batches", "1 request", false},
		{"chat", "30", "ttft p95 < 8s", "300 requests, 10 batches", "59 effective requests", false},
		{"chat", "30", "ttft p99 < 8s", "300 requests, 10 batches", "299 effective requests", false},
		{"chat", "30", "e2e mean < 9s", "300 requests, 10 batches", "5 batches", false},
		{"chat", "30", "success every", "300 requests, 10 batches", "1 request", false},
		{"published", "5", "ttft p99 < 8s", got[len(got)-1].planned, "1 request", false},
		{"published", "5", "success >= 98%", got[len(got)-1].planned, "1 request", false},
	}
	if len(got) != len(want) {
		t.Fatalf("%d findings, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].workload != want[i].workload || got[i].requirement != want[i].requirement || got[i].planned != want[i].planned || got[i].needed != want[i].needed || got[i].level != want[i].level || got[i].impossible != want[i].impossible {
			t.Errorf("finding %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	diags := CertifyDiagnostics(p)
	if len(diags) != 1 || diags[0].Severity != hcl.DiagWarning || diags[0].Subject.Start.Line != 22 {
		t.Fatalf("diagnostics: %v", diags)
	}
	if want := `ttft p99 at 1 can never pass: needs 299 requests at 95% confidence; the plan has only 60. Raise requests. You may also lower confidence, or set decide = "estimate" in gate.`; diags[0].Detail != want {
		t.Errorf("detail:\n got %s\nwant %s", diags[0].Detail, want)
	}
	if Certify(nil) != nil {
		t.Error("no plan has findings")
	}
}

// A trace has a fixed number of requests. If they are too few, the diagnostics say to replay a
// longer stretch.
func TestCertifyDiagnosticsOfATrace(t *testing.T) {
	p, _ := gate(shape{n: 1, rounds: 1, perRound: 20}.level(), threshold("ttft", "p95 < 2s"), threshold("success", "rate >= 99%"))
	p.Workloads[0].Loads = []*plan.Load{{Kind: metric.OpenLoop, Levels: []plan.Level{{Name: "trace", Rate: 1, Requests: 40, Rounds: 10, Speedup: 1}}}}
	p.Workloads[0].SLAs[0].At = []string{"trace"}
	diags := CertifyDiagnostics(p)
	for i, want := range []string{"the plan has only 40. Replay a longer stretch of the trace", "Either use a longer stretch of the trace"} {
		if len(diags) != 2 || !strings.Contains(diags[i].Detail, want) {
			t.Errorf("%q is not in %v", want, diags)
		}
	}
}

func TestCertifyDiagnosticsGroupsLevels(t *testing.T) {
	p, _ := gate(shape{n: 1, rounds: 1, perRound: 20}.level(), threshold("ttft", "p95 < 2s"), threshold("success", "rate >= 100%"))
	p.Workloads[0].Loads = append(p.Workloads[0].Loads, &plan.Load{Kind: metric.Burst, Levels: []plan.Level{{Name: "burst 100", N: 100, Requests: 400, Rounds: 4}, {Name: "8", N: 8, Requests: 20, Rounds: 1}}})
	p.Workloads[0].SLAs[0].At = []string{"4", "burst 100", "8"}
	diags := CertifyDiagnostics(p)
	if len(diags) != 2 || diags[0].Severity != hcl.DiagError {
		t.Fatalf("diagnostics: %v", diags)
	}
	for i, want := range []string{
		`ttft p95 at 4, 8 can never pass: needs 59 requests at 95% confidence; the plan has only 20. Likewise at burst 100. Raise requests`,
		`success rate at 4, burst 100, 8 can never pass: a sample cannot prove that every request succeeds. Write "observed >= 100%" or "every" to judge only the requests of the run`,
	} {
		if !strings.HasPrefix(diags[i].Detail, want) {
			t.Errorf("detail %d: %s", i, diags[i].Detail)
		}
	}
}

var marker = regexp.MustCompile(`# (ERROR|WARNING): (.*)`)

// A threshold on a share gets a diagnostic if the planned rounds can never certify it. The
// diagnostic says how to change the plan.
func TestCertifyDiagnosticsOfShares(t *testing.T) {
	for _, file := range []string{"testdata/rounds.hcl", "testdata/waves.hcl", "testdata/each.hcl"} {
		t.Run(file, func(t *testing.T) { testDiagnostics(t, file) })
	}
}

func testDiagnostics(t *testing.T, file string) {
	source := must.Get(os.ReadFile(file))(t)
	diags := CertifyDiagnostics(load(t, string(source)))
	for i, line := range strings.Split(string(source), "\n") {
		want := marker.FindStringSubmatch(line)
		at := slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Subject.Start.Line == i+1 })
		switch {
		case want == nil && at < 0:
		case want == nil:
			t.Errorf("line %d: %s", i+1, diags[at].Detail)
		case at < 0:
			t.Errorf("line %d: nothing, want %s", i+1, want[2])
		case (want[1] == "ERROR") != (diags[at].Severity == hcl.DiagError) || !strings.Contains(diags[at].Detail, want[2]):
			t.Errorf("line %d:\n got %s\nwant %s: %s", i+1, diags[at].Detail, want[1], want[2])
		}
		if at >= 0 {
			diags = slices.Delete(diags, at, at+1)
		}
	}
	if len(diags) > 0 {
		t.Error(diags)
	}
}

// Whether a level that may be extended can pass is checked at its largest number of requests. Its
// looks, the judgements while it runs, share the allowed error.
func TestCertifyOfWhatIsExtended(t *testing.T) {
	for _, c := range []struct {
		requests, most int
		text           string
		impossible     bool
		planned        string
		needed         string
	}{
		// The three looks share the allowed error of 0.05. After looks at 20 and 40 requests, the
		// last look may use 0.0252 of it. So it needs 72 requests: 0.95^72 = 0.0249.
		{20, 80, "p95 < 2s", false, "20 requests, 1 round, extended to at most 80 requests, with 3 looks", "72 effective requests"},
		{20, 70, "p95 < 2s", true, "20 requests, 1 round, extended to at most 70 requests, with 3 looks", "71 effective requests"},
		{59, 59, "p95 < 2s", false, "59 requests, 1 round", "59 effective requests"},
		// Without max_requests a level gets at most four times its planned requests. A p99 needs
		// 364 requests at the last of three looks (0.99^364 = 0.0258), so 4·91 are enough, and 4·90
		// are not.
		{90, 0, "p99 < 2s", true, "90 requests, 1 round, extended to at most 360 requests, with 3 looks", "364 effective requests"},
		{91, 0, "p99 < 2s", false, "91 requests, 1 round, extended to at most 364 requests, with 3 looks", "364 effective requests"},
	} {
		p, _ := gate(shape{n: 1, rounds: 1, perRound: c.requests}.level(), threshold("ttft", c.text))
		w := p.Workloads[0]
		w.Policy.OnInconclusive, w.Policy.MaxRequests = plan.Extend, c.most
		w.Loads[0].Levels[0].N = 1
		f := Certify(p)[0]
		if f.Impossible != c.impossible || f.Planned != c.planned || f.Needed != c.needed {
			t.Errorf("%d to %d, %s: impossible %v, planned %q, needed %q; want %v, %q, %q", c.requests, c.most, c.text, f.Impossible, f.Planned, f.Needed, c.impossible, c.planned, c.needed)
		}
	}
}

// By default a probe may grow to four times the requests of its first look, and so to four times
// the rounds. With max_requests, one probe of a search, the deep probe, may send up to that number.
func TestCertifyOfShareAtCapacity(t *testing.T) {
	for _, c := range []struct {
		name, capacity, load string
		impossible           bool
		needed, extended     string
		remark               string
		clusters             plan.Clusters
	}{
		{"rounds", "", "seeds = range(1, 150)", true, "another assumption", "extended to at most 400 requests, with 6 looks", "a closed loop is one window", plan.ClustersRound},
		// The last of six looks has 0.0439 of the error, so 155 waves are needed: 0.98^155 = 0.0436.
		// But 900 requests are only 112 waves of 8.
		{"few more", "requests = 800\nmax_requests = 900", "", true, "155 waves of 8", "extended to at most 900 requests, with 6 looks", "the plan has only 112", ""},
		// By default a level has at most 800 requests: 100 waves of 8. 1,600 requests are 200.
		{"by default", "", "", true, "167 waves of 8", "extended to at most 400 requests, with 6 looks", "the plan has only 50", ""},
		{"more", "max_requests = 1600", "", false, "195 waves of 8", "extended to at most 1600 requests, with 8 looks", "this level has enough waves to pass only in a probe with max_requests", ""},
		{"enough", "requests = 1300\nmax_requests = 1300", "", false, "161 waves of 8", "", "", plan.ClustersWave},
	} {
		p := load(t, `
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    concurrency = 8
    `+c.load+`
  }
  capacity {
    from    = 8
    up_to   = 8
    require = 8
    `+c.capacity+`
  }
  sla {
    at      = "capacity"
    success = "rate >= 98%"
  }
}
`)
		p.Workloads[0].Policy.Clusters = c.clusters
		f := Certify(p)[0]
		if f.Impossible != c.impossible || f.Needed != c.needed || f.Extended != c.extended || !strings.Contains(f.Remark, c.remark) || (f.Remark == "") != (c.remark == "") {
			t.Errorf("%s: %+v, want impossible %v, needed %q, extended %q, remark %q", c.name, f, c.impossible, c.needed, c.extended, c.remark)
		}
	}
}

// Every preset can be certified at every load without more arguments, with "stop" and with
// "extend".
func TestLongPresetsCanBeCertified(t *testing.T) {
	for _, preset := range []string{"mlperf_llama2_70b", "mlperf_deepseek_r1_interactive", "mlperf_llama3_1_405b", "general_chatbot", "chatbot"} {
		for _, on := range []string{"stop", "extend"} {
			p := load(t, `
gate { on_inconclusive = "`+on+`" }
server "sim" {
  simulator {}
}
workload "chat" {
  preset        = "`+preset+`"
  input_tokens  = 1000
  output_tokens = 100
  load { concurrency = [1, 2, 3, 7, 10, 11, 29, 30, 59, 60, 61, 100, 299, 600, 1000] }
  load { burst = [1, 2, 7, 60, 299, 600, 1000] }
}
`)
			if diags := CertifyDiagnostics(p); len(diags) > 0 {
				t.Errorf("%s, %s: %v", preset, on, diags)
			}
		}
	}
}

func TestCertifyByTime(t *testing.T) {
	p, _ := gate(shape{rounds: 10, perRound: 4}.level(), threshold("ttft", "p99 < 2s"))
	level := &p.Workloads[0].Loads[0].Levels[0]
	level.Duration = 5 * time.Minute
	for on, planned := range map[plan.OnInconclusive]string{
		plan.Stop:   "5m, 10 rounds",
		plan.Extend: "5m, 10 rounds, extended to at most 20m, with 3 looks",
	} {
		p.Workloads[0].Policy.OnInconclusive = on
		f := Certify(p)[0]
		if f.Impossible || f.Planned != planned || f.Remark != "as many as arrive in 5m" {
			t.Errorf("%s: %+v", on, f)
		}
	}
}

// A wave is all requests in flight, which may fail together. At a rate, the number in flight is not
// known in advance. 1,000 requests make the 59 waves that a share of 95% needs, if a wave has at
// most 16 requests.
func TestCertifyOfARate(t *testing.T) {
	for _, tt := range []struct {
		requests, clusters, needed, remark string
		impossible                         bool
	}{
		{"1000", "wave", "59 waves", "a wave is all requests in flight at one time; 1000 requests make enough waves if at most 16 are in flight", false},
		{"50", "wave", "59 waves", "needs 59 waves at 95% confidence, because requests that are in flight together may fail together; the plan has only 50", true},
		{"1000", "none", "59 requests", "", false},
	} {
		p := load(t, `
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 100
  output_tokens = 11
  load {
    rate     = "10 req/s"
    requests = `+tt.requests+`
  }
  gate {
    clusters        = "`+tt.clusters+`"
    on_inconclusive = "stop"
  }
  sla { success = "rate >= 95%" }
}
`)
		if f := Certify(p)[0]; f.Needed != tt.needed || f.Remark != tt.remark || f.Impossible != tt.impossible {
			t.Errorf("%s, %s: %+v", tt.requests, tt.clusters, f)
		}
	}
}
