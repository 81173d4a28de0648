//go:build unix

package lease

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// A note is a file about a started server. Whatever the file contains, the note either names a
// server or is removed. It never blocks another run.
func FuzzNote(f *testing.F) {
	f.Add([]byte(`{"run":"r","plan":"p","server":"s","pid":1,"group":4711,"group_start":"boot/1","gpus":["0"],"port":8000}` + "\n"))
	f.Add([]byte(`{"run":"r","pid":1e99}`))
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, note []byte) {
		dir := Folder(t.TempDir())
		for _, name := range []string{"x" + servers, "gpu-0" + locks} {
			must.Do(t, os.WriteFile(filepath.Join(string(dir), name), note, 0o600))
		}
		left, err := dir.Leftovers()
		must.Need(t, err == nil && len(left) <= 1, "%d leftovers, %v", len(left), err)
		for _, l := range left {
			must.Hold(t, l.Run != "", "a server of no run")
			_ = l.Holder.String()
			l.Done()
		}
		n, err := dir.Take("gpu-0", other)
		must.Do(t, err)
		n.Done()
		empty(t, dir)
	})
}
