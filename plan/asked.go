package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/tokgate/tokgate/metric"
)

// Asked describes the requests that the workload sends to s under l. The plan can judge a recording
// only if it has the same description.
func (w *Workload) Asked(s *Server, l *Load) *metric.Asked {
	if mix := w.Blend(); mix != nil { // each part describes its own requests
		return &metric.Asked{
			Engine: s.Engine, Mix: strings.Join(mix, ", "), Pause: l.Pause, Arrivals: l.Open.String(), Think: l.Think.String(),
		}
	}
	return &metric.Asked{
		Engine:  s.Engine,
		API:     string(w.API),
		Input:   w.Input,
		Inputs:  w.Prompt.Inputs,
		Output:  w.Output.Mean,
		Jitter:  w.Output.Jitter,
		Natural: w.Output.Natural,
		Pause:   l.Pause,
		Request: w.Request.hash(),
		Prompts: w.Prompt.hash(),

		Arrivals: l.Open.String(),
		Think:    l.Think.String(),
		Leaving:  w.Cancel.String(),
	}
}

// Seed returns the first seed of the workload. Everything that is random but the same in all rounds
// depends on it.
func (w *Workload) Seed() int64 {
	for _, l := range w.Loads {
		if len(l.Seeds) > 0 {
			return l.Seeds[0]
		}
	}
	if w.Capacity != nil && w.Capacity.Load != nil && len(w.Capacity.Load.Seeds) > 0 {
		return w.Capacity.Load.Seeds[0]
	}
	return 1
}

func (r Request) hash() string {
	if r.Model == "" && r.Temperature == nil && len(r.Stop) == 0 && len(r.Extra) == 0 && len(r.Headers) == 0 {
		return ""
	}
	extra := map[string]json.RawMessage{}
	for name, v := range r.Extra {
		v, _ = v.UnmarkDeep()
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			raw = json.RawMessage(`"not JSON"`)
		}
		extra[name] = raw
	}
	// Marshal cannot fail: strings and numbers always have a JSON form. It sorts the keys of maps.
	all := []any{r.Model, r.Temperature, r.Stop, extra}
	if len(r.Headers) > 0 {
		all = append(all, r.Headers)
	}
	raw, _ := json.Marshal(all)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
