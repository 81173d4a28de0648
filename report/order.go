package report

import (
	"slices"
	"strconv"
	"strings"
)

// inOrder puts instances of a for_each whose keys are all numbers in their order: 1K,
// 32K, 256K. A plan has them in the order of their text, 1K, 256K, 32K, which is that
// of the run.
func (d *Document) inOrder() {
	byNumber(d.Workloads, func(w *Workload) (string, string) { return "", w.Address })
	byNumber(d.Cases, func(c *Case) (string, string) { return c.Server, c.Workload })
	byNumber(d.Capacities, func(c *Capacity) (string, string) { return c.Server, c.Workload })
	byNumber(d.Passages, func(p *Passage) (string, string) { return p.Server, p.Workload })
	byNumber(d.Verdicts, func(v *Verdict) (string, string) { return v.Kind + "\x00" + v.Server, v.Workload })
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		byNumber(c.Decisions, func(x *Decision) (string, string) { return "", x.Workload })
		byNumber(c.Changes, func(x *Change) (string, string) { return "", x.Workload })
	}
}

// byNumber sorts the elements of each group and for_each by their keys, in the places
// that they have; those with other keys, and all others, stay where they are.
func byNumber[T any](list []T, of func(*T) (group, address string)) {
	type family struct {
		places  []int
		numbers map[int]float64 // by place
		mixed   bool
	}
	families := map[string]*family{}
	for i := range list {
		group, address := of(&list[i])
		name, key, ok := strings.Cut(strings.TrimSuffix(address, `"]`), `["`)
		if !ok {
			continue
		}
		f := families[group+"\x00"+name]
		if f == nil {
			f = &family{numbers: map[int]float64{}}
			families[group+"\x00"+name] = f
		}
		n, ok := keyNumber(key)
		f.places, f.numbers[i], f.mixed = append(f.places, i), n, f.mixed || !ok
	}
	for _, f := range families {
		if f.mixed {
			continue
		}
		sorted := slices.Clone(f.places)
		slices.SortStableFunc(sorted, func(a, b int) int {
			switch x, y := f.numbers[a], f.numbers[b]; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		moved := make([]T, len(sorted))
		for i, from := range sorted {
			moved[i] = list[from]
		}
		for i, to := range f.places {
			list[to] = moved[i]
		}
	}
}

// keyNumber reads 32, 0.5 and, as of tokens, 32K or 1M.
func keyNumber(key string) (float64, bool) {
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
