package nights

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// differs lists the facts of a server that changed from night a to night b. It leaves out facts
// that change at every start, because they explain nothing.
func differs(a, b metric.Night, server string) []string {
	was, is := a.Servers[server], b.Servers[server]
	both := maps.Clone(was)
	if both == nil {
		both = metric.Fingerprint{}
	}
	maps.Copy(both, is)
	var out []string
	note := func(key, x, y string) {
		if fact, _ := metric.FactOf(key); x != y && !fact.Varies {
			out = append(out, fmt.Sprintf("%s %s → %s", key, pick(x != "", x, metric.Unknown), pick(y != "", y, metric.Unknown)))
		}
	}
	for _, k := range both.Keys() {
		note(k, was[k], is[k])
	}
	note("tokgate", a.Tool, b.Tool)
	return out
}

// sinceLastNight lists what changed on the servers between the last two nights, as "server:
// change". It returns nil if the history has only one night.
func sinceLastNight(nights []metric.Night) []string {
	if len(nights) < 2 {
		return nil
	}
	a, b := nights[len(nights)-2], nights[len(nights)-1]
	var out []string
	for _, server := range slices.Sorted(maps.Keys(b.Servers)) {
		if _, ran := a.Servers[server]; !ran {
			continue
		}
		for _, d := range differs(a, b, server) {
			out = append(out, server+": "+d)
		}
	}
	return out
}

// gpuOf returns the name of the GPU that a server ran on; "" if not known.
func gpuOf(n metric.Night, server string) string {
	if gpu := n.Servers[server]["gpu"]; gpu != metric.Unknown {
		return gpu
	}
	return ""
}

// sameGPU removes the results of nights on which a server had another GPU than on the first night.
// Another GPU counts as another machine. If it removes results of the last night, other is a
// sentence about this.
func sameGPU(nights []metric.Night) (same []metric.Night, other string) {
	first := map[string]string{}
	for i, n := range nights {
		strange := map[string]bool{}
		for _, server := range slices.Sorted(maps.Keys(n.Servers)) {
			gpu := gpuOf(n, server)
			if first[server] == "" {
				first[server] = gpu
			}
			if gpu == "" || gpu == first[server] {
				continue
			}
			strange[server] = true
			if i == len(nights)-1 && other == "" {
				other = fmt.Sprintf("%s ran on another GPU tonight (%s) than in the nights before (%s)", server, gpu, first[server])
			}
		}
		if len(strange) > 0 {
			n.Figures = slices.DeleteFunc(slices.Clone(n.Figures), func(f metric.Figure) bool { return strange[f.Server] })
		}
		same = append(same, n)
	}
	return same, other
}

func pick(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}
