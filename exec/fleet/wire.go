package fleet

import (
	"encoding/json"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/metric"
)

// kind is what a message is about. The comments say which fields it has.
type kind string

const (
	// From the controller.

	toReach  kind = "reach"  // N, Reach: server N is reached so
	toMake   kind = "make"   // N, Known, Salt: Maker N makes prompts so
	toSend   kind = "send"   // ID, Order
	toCancel kind = "cancel" // ID: of an order
	toWarm   kind = "warm"   // Server, N: open connections to a server
	toMeet   kind = "meet"   // ID, At: the barrier
	toEnd    kind = "end"    // Why: the run was stopped; "" if it is over

	// From a worker.

	hasTexts  kind = "texts"   // ID, Received: comes before the line of a sample
	hasBeat   kind = "beat"    // Beat
	hasMet    kind = "met"     // ID
	hasReach  kind = "reached" // N, Why: server N was reached, or why not
	hasLeft   kind = "left"    // Why: the worker ends
	hasTokens kind = "tokens"  // Tokens
)

// message is one line of a link that is no sample.
type message struct {
	Kind     kind             `json:"k"`
	ID       int64            `json:"id,omitempty"`
	N        int              `json:"n,omitempty"`
	Server   int              `json:"server,omitempty"`
	At       time.Duration    `json:"at,omitempty"`
	Why      string           `json:"why,omitempty"`
	Reach    *Reach           `json:"reach,omitempty"`
	Known    *prompt.Known    `json:"known,omitempty"`
	Salt     uint64           `json:"salt,omitempty"`
	Order    *order           `json:"order,omitempty"`
	Beat     *Beat            `json:"beat,omitempty"`
	Received *client.Received `json:"received,omitempty"`
	Tokens   []tokens         `json:"tokens,omitempty"`
}

// Reach says how a worker reaches a server.
type Reach struct {
	URLs        []string          `json:"urls"`
	Engine      string            `json:"engine"`
	APIKey      string            `json:"api_key,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Query       map[string]string `json:"query,omitempty"`
	AnyRedirect bool              `json:"any_redirect,omitempty"`
	H2C         bool              `json:"h2c,omitempty"`
	Standard    bool              `json:"standard,omitempty"`
}

// order is one request: what is known of its sample, its prompt and its fields.
type order struct {
	Server int           `json:"server"`
	Sample metric.Sample `json:"sample"`
	Keep   int           `json:"keep,omitempty"`  // bytes of the text to send back
	Reply  int           `json:"reply,omitempty"` // bytes of the content to send back
	Leaves int           `json:"leaves,omitempty"`
	Heard  bool          `json:"heard,omitempty"` // its tokens are counted while they come

	Patient bool `json:"patient,omitempty"`

	Maker  int                        `json:"maker,omitempty"` // of the recipe
	Recipe *prompt.Recipe             `json:"recipe,omitempty"`
	Text   string                     `json:"text,omitempty"`
	IDs    []int                      `json:"ids,omitempty"`
	More   []string                   `json:"more,omitempty"`
	Chat   json.RawMessage            `json:"chat,omitempty"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	Parts  []metric.Piece             `json:"parts,omitempty"`

	request
}

// request is the part of a client.Request that is no prompt.
type request struct {
	API         engine.API                 `json:"api"`
	Model       string                     `json:"model,omitempty"`
	Input       int                        `json:"input"`
	Output      int                        `json:"output"`
	Natural     bool                       `json:"natural,omitempty"`
	Context     int                        `json:"context,omitempty"`
	Temperature *float64                   `json:"temperature,omitempty"`
	Stop        []string                   `json:"stop,omitempty"`
	Extra       map[string]json.RawMessage `json:"extra,omitempty"`
	Headers     map[string]string          `json:"headers,omitempty"`
	Timeout     time.Duration              `json:"timeout,omitempty"`
}

// Beat is what a worker says of itself twice a second: its health since the last beat, and the error
// of its clock.
type Beat struct {
	Health metric.Health `json:"health"`
	Trip   time.Duration `json:"trip"` // shortest round trip to the controller
	Bound  time.Duration `json:"bound"`
}

// tokens says that n more chunks with tokens of an answer came, the last at a time.
type tokens struct {
	ID int64         `json:"id"`
	N  int           `json:"n"`
	At time.Duration `json:"at"`
}

// orderOf returns the order of a request without its prompt's recipe.
func orderOf(r *client.Request) (*order, error) {
	o := &order{
		Patient: r.Patient, Text: r.Prompt.Text, More: r.Prompt.More, IDs: r.Prompt.IDs, Chat: r.Prompt.Messages,
		Fields: r.Prompt.Fields, Parts: r.Prompt.Parts,
		request: request{
			API: r.API, Model: r.Model, Input: r.Input, Output: r.Output, Natural: r.Natural, Context: r.Context,
			Temperature: r.Temperature, Stop: r.Stop, Headers: r.Headers, Timeout: r.Timeout,
		},
	}
	for name, v := range r.Extra {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if o.Extra == nil {
			o.Extra = map[string]json.RawMessage{}
		}
		o.Extra[name] = raw
	}
	return o, nil
}

// request returns the request of an order. makers are the makers of recipes, by number.
func (o *order) made(makers map[int]*prompt.Maker) (r client.Request, err error) {
	p := client.Prompt{Text: o.Text, More: o.More, IDs: o.IDs, Messages: o.Chat, Fields: o.Fields, Parts: o.Parts}
	if o.Recipe != nil {
		o.Recipe.Maker = makers[o.Maker]
		if p, err = o.Recipe.Make(); err != nil {
			return r, err
		}
		p.Fields = o.Fields
	}
	r = client.Request{
		API: o.API, Model: o.Model, Prompt: p, Input: o.Input, Output: o.Output, Natural: o.Natural, Context: o.Context,
		Temperature: o.Temperature, Stop: o.Stop, Headers: o.Headers, Timeout: o.Timeout,
	}
	for name, raw := range o.Extra {
		if r.Extra == nil {
			r.Extra = map[string]any{}
		}
		if r.Extra[name] = raw; string(raw) == "null" {
			r.Extra[name] = nil // leaves the field out
		}
	}
	return r, nil
}
