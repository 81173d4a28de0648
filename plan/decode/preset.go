package decode

import (
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

// preset is a named use case.
type preset struct {
	name   string
	input  int // tokens; 0: the plan must say
	output int // tokens; 0: the plan must say
	bounds []presetBound
	source string
}

// presetRequests of a level certify a p99, where the plan names no number: it
// takes 299 effective ones at one look and 408 at three, and what ten rounds of
// independent requests show of their spread leaves 480 of 600.
const presetRequests = 600

// requests are the fewest of a level that the plan sets no number for; 0: the
// language's default will do.
func (p *preset) requests() int {
	if p != nil && slices.ContainsFunc(p.bounds, func(b presetBound) bool { return strings.HasPrefix(b.text, "p99") }) {
		return presetRequests
	}
	return 0
}

type presetBound struct{ name, text string }

func (p *preset) why() string { return "preset " + p.name + ": " + p.source }

// Where the presets come from. Reports compare means; MLPerf compares the 99th
// percentile.
const (
	capacityReport = "the use case of published capacity reports"
	scenarioReport = "the scenario of published scenario reports"
	mlperf         = "the server scenario of MLPerf Inference (mlperf.conf)"
)

// presets in the order in which the reference shows them.
var presets = []preset{
	{"code_completion", 1 << 10, 128, []presetBound{{"e2e", "mean < 2s"}}, capacityReport},
	{"short_form_chatbot", 8 << 10, 1024, []presetBound{{"ttft", "mean < 10s"}, {"speed", "mean > 10 tok/s"}}, capacityReport},
	{"general_chatbot", 32 << 10, 1024, []presetBound{{"ttft", "mean < 8s"}, {"speed", "mean > 15 tok/s"}}, capacityReport},
	{"long_document", 64 << 10, 1024, []presetBound{{"ttft", "mean < 12s"}, {"speed", "mean > 15 tok/s"}}, capacityReport},
	{"coding_assistant", 96 << 10, 1024, []presetBound{{"ttft", "mean < 12s"}, {"speed", "mean > 20 tok/s"}}, capacityReport},

	{"chatbot", 1 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport},
	{"rag", 4 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport},
	{"agentic", 16 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport},
	{"tool_calling", 32 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport},

	{"mlperf_llama2_70b", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 200ms"}}, mlperf},
	{"mlperf_llama2_70b_interactive", 0, 0, []presetBound{{"ttft", "p99 <= 450ms"}, {"tpot", "p99 <= 40ms"}}, mlperf},
	{"mlperf_llama3_1_8b", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 100ms"}}, mlperf},
	{"mlperf_llama3_1_8b_interactive", 0, 0, []presetBound{{"ttft", "p99 <= 500ms"}, {"tpot", "p99 <= 30ms"}}, mlperf},
	{"mlperf_llama3_1_405b", 0, 0, []presetBound{{"ttft", "p99 <= 6s"}, {"tpot", "p99 <= 175ms"}}, mlperf},
	{"mlperf_deepseek_r1", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 80ms"}}, mlperf},
	{"mlperf_deepseek_r1_interactive", 0, 0, []presetBound{{"ttft", "p99 <= 1.5s"}, {"tpot", "p99 <= 15ms"}}, mlperf},
	{"mlperf_gpt_oss_120b", 0, 0, []presetBound{{"ttft", "p99 <= 3s"}, {"tpot", "p99 <= 80ms"}}, mlperf},
	{"mlperf_gpt_oss_120b_interactive", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 15ms"}}, mlperf},
}

func presetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// readPreset is the one that the workload names; nil when it names none.
func readPreset(b *body) *preset {
	v, ok := b.value("preset")
	if !ok || b.isUnknown(b.rangeOf("preset"), "preset", v) {
		return nil
	}
	name, ok := b.asText(b.rangeOf("preset"), "preset", v)
	if !ok {
		return nil
	}
	for i := range presets {
		if presets[i].name == name {
			return &presets[i]
		}
	}
	names := presetNames()
	hint := suggest.DidYouMean(name, names)
	if hint == "" {
		hint = " There are " + choices(names) + "."
	}
	b.d.errorf(b.rangeOf("preset"), sumUnknownPreset, "There is no preset %q.%s", name, hint)
	return nil
}

// addPresetSLA adds the preset's thresholds on metrics that the workload does not
// bound itself: level by level, so that bounding one level does not set the
// others free.
func addPresetSLA(b *body, w *plan.Workload, p *preset, levels levelSet, bounded map[string][]*plan.SLA) {
	for _, bound := range p.bounds {
		sla := &plan.SLA{AtCapacity: w.Capacity != nil, Severity: plan.SeverityError, Range: b.rangeOf("preset")}
		for _, level := range levels.names {
			own := slices.ContainsFunc(bounded[bound.name], func(s *plan.SLA) bool { return slices.Contains(s.At, level) })
			if !own {
				sla.At = append(sla.At, level)
			}
		}
		if slices.ContainsFunc(bounded[bound.name], func(s *plan.SLA) bool { return s.AtCapacity }) {
			sla.AtCapacity = false
		}
		if len(sla.At) == 0 && !sla.AtCapacity {
			continue
		}
		def, _ := metric.Lookup(bound.name)
		t, wrong := parseThreshold(def, bound.text, false)
		if wrong != nil {
			panic("plan: bad preset " + p.name + ": " + wrong.detail)
		}
		t.Range = sla.Range
		sla.Thresholds = []*plan.Threshold{&t}
		w.SLAs = append(w.SLAs, sla)
		b.note("sla."+bound.name, `"`+bound.text+`"`, p.why())
	}
}
