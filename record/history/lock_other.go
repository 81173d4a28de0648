//go:build !unix

package history

import "github.com/tokgate/tokgate/record/disk"

// lock does nothing, because the standard library has no file lock for this system. A line is
// written in a single call, so that lines of two writers do not mix.
func lock(*disk.File) error { return nil }
