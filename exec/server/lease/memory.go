package lease

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/tokgate/tokgate/record/disk"
)

// Memory is a kind of value that a run stores for later runs, as JSON. Each value has a key.
// Another program may have damaged or written the file, so its reader must check it.
type Memory string

// The kinds of memories.
const (
	Starts       Memory = ".start"       // how long a server's last start took, in ns
	Counts       Memory = ".counts"      // how a server counts the tokens of prompts
	Calibrations Memory = ".calibration" // how precise the generator is on this machine
)

// Recall reads the last stored value into v. It returns false if there is none, or if it does not
// fit v.
func (f Folder) Recall(kind Memory, key string, v any) bool {
	if f == "" {
		return false
	}
	raw, err := readNote(f.memory(kind, key))
	return err == nil && parse(raw, v) == nil
}

// Remember stores v for later runs. It ignores errors, because a later run can do without v.
func (f Folder) Remember(kind Memory, key string, v any) {
	line, err := json.Marshal(v)
	if err != nil || f == "" || len(line) >= maxNote || disk.MkdirAll(string(f), 0o700) != nil {
		return
	}
	file, err := disk.OpenFile(f.memory(kind, key), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, _ = file.Write(append(line, '\n'))
		_ = file.Close()
	}
}

func (f Folder) memory(kind Memory, key string) string {
	return filepath.Join(string(f), fileName(key)+string(kind))
}
