// Package gpu finds the GPUs of a machine. It says which of them a job may use, and which a plan
// chooses. It runs no program: its callers run nvidia-smi and amd-smi.
package gpu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/plan"
)

// GPU is one GPU of this machine, or a MIG slice of a GPU.
type GPU struct {
	ID     string // the job's name for the GPU: its index, or its UUID if no tool lists it
	UUID   string // ""
	Name   string // "NVIDIA H100 80GB HBM3"; "" if unknown
	Vendor string // nvidia | amd
	Memory int    // MiB; 0: not told
	Used   int    // memory in use when the GPUs were listed, in MiB
	// SM and MemoryClock are the highest clocks in MHz. Power is the power limit in W. Each is 0 if
	// not reported.
	SM, MemoryClock int
	Power           float64
	// Persistence, MIG and ECC are modes in the tool's words, such as "Enabled"; "" if
	// not reported.
	Persistence, MIG, ECC string
}

// Key returns a name of the GPU that is the same in all runs on this machine.
func (g GPU) Key() string {
	if g.UUID != "" {
		return "GPU " + g.ID + " " + g.UUID
	}
	return "GPU " + g.ID
}

// Inventory holds the GPUs of this machine that the job may use.
type Inventory struct {
	GPUs   []GPU
	Driver string // ""
	CUDA   string // newest version that the driver supports; on AMD, ROCm's version; "" if unknown
	Why    string // why there is no GPU; "" if there is one
}

// visibleNames lists the environment variables that limit which GPUs a job sees, for each vendor.
// The first one that is set applies.
var visibleNames = map[string][]string{
	"nvidia": {"CUDA_VISIBLE_DEVICES"},
	"amd":    {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
}

func visible(vendor string, getenv func(string) string) (name, list string, set bool) {
	for _, name := range visibleNames[vendor] {
		// Ignore an empty variable. It would hide all GPUs, but in CI it is usually empty by
		// mistake. If it is meant, the engine reports that it has no GPU.
		if list := getenv(name); list != "" {
			return name, list, true
		}
	}
	return "", "", false
}

// restrict returns the GPUs that the parameter list names, in that order. As in CUDA, an unknown
// name ends the list. But names of MIG slices are always accepted, and so is every name if no tool
// lists any GPU.
func restrict(all []GPU, vendor, list string) []GPU {
	var out []GPU
	for id := range strings.SplitSeq(list, ",") {
		id = strings.TrimSpace(id)
		if id == "" || id == "-1" {
			break
		}
		g, ok := find(all, id)
		switch {
		case ok:
		case len(all) == 0 || strings.HasPrefix(id, "MIG-"):
			g = GPU{ID: id, Vendor: vendor}
		default:
			return out
		}
		if slices.ContainsFunc(out, func(o GPU) bool { return o.ID == g.ID }) {
			break
		}
		out = append(out, g)
	}
	return out
}

// find returns the GPU with the given index or UUID. At least eight characters of a UUID are
// enough.
func find(all []GPU, id string) (GPU, bool) {
	i := slices.IndexFunc(all, func(g GPU) bool {
		return g.ID == id || len(id) >= 8 && g.UUID != "" && strings.HasPrefix(g.UUID, id)
	})
	if i < 0 {
		return GPU{}, false
	}
	return all[i], true
}

// Choose returns how many GPUs a plan needs, and the GPUs to choose from, best first.
func Choose(g *plan.GPUs, inv Inventory) (n int, among []GPU, err error) {
	switch {
	case g == nil:
		return len(inv.GPUs), inv.GPUs, nil
	case g.All:
		if len(inv.GPUs) == 0 {
			return 0, nil, fmt.Errorf("gpus = \"all\", but there is no GPU: %s", inv.Why)
		}
		return len(inv.GPUs), inv.GPUs, nil
	case len(g.IDs) > 0:
		for _, id := range g.IDs {
			found, ok := find(inv.GPUs, id)
			if !ok {
				return 0, nil, fmt.Errorf("GPU %s may not be used here: %s", id, inv.list())
			}
			if slices.ContainsFunc(among, func(o GPU) bool { return o.ID == found.ID }) {
				return 0, nil, fmt.Errorf("GPU %s is listed twice, by index and by UUID", found.ID)
			}
			among = append(among, found)
		}
		return len(among), among, nil
	case g.Count > len(inv.GPUs):
		return 0, nil, fmt.Errorf("gpus = %d, but there are fewer: %s", g.Count, inv.list())
	case g.Count == 0:
		return 0, nil, nil
	}
	// Prefer GPUs on which no other process holds memory: sort the others to the end.
	among = slices.Clone(inv.GPUs)
	slices.SortStableFunc(among, func(a, b GPU) int { return cmp.Compare(a.Used/Idle, b.Used/Idle) })
	return g.Count, among, nil
}

// Idle is the memory in MiB that the driver and a display may use on an idle GPU.
const Idle = 1024

func (inv Inventory) list() string {
	if len(inv.GPUs) == 0 {
		return inv.Why
	}
	var names []string
	for _, g := range inv.GPUs {
		names = append(names, strings.TrimSpace(g.ID+" "+g.Name))
	}
	return "there is " + strings.Join(names, ", ")
}

// Describe writes GPUs for reports: "2 x NVIDIA H100 80GB HBM3".
func Describe(gpus []GPU) string {
	count := map[string]int{}
	for _, g := range gpus {
		count[cmp.Or(g.Name, "unknown GPU")]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d x %s", count[name], name))
	}
	return strings.Join(parts, " + ")
}

// Confine returns the environment variables that let a process use only the given GPUs.
func Confine(gpus []GPU) map[string]string {
	if len(gpus) == 0 {
		return map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
	}
	list := strings.Join(IDs(gpus), ",")
	if gpus[0].Vendor == "amd" {
		// Set both variables to the same list, because engines refuse two different lists.
		return map[string]string{"CUDA_VISIBLE_DEVICES": list, "HIP_VISIBLE_DEVICES": list}
	}
	// Number the GPUs by their PCI slots, as nvidia-smi does. By default CUDA numbers them by
	// speed.
	return map[string]string{"CUDA_VISIBLE_DEVICES": list, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
}

// IDs returns the ids of the GPUs, which are indexes or UUIDs.
func IDs(gpus []GPU) []string {
	var ids []string
	for _, g := range gpus {
		ids = append(ids, g.ID)
	}
	return ids
}

// Limits returns the highest clocks and the power limit of the first GPU as text. It also says
// whether later GPUs differ from it. The list must have at least one GPU.
func Limits(gpus []GPU) string {
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

// Modes returns the modes of the first GPU as text: persistence, MIG and ECC. It adds "not all
// alike" if a later GPU has other modes. The list must have at least one GPU.
func Modes(gpus []GPU) string {
	var parts []string
	g := gpus[0]
	for _, mode := range []struct{ name, state string }{{"persistence", g.Persistence}, {"MIG", g.MIG}, {"ECC", g.ECC}} {
		if mode.state != "" {
			parts = append(parts, mode.name+" "+strings.ToLower(mode.state))
		}
	}
	for _, o := range gpus[1:] {
		if o.Persistence != g.Persistence || o.MIG != g.MIG || o.ECC != g.ECC {
			return strings.Join(append(parts, "not all alike"), ", ")
		}
	}
	return strings.Join(parts, ", ")
}
