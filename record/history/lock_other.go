//go:build !unix

package history

import "github.com/tokgate/tokgate/record/disk"

// lock does nothing, because the standard library has no lock for this system: each
// line is added in one write.
func lock(*disk.File) error { return nil }
