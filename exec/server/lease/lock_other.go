//go:build !unix

package lease

import "github.com/tokgate/tokgate/record/disk"

// Proof is whether a free lock proves that the process of a note is dead. Here
// nothing is locked, so it does not.
const Proof = false

// lockFile does nothing: without flock runs cannot see each other.
func lockFile(*disk.File) error { return nil }
