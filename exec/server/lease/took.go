package lease

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tokgate/tokgate/record/disk"
)

const starts = ".start"

// Took is how long the last start took of what key names; 0: not known.
func (f Folder) Took(key string) time.Duration {
	if f == "" {
		return 0
	}
	raw, err := readNote(filepath.Join(string(f), fileName(key)+starts))
	if err != nil {
		return 0
	}
	var took time.Duration
	if parse(raw, &took) != nil || took < 0 {
		return 0
	}
	return took
}

// NoteTook notes how long a start took. Best effort: it is shown to people, and nothing hangs on it.
func (f Folder) NoteTook(key string, took time.Duration) {
	if f == "" || disk.MkdirAll(string(f), 0o700) != nil {
		return
	}
	file, err := disk.OpenFile(filepath.Join(string(f), fileName(key)+starts), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(file, int64(took))
		_ = file.Close()
	}
}
