package sim

import (
	"net"
	"time"
)

// Version is the version that the server reports at /version.
const Version = "tokgate-sim-1"

// Options configures a Server. The zero value means the default profile without faults.
type Options struct {
	Profile *Profile // nil: DefaultProfile
	Seed    int64    // of everything random
	Model   string   // id of the model to serve; "" means the profile's model
	Engine  string   // "sglang" for SGLang's metric names at /metrics, else vLLM's names
	APIKey  string   // key that requests below /v1 must send as a bearer token; "": no key is required
	Faults  Script   // faults besides those of the profile
	// OnEmit is called right before the server writes a chunk with tokens. Several goroutines may
	// call it at once. chunk is the number of the chunk, from 0. id is the id in the chunks of the
	// answer, such as "chatcmpl-…". It ends in the request's X-Request-Id, if there is one.
	OnEmit func(id string, chunk int, at time.Time)
	// OnServed is called after every completion request whose body could be parsed. Several
	// goroutines may call it at once.
	OnServed func(Served)
	// Listen is the function that Start uses; nil means net.Listen.
	Listen func(network, address string) (net.Listener, error)
}

// Served describes one completion request. Its times are from the server's own clock.
type Served struct {
	ID      string    `json:"id"` // id of the answer, which OnEmit gets too
	Arrived time.Time `json:"arrived"`
	First   time.Time `json:"first,omitzero"` // right before the first token was written; zero: no token
	Last    time.Time `json:"last,omitzero"`  // right before the last token was written
	Tokens  int       `json:"tokens"`         // tokens written; 0 if the answer was not streamed
}
