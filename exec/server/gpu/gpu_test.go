package gpu

import (
	"fmt"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// fourGPUs is the output of nvidia-smi 570 for four GPUs. The second is busy, and the last reports
// few values.
const fourGPUs = `0, GPU-00000000-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.124.06, 1980, 2619, 700.00, Enabled, Disabled, Enabled
1, GPU-11111111-aaaa, NVIDIA H100 80GB HBM3, 81559, 41000, 570.124.06, 1980, 2619, 700.00, Enabled, Disabled, Enabled
2, GPU-22222222-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.124.06, 1980, 2619, 500.00, Enabled, Disabled, Enabled
3, GPU-33333333-aaaa, NVIDIA GB10, [N/A], [N/A], 570.124.06, [N/A], [Not Supported], [N/A], Enabled, [N/A], [N/A]
`

func TestParseSMI(t *testing.T) {
	inv, err := parseSMI(fourGPUs)
	must.Need(t, err == nil && len(inv.GPUs) == 4 && inv.Driver == "570.124.06", "%+v, %v", inv, err)
	want := []GPU{
		{ID: "0", UUID: "GPU-00000000-aaaa", Name: "NVIDIA H100 80GB HBM3", Vendor: "nvidia", Memory: 81559, Used: 4, SM: 1980, MemoryClock: 2619, Power: 700, Persistence: "Enabled", MIG: "Disabled", ECC: "Enabled"},
		{ID: "3", UUID: "GPU-33333333-aaaa", Name: "NVIDIA GB10", Vendor: "nvidia", Persistence: "Enabled"},
	}
	must.Same(t, "", want, []GPU{inv.GPUs[0], inv.GPUs[3]})
	for _, out := range []string{"No devices were found\n", "a,b\n", `"`} {
		if inv, err := parseSMI(out); err == nil {
			t.Errorf("%q is taken for %+v", out, inv)
		}
	}
	if inv, err := parseSMI(""); err != nil || len(inv.GPUs) != 0 {
		t.Errorf("no GPU: %+v, %v", inv, err)
	}
}

func TestCUDAVersion(t *testing.T) {
	for out, want := range map[string]string{
		"NVIDIA-SMI version  : 570.124.06\nCUDA Version        : 12.8\n":                        "12.8",
		"| NVIDIA-SMI 535.1    Driver Version: 535.1    CUDA Version: 12.2     |\n|-----------": "12.2",
		"no such thing": "", "CUDA Version": "",
	} {
		must.Same(t, fmt.Sprintf("cudaVersion(%q)", out), want, cudaVersion(out))
	}
}

func TestParseAMD(t *testing.T) {
	const list = `[{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}, "driver": {"name": "amdgpu", "version": "6.10.5"}, "vram": {"size": {"value": 196592, "unit": "MB"}}},
{"gpu": 1, "asic": {"market_name": "AMD Instinct MI300X"}, "driver": "N/A", "vram": "N/A"}]`
	for _, out := range []string{list, `{"gpu_data": ` + list + `}`} {
		inv := must.Get(parseAMD(out))(t)
		amdUUIDs(&inv, `[{"gpu": 1, "uuid": "b4ff74a1"}]`)
		want := Inventory{Driver: "6.10.5", GPUs: []GPU{
			{ID: "0", Name: "AMD Instinct MI300X", Vendor: "amd", Memory: 196592},
			{ID: "1", UUID: "b4ff74a1", Name: "AMD Instinct MI300X", Vendor: "amd"},
		}}
		must.Same(t, "", want, inv)
	}
	_, err := parseAMD("ERROR: no GPU")
	must.Hold(t, err != nil, "words are taken for JSON")
}

// FuzzSMI checks that any output of the GPU tools is parsed or gives an error.
func FuzzSMI(f *testing.F) {
	f.Add(fourGPUs)
	f.Add(`[{"gpu": 0, "asic": [], "vram": {"size": 1}}]`)
	f.Add(`{"gpu_data": [{"gpu": {}}]}`)
	f.Fuzz(func(t *testing.T, out string) {
		for _, parse := range []func(string) (Inventory, error){parseSMI, parseAMD} {
			if inv, err := parse(out); err == nil {
				Describe(inv.GPUs)
				if len(inv.GPUs) > 0 {
					Limits(inv.GPUs)
				}
			}
		}
		cudaVersion(out)
		restrict(nil, "nvidia", out)
	})
}

func smi(t *testing.T) Inventory {
	t.Helper()
	inv := must.Get(parseSMI(fourGPUs))(t)
	return inv
}

func names(gpus []GPU) string { return strings.Join(IDs(gpus), ",") }

func TestRestrict(t *testing.T) {
	all := smi(t).GPUs
	for _, tt := range []struct {
		all  []GPU
		list string
		want string
	}{
		{all, "2,0", "2,0"}, // in its order
		{all, " 1 , 3", "1,3"},
		{all, "GPU-22222222-aaaa", "2"},
		{all, "GPU-2222", "2"}, // the first digits of a UUID suffice
		{all, "0,7,1", "0"},    // CUDA ignores all GPUs after an unknown name
		{all, "0,0,1", "0"},
		{all, "-1", ""},
		{all, "0,-1,1", "0"},
		{all, "MIG-1234", "MIG-1234"}, // tools do not list MIG instances, so the name is kept
		{nil, "0,1", "0,1"},           // no tool lists the GPUs, so the given names are used
		{nil, "x", "x"},
	} {
		got := names(restrict(tt.all, "nvidia", tt.list))
		must.Hold(t, got == tt.want, "%q of %d GPUs leaves %q, want %q", tt.list, len(tt.all), got, tt.want)
	}
}

func process(g *plan.GPUs) *plan.Server {
	return &plan.Server{Name: "s", Process: &plan.Process{GPUs: g}}
}

// Choose returns how many GPUs a server gets, and from which GPUs to choose them, best first.
func TestChoose(t *testing.T) {
	four := smi(t)
	none := Inventory{Why: "this machine has none"}
	for _, tt := range []struct {
		name   string
		inv    Inventory
		server *plan.Server
		n      int
		among  string
		err    string
	}{
		{"the busy one last", four, process(&plan.GPUs{Count: 1}), 1, "0,2,3,1", ""},
		{"all but one", four, process(&plan.GPUs{Count: 3}), 3, "0,2,3,1", ""},
		{"named by number", four, process(&plan.GPUs{IDs: []string{"1"}}), 1, "1", ""},
		{"named by UUID", four, process(&plan.GPUs{IDs: []string{"GPU-1111"}}), 1, "1", ""},
		{"all", four, process(&plan.GPUs{All: true}), 4, "0,1,2,3", ""},
		{"it does not say", four, process(nil), 4, "0,1,2,3", ""},
		{"none", four, process(&plan.GPUs{}), 0, "", ""},
		{"a container uses none unless it says so", four, &plan.Server{Container: &plan.Container{}}, 0, "", ""},
		{"no GPU, none wanted", none, process(nil), 0, "", ""},
		{"no GPU", none, process(&plan.GPUs{Count: 1}), 0, "", "gpus = 1, but there are fewer: this machine has none"},
		{"no GPU at all", none, process(&plan.GPUs{All: true}), 0, "", "there is no GPU: this machine has none"},
		{"too many", four, process(&plan.GPUs{Count: 5}), 0, "", "there is 0 NVIDIA H100 80GB HBM3, 1 NVIDIA"},
		{"not within the job's", four, process(&plan.GPUs{IDs: []string{"7"}}), 0, "", "GPU 7 may not be used here"},
		{"twice", four, process(&plan.GPUs{IDs: []string{"1", "GPU-1111"}}), 0, "", "GPU 1 is listed twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, among, err := Choose(tt.server.GPUs(), tt.inv)
			if tt.err != "" {
				must.Hold(t, err != nil && strings.Contains(err.Error(), tt.err), "error %v, want %q", err, tt.err)
				return
			}
			must.Hold(t, err == nil && n == tt.n && names(among) == tt.among, "%d of %q, %v; want %d of %q", n, names(among), err, tt.n, tt.among)
		})
	}
}

func TestDescribe(t *testing.T) {
	four := smi(t).GPUs
	for want, got := range map[string]string{
		"1 x NVIDIA GB10 + 3 x NVIDIA H100 80GB HBM3": Describe(four),
		"2 x unknown GPU":                                 Describe([]GPU{{ID: "0"}, {ID: "1"}}),
		"1980 MHz, memory 2619 MHz, 700 W":                Limits(four[:2]),
		"1980 MHz, memory 2619 MHz, 700 W, not all alike": Limits(four),
		"": Limits(four[3:]),
		"persistence enabled, MIG disabled, ECC enabled":                Modes(four[:3]),
		"persistence enabled, MIG disabled, ECC enabled, not all alike": Modes(four),
		"persistence enabled": Modes(four[3:]),
	} {
		must.Hold(t, got == want, "got %q, want %q", got, want)
	}
}

func TestConfine(t *testing.T) {
	four := smi(t).GPUs
	for _, tt := range []struct {
		gpus []GPU
		want map[string]string
	}{
		{four[1:3], map[string]string{"CUDA_VISIBLE_DEVICES": "1,2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}},
		{[]GPU{{ID: "4", Vendor: "amd"}}, map[string]string{"CUDA_VISIBLE_DEVICES": "4", "HIP_VISIBLE_DEVICES": "4"}},
		{nil, map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}},
	} {
		must.Same(t, "", tt.want, Confine(tt.gpus))
	}
}

func TestLook(t *testing.T) {
	nvidia := map[string]string{"nvidia-smi --query-gpu=" + smiFields: fourGPUs, "nvidia-smi --version": "CUDA Version        : 12.8\n"}
	amd := map[string]string{
		"amd-smi static":  `[{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}, "driver": {"version": "6.10.5"}}]`,
		"amd-smi list":    `[{"gpu": 0, "uuid": "b4ff74a1"}]`,
		"amd-smi version": `[{"tool": "AMDSMI Tool", "rocm_version": "6.3.1"}]`,
	}
	for _, tt := range []struct {
		name    string
		answers map[string]string
		env     map[string]string
		ids     string
		want    Inventory // without GPUs
	}{
		{"NVIDIA's", nvidia, nil, "0,1,2,3", Inventory{Driver: "570.124.06", CUDA: "12.8"}},
		{"some of them", nvidia, map[string]string{"CUDA_VISIBLE_DEVICES": "3,1"}, "3,1", Inventory{Driver: "570.124.06", CUDA: "12.8"}},
		{"none of them", nvidia, map[string]string{"CUDA_VISIBLE_DEVICES": "-1"}, "", Inventory{Driver: "570.124.06", CUDA: "12.8", Why: `CUDA_VISIBLE_DEVICES = "-1" leaves none`}},
		{"AMD's", amd, nil, "0", Inventory{Driver: "6.10.5", CUDA: "ROCm 6.3.1"}},
		{"no tool", nil, nil, "", Inventory{Why: "neither nvidia-smi nor amd-smi is on the PATH"}},
		{"no tool, but told", nil, map[string]string{"CUDA_VISIBLE_DEVICES": "0"}, "0", Inventory{}},
		{"no devices", map[string]string{"nvidia-smi --query-gpu=" + smiFields: "No devices were found\n"}, nil, "", Inventory{Why: "nvidia-smi: No devices were found"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Look(func(program string, args ...string) (string, error) {
				out, ok := tt.answers[strings.Join(append([]string{program}, args[:min(len(args), 1)]...), " ")]
				if !ok {
					return "", osexec.ErrNotFound
				}
				return out, nil
			}, func(name string) string { return tt.env[name] })
			must.Hold(t, names(got.GPUs) == tt.ids, "GPUs %q, want %q", names(got.GPUs), tt.ids)
			must.Same(t, "", tt.want, got, cmpopts.IgnoreFields(Inventory{}, "GPUs"))
		})
	}
}
