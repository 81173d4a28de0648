//go:build !unix

package history

import "github.com/tokgate/tokgate/record/disk"

// lock does nothing where the standard library has no lock to offer: lines are
// added in one write each.
func lock(*disk.File) error { return nil }
