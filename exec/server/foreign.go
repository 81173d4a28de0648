package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tokgate/tokgate/exec/telemetry"
)

// foreignEvery is the shortest time between two listings of the processes on the GPUs. A listing
// starts a program that takes the driver's lock.
const foreignEvery = 10 * time.Second

type foreign struct {
	list func(context.Context) ([]int, error)
	run  string // id of the run; the marks of its processes begin with it
	now  func() time.Duration

	mu    sync.Mutex
	asked bool
	at    time.Duration
	n     int
	err   error
}

func (f *foreign) add(ctx context.Context, r *telemetry.Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); !f.asked || now-f.at >= foreignEvery {
		f.asked, f.at = true, now
		f.n, f.err = f.count(ctx)
	}
	if f.err != nil {
		r.None["foreign_processes"] = f.err.Error()
		return
	}
	r.Gauges["foreign_processes"] = float64(f.n)
}

func (f *foreign) count(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	pids, err := f.list(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, pid := range pids {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return 0, fmt.Errorf("process %d on the GPUs cannot be seen from here: it runs outside of this container, or has ended", pid)
		case err != nil: // another user's
			n++
		case !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+markName+"="+f.run+"/")):
			n++
		}
	}
	return n, nil
}
