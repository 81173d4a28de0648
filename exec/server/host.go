package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/server/gpu"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// looking is the time limit of all queries to nvidia-smi or amd-smi together. Without the
// persistence daemon, a query must load the driver first, which takes long.
const looking = 30 * time.Second

func inventory(ctx context.Context) gpu.Inventory {
	ctx, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	return gpu.Look(func(program string, args ...string) (string, error) {
		out, err := osexec.CommandContext(ctx, program, args...).Output()
		if e, ok := errors.AsType[*osexec.ExitError](err); ok {
			said, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(string(e.Stderr), string(out))), "\n")
			err = fmt.Errorf("%s: %w: %s", program, err, said)
		}
		return string(out), err
	}, os.Getenv)
}

func describe(s *plan.Server, gpus []gpu.GPU, of gpu.Inventory, secrets record.Redactor, f metric.Fingerprint) {
	if words, _ := plan.CommandLine(s.Engine, s.Flags, s.Args); len(words) > 0 {
		f["flags"] = secrets.Text(strings.Join(words, " "))
	}
	if n := s.AdmissionCap(); n > 0 {
		f["admission_cap"] = strconv.Itoa(n)
	}
	switch g := s.GPUs(); {
	case len(gpus) > 0:
		f["gpu"] = gpu.Describe(gpus)
		f["gpu_ids"] = strings.Join(gpu.IDs(gpus), ",")
		put(f, "gpu_driver", of.Driver)
		put(f, "cuda", of.CUDA)
		put(f, "gpu_limits", gpu.Limits(gpus))
		put(f, "gpu_modes", gpu.Modes(gpus))
		for _, g := range gpus {
			if g.Used > gpu.Idle {
				put(f, "gpu_used_before", strings.TrimSpace(f["gpu_used_before"]+fmt.Sprintf(" %s: %d MiB", g.ID, g.Used)))
			}
		}
	case g != nil || of.Why != "":
		f["gpu"] = "none"
	}
	host(f)
}

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

func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func put(f metric.Fingerprint, key, value string) {
	if value != "" {
		f[key] = value
	}
}
