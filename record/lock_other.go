//go:build !unix

package record

import "github.com/tokgate/tokgate/record/disk"

// lock does nothing where the standard library has no lock to offer.
func lock(*disk.File) error { return nil }
