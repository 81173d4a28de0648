package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/assert"
)

// What is read is the folder's own: a link may lead to a device that never ends.
func TestAuditReadsItsFolderAlone(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"samples.jsonl": os.DevNull, "results.json": os.DevNull} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	r := tokgate(t, "audit", dir)
	r.check(t, assert.ExitError, "samples.jsonl is not a regular file")
}
