// Command tokgate gates LLM serving in CI: it starts the server a plan
// declares, runs the plan's workloads, and passes or fails.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(Main(context.Background(), os.Args[1:], os.Environ(), Streams{os.Stdin, os.Stdout, os.Stderr}))
}
