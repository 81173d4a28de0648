package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record/history"
)

// startTime is an estimate of how long a server takes until it is ready.
type startTime struct {
	took  time.Duration // of a warm start
	first time.Duration // of the first start
	basis string        // reason for this estimate, such as "as long as the last ones"
}

// all returns the time of n starts.
func (t startTime) all(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return t.first + time.Duration(n-1)*t.took
}

// startTimes estimates how long the servers of the plan take to start. The best estimate is the
// server's last start. The next best is a start of the same image or command with the same model,
// from another results folder or the plan's history. If there is none either, the estimate comes
// from the size of the model. A server without any estimate is not in the result.
func startTimes(p *plan.Plan, last *lastRun) map[*plan.Server]startTime {
	out := map[*plan.Server]startTime{}
	var others map[string]startTime // read only if needed
	for _, s := range p.Servers {
		if took, ok := last.load(s); ok {
			out[s] = startTime{took.later, took.first, "as long as the last ones" + took.coldFirst()}
			continue
		}
		if !s.Started() {
			continue
		}
		if others == nil {
			others = otherStarts(p)
		}
		if t, ok := others[programKey(startedBy(s), s.Model)]; ok {
			out[s] = t
		} else if t, ok := assumedStart(cmp.Or(s.Model, startedBy(s))); ok {
			out[s] = t
		}
	}
	return out
}

func startedBy(s *plan.Server) string {
	declared := s.Declared()
	return cmp.Or(declared["image"], declared["command"])
}

func programKey(program, model string) string { return program + "\x00" + model }

// load returns how long the server took to start in the last run. If this is unknown, it returns
// the time of a server with the same image or command.
func (l *lastRun) load(s *plan.Server) (load, bool) {
	if l == nil {
		return load{}, false
	}
	took, ok := l.loads[s.Address()]
	if p := startedBy(s); !ok && p != "" {
		took, ok = l.loads[p]
	}
	return took, ok
}

// mostResults limits how many results of other plans are read. The newest are read first.
const mostResults = 20

// otherStarts returns the last start of each program and model. The starts are in the plan's
// history and in the results folders next to the plan's.
func otherStarts(p *plan.Plan) map[string]startTime {
	out := map[string]startTime{}
	if p.History != nil {
		if h, _, err := history.Read(p.History.Folder); err == nil {
			for _, n := range h.Nights { // later nights replace earlier nights
				for _, s := range n.Starts {
					took := time.Duration(s.Took * float64(time.Second))
					out[programKey(s.Program, s.Model)] = startTime{took, took, "as long as in the night of " + n.Started.Format(time.DateOnly)}
				}
			}
		}
	}
	for _, path := range newestResults(filepath.Dir(resultsDir("", p.Path, false, false))) {
		doc := resultsAt(path)
		if doc == nil || doc.Run.Simulated {
			continue
		}
		for _, s := range doc.Run.Servers {
			if first, later, ok := metric.StartTimes(s.Starts); ok && s.Program() != "" {
				key := programKey(s.Program(), s.Declared["model"])
				if _, have := out[key]; !have {
					out[key] = startTime{later, first, "as long as the last ones in " + path + load{first, later}.coldFirst()}
				}
			}
		}
	}
	return out
}

func newestResults(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "results.json")) // fails only for a bad pattern
	changed := map[string]time.Time{}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil {
			changed[p] = info.ModTime()
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return changed[b].Compare(changed[a]) })
	return paths[:min(len(paths), mostResults)]
}

// An unknown start time is estimated as assumedEngine for the engine itself, plus the time to read
// the weights from disk at the speed assumedDisk.
const (
	assumedEngine = time.Minute
	assumedDisk   = 1.0 // GB/s
)

// assumedStart estimates the start time of a server from the size in its model's name. If the name
// has no size, ok is false.
func assumedStart(model string) (startTime, bool) {
	gb, ok := weights(model)
	if !ok {
		return startTime{}, false
	}
	took := assumedEngine + time.Duration(gb/assumedDisk*float64(time.Second))
	took = took.Round(time.Second)
	return startTime{took, took, fmt.Sprintf("assumed: a minute, and %.3g GB of weights at 1 GB/s", gb)}, true
}

var (
	parameters = regexp.MustCompile(`(?i)(?:^|[^a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?:$|[^a-z0-9])`)
	halfByte   = regexp.MustCompile(`(?i)(fp4|int4|w4a16|awq|gptq|4bit|q4)`)
	oneByte    = regexp.MustCompile(`(?i)(fp8|int8|w8a8|8bit|q8)`)
)

// weights estimates from a model's name the size of its weights in GB. "Qwen3-8B" has 8·10⁹
// parameters of two bytes; "Qwen3-30B-A3B-FP8" has 30·10⁹ parameters of one byte.
func weights(model string) (gb float64, ok bool) {
	most := 0.0
	for _, m := range parameters.FindAllStringSubmatch(model, -1) {
		n, _ := strconv.ParseFloat(m[2], 64) // digits
		if strings.EqualFold(m[3], "m") {
			n /= 1000
		}
		if experts, err := strconv.Atoi(m[1]); err == nil {
			n *= float64(experts)
		}
		most = max(most, n)
	}
	bytes := 2.0
	switch {
	case halfByte.MatchString(model):
		bytes = 0.5
	case oneByte.MatchString(model):
		bytes = 1
	}
	return most * bytes, most > 0
}

func startsOf(p *plan.Plan, known map[*plan.Server]startTime) string {
	n, unknown := 0, 0
	var took time.Duration
	var bases, images []string
	for _, s := range p.Servers {
		t, ok := known[s]
		times := exec.Starts(p, s)
		if times == 0 || !s.Started() && t.took < time.Second {
			continue
		}
		n, took = n+times, took+t.all(times)
		if !ok {
			unknown += times
		} else if !slices.Contains(bases, t.basis) {
			bases = append(bases, t.basis)
		}
		images = append(images, s.Images()...)
	}
	slices.Sort(images)
	images = slices.Compact(images)
	pulls := ""
	if len(images) > 0 {
		pulls = fmt.Sprintf("; plus the pull of up to %s", verdict.Count(len(images), "images"))
	}
	switch {
	case n == 0:
		return ""
	case unknown == n:
		return fmt.Sprintf("unknown: %s, none of which was timed before%s", verdict.Count(n, "starts"), pulls)
	case unknown > 0:
		return fmt.Sprintf("more than %s: %s, %d of which were not timed before; the others %s%s", roundTime(took), verdict.Count(n, "starts"), unknown, strings.Join(bases, ", "), pulls)
	}
	return fmt.Sprintf("about %s in all: %s, each %s%s", roundTime(took), verdict.Count(n, "starts"), strings.Join(bases, ", or "), pulls)
}
