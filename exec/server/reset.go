package server

import (
	"context"
	"errors"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
)

// A server may need a moment to drop the last request after its client has left. Until then it
// refuses to clear its caches.
const (
	settling = 10 * time.Second
	settle   = 250 * time.Millisecond
)

// reset waits until the server has dropped earlier requests, and clears its caches, if it can. It
// is only for servers that tokgate started: one that was already running has other users.
func (r *reached) reset(ctx context.Context) error {
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, settling)
	defer cancel()
	for {
		_, err := clock.Await(ctx, r.Clock, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, r.api.ResetCaches(ctx)
		})
		switch {
		case err == nil, errors.Is(err, client.ErrNoReset):
			return nil
		case clock.Sleep(ctx, r.Clock, settle) != nil:
			return err
		}
	}
}
