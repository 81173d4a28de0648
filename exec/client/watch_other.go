//go:build !linux

package client

// watched is what a line knows of its watcher, which is a goroutine of its own.
type watched struct{}

func (*line) poll() bool { return false }
func (*line) unwatch()   {}
func (*line) rest()      {}
func (*line) look()      {}
