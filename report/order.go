package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// inOrder sorts the instances of a for_each as readers expect. Keys that are all numbers (1K, 32K,
// 256K) are sorted by number, other keys by their order in the plan file. Without this, keys would
// be in the order of text: 1K, 256K, 32K.
func (d *Document) inOrder(written map[string][]string) {
	workload, server := places(written, "workload"), places(written, "server")
	byKey(d.Run.Servers, server, func(s **metric.ServerRun) (string, string) { return "", (*s).Address })
	byKey(d.Workloads, workload, func(w *Workload) (string, string) { return "", w.Address })
	for i := range d.Workloads {
		byKey(d.Workloads[i].Servers, server, func(s *string) (string, string) { return "", *s })
	}
	byKey(d.Cases, workload, func(c *Case) (string, string) { return c.Server, c.Workload })
	for i := range d.Cases {
		d.Run.Levels[i] = d.Cases[i].Level
	}
	byKey(d.Run.Capacities, workload, func(c **metric.Capacity) (string, string) { return (*c).Server, (*c).Workload })
	byKey(d.Passages, workload, func(p *Passage) (string, string) { return p.Server, p.Workload })
	byKey(d.Verdicts, workload, func(v *verdict.Verdict) (string, string) { return string(v.Kind) + "\x00" + v.Server, v.Workload })
	byKey(d.Comparisons, places(written, "compare"), func(c **compare.Comparison) (string, string) { return "", (*c).Name })
	for _, c := range d.Comparisons {
		byKey(c.Decisions, workload, func(x *compare.Decision) (string, string) { return "", x.Workload })
		byKey(c.Changes, workload, func(x *compare.Change) (string, string) { return "", x.Workload })
	}
}

// places returns a function that looks up the place of a key in the plan file. It counts, from 0,
// the keys that a block's for_each writes there, and returns -1 for any other key.
func places(written map[string][]string, kind string) func(name, key string) int {
	return func(name, key string) int { return slices.Index(written[kind+"."+name], key) }
}

// byKey sorts by their keys the elements of a group that one for_each made. Only these elements
// change places with each other. All other elements stay where they are.
func byKey[T any](list []T, place func(name, key string) int, of func(*T) (group, address string)) {
	type family struct {
		places           []int
		number, written  map[int]float64 // by place
		mixed, unwritten bool
	}
	families := map[string]*family{}
	for i := range list {
		group, address := of(&list[i])
		name, key := Named(address)
		if key == "" {
			continue
		}
		f := families[group+"\x00"+name]
		if f == nil {
			f = &family{number: map[int]float64{}, written: map[int]float64{}}
			families[group+"\x00"+name] = f
		}
		n, ok := KeyNumber(key)
		at := place(name, key)
		f.places, f.number[i], f.mixed = append(f.places, i), n, f.mixed || !ok
		f.written[i], f.unwritten = float64(at), f.unwritten || at < 0
	}
	for _, f := range families {
		by := f.number
		if f.mixed {
			by = f.written
		}
		if f.mixed && f.unwritten {
			continue
		}
		sorted := slices.Clone(f.places)
		slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(by[a], by[b]) })
		moved := make([]T, len(sorted))
		for i, from := range sorted {
			moved[i] = list[from]
		}
		for i, to := range f.places {
			list[to] = moved[i]
		}
	}
}

// KeyNumber reads keys such as 32 and 0.5, and numbers of tokens such as 32K or 1M.
func KeyNumber(key string) (float64, bool) {
	factor := 1.0
	if digits := strings.TrimRight(key, "kK"); len(digits) == len(key)-1 {
		key, factor = digits, 1<<10
	} else if digits := strings.TrimRight(key, "mM"); len(digits) == len(key)-1 {
		key, factor = digits, 1<<20
	}
	if key == "" || strings.Trim(key, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(key, 64)
	return n * factor, err == nil
}
