package strength

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

func TestDiagnose(t *testing.T) {
	const servers = `
server "a" {
  simulator {}
}
server "b" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load { concurrency = 1 }
  sla {
    SLA
  }
}
`
	const against = "compare \"c\" {\n control = server.a\n candidate = server.b\n"
	for _, c := range []struct {
		sla, more string
		want      []string
	}{
		{"success = \"every\"", "", []string{"Nothing bounds speed"}},
		{"ttft = \"mean < 1s\"", "", []string{"Nothing bounds decoding"}},
		{"tpot = \"mean < 1s\"", "", []string{"Nothing bounds prefill"}},
		{"e2e = \"mean < 1s\"", "", nil},
		{"e2e = \"mean < 1s\"\n success = \"rate >= 95%\"", "", nil},
		{"e2e = \"mean < 1s\"\n success = \"rate > 94.9%\"", "", []string{"Many requests may fail"}},
		{"e2e = \"mean < 1s\"\n success = \"observed >= 50%\"", "", []string{"Many requests may fail"}},
		{"ttft = \"mean < 1s\"", "assert \"a\" {\n condition = result.a.w.level[1].speed.mean > 1\n error_message = \"slow\"\n}", nil},
		{"success = \"every\"", "gate {\n measure_only = true\n}", nil},
		{"e2e = \"mean < 1s\"", against + "}", []string{"Comparison requires nothing"}},
		{"ttft = \"mean < 1s\"", against + "tolerate {\n throughput = \"-5%\"\n }\n}", nil},
		{"ttft = \"mean < 1s\"", against + "tolerate {\n throughput = \"-5%\"\n severity = \"warn\"\n }\n}", []string{"Comparison only warns", "Nothing bounds decoding"}},
	} {
		src := strings.Replace(servers, "SLA", c.sla, 1) + c.more
		p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(src)})
		must.Need(t, !diags.HasErrors(), "%s: %v", src, diags)
		var got []string
		for _, d := range Diagnose(p) {
			got = append(got, d.Summary)
		}
		must.Same(t, fmt.Sprintf("%s %s", c.sla, c.more), c.want, got)
	}
}

// Embeddings are all prefill, so one bound on their speed is enough. A comparison of them without
// answers says nothing about the vectors.
func TestDiagnoseEmbeddings(t *testing.T) {
	const compare = "compare \"c\" {\n control = server.a\n candidate = server.b\n tolerate { e2e = \"mean +10%\" }\n"
	for _, c := range []struct {
		sla, more string
		want      []string
	}{
		{"success = \"every\"", "", []string{"Nothing bounds speed"}},
		{"e2e = \"p95 < 1s\"", "", nil},
		{"input_throughput = \"> 1000 tok/s\"", "", nil},
		{"request_rate = \"> 4 req/s\"", "", nil},
		{"success = \"every\"", compare + "}", []string{"Vectors are not compared"}},
		{"success = \"every\"", compare + "answers {}\n}", nil},
	} {
		p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(strings.Replace(`
server "a" {
  simulator {}
}
server "b" {
  simulator {}
}
workload "w" {
  api          = "embeddings"
  input_tokens = 64
  load { concurrency = 1 }
  sla { SLA }
}
`, "SLA", c.sla, 1) + c.more)})
		must.Need(t, !diags.HasErrors(), "%v", diags)
		var got []string
		for _, d := range Diagnose(p) {
			got = append(got, d.Summary)
			must.Hold(t, !strings.Contains(d.Detail, "ttft"), "embeddings have none: %s", d.Detail)
		}
		must.Same(t, c.sla+" "+c.more, c.want, got)
	}
}

// The TTFT of first or of later turns bounds prefill too.
func TestDiagnoseConversations(t *testing.T) {
	for _, metric := range []string{"ttft_turn_1", "ttft_later"} {
		p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(strings.Replace(`
server "a" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  prompt { turns = 3 }
  load {
    users    = 4
    duration = "5m"
  }
  sla {
    speed  = "mean > 9 tok/s"
    METRIC = "mean < 1s"
  }
}
`, "METRIC", metric, 1))})
		must.Need(t, !diags.HasErrors(), "%v", diags)
		if got := Diagnose(p); len(got) > 0 {
			t.Errorf("%s: %v", metric, got)
		}
	}
}

// If the only requirement of a plan is a comparison that is left out, a diagnostic says that
// nothing is required.
func TestDiagnoseLeftOut(t *testing.T) {
	const servers = `
server "b" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load { concurrency = 1 }
  MORE
}
compare "c" {
  control   = base.server.b
  candidate = server.b
  tolerate { e2e = "mean +5%" }
}
`
	for more, want := range map[string][]string{
		"": {"Only what is implied is required"}, "sla { e2e = \"mean < 1s\" }": nil,
		"sla {\n severity = \"warn\"\n e2e = \"mean < 1s\"\n }": {"Only what is implied is required"},
	} {
		p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(strings.Replace(servers, "MORE", more, 1))})
		must.Need(t, !diags.HasErrors(), "%v", diags)
		var got []string
		for _, d := range Diagnose(p) {
			got = append(got, d.Summary)
		}
		must.Same(t, more, want, got)
	}
	// The base branch has no such plan.
	for _, tt := range []struct {
		more    string
		missing plan.BaseMissing
		says    string
	}{
		{"", "", "so a run is inconclusive"},
		{"sla { e2e = \"mean < 1s\" }", "", "Only the other requirements"},
		{"sla { e2e = \"mean < 1s\" }", plan.BaseMissingFail, "A run fails"},
		{"", plan.BaseMissingPass, "A run can pass without it"},
	} {
		p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(strings.Replace(servers, "MORE", tt.more, 1)), Base: t.TempDir(), BaseMissing: tt.missing})
		must.Need(t, !diags.HasErrors(), "%v", diags)
		got := Diagnose(p)
		if len(got) != 1 || got[0].Summary != "Nothing to compare with" || !strings.Contains(got[0].Detail, tt.says) {
			t.Errorf("%q, %q: %v, want one that says %q", tt.more, tt.missing, got, tt.says)
		}
	}
}
