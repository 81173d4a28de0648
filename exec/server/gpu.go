package server

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	osexec "os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/plan"
)

// GPU is one GPU of this machine, or a part of one.
type GPU struct {
	ID     string // as the job names it: its index, or a UUID where no tool lists it
	UUID   string // ""
	Name   string // "NVIDIA H100 80GB HBM3"; ""
	Vendor string // nvidia | amd
	Memory int    // MiB; 0: not told
	Used   int    // MiB in use when it was looked at
	// SM and MemoryClock are the highest clocks, in MHz; Power is the limit in
	// W. 0: not told.
	SM, MemoryClock int
	Power           float64
}

// key names the GPU among all runs on this machine.
func (g GPU) key() string {
	if g.UUID != "" {
		return "GPU " + g.ID + " " + g.UUID
	}
	return "GPU " + g.ID
}

// Inventory is what tokgate may use of this machine's GPUs.
type Inventory struct {
	GPUs   []GPU
	Driver string // ""
	CUDA   string // the newest version that the driver runs, or ROCm's; ""
	Why    string // why there is none; "" where there are some
}

// looking bounds one question to nvidia-smi or amd-smi: without the
// persistence daemon the driver is loaded first.
const looking = 30 * time.Second

// inventory asks nvidia-smi, or amd-smi where there is none, and keeps what the
// job may use.
func inventory(ctx context.Context, getenv func(string) string) Inventory {
	ctx, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	ask := func(program string, args ...string) (string, error) {
		out, err := osexec.CommandContext(ctx, program, args...).Output()
		if e, ok := errors.AsType[*osexec.ExitError](err); ok {
			err = fmt.Errorf("%s: %w: %s", program, err, firstLine(cmp.Or(string(e.Stderr), string(out))))
		}
		return string(out), err
	}
	inv, err := askNVIDIA(ask)
	if errors.Is(err, osexec.ErrNotFound) {
		inv, err = askAMD(ask)
		if errors.Is(err, osexec.ErrNotFound) {
			err = errors.New("neither nvidia-smi nor amd-smi is on the PATH")
		}
	}
	if err != nil {
		inv.Why = err.Error()
	}
	vendor := "nvidia"
	if len(inv.GPUs) > 0 {
		vendor = inv.GPUs[0].Vendor
	}
	name, list, set := visible(vendor, getenv)
	if set {
		inv.GPUs = restrict(inv.GPUs, vendor, list)
		if len(inv.GPUs) == 0 {
			inv.Why = fmt.Sprintf("%s = %q leaves none", name, list)
		} else {
			inv.Why = ""
		}
	}
	if len(inv.GPUs) == 0 && inv.Why == "" {
		inv.Why = "this machine has none"
	}
	return inv
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// smiFields are those that nvidia-smi has had for long: one that it does not
// know would fail the whole question.
const smiFields = "index,uuid,name,memory.total,memory.used,driver_version,clocks.max.sm,clocks.max.memory,power.limit"

func askNVIDIA(ask func(string, ...string) (string, error)) (Inventory, error) {
	out, err := ask("nvidia-smi", "--query-gpu="+smiFields, "--format=csv,noheader,nounits")
	if err != nil {
		return Inventory{}, err
	}
	inv, err := parseSMI(out)
	if err != nil {
		return Inventory{}, err
	}
	// Older ones know no --version; its header tells too.
	for _, args := range [][]string{{"--version"}, nil} {
		if out, err := ask("nvidia-smi", args...); err == nil {
			if inv.CUDA = cudaVersion(out); inv.CUDA != "" {
				break
			}
		}
	}
	return inv, nil
}

// parseSMI reads nvidia-smi's CSV. What a GPU does not tell reads "[N/A]" or
// "[Not Supported]".
func parseSMI(out string) (Inventory, error) {
	var inv Inventory
	r := csv.NewReader(strings.NewReader(out))
	r.TrimLeadingSpace, r.LazyQuotes, r.FieldsPerRecord = true, true, -1
	rows, err := r.ReadAll()
	if err != nil {
		return inv, fmt.Errorf("nvidia-smi wrote what is no CSV: %w", err)
	}
	for _, row := range rows {
		if len(row) != strings.Count(smiFields, ",")+1 {
			// "No devices were found" is one such line.
			return Inventory{}, fmt.Errorf("nvidia-smi: %s", strings.Join(row, ", "))
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		inv.GPUs = append(inv.GPUs, GPU{
			ID: row[0], UUID: row[1], Name: row[2], Vendor: "nvidia",
			Memory: atoi(row[3]), Used: atoi(row[4]), SM: atoi(row[6]), MemoryClock: atoi(row[7]), Power: atof(row[8]),
		})
		inv.Driver = row[5]
	}
	return inv, nil
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func atof(s string) float64 { f, _ := strconv.ParseFloat(s, 64); return f }

// cudaVersion finds "CUDA Version: 12.8", however many blanks there are.
func cudaVersion(out string) string {
	_, rest, ok := strings.Cut(out, "CUDA Version")
	if !ok {
		return ""
	}
	words := strings.FieldsFunc(firstLine(rest), func(r rune) bool { return r == ' ' || r == ':' || r == '|' })
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func askAMD(ask func(string, ...string) (string, error)) (Inventory, error) {
	out, err := ask("amd-smi", "static", "--asic", "--bus", "--driver", "--vram", "--limit", "--json")
	if err != nil {
		return Inventory{}, err
	}
	inv, err := parseAMD(out)
	if err != nil {
		return inv, err
	}
	if out, err := ask("amd-smi", "list", "--json"); err == nil {
		amdUUIDs(&inv, out)
	}
	if out, err := ask("amd-smi", "version", "--json"); err == nil {
		var told []struct {
			ROCm string `json:"rocm_version"`
		}
		if json.Unmarshal([]byte(out), &told) == nil && len(told) > 0 && told[0].ROCm != "" {
			inv.CUDA = "ROCm " + told[0].ROCm
		}
	}
	return inv, nil
}

// amdList is amd-smi's JSON: a list, since ROCm 7 in an object.
func amdList(out string) ([]map[string]json.RawMessage, error) {
	var wrapped struct {
		Data []map[string]json.RawMessage `json:"gpu_data"`
	}
	if err := json.Unmarshal([]byte(out), &wrapped.Data); err == nil {
		return wrapped.Data, nil
	}
	if err := json.Unmarshal([]byte(out), &wrapped); err != nil {
		return nil, fmt.Errorf("amd-smi wrote what is not the JSON expected: %w", err)
	}
	return wrapped.Data, nil
}

func parseAMD(out string) (Inventory, error) {
	list, err := amdList(out)
	if err != nil {
		return Inventory{}, err
	}
	var inv Inventory
	for _, raw := range list {
		var asic struct {
			Name string `json:"market_name"`
		}
		var driver struct {
			Version string `json:"version"`
		}
		var vram struct {
			Size struct {
				Value json.Number `json:"value"`
				Unit  string      `json:"unit"`
			} `json:"size"`
		}
		// What one version of the tool writes otherwise is not told.
		_ = json.Unmarshal(raw["asic"], &asic)
		_ = json.Unmarshal(raw["driver"], &driver)
		_ = json.Unmarshal(raw["vram"], &vram)
		size, _ := vram.Size.Value.Float64()
		if vram.Size.Unit == "GB" {
			size *= 1024
		}
		inv.GPUs = append(inv.GPUs, GPU{ID: string(raw["gpu"]), Name: asic.Name, Vendor: "amd", Memory: int(size)})
		inv.Driver = cmp.Or(driver.Version, inv.Driver)
	}
	return inv, nil
}

func amdUUIDs(inv *Inventory, out string) {
	list, err := amdList(out)
	if err != nil {
		return
	}
	for _, raw := range list {
		var uuid string
		_ = json.Unmarshal(raw["uuid"], &uuid)
		for i := range inv.GPUs {
			if inv.GPUs[i].ID == string(raw["gpu"]) {
				inv.GPUs[i].UUID = uuid
			}
		}
	}
}

// visibleNames are the variables that restrict a job, by vendor, the first
// that is set counts.
var visibleNames = map[string][]string{
	"nvidia": {"CUDA_VISIBLE_DEVICES"},
	"amd":    {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
}

func visible(vendor string, getenv func(string) string) (name, list string, set bool) {
	for _, name := range visibleNames[vendor] {
		// That it is set to nothing would hide all; an empty one in CI is far
		// more often one that was forgotten, and the engine tells.
		if list := getenv(name); list != "" {
			return name, list, true
		}
	}
	return "", "", false
}

// restrict keeps what list names, in its order. As CUDA reads it, the first name
// that is nobody's ends the list; where no tool lists any GPU, all are taken at
// their word.
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

// find looks a GPU up by its index, or by its UUID or the beginning of it.
func find(all []GPU, id string) (GPU, bool) {
	i := slices.IndexFunc(all, func(g GPU) bool {
		return g.ID == id || len(id) >= 8 && g.UUID != "" && strings.HasPrefix(g.UUID, id)
	})
	if i < 0 {
		return GPU{}, false
	}
	return all[i], true
}

// want is what a plan asks of the GPUs that there are: how many, and of which,
// the best first.
func want(g *plan.GPUs, inv Inventory) (n int, among []GPU, err error) {
	switch {
	case g == nil:
		return len(inv.GPUs), inv.GPUs, nil
	case g.All:
		if len(inv.GPUs) == 0 {
			return 0, nil, fmt.Errorf("gpus = \"all\", and there is no GPU: %s", inv.Why)
		}
		return len(inv.GPUs), inv.GPUs, nil
	case len(g.IDs) > 0:
		for _, id := range g.IDs {
			gpu, ok := find(inv.GPUs, id)
			if !ok {
				return 0, nil, fmt.Errorf("GPU %s is none that may be used here: %s", id, inv.list())
			}
			if slices.ContainsFunc(among, func(o GPU) bool { return o.ID == gpu.ID }) {
				return 0, nil, fmt.Errorf("GPU %s is listed twice, by index and by UUID", gpu.ID)
			}
			among = append(among, gpu)
		}
		return len(among), among, nil
	case g.Count > len(inv.GPUs):
		return 0, nil, fmt.Errorf("gpus = %d, and that many there are not: %s", g.Count, inv.list())
	case g.Count == 0:
		return 0, nil, nil
	}
	// A GPU on which something else keeps its memory is the last choice.
	among = slices.Clone(inv.GPUs)
	slices.SortStableFunc(among, func(a, b GPU) int { return cmp.Compare(a.Used/idleMiB, b.Used/idleMiB) })
	return g.Count, among, nil
}

// idleMiB is what the driver itself and a display may keep on an idle GPU.
const idleMiB = 1024

// list names the GPUs for people.
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

// described is how a report names GPUs: "2 x NVIDIA H100 80GB HBM3".
func described(gpus []GPU) string {
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

// confine are the variables that show a process no other GPUs than these.
func confine(gpus []GPU) map[string]string {
	if len(gpus) == 0 {
		return map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
	}
	var ids []string
	for _, g := range gpus {
		ids = append(ids, g.ID)
	}
	list := strings.Join(ids, ",")
	if gpus[0].Vendor == "amd" {
		// Engines want the two to be equal where both are set.
		return map[string]string{"CUDA_VISIBLE_DEVICES": list, "HIP_VISIBLE_DEVICES": list}
	}
	// Without the order CUDA counts by speed, and nvidia-smi by slot.
	return map[string]string{"CUDA_VISIBLE_DEVICES": list, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
}
