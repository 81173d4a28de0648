//go:build !unix

package record

import "github.com/tokgate/tokgate/record/disk"

// lock does nothing, because the standard library has no lock for this system.
func lock(*disk.File) error { return nil }
