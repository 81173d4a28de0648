package client

import (
	"context"
	"errors"
	"net/http"
)

// ErrNoReset: the server offers no way to empty its caches.
var ErrNoReset = errors.New("the server does not let its caches be emptied")

// ResetCaches has the server empty its prefix cache where the engine's way is
// known. ErrNoReset when there is none.
func (h *HTTP) ResetCaches(ctx context.Context) error {
	path := h.config.Engine.Pages.Reset
	if path == "" {
		return ErrNoReset
	}
	err := h.ask(ctx, http.MethodPost, h.root+path, nil, nil)
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return ErrNoReset
	}
	return err
}
