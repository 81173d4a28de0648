package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Asked lists the settings of a plan that determine the requests of a level. tokgate can judge a
// recorded level with other thresholds, but not with other settings.
type Asked struct {
	Engine  string        `json:"engine"`
	API     string        `json:"api"`
	Input   int           `json:"input_tokens"`
	Inputs  int           `json:"inputs,omitempty"` // of a request, if there are several
	Output  int           `json:"output_tokens"`
	Jitter  float64       `json:"jitter,omitempty"` // output: Output·(1±Jitter) tokens
	Natural bool          `json:"natural,omitempty"`
	Pause   time.Duration `json:"pause_ns,omitempty"`
	Think   string        `json:"think,omitempty"` // thinking time of people; "" if there is none
	// Arrivals names how the gaps between requests are distributed: "constant", "poisson" or
	// "gamma 0.5". For a replay it names the trace. It is "" for a load without a rate or trace.
	Arrivals string `json:"arrivals,omitempty"`
	// Prompts is a hash of the source of the prompts; "" if the prompts are synthetic and unique.
	Prompts string `json:"prompts,omitempty"`
	// Request is a hash of the plan's other settings for requests, such as temperature. These may
	// contain secrets, so only a hash is kept. It is "" without such settings.
	Request string `json:"request,omitempty"`
	// Mix lists the parts of a mix, such as "chat 70%, long 30%"; "" if the level is not a mix.
	// Each part has an Asked of its own.
	Mix string `json:"mix,omitempty"`
	// Leaving describes the clients that leave, such as "5% after 2s"; "" if none does.
	Leaving string `json:"leaving,omitempty"`
}

// Digest returns twelve hexadecimal digits that identify a. A later version of tokgate may add
// fields to Asked. If the new fields are not set, the digest stays the same.
func (a Asked) Digest() string {
	raw, _ := json.Marshal(a) // encoding numbers and strings never fails
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

// Differs lists the settings of a that b does not have, in words such as "input_tokens 256, not
// 8192".
func (a Asked) Differs(b Asked) []string {
	var out []string
	note := func(name string, x, y any) {
		if x != y {
			out = append(out, fmt.Sprintf("%s %v, not %v", name, x, y))
		}
	}
	note("engine", a.Engine, b.Engine)
	note("mix", a.Mix, b.Mix)
	note("api", a.API, b.API)
	note("input_tokens", a.Input, b.Input)
	note("inputs", a.Inputs, b.Inputs)
	note("output_tokens", a.Output, b.Output)
	note("jitter", a.Jitter, b.Jitter)
	note("natural", a.Natural, b.Natural)
	note("clients that leave", a.Leaving, b.Leaving)
	note("pause", a.Pause, b.Pause)
	note("arrivals", a.Arrivals, b.Arrivals)
	note("think_time", a.Think, b.Think)
	if a.Prompts != b.Prompts {
		out = append(out, "other prompts")
	}
	if a.Request != b.Request {
		out = append(out, "another request block")
	}
	return out
}
