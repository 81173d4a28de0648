package server

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// The longest end is that of a stack: its down may take all of its timeout, and what the commands left running 20 s more.
func TestTeardown(t *testing.T) {
	endpoint, pod := &plan.Server{Endpoint: &plan.Endpoint{}}, &plan.Server{Pod: &plan.Pod{}}
	stack := &plan.Server{Stack: &plan.Stack{Timeout: 5 * time.Minute}}
	for _, tt := range []struct {
		of   []*plan.Server
		want time.Duration
	}{
		{nil, 0},
		{[]*plan.Server{endpoint}, 0},
		{[]*plan.Server{endpoint, pod}, 20 * time.Second},
		{[]*plan.Server{pod, stack}, 5*time.Minute + 20*time.Second},
	} {
		must.Same(t, "teardown", tt.want, Teardown(tt.of))
	}
}
