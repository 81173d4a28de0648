// Command tokgate gates LLM serving in CI: it starts the server a plan
// declares, runs the plan's workloads, and passes or fails.
package main

import (
	"context"
	"os"

	"github.com/tokgate/tokgate/exec/server"
)

func main() { os.Exit(program(os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr})) }

// program is Main in a process of its own, which may crash or lose its output.
func program(args []string, s Streams) int {
	surviveBrokenPipes()
	environ := os.Environ()
	if code, ok := supervise(args, environ, s); ok {
		return code
	}
	done := supervised()
	code := (&app{Streams: s, environ: environ, meter: server.Meter(), bounds: loadBounds}).main(context.Background(), args)
	done()
	return code
}
