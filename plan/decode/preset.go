package decode

import (
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

type preset struct {
	name   string
	title  string
	about  string // description of the use case
	input  int    // number of prompt tokens; 0 if the plan must set it
	output int    // number of answer tokens; 0 if the preset leaves it to the plan
	bounds []presetBound
	source string
	users  [2]float64 // people served per request in flight; 0 if the source does not say
}

// presetRequests is the default number of requests at a level with a threshold on a p99. In ten
// rounds, the 600 requests count as about 480 independent ones. This is enough: a p99 needs 408 to
// pass if it is judged at three looks.
const presetRequests = 600

// It applies if the plan sets no number; 0 means that the preset asks for none.
func (p *preset) requests() int {
	if p != nil && slices.ContainsFunc(p.bounds, func(b presetBound) bool { return strings.HasPrefix(b.text, "p99") }) {
		return presetRequests
	}
	return 0
}

type presetBound struct{ name, text string }

func (p *preset) why() string { return "preset " + p.name + ": " + p.source }

// These are the sources of the presets. Published reports compare means, and MLPerf compares 99th
// percentiles.
const (
	capacityReport = "a use case from published capacity reports"
	scenarioReport = "a scenario from published benchmark reports"
	mlperf         = "the server scenario of MLPerf Inference (mlperf.conf)"
)

// These are people served per request in flight. Published capacity reports count four to five,
// because people pause between the requests of a conversation. An editor that completes code does
// not pause, so it has no such number.
var (
	readers = [2]float64{4, 5}
	nobody  [2]float64
)

var presets = []preset{
	{"code_completion", "Code completion", "The editor suggests the next lines while a developer types.", 1 << 10, 128, []presetBound{{"e2e", "mean < 2s"}}, capacityReport, nobody},
	{"short_form_chatbot", "Short-form chatbot", "Short conversations: questions to a help desk, search, quick answers.", 8 << 10, 1024, []presetBound{{"ttft", "mean < 10s"}, {"speed", "mean > 10 tok/s"}}, capacityReport, readers},
	{"general_chatbot", "General chatbot", "Long conversations of up to 32K tokens, as in public chat products.", 32 << 10, 1024, []presetBound{{"ttft", "mean < 8s"}, {"speed", "mean > 15 tok/s"}}, capacityReport, readers},
	{"long_document", "Long documents", "Summaries of long documents (125 to 160 pages), and questions about them.", 64 << 10, 1024, []presetBound{{"ttft", "mean < 12s"}, {"speed", "mean > 15 tok/s"}}, capacityReport, readers},
	{"coding_assistant", "Coding assistant", "An assistant that reads 8,000 to 9,000 lines of a project with each request.", 96 << 10, 1024, []presetBound{{"ttft", "mean < 12s"}, {"speed", "mean > 20 tok/s"}}, capacityReport, readers},

	{"chatbot", "Chatbot", "A short conversation.", 1 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},
	{"rag", "Retrieval (RAG)", "A question, with passages that a search found.", 4 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},
	{"agentic", "Agent", "An agent in the middle of a task, with the history of its steps.", 16 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},
	{"tool_calling", "Tool calling", "An agent whose prompt contains long descriptions of tools, and their results.", 32 << 10, 256, []presetBound{{"ttft", "mean <= 3s"}}, scenarioReport, nobody},

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

func readPreset(b *body) *preset {
	x, ok := b.item("preset")
	if !ok || x.unknown() {
		return nil
	}
	name, ok := x.text()
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
	b.stray = true // so what the preset would set is not missing
	b.d.errorf(b.rangeOf("preset"), sumUnknownPreset, "There is no preset %q.%s", name, hint)
	return nil
}

// addPresetSLA adds the preset's thresholds to each level at which the plan has no threshold on the
// same metric.
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
