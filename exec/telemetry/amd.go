package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/exec/clock"
)

// AMDSMI is a source that runs the amd-smi at path for every reading; see ReadAMD.
func AMDSMI(c clock.Clock, path string, gpus []string) Source {
	return Fetch(c, func(ctx context.Context) (*Reading, error) { return ReadAMD(ctx, path, gpus) })
}

// ReadAMD runs the amd-smi at path once. The GPUs are given by index, UUID or bus id; nil means
// all. The run takes about 50 ms of one processor core.
func ReadAMD(ctx context.Context, path string, gpus []string) (*Reading, error) {
	args := []string{"metric", "--json"}
	if len(gpus) > 0 {
		args = append(append(args, "--gpu"), gpus...)
	}
	out, err := output(ctx, path, args...)
	if err != nil {
		return nil, fmt.Errorf("amd-smi: %w", err)
	}
	return parseAMD(out, len(gpus))
}

// AMDProcesses asks the amd-smi at path which processes compute on some GPUs, and returns their
// pids on this machine. The GPUs are given by index, UUID or bus id; nil means all. It asks for
// each GPU separately. Some versions list a process under every GPU, with no memory under the GPUs
// that it does not use.
func AMDProcesses(ctx context.Context, path string, gpus []string) ([]int, error) {
	questions := [][]string{{"process", "--json"}}
	if len(gpus) > 0 {
		questions = nil
		for _, id := range gpus {
			questions = append(questions, []string{"process", "--gpu", id, "--json"})
		}
	}
	var pids []int
	for _, args := range questions {
		out, err := output(ctx, path, args...)
		if err != nil {
			return nil, fmt.Errorf("amd-smi: %w", err)
		}
		if pids, err = addProcesses(pids, out, len(gpus) > 0); err != nil {
			return nil, err
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// addProcesses adds the processes in the output of amd-smi process --json. For every GPU, the
// output has a list of objects, one for each process. A GPU without processes has a text instead.
// If placed is true, a process counts only on the GPUs whose memory it uses.
func addProcesses(pids []int, out []byte, placed bool) ([]int, error) {
	var told []struct {
		Processes []struct {
			Info any `json:"process_info"`
		} `json:"process_list"`
	}
	if err := json.Unmarshal(out, &told); err != nil || len(told) == 0 {
		return nil, fmt.Errorf("amd-smi did not print the expected JSON: %.200s", out)
	}
	for _, gpu := range told {
		for _, p := range gpu.Processes {
			if words, ok := p.Info.(string); ok && strings.HasPrefix(words, "No running processes") {
				continue
			}
			pid := quantity(p.Info, []string{"pid"})
			if !(pid >= 1 && pid < 1<<31) {
				return nil, fmt.Errorf("amd-smi lists a process without its pid: %.200v", p.Info)
			}
			memory := quantity(p.Info, []string{"mem_usage"})
			if math.IsNaN(memory) {
				memory = quantity(p.Info, []string{"memory_usage", "vram_mem"})
			}
			if !placed || memory != 0 { // 0 means no memory; NaN, for unknown, is not 0
				pids = append(pids, int(pid))
			}
		}
	}
	return pids, nil
}

// parseAMD reads the output of amd-smi metric --json. It is a list with one object for each GPU.
// Since ROCm 7 the list is inside gpu_data. Names differ between versions, so each quantity is
// looked for in all known places. "N/A" means not reported. It returns an error if the output has
// fewer GPUs than want.
func parseAMD(out []byte, want int) (*Reading, error) {
	var wrapped struct {
		GPUs []map[string]any `json:"gpu_data"`
	}
	if err := json.Unmarshal(out, &wrapped); err != nil || wrapped.GPUs == nil {
		if err := json.Unmarshal(out, &wrapped.GPUs); err != nil {
			return nil, fmt.Errorf("amd-smi did not print the expected JSON: %w", err)
		}
	}
	var cards []card
	for _, gpu := range wrapped.GPUs[:min(len(wrapped.GPUs), maxGPUs)] {
		first := func(paths ...string) float64 {
			for _, p := range paths {
				if v := quantity(gpu, strings.Split(p, ".")); !math.IsNaN(v) {
					return v
				}
			}
			return math.NaN()
		}
		throttled, capped := amdHeld(gpu)
		cards = append(cards, card{
			throttled: throttled, capped: capped, xid: math.NaN(),
			ecc:         first("ecc.total_uncorrectable_count", "ecc.total_uncorrectable"),
			power:       first("power.socket_power", "power.average_socket_power", "power.current_socket_power"),
			busy:        first("usage.gfx_activity", "usage.gfx_usage") / 100,
			memory:      first("mem_usage.used_vram", "mem_usage.vram_used") * 1e6,
			temperature: first("temperature.hotspot", "temperature.edge"),
			clock:       first("clock.gfx_0.clk", "clock.gfx.clk", "clock.gfx_0.cur_clk") * 1e6,
			energy:      first("energy.total_energy_consumption"),
		})
	}
	if len(cards) < want {
		return nil, fmt.Errorf("amd-smi reports %d of the %d GPUs", len(cards), want)
	}
	return combine("amd-smi", cards)
}

// amdHeld reports whether heat (throttled) or a power cap (capped) reduces the clocks: 1 for yes, 0
// for no, and NaN if unknown. New GPUs (MI300 and later) report each reason. Older GPUs only report
// that the clocks are reduced; this counts as throttled.
func amdHeld(gpu map[string]any) (throttled, capped float64) {
	active := func(group, name string) float64 {
		object, _ := gpu[group].(map[string]any)
		text := strings.ToUpper(fmt.Sprint(object[name]))
		switch text {
		case "ACTIVE", "TRUE", "THROTTLED":
			return 1
		case "NOT ACTIVE", "FALSE", "UNTHROTTLED":
			return 0
		}
		return math.NaN()
	}
	throttled = active("power", "throttle_status")
	for _, name := range []string{"prochot_violation_status", "socket_thermal_violation_status", "vr_thermal_violation_status", "hbm_thermal_violation_status"} {
		if v := active("throttle", name); !(throttled >= v) && !math.IsNaN(v) {
			throttled = v
		}
	}
	return throttled, active("throttle", "ppt_violation_status")
}

// quantity follows a path of names in JSON to a number; NaN if there is none. For an object with a
// value and a unit, it returns the value. For a list, it uses the first element.
func quantity(v any, path []string) float64 {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return math.NaN()
		}
		v = object[name]
	}
	switch v := v.(type) {
	case float64:
		return v
	case string:
		// Older versions print "301 W".
		number, _, _ := strings.Cut(v, " ")
		if f, err := strconv.ParseFloat(number, 64); err == nil {
			return f
		}
	case map[string]any:
		if x, ok := v["value"]; ok {
			return quantity(x, nil)
		}
	case []any:
		if len(v) > 0 {
			return quantity(v[0], nil)
		}
	}
	return math.NaN()
}
