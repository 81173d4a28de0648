//go:build !unix

package record

import "os"

// lock does nothing where the standard library has no lock to offer.
func lock(*os.File) error { return nil }
