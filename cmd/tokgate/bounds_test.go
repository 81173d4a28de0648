//go:build unix

package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// A plan is invalid if it would use too much memory or time, or if a path in it is not a regular
// file.
func TestLongPlanBombs(t *testing.T) {
	text := strings.Repeat("a", 100_000)
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.hcl"), 0o600); err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ name, plan, says string }{
		{"replace", "locals {\n  a = \"" + text + "\"\n  x = replace(local.a, \"a\", local.a)\n}\n", "the result would have more than"},
		{"loops", "locals {\n  x = [for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]\n}\n", "Plan too costly"},
		{"templates", "locals {\n  a = [for i in range(1000) : i]\n  x = \"%{for a in local.a}%{for b in local.a}%{for c in local.a}0123456789%{endfor}%{endfor}%{endfor}\"\n}\n", "Plan too costly"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.hcl")
			must.Do(t, os.WriteFile(path, []byte(tt.plan), 0o644))
			refused(t, tt.says, "validate", path)
		})
	}
	for _, args := range [][]string{
		{"validate", "/dev/zero"}, {"fmt", "/dev/zero"}, {"plan", filepath.Join(dir, "pipe.hcl")}, {"fmt", filepath.Join(dir, "pipe.hcl")},
		{"validate", filepath.Join("..", "..", "plans", "demo.hcl"), "--var-file", filepath.Join(dir, "pipe.hcl")},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) { refused(t, "not a regular file", args...) })
	}
}

// Memory for data files does not count towards the bounds of the plan. Such files have bounds of
// their own.
func TestDataHasItsOwnBounds(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	runtime.GC() // garbage that is freed later would hide memory that the test takes
	s := spendingNow(bounds{cpu: time.Hour, memory: 16 << 20})
	var kept [][]byte
	s.reading(func() {
		kept = append(kept, make([]byte, 128<<20))
		must.Same(t, "while a file is read", "", s.exceeded())
	})
	must.Same(t, "once it is read", "", s.exceeded())
	s.all.memory = 128 << 20 // which the first file takes already
	s.reading(func() {
		kept = append(kept, make([]byte, 16<<20))
		must.Same(t, "while too many files are read", "more than 4096 MiB of memory with its data files", s.exceeded())
	})
	s.all.memory = math.MaxUint64
	if kept = append(kept, make([]byte, 128<<20)); s.exceeded() != "more than 16 MiB of memory" {
		t.Errorf("what the plan itself takes is not counted: %q", s.exceeded())
	}
	runtime.KeepAlive(kept)
}

// refused runs the program, which must end with exit code 2 and print the given text.
func refused(t *testing.T, says string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), programFile(t, "real"), args...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), says) || len(out) > 10_000 {
		t.Errorf("%v: %v, want exit 2 and %q:\n%.2000s", args, err, says, out)
	}
}
