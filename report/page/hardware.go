package page

import (
	"cmp"

	"github.com/tokgate/tokgate/report"
)

// hardware returns the section on what the servers ran on, as far as it was reported.
func hardware(runs []Run) (Section, bool) {
	s := Section{ID: "hardware", Title: "Hardware", Lead: "What each server ran on, as the machine and the server reported it."}
	if len(runs) != 1 {
		return s, false // a page with several runs has a table of differences, which includes the hardware
	}
	r := runs[0]
	t := &Table{Words: true, Caption: "Hardware", Columns: Heads("Fact")}
	for i := range r.Servers {
		t.Columns = append(t.Columns, Heads(r.title(r.Servers[i].Address))...)
	}
	for _, row := range [][2]string{
		{"GPUs", "gpu"}, {"Driver", "gpu_driver"}, {"CUDA or ROCm", "cuda"}, {"Clocks and power limit", "gpu_limits"}, {"Modes", "gpu_modes"},
		{"Memory in use before", "gpu_used_before"}, {"Weights in memory", "weights_memory"}, {"KV cache", "kv_cache_tokens"}, {"CPU", "cpu"}, {"Memory", "memory"}, {"Kernel", "kernel"},
	} {
		cells, some := []Cell{text(row[0])}, false
		for i := range r.Servers {
			v := factOf(&r.Servers[i], row[1])
			some = some || v != ""
			cells = append(cells, text(cmp.Or(v, "–")))
		}
		if some {
			t.Rows = append(t.Rows, cells)
		}
	}
	s.Blocks = []Block{fold(plural(len(t.Rows), "fact")+" of the machine", Block{Table: t})}
	return s, len(t.Rows) > 0
}

// factOf returns the server's value for the first of the keys that has one; "" if none has.
func factOf(s *report.Server, keys ...string) string {
	for _, key := range keys {
		for _, p := range s.Fingerprint {
			if p.Key == key && p.Value != "" {
				return Line(p.Value)
			}
		}
	}
	return ""
}

// caches returns the section about the share of prompt tokens that came from a prefix cache. There
// is no section if all prompts begin differently.
func caches(runs []Run) (Section, bool) {
	s := Section{ID: "caching", Title: "Caching", Lead: "The share of the prompts' tokens that came from a prefix cache. The server does not process these tokens again, so the first token comes sooner."}
	var curves []curve
	for _, kind := range everyKind {
		curves = append(curves, curve{kind: kind, name: "cache_hit_rate", title: "Tokens from the cache, by " + kinds[kind],
			axis: "cache hit rate", zero: true, quiet: true, words: "Of the prompts' tokens.", keep: func(*report.Case) bool { return true }})
	}
	return s.figures(runs, curves...)
}
