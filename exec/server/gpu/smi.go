package gpu

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	osexec "os/exec"
	"strconv"
	"strings"
)

// Ask runs a program and returns its standard output. If the program is not on the PATH, the error
// is an osexec.ErrNotFound.
type Ask func(program string, args ...string) (string, error)

// Look lists the GPUs that this process may use. It asks nvidia-smi, or amd-smi if there is no
// nvidia-smi.
func Look(ask Ask, getenv func(string) string) Inventory {
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

// smiFields are the fields that nvidia-smi is asked for. Only old fields are used, because one
// unknown field makes the whole query fail.
const smiFields = "index,uuid,name,memory.total,memory.used,driver_version,clocks.max.sm,clocks.max.memory,power.limit,persistence_mode,mig.mode.current,ecc.mode.current"

func askNVIDIA(ask Ask) (Inventory, error) {
	out, err := ask("nvidia-smi", "--query-gpu="+smiFields, "--format=csv,noheader,nounits")
	if err != nil {
		return Inventory{}, err
	}
	inv, err := parseSMI(out)
	if err != nil {
		return Inventory{}, err
	}
	// Older versions have no --version, but print the version in a header.
	for _, args := range [][]string{{"--version"}, nil} {
		if out, err := ask("nvidia-smi", args...); err == nil {
			if inv.CUDA = cudaVersion(out); inv.CUDA != "" {
				break
			}
		}
	}
	return inv, nil
}

// parseSMI reads nvidia-smi's CSV. A missing value reads "[N/A]" or "[Not
// Supported]".
func parseSMI(out string) (Inventory, error) {
	var inv Inventory
	r := csv.NewReader(strings.NewReader(out))
	r.TrimLeadingSpace, r.LazyQuotes, r.FieldsPerRecord = true, true, -1
	rows, err := r.ReadAll()
	if err != nil {
		return inv, fmt.Errorf("nvidia-smi did not write CSV: %w", err)
	}
	for _, row := range rows {
		if len(row) != strings.Count(smiFields, ",")+1 {
			// A row with a different number of fields is a message, such as "No devices were
			// found".
			return Inventory{}, fmt.Errorf("nvidia-smi: %s", strings.Join(row, ", "))
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		inv.GPUs = append(inv.GPUs, GPU{
			ID: row[0], UUID: row[1], Name: row[2], Vendor: "nvidia",
			Memory: atoi(row[3]), Used: atoi(row[4]), SM: atoi(row[6]), MemoryClock: atoi(row[7]), Power: atof(row[8]),
			Persistence: mode(row[9]), MIG: mode(row[10]), ECC: mode(row[11]),
		})
		inv.Driver = row[5]
	}
	return inv, nil
}

// mode returns the value of a mode, such as the persistence mode. It is "" if the GPU does not
// report it ("[N/A]").
func mode(s string) string {
	if strings.HasPrefix(s, "[") || s == "N/A" {
		return ""
	}
	return s
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func atof(s string) float64 { f, _ := strconv.ParseFloat(s, 64); return f }

// cudaVersion finds "CUDA Version: 12.8" with any number of blanks.
func cudaVersion(out string) string {
	_, rest, ok := strings.Cut(out, "CUDA Version")
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(rest, "\n")
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ':' || r == '|' })
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func askAMD(ask Ask) (Inventory, error) {
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

// amdList reads amd-smi's JSON. It is a list, or since ROCm 7 an object around the list.
func amdList(out string) ([]map[string]json.RawMessage, error) {
	var wrapped struct {
		Data []map[string]json.RawMessage `json:"gpu_data"`
	}
	if err := json.Unmarshal([]byte(out), &wrapped.Data); err == nil {
		return wrapped.Data, nil
	}
	if err := json.Unmarshal([]byte(out), &wrapped); err != nil {
		return nil, fmt.Errorf("amd-smi did not write the expected JSON: %w", err)
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
		// Ignore errors, because versions of amd-smi differ. A value that cannot be read stays
		// unknown.
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
