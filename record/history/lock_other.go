//go:build !unix

package history

import "os"

// lock does nothing where the standard library has no lock to offer: lines are
// added in one write each.
func lock(*os.File) error { return nil }
