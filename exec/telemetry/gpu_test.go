package telemetry

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestTogether(t *testing.T) {
	a := card{power: 300, busy: 0.9, memory: 70e9, temperature: 60, clock: 1.7e9, energy: 1000, xid: 31}
	b := card{power: 350, busy: 0.5, memory: 71e9, temperature: 72, clock: 1.2e9, energy: 3000, throttled: 1, ecc: 2}
	got := must.Get(combine("nvidia-smi", []card{a, b}))(t)
	want := &Reading{
		Gauges: map[string]float64{"power": 650, "gpu_utilization": 0.7, "gpu_memory": 141e9, "gpu_temperature": 72, "gpu_clock": 1.2e9,
			"gpu_throttled": 1, "gpu_power_capped": 0, metric.LastXID: 31},
		// 1000 + 3000 J
		Counters: map[string]float64{metric.Energy: 4000, metric.ECCErrors: 2}, None: map[string]string{},
	}
	must.Same(t, "", want, got, cmpopts.EquateApprox(1e-12, 0))
	// If one of two GPUs does not report a value, their sum is missing.
	b.power, b.energy, b.ecc = math.NaN(), math.NaN(), math.NaN()
	got = must.Get(combine("nvidia-smi", []card{a, b}))(t)
	_, ok := got.Gauges["power"]
	must.Hold(t, !ok && got.None["power"] == "nvidia-smi does not report it for every GPU" && len(got.Counters) == 0, "got %+v", got)
	_, err := combine("nvidia-smi", nil)
	must.Hold(t, err != nil, "no GPU is a reading")
	if _, err := combine("nvidia-smi", []card{unknownCard()}); err == nil {
		t.Error("a GPU that tells nothing is a reading")
	}
}

// known returns a card with the given values. All its other values are unknown.
func known(power, busy, memory, temperature, clock float64) card {
	c := unknownCard()
	c.power, c.busy, c.memory, c.temperature, c.clock = power, busy, memory, temperature, clock
	return c
}

// health returns the card c with values on reduced clocks, and with its ECC errors.
func health(c card, throttled, capped, ecc float64) card {
	c.throttled, c.capped, c.ecc = throttled, capped, ecc
	return c
}

func TestNvidiaLine(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		line, index string
		want        card
	}{
		{"0, GPU-6c4d1f2e-0001, 301.25, 98, 70123, 64, 1755", "0", known(301.25, 0.98, 70123*(1<<20), 64, 1.755e9)},
		{"7,GPU-x,70.00,0,0,31,345", "7", known(70, 0, 0, 31, 3.45e8)},
		{"1, GPU-x, [N/A], [Not Supported], 512, 40, [Unknown Error]", "1", known(nan, nan, 512*(1<<20), 40, nan)},
		// The hexadecimal field says why clocks are reduced: 0x1 idle, 0x4 software power cap, 0x8
		// hardware, 0x20 and 0x40 thermal, 0x80 power brake.
		{"0, GPU-x, 300, 98, 512, 64, 1755, 0x0000000000000004, 0", "0", health(known(300, 0.98, 512*(1<<20), 64, 1.755e9), 0, 1, 0)},
		{"0, GPU-x, 300, 98, 512, 91, 975, 0x0000000000000024, 2", "0", health(known(300, 0.98, 512*(1<<20), 91, 9.75e8), 1, 1, 2)},
		{"0, GPU-x, 300, 98, 512, 64, 375, 0x0000000000000088, [N/A]", "0", health(known(300, 0.98, 512*(1<<20), 64, 3.75e8), 1, 0, nan)},
		{"0, GPU-x, 70, 0, 512, 31, 345, 0x0000000000000001, 0", "0", health(known(70, 0, 512*(1<<20), 31, 3.45e8), 0, 0, 0)},
		// As on a DGX Spark, this GPU shares the machine's memory and reports none.
		{"0, GPU-x, 41.5, 96, [N/A], 70, 2400, 0x0000000000000000, [N/A]", "0", health(known(41.5, 0.96, nan, 70, 2.4e9), 0, 0, nan)},
		{"0, GPU-x, 41.5, 96, N/A, 70, 2400, [N/A], N/A", "0", known(41.5, 0.96, nan, 70, 2.4e9)},
	} {
		index, c, ok := nvidiaLine(tt.line)
		diff := cmp.Diff(tt.want, c, cmp.AllowUnexported(card{}), cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-12, 0))
		must.Hold(t, ok && index == tt.index && diff == "", "%q: %q %v\n%s", tt.line, index, ok, diff)
	}
	for _, line := range []string{
		"", "No devices were found", "0, GPU-x, 301.25, 98", "x, GPU-x, 1, 2, 3, 4, 5", "-1, GPU-x, 1, 2, 3, 4, 5",
		"0, GPU-x, 301,25, 98, 70123, 64, 1755", "0, GPU-x, NaN, 98, 70123, 64, 1755", "0, GPU-x, -3, 98, 70123, 64, 1755",
		"0, GPU-x, 1, 2, 3, 4, 5, active, 0", "0, GPU-x, 1, 2, 3, 4, 5, 0x0, -1", "0, GPU-x, 1, 2, 3, 4, 5, 0x0",
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
	} {
		_, _, ok := nvidiaLine(line)
		must.Hold(t, !ok, "%q is a reading", line)
	}
}

func TestParseAMD(t *testing.T) {
	for _, tt := range []struct {
		name, out string
		want      map[string]float64
		energy    float64
	}{
		{"ROCm 7", `{"gpu_data": [{"gpu": 0,
			"usage": {"gfx_activity": {"value": 97, "unit": "%"}},
			"power": {"socket_power": {"value": 742, "unit": "W"}},
			"clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}}},
			"temperature": {"edge": "N/A", "hotspot": {"value": 71, "unit": "C"}},
			"mem_usage": {"used_vram": {"value": 180000, "unit": "MB"}},
			"energy": {"total_energy_consumption": {"value": 5000.5, "unit": "J"}}}]}`,
			map[string]float64{"power": 742, "gpu_utilization": 0.97, "gpu_memory": 1.8e11, "gpu_temperature": 71, "gpu_clock": 2.1e9}, 5000.5},
		{"a bare list, two GPUs, words", `[{"gpu": 0, "power": {"average_socket_power": "100 W"}}, {"gpu": 1, "power": {"average_socket_power": "150 W"}}]`,
			map[string]float64{"power": 250}, 0},
		{"an MI300 too hot", `{"gpu_data": [{"gpu": 0, "power": {"socket_power": {"value": 742, "unit": "W"}, "throttle_status": "N/A"},
			"throttle": {"prochot_violation_status": "NOT ACTIVE", "ppt_violation_status": "NOT ACTIVE", "hbm_thermal_violation_status": "ACTIVE"}}]}`,
			map[string]float64{"power": 742, "gpu_throttled": 1, "gpu_power_capped": 0}, 0},
		{"one at its power limit", `{"gpu_data": [{"gpu": 0, "power": {"socket_power": {"value": 742, "unit": "W"}},
			"throttle": {"prochot_violation_status": false, "ppt_violation_status": true, "socket_thermal_violation_status": false}}]}`,
			map[string]float64{"power": 742, "gpu_throttled": 0, "gpu_power_capped": 1}, 0},
		{"an older one", `{"gpu_data": [{"gpu": 0, "power": {"socket_power": {"value": 250, "unit": "W"}, "throttle_status": "THROTTLED"}}]}`,
			map[string]float64{"power": 250, "gpu_throttled": 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := must.Get(parseAMD([]byte(tt.out), 0))(t)
			diff := cmp.Diff(tt.want, got.Gauges, cmpopts.EquateApprox(1e-12, 0))
			must.Hold(t, diff == "" && got.Counters[metric.Energy] == tt.energy, "%s, energy %v", diff, got.Counters)
		})
	}
	for _, out := range []string{"", "{}", "[]", `{"gpu_data": []}`, `{"gpu_data": [{"gpu": 0, "power": "N/A"}]}`, "ERROR: no GPU", `[1]`, `{"gpu_data": 3}`} {
		got, err := parseAMD([]byte(out), 0)
		must.Hold(t, err != nil, "%q is the reading %v", out, got)
	}
}

const dcgmPage = `# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="NVIDIA H100",Hostname="h"} 1980
DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-b",Hostname="h"} 1755
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",Hostname="h"} 50
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",Hostname="h"} 61
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",Hostname="h"} 400.5
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",Hostname="h"} 300
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="h"} 99
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a",Hostname="h"} 5000000
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1",UUID="GPU-b",Hostname="h"} 1000000
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="h"} 100
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",Hostname="h"} 50
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",Hostname="h"} 1024
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",Hostname="h"} 1024
`

func TestParseDCGM(t *testing.T) {
	for _, tt := range []struct {
		gpus   []string
		want   map[string]float64
		energy float64 // of millijoules
	}{
		{nil, map[string]float64{"power": 700.5, "gpu_utilization": 0.75, "gpu_memory": 2 << 30, "gpu_temperature": 61, "gpu_clock": 1.755e9}, 6000},
		{[]string{"0"}, map[string]float64{"power": 400.5, "gpu_utilization": 1, "gpu_memory": 1 << 30, "gpu_temperature": 50, "gpu_clock": 1.98e9}, 5000},
		{[]string{"GPU-b"}, map[string]float64{"power": 300, "gpu_utilization": 0.5, "gpu_memory": 1 << 30, "gpu_temperature": 61, "gpu_clock": 1.755e9}, 1000},
	} {
		got := must.Get(ParseDCGM([]byte(dcgmPage), tt.gpus))(t)
		diff := cmp.Diff(tt.want, got.Gauges)
		must.Hold(t, diff == "" && math.Abs(got.Counters[metric.Energy]-tt.energy) <= 1e-9, "%v: %s, energy %v", tt.gpus, diff, got.Counters)
	}
	const sick = `DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-a"} 4
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="1",UUID="GPU-b"} 64
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-b"} 79
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="0",UUID="GPU-a"} 1
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="1",UUID="GPU-b"} 2
`
	got := must.Get(ParseDCGM([]byte(sick), nil))(t)
	diff := cmp.Diff(map[string]float64{"gpu_throttled": 1, "gpu_power_capped": 1, metric.LastXID: 79}, got.Gauges)
	must.Hold(t, diff == "" && got.Counters[metric.ECCErrors] == 3, "%s, ECC errors %v", diff, got.Counters)
	for name, page := range map[string]string{
		"nothing": "", "cut off": dcgmPage[:len(dcgmPage)-3], "no GPU": "up 1\n", "no number": "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} x\n",
	} {
		if got, err := ParseDCGM([]byte(page), nil); err == nil {
			t.Errorf("%s is the reading %v", name, got)
		}
	}
	_, err := ParseDCGM([]byte(dcgmPage), []string{"0", "5"})
	must.Hold(t, err != nil, "of two GPUs one is enough")
}

func FuzzParseDCGM(f *testing.F) {
	f.Add([]byte(dcgmPage))
	f.Add([]byte("DCGM_FI_DEV_GPU_UTIL{} -Inf\nDCGM_FI_DEV_POWER_USAGE 1e308\n"))
	f.Fuzz(func(t *testing.T, page []byte) { finite(t)(ParseDCGM(page, nil)) })
}

func FuzzParseAMD(f *testing.F) {
	f.Add([]byte(`{"gpu_data": [{"power": {"socket_power": {"value": [1, "2 W"]}}}]}`))
	f.Fuzz(func(t *testing.T, out []byte) { finite(t)(parseAMD(out, 0)) })
}

func FuzzNvidiaLine(f *testing.F) {
	f.Add("0, GPU-6c4d, 301.25, 98, 70123, 64, 1755")
	f.Fuzz(func(t *testing.T, line string) {
		if _, c, ok := nvidiaLine(line); ok {
			finite(t)(combine("nvidia-smi", []card{c}))
		}
	})
}

// finite checks that a reading has only finite numbers, as JSON requires.
func finite(t *testing.T) func(*Reading, error) {
	return func(r *Reading, err error) {
		if err != nil {
			return
		}
		for _, values := range []map[string]float64{r.Gauges, r.Counters} {
			for name, v := range values {
				must.Hold(t, v >= 0 && v <= biggest, "%s is %v", name, v)
			}
		}
	}
}

// If one of two GPUs stops reporting, the reading is an error, whatever the other GPU reports.
func TestGPUThatFallsSilent(t *testing.T) {
	c := clock.NewVirtual()
	smi := &NvidiaSMI{now: c.Now, every: time.Second, cards: map[string]line{}, ended: make(chan struct{})}
	tell := func(lines string) (*Reading, error) {
		smi.listen(strings.NewReader(lines))
		var r *Reading
		var err error
		smi.Source()(t.Context(), func(got *Reading, failed error) { r, err = got, failed })
		return r, err
	}
	const a, b = "0, GPU-a, 300, 90, 1024, 60, 1700\n", "1, GPU-b, 300, 90, 1024, 90, 1700\n"
	r, err := tell(a + b)
	must.Hold(t, err == nil && r.Gauges["gpu_temperature"] == 90, "%v, %v", r, err)
	for range 5 {
		sleep(t, c, time.Second)
		_, err := tell(a)
		must.Hold(t, err == nil, "%v", err)
	}
	sleep(t, c, time.Second)
	if r, err := tell(a); err == nil || !contains(err.Error(), "no longer reports GPU 1") {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := parseAMD([]byte(`[{"power": {"socket_power": 742}}]`), 2); err == nil || !contains(err.Error(), "1 of the 2 GPUs") {
		t.Errorf("%v", err)
	}
}
