package main

import (
	"slices"
	"strings"

	"github.com/tokgate/tokgate/plan"
)

// Instances with the same defaults count as one block.
type settled struct {
	block string     // the block, such as "gate", "workload.chat" or "workload.test[*]"
	rows  [][]string // name, value and origin of each default
}

func settle(p *plan.Plan) []settled {
	type entry struct{ block, name, value string }
	keys := map[entry][]string{} // for each default: the for_each keys of the instances with it
	all := map[string][]string{} // for each block: the for_each keys of all its instances
	var order []entry
	for _, d := range p.Defaults {
		block, key, name := split(d.Path)
		value := "= " + d.Value
		if d.Why != "" {
			value += " (" + d.Why + ")"
		}
		e := entry{block, name, value}
		if keys[e] == nil {
			order = append(order, e)
		}
		keys[e] = append(keys[e], key)
		if !slices.Contains(all[block], key) {
			all[block] = append(all[block], key)
		}
	}
	var out []settled
	for _, e := range order {
		block := e.block
		switch {
		case slices.Equal(keys[e], []string{""}):
		case len(all[block]) > 1 && len(keys[e]) == len(all[block]):
			block += "[*]"
		default:
			block += "[" + strings.Join(keys[e], "], [") + "]"
		}
		i := slices.IndexFunc(out, func(s settled) bool { return s.block == block })
		if i < 0 {
			i = len(out)
			out = append(out, settled{block: block})
		}
		out[i].rows = append(out[i].rows, []string{e.name, e.value})
	}
	return out
}

// split splits the path of a default into three parts. For example,
// workload.test["chat"].load.seeds becomes workload.test, "chat" and load.seeds.
func split(path string) (block, key, name string) {
	block, name, _ = strings.Cut(path, ".")
	if block == "gate" {
		return block, "", name
	}
	head, rest, _ := strings.Cut(name, ".")
	if label, _, ok := strings.Cut(head, "["); ok {
		// The key of a for_each block is a quoted Go string. It may contain dots and brackets.
		if end := strings.Index(name, `"].`); end > 0 {
			return block + "." + label, name[len(label)+1 : end+1], name[end+len(`"].`):]
		}
	}
	return block + "." + head, "", rest
}
