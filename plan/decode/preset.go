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
	title  string
	about  string // what people use it for
	input  int    // tokens; 0: the plan must say
	output int    // tokens; 0: the plan must say
	bounds []presetBound
	source string
	users  [2]float64 // that one request in flight stands for; zero: its source does not say
}

// presetRequests is the default for a level with a bound on a p99. Certifying a
// p99 takes 299 effective requests with one look and 408 with three; of 600
// independent requests in ten rounds, the estimate of their spread leaves 480
// effective.
const presetRequests = 600

// requests is the minimum for a level whose requests the plan does not set; 0:
// the language's default will do.
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

// The published capacity reports count four to five people for a request in flight,
// where these pause between their requests: in conversations, not in an editor
// that completes code.
var (
	readers = [2]float64{4, 5}
	nobody  [2]float64
)

// presets in the order in which the reference shows them.
var presets = []preset{
	{"code_completion", "Code completion", "The editor suggests the next lines while a developer types.", 1 << 10, 128, []presetBound{{"e2e", "mean < 2s"}}, capacityReport, nobody},
	{"short_form_chatbot", "Short-form chatbot", "Short conversations: questions to a help desk, search, quick answers.", 8 << 10, 1024, []presetBound{{"ttft", "mean < 10s"}, {"speed", "mean > 10 tok/s"}}, capacityReport, readers},
	{"general_chatbot", "General chatbot", "Long conversations of the kind that public chat products hold, up to 32K tokens.", 32 << 10, 1024, []presetBound{{"ttft", "mean < 8s"}, {"speed", "mean > 15 tok/s"}}, capacityReport, readers},
	{"long_document", "Long documents", "Summaries of and questions about 125 to 160 pages.", 64 << 10, 1024, []presetBound{{"ttft", "mean < 12s"}, {"speed", "mean > 15 tok/s"}}, capacityReport, readers},
	{"coding_assistant", "Coding assistant", "An assistant that has 8,000 to 9,000 lines of a project before it.", 96 << 10, 1024, []presetBound{{"ttft", "mean < 12s"}, {"speed", "mean > 20 tok/s"}}, capacityReport, readers},

	{"chatbot", "Chatbot", "A short conversation.", 1 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},
	{"rag", "Retrieval (RAG)", "A question with passages that a search found.", 4 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},
	{"agentic", "Agent", "An agent in the middle of its work, with what it did before.", 16 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},
	{"tool_calling", "Tool calling", "An agent with long descriptions of tools and their results.", 32 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},

	{"mlperf_llama2_70b", "MLPerf Llama 2 70B", "", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 200ms"}}, mlperf, nobody},
	{"mlperf_llama2_70b_interactive", "MLPerf Llama 2 70B, interactive", "", 0, 0, []presetBound{{"ttft", "p99 <= 450ms"}, {"tpot", "p99 <= 40ms"}}, mlperf, nobody},
	{"mlperf_llama3_1_8b", "MLPerf Llama 3.1 8B", "", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 100ms"}}, mlperf, nobody},
	{"mlperf_llama3_1_8b_interactive", "MLPerf Llama 3.1 8B, interactive", "", 0, 0, []presetBound{{"ttft", "p99 <= 500ms"}, {"tpot", "p99 <= 30ms"}}, mlperf, nobody},
	{"mlperf_llama3_1_405b", "MLPerf Llama 3.1 405B", "", 0, 0, []presetBound{{"ttft", "p99 <= 6s"}, {"tpot", "p99 <= 175ms"}}, mlperf, nobody},
	{"mlperf_deepseek_r1", "MLPerf DeepSeek R1", "", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 80ms"}}, mlperf, nobody},
	{"mlperf_deepseek_r1_interactive", "MLPerf DeepSeek R1, interactive", "", 0, 0, []presetBound{{"ttft", "p99 <= 1.5s"}, {"tpot", "p99 <= 15ms"}}, mlperf, nobody},
	{"mlperf_gpt_oss_120b", "MLPerf gpt-oss 120B", "", 0, 0, []presetBound{{"ttft", "p99 <= 3s"}, {"tpot", "p99 <= 80ms"}}, mlperf, nobody},
	{"mlperf_gpt_oss_120b_interactive", "MLPerf gpt-oss 120B, interactive", "", 0, 0, []presetBound{{"ttft", "p99 <= 2s"}, {"tpot", "p99 <= 15ms"}}, mlperf, nobody},
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
		anywhere := b.d.isLoadless(w) && len(bounded[bound.name]) == 0 // in a mix
		if len(sla.At) == 0 && !sla.AtCapacity && !anywhere {
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
