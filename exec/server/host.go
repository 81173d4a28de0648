package server

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// describe adds what is known of a server that was started here: how, and on
// what machine.
func (l *Launcher) describe(s *plan.Server, h *held, f metric.Fingerprint) {
	if words, _ := plan.CommandLine(s.Engine, s.Flags, s.Args); len(words) > 0 {
		f["flags"] = l.redactor.Text(strings.Join(words, " "))
	}
	if n := s.AdmissionCap(); n > 0 {
		f["admission_cap"] = strconv.Itoa(n)
	}
	switch g := s.GPUs(); {
	case len(h.gpus) > 0:
		f["gpu"] = described(h.gpus)
		f["gpu_ids"] = ids(h.gpus)
		put(f, "gpu_driver", h.inventory.Driver)
		put(f, "cuda", h.inventory.CUDA)
		put(f, "gpu_limits", limits(h.gpus))
		for _, gpu := range h.gpus {
			if gpu.Used > idleMiB {
				put(f, "gpu_used_before", strings.TrimSpace(f["gpu_used_before"]+fmt.Sprintf(" %s: %d MiB", gpu.ID, gpu.Used)))
			}
		}
	case g != nil || h.inventory.Why != "":
		f["gpu"] = "none"
	}
	host(f)
}

func ids(gpus []GPU) string {
	var list []string
	for _, g := range gpus {
		list = append(list, g.ID)
	}
	return strings.Join(list, ",")
}

// limits are the clocks and the power up to which the first GPU may go, and
// whether the others are alike.
func limits(gpus []GPU) string {
	var parts []string
	g := gpus[0]
	if g.SM > 0 {
		parts = append(parts, fmt.Sprintf("%d MHz", g.SM))
	}
	if g.MemoryClock > 0 {
		parts = append(parts, fmt.Sprintf("memory %d MHz", g.MemoryClock))
	}
	if g.Power > 0 {
		parts = append(parts, fmt.Sprintf("%g W", g.Power))
	}
	for _, o := range gpus[1:] {
		if o.SM != g.SM || o.MemoryClock != g.MemoryClock || o.Power != g.Power {
			return strings.Join(append(parts, "not all alike"), ", ")
		}
	}
	return strings.Join(parts, ", ")
}

// host adds what is known of this machine.
func host(f metric.Fingerprint) {
	model := ""
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		model = field(string(raw), "model name")
	}
	put(f, "cpu", strings.TrimSpace(fmt.Sprintf("%d x %s", goruntime.NumCPU(), model)))
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		if kib, err := strconv.ParseFloat(strings.TrimSuffix(field(string(raw), "MemTotal"), " kB"), 64); err == nil {
			f["memory"] = fmt.Sprintf("%.0f GiB", kib/(1<<20))
		}
	}
	if raw, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		f["kernel"] = goruntime.GOOS + " " + strings.TrimSpace(string(raw))
	} else {
		f["kernel"] = goruntime.GOOS
	}
}

// field finds "name : value" among lines.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// put sets a key that has a value.
func put(f metric.Fingerprint, key, value string) {
	if value != "" {
		f[key] = value
	}
}
