package client

import (
	"context"
	"errors"
	"net/http"
)

// ErrNoReset means that the server has no way to empty its caches.
var ErrNoReset = errors.New("the server has no request that empties its caches")

// ResetCaches empties the server's prefix cache. It returns ErrNoReset if the engine has no request
// for that.
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
