// Package lease records what servers under test hold on this machine: GPUs, ports, processes and
// containers. A record is a note, a file in a folder that all runs of a user share. A run keeps its
// notes locked, and removes them at its end. A note without a lock means that its run was killed,
// and that the server in the note may still be running.
package lease

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/record/disk"
)

// Holder is a run of tokgate that holds a GPU or a port.
type Holder struct {
	Run     string `json:"run"`     // its id
	Plan    string `json:"plan"`    // path as given on the command line
	Server  string `json:"server"`  // address within the plan
	PID     int    `json:"pid"`     // of tokgate
	Started string `json:"started"` // wall clock, for people
}

// String describes the run in words, for messages.
func (h Holder) String() string {
	if h.Run == "" {
		return "another run of tokgate"
	}
	return fmt.Sprintf("run %s of %s (server %s, tokgate's pid %d, started %s)", h.Run, h.Plan, h.Server, h.PID, h.Started)
}

// Server is a server that starts or has started. Once it has started, exactly one of Group and
// Container is set. A Stack is set before its commands start.
type Server struct {
	Holder
	Stack     *Stack   `json:"stack,omitempty"`
	Group     int      `json:"group,omitempty"`       // process group, which is also the pid of its leader
	Start     string   `json:"group_start,omitempty"` // start time of the leader; a later process with the same pid has another start time
	Mark      string   `json:"mark,omitempty"`        // environment variable by which tokgate recognises the process and every process that it starts
	Container string   `json:"container,omitempty"`   // its name
	Runtime   string   `json:"runtime,omitempty"`     // docker or podman; kubectl if Container is a pod
	Namespace string   `json:"namespace,omitempty"`   // of the pod
	Cluster   string   `json:"cluster,omitempty"`     // address of the pod's; "" if not known
	GPUs      []string `json:"gpus,omitempty"`        // GPUs that the server may use; nil if it may use all
	Port      int      `json:"port"`
}

// Stack is a server that commands started. The commands are not noted, so that nobody runs what was
// found on a disk.
type Stack struct {
	URL  string `json:"url"`
	Down string `json:"down"` // Digest of the command that ends it
}

// Digest identifies a command by all its words.
func Digest(words []string) string {
	h := sha256.New()
	for _, word := range words {
		fmt.Fprintf(h, "%d %s", len(word), word)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Busy is the error of Take if another run holds the GPU or port.
type Busy struct {
	Name string // name of the GPU or port that was requested
	Holder
}

// Error names what is held, and the run that holds it.
func (b *Busy) Error() string { return fmt.Sprintf("%s is held by %v", b.Name, b.Holder) }

// Folder is the path of the folder that holds the notes.
type Folder string

// Dir returns the folder that all runs of a user share. It is TOKGATE_STATE_DIR if set, or else the
// folder tokgate in the user's cache, or else a folder for temporary files.
func Dir(getenv func(string) (string, bool)) Folder {
	if dir, ok := getenv("TOKGATE_STATE_DIR"); ok && dir != "" {
		return Folder(dir)
	}
	if dir, ok := getenv("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		return Folder(filepath.Join(dir, "tokgate"))
	}
	if home, ok := getenv("HOME"); ok && filepath.IsAbs(home) {
		return Folder(filepath.Join(home, ".cache", "tokgate"))
	}
	return Folder(filepath.Join(os.TempDir(), fmt.Sprintf("tokgate-%d", os.Getuid())))
}

// Note is an open, locked file. It describes a server, or the holder of a GPU or a port.
type Note struct {
	path string
	file *disk.File
}

const (
	locks   = ".lock"
	servers = ".server.json"
	maxNote = 64 << 10 // largest size of a note in bytes; tokgate writes no larger one
)

// Take reserves a GPU or a port for the holder h. The error is a *Busy if this run or another run
// already holds it.
func (f Folder) Take(name string, h Holder) (*Note, error) {
	n, err := f.lock(fileName(name) + locks)
	if errors.Is(err, errLocked) {
		busy := &Busy{Name: name}
		if raw, err := readNote(filepath.Join(string(f), fileName(name)+locks)); err == nil {
			// The note may be incomplete while another run writes it. The holder is then unknown.
			_ = parse(raw, &busy.Holder)
		}
		return nil, busy
	}
	if err != nil {
		return nil, err
	}
	return n.begin(h)
}

// Begin records a server that is about to be started.
func (f Folder) Begin(s Server) (*Note, error) {
	n, err := f.lock(fileName(fmt.Sprintf("%s-%s-%d", s.Run, s.Holder.Server, s.Port)) + servers)
	if err != nil {
		return nil, fmt.Errorf("could not note the server: %w", err)
	}
	return n.begin(s)
}

func (n *Note) begin(v any) (*Note, error) {
	if err := n.write(v); err != nil {
		n.Done()
		return nil, fmt.Errorf("could not write a note: %w", err)
	}
	return n, nil
}

// Update replaces the note of a server.
func (n *Note) Update(s Server) error { return n.write(s) }

// Done releases and removes the note.
func (n *Note) Done() {
	// Remove the file before unlocking it. A process that waits for the lock then sees that the
	// file is no longer in the folder.
	_ = disk.Remove(n.path)
	_ = n.file.Close()
}

// Leave unlocks the note and keeps it for the next run to find.
func (n *Note) Leave() { _ = n.file.Close() }

// Leftover is a server that a killed run left behind, as its note says.
type Leftover struct {
	Server
	*Note // holds the lock of the note, so that two runs do not remove the same server
}

// Leftovers returns the servers in the notes whose runs have ended, in the order of their runs. The
// caller must release each of them with Done or Leave. A note that names no run is removed, such as
// an empty one. A file that cannot be read is an error, because its server may still be running.
func (f Folder) Leftovers() ([]Leftover, error) {
	entries, err := disk.ReadDir(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Leftover
	fail := func(err error) ([]Leftover, error) {
		for _, l := range out {
			l.Leave()
		}
		return nil, err
	}
	for _, e := range entries {
		server := strings.HasSuffix(e.Name(), servers)
		if !server && !strings.HasSuffix(e.Name(), locks) {
			continue
		}
		n, err := f.lock(e.Name())
		if errors.Is(err, errLocked) {
			continue // its tokgate lives
		}
		if err != nil {
			return fail(err)
		}
		if !server {
			n.Done() // the run of this note has ended, so it no longer holds the GPU or port
			continue
		}
		l := Leftover{Note: n}
		raw, err := readNote(n.path)
		if err != nil {
			n.Leave()
			return fail(err)
		}
		if parse(raw, &l.Server) != nil || l.Run == "" {
			n.Done()
			continue
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b Leftover) int { return strings.Compare(a.Run, b.Run) })
	return out, nil
}

func (f Folder) lock(name string) (*Note, error) {
	if err := disk.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(string(f), name)
	for {
		file, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lockFile(file); err != nil {
			file.Close()
			return nil, err
		}
		// Another process may have removed the note after it was opened here. The lock is then on a
		// file that is no longer in the folder, so try again.
		mine, err1 := file.Stat()
		there, err2 := disk.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return &Note{path, file}, nil
		}
		file.Close()
		if err1 != nil {
			return nil, err1
		}
		if err2 != nil && !errors.Is(err2, os.ErrNotExist) {
			return nil, err2
		}
	}
}

func (n *Note) write(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Overwrite the file. A new file would not be locked, and could fail on a full disk. Truncate
	// last, so that the note is never empty.
	raw = append(raw, '\n')
	if _, err := n.file.WriteAt(raw, 0); err != nil {
		return err
	}
	return n.file.Truncate(int64(len(raw)))
}

// parse reads the first line of a note. Further lines may be left from an older, longer note.
func parse(raw []byte, v any) error {
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	return json.Unmarshal(line, v)
}

func readNote(path string) ([]byte, error) {
	file, err := disk.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxNote))
}

func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '-'
	}, name)
}

var errLocked = errors.New("it is held already")
