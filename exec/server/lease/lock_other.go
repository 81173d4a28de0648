//go:build !unix

package lease

import "github.com/tokgate/tokgate/record/disk"

// Proof reports whether a free lock proves that a process has ended. This system has no locks, so
// it proves nothing.
const Proof = false

// lockFile does nothing, because this system has no flock. So runs do not notice each other.
func lockFile(*disk.File) error { return nil }
