package page

import (
	"cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

func hardware(r Run) Section {
	s := Section{ID: "hardware", Title: "Hardware", Lead: "What each server ran on, as the machine and the server reported it."}
	t := factTable(r, "Hardware", r.Run.Servers)
	for _, row := range [][2]string{
		{"GPUs", "gpu"}, {"Driver", "gpu_driver"}, {"CUDA or ROCm", "cuda"}, {"Clocks and power limit", "gpu_limits"}, {"Modes", "gpu_modes"},
		{"Memory in use before", "gpu_used_before"}, {"Weights in memory", "weights_memory"}, {"KV cache", "kv_cache_tokens"}, {"CPU", "cpu"}, {"Memory", "memory"}, {"Kernel", "kernel"},
	} {
		t.factRow(row[0], r.Run.Servers, func(s *metric.ServerRun) string { return factOf(s, row[1]) })
	}
	s.Blocks = []Block{fold(verdict.Count(len(t.Rows), "facts")+" of the machine", Block{Table: t})}
	return s
}

func factTable(r Run, caption string, servers []*metric.ServerRun) *Table {
	t := &Table{Words: true, Caption: caption, Columns: Heads("Fact")}
	for _, s := range servers {
		t.Columns = append(t.Columns, Heads(r.title(s.Address))...)
	}
	return t
}

// factRow adds what is known of each server, unless nothing is known of any.
func (t *Table) factRow(name string, servers []*metric.ServerRun, of func(*metric.ServerRun) string) {
	cells, some := []Cell{text(name)}, false
	for _, s := range servers {
		v := of(s)
		some = some || v != ""
		cells = append(cells, text(cmp.Or(v, "–")))
	}
	if some {
		t.Rows = append(t.Rows, cells)
	}
}

func about(r Run, server string) string {
	if s := r.Server(server); s != nil {
		return Line(s.Description)
	}
	return ""
}

// factOf returns the server's value for the first of the keys that has one; "" if none has.
func factOf(s *metric.ServerRun, keys ...string) string {
	for _, key := range keys {
		if v := s.Fingerprint[key]; v != "" {
			return Line(v)
		}
	}
	return ""
}

// caches returns the section about the share of prompt tokens that came from a prefix cache. There
// is no section if all prompts begin differently.
func caches(runs []Run) Section {
	s := Section{ID: "caching", Title: "Caching", Lead: "The share of the prompts' tokens that came from a prefix cache. The server does not process these tokens again, so the first token comes sooner."}
	var curves []curve
	for _, kind := range everyKind {
		curves = append(curves, curve{kind: kind, name: "cache_hit_rate", title: "Tokens from the cache, by " + kinds[kind],
			axis: "cache hit rate", zero: true, quiet: true, words: "Of the prompts' tokens.", keep: func(*report.Case) bool { return true }})
	}
	return s.figures(runs, curves...)
}
