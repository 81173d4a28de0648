//go:build !unix

package main

import "github.com/spf13/cobra"

func supervise(*cobra.Command, []string, []string, Streams) (code int, ok bool) { return 0, false }

func supervised() (done func()) { return func() {} }

func surviveBrokenPipes() {}
