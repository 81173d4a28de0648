package server

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
)

// Found is what a running server reports about itself.
type Found struct {
	Engine  string   // engine's name as in a plan; engine.Plain if no page of a known engine answers
	Version string   // version of the engine; "" if not reported
	Models  []string // ids of the models that it lists
	Context int      // longest prompt and answer together, in tokens; 0 if not reported
	// Gateway names the gateway in front of the server, as found in the headers; "" if none is
	// named.
	Gateway string
}

// Detect identifies the server at url, which may end in /v1 or not. It asks for the server's
// models, and for the pages on which engines report their versions. It returns an error if the
// server answers none of these requests.
func Detect(ctx context.Context, c *clock.Real, n Network, url, apiKey string) (Found, error) {
	found := Found{Engine: engine.Plain}
	ask := func(e engine.Engine) (*client.HTTP, error) {
		return client.New(client.Config{BaseURL: url, APIKey: apiKey, Now: c.Now, Dial: n.Dial, Engine: e})
	}
	h, err := ask(engine.Of(engine.Plain))
	if err != nil {
		return found, err
	}
	models, modelsErr := h.Models(ctx)
	found.Gateway = h.Gateway()
	h.Close()
	owner := ""
	if len(models) > 0 {
		found.Models, found.Context, owner = ids(models), models[0].Context, models[0].OwnedBy
	}
	for _, e := range slices.Backward(engine.All) {
		if !e.Known() || e.Guess.Owner != "" && e.Guess.Owner != owner {
			continue
		}
		h, err := ask(e)
		if err != nil {
			return found, err
		}
		version, err := h.Version(ctx)
		if len(e.Pages.Version) == 0 { // its metrics page is its own
			var page []byte
			if page, err = h.Text(ctx, e.Pages.Metrics, telemetry.MaxPage); err == nil && !bytes.Contains(page, []byte(e.Series[0].Name)) {
				err = telemetry.ErrNothing
			}
		}
		h.Close()
		if err == nil {
			found.Engine, found.Version = e.Name, version
			return found, nil
		}
	}
	if found.Gateway == "" && len(models) > 0 {
		// The gateway LiteLLM names itself only in the answer to a completion, so send one.
		if h, err := ask(engine.Of(engine.Plain)); err == nil {
			_, _ = h.Complete(ctx, &client.Request{API: "chat", Model: models[0].ID, Prompt: client.Prompt{Text: "Hello"}, Output: 1})
			found.Gateway = h.Gateway()
			h.Close()
		}
	}
	if modelsErr != nil {
		return found, fmt.Errorf("could not find out what runs at %s: %w", url, modelsErr)
	}
	return found, nil
}
