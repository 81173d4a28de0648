package server

import (
	"context"
	"errors"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
)

// A server that was just left by its clients may need a moment before it lets
// go of the last request, and refuses to empty its caches until then.
const (
	settling = 10 * time.Second
	settle   = 250 * time.Millisecond
)

// reset waits until the server has let go of earlier requests and empties its
// caches. A server that offers no such thing is left as it is. It is for servers
// of our own: those that run already have other users.
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
