//go:build !unix

package main

func supervise([]string, []string, Streams) (code int, ok bool) { return 0, false }

func supervised() (done func()) { return func() {} }

func surviveBrokenPipes() {}
