//go:build unix

package lease

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// TestMain lets the test binary run as another process that holds a lock.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TOKGATE_TEST_HOLD"); dir != "" {
		hold(Folder(dir))
	}
	os.Exit(m.Run())
}

var other = Holder{Run: "20261121T190000Z-abcdef", Plan: "plans/night.hcl", Server: "vllm", PID: 4711, Started: "19:00"}

// hold is what a second process does in tests: it takes a GPU and writes a note about a server.
// Then it prints a line, and waits until it is killed.
func hold(f Folder) {
	if _, err := f.Take("GPU 0", other); err != nil {
		panic(err)
	}
	if _, err := f.Begin(Server{Holder: other, Group: 99, Start: "boot-1", GPUs: []string{"0"}, Port: 8000}); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("held\n")
	os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

func TestTakenByAnotherProcess(t *testing.T) {
	f := Folder(t.TempDir())
	self, err := os.Executable()
	must.Do(t, err)
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), "TOKGATE_TEST_HOLD="+string(f))
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	must.Do(t, cmd.Start())
	must.Get(stdout.Read(make([]byte, 5)))(t)
	_, err = f.Take("GPU 0", Holder{Run: "mine"})
	busy, ok := errors.AsType[*Busy](err)
	must.Need(t, ok && busy.Holder == other, "got %v, want busy with %v", err, other)
	const want = "GPU 0 is held by run 20261121T190000Z-abcdef of plans/night.hcl (server vllm, tokgate's pid 4711, started 19:00)"
	must.Hold(t, err.Error() == want, "error %q, want %q", err, want)
	if left, err := f.Leftovers(); err != nil || len(left) > 0 {
		t.Errorf("a server of a run that lives is a leftover: %v, %v", left, err)
	}

	// A killed process leaves its note, but its lock is gone.
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	stdin.Close()
	n, err := f.Take("GPU 0", Holder{Run: "mine"})
	must.Need(t, err == nil, "a dead run still holds the GPU: %v", err)
	n.Done()
	left, err := f.Leftovers()
	must.Need(t, err == nil && len(left) == 1, "%d leftovers, %v; want one", len(left), err)
	wantServer := Server{Holder: other, Group: 99, Start: "boot-1", GPUs: []string{"0"}, Port: 8000}
	must.Same(t, "", wantServer, left[0].Server)
	again, _ := f.Leftovers()
	must.Hold(t, len(again) == 0, "two runs may remove one leftover at once")
	left[0].Leave()
	if again, _ := f.Leftovers(); len(again) != 1 {
		t.Error("a leftover that was left is no longer found")
	} else {
		again[0].Done()
	}
	empty(t, f)
}

// If many processes want the same port, only one of them holds it at any time. At the end the
// folder is empty.
func TestOneAtATime(t *testing.T) {
	f := Folder(t.TempDir())
	var wg sync.WaitGroup
	var mu sync.Mutex
	holders, most, taken := 0, 0, 0
	for range 8 {
		wg.Go(func() {
			for range 200 {
				n, err := f.Take("port 8000", other)
				if err != nil {
					_, ok := errors.AsType[*Busy](err)
					must.Hold(t, ok, "%v", err)
					continue
				}
				mu.Lock()
				holders++
				taken++
				most = max(most, holders)
				mu.Unlock()
				mu.Lock()
				holders--
				mu.Unlock()
				n.Done()
			}
		})
	}
	wg.Wait()
	must.Hold(t, most == 1 && taken != 0, "at most %d held it at once, of %d times; want 1", most, taken)
	empty(t, f)
}

func TestNotesThatAreNotOurs(t *testing.T) {
	f := Folder(t.TempDir())
	for name, text := range map[string]string{"port-1" + locks: "{}", "a" + servers: "", "b" + servers: "{", "c" + servers: `[1]`, "d" + servers: strings.Repeat("[", 1<<20)} {
		must.Do(t, os.WriteFile(filepath.Join(string(f), name), []byte(text), 0o600))
	}
	left, err := f.Leftovers()
	must.Hold(t, err == nil && len(left) <= 0, "%v, %v", left, err)
	empty(t, f)
	if left, err := Folder("/nowhere/at/all").Leftovers(); err != nil || left != nil {
		t.Errorf("a folder that is not there: %v, %v", left, err)
	}
}

func TestUpdate(t *testing.T) {
	f := Folder(t.TempDir())
	s := Server{Holder: other, Mark: strings.Repeat("long", 100)}
	n, err := f.Begin(s)
	must.Do(t, err)
	s.Mark = "short" // shorter than the old mark, of which nothing may stay in the file
	must.Do(t, n.Update(s))
	n.Leave()
	left, err := f.Leftovers()
	must.Need(t, err == nil && len(left) == 1 && left[0].Mark == "short", "%v, %v", left, err)
	left[0].Done()
}

func TestDir(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"TOKGATE_STATE_DIR": "/s", "HOME": "/h"}, "/s"},
		{map[string]string{"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/tokgate"},
		{map[string]string{"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache/tokgate"}, // a relative path is ignored
	} {
		got := Dir(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		must.Hold(t, string(got) == tt.want, "Dir(%v) = %q, want %q", tt.env, got, tt.want)
	}
	got := Dir(func(string) (string, bool) { return "", false })
	must.Hold(t, strings.HasPrefix(string(got), os.TempDir()), "without a home: %q", got)
}

func empty(t *testing.T, f Folder) {
	t.Helper()
	entries := must.Get(os.ReadDir(string(f)))(t)
	for _, e := range entries {
		t.Errorf("%s stays behind", e.Name())
	}
}
