package server

import (
	"context"
	"fmt"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
)

// Found is what a server that runs says of itself.
type Found struct {
	Engine  string // as a plan names it; "openai" when none of those with an own way answers
	Version string // "": not told
	Model   string // the first model that it offers; "": it lists none
	Context int    // longest prompt and answer together, in tokens; 0: not told
}

// Detect asks the server at url, with or without /v1, what it is: for each
// engine the page on which that tells its version, and then the models. A server
// that answers none of these is an error.
func Detect(ctx context.Context, c *clock.Real, n Network, url, apiKey string) (Found, error) {
	found := Found{Engine: "openai"}
	ask := func(engine string) (*client.HTTP, error) {
		return client.New(client.Config{BaseURL: url, APIKey: apiKey, Now: c.Now, Dial: n.Dial, Dialect: client.DialectOf(engine)})
	}
	// vLLM's page is the plainest, and others may have one like it.
	for _, engine := range []string{"sglang", "llama.cpp", "vllm"} {
		h, err := ask(engine)
		if err != nil {
			return found, err
		}
		version, err := h.Version(ctx)
		h.Close()
		if err == nil {
			found.Engine, found.Version = engine, version
			break
		}
	}
	h, err := ask(found.Engine)
	if err != nil {
		return found, err
	}
	defer h.Close()
	models, err := h.Models(ctx)
	if err != nil && found.Version == "" {
		return found, fmt.Errorf("could not find out what runs at %s: %w", url, err)
	}
	if len(models) > 0 {
		found.Model, found.Context = models[0].ID, models[0].Context
	}
	return found, nil
}
