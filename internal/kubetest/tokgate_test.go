package kubetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// command is a tokgate that runs. Its output grows while it does.
type command struct {
	*exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func (c *command) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *command) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// begin starts tokgate in a folder. It knows the cluster by a kubeconfig there, "kubeconfig", if there is one.
func begin(t *testing.T, dir string, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(*tool, args...), done: make(chan struct{})}
	c.Dir, c.Stdout, c.Stderr = dir, c, c
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Env = append(c.Environ(), "KUBECONFIG="+dir+"/kubeconfig", "HOME="+dir, "TOKGATE_STATE_DIR="+dir+"/state")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait()
		close(c.done)
	}()
	t.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			<-c.done
		}
	})
	return c
}

// code waits for the end, and returns the exit code.
func (c *command) code(t *testing.T) int {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(10 * time.Minute):
		t.Fatalf("it has not ended:\n%s", c)
	}
	return c.ProcessState.ExitCode()
}

// ends waits for an exit code and for words in the output.
func (c *command) ends(t *testing.T, code int, words ...string) {
	t.Helper()
	if got := c.code(t); got != code {
		t.Errorf("exit %d, not %d:\n%s", got, code, c)
	}
	for _, w := range words {
		if !strings.Contains(c.String(), w) {
			t.Errorf("nothing says %q:\n%s", w, c)
		}
	}
}

// measured plays a run again that could not measure: on a machine that is busy with something else this happens.
func measured(t *testing.T, play func() *command) *command {
	t.Helper()
	for again := 1; ; again++ {
		run := play()
		if run.code(t) != 4 || again == 10 {
			return run
		}
		_, why, _ := strings.Cut(run.String(), "  ERROR  ")
		t.Logf("it could not measure: %.400s", strings.Join(strings.Fields(why), " "))
	}
}

// after waits until words were printed, and returns what follows them up to a space.
func (c *command) after(t *testing.T, words string) string {
	t.Helper()
	var found string
	err := await(5*time.Minute, func() error {
		_, rest, ok := strings.Cut(c.String(), words)
		if end := strings.IndexAny(rest, " \n"); ok && end >= 0 {
			found = rest[:end]
			return nil
		}
		return fmt.Errorf("nothing says %q:\n%s", words, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// space makes a namespace for a test, and removes it when the test is over.
func space(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("%s-%06x", name, rand.N(1<<24))
	must(t, "create", "namespace", name)
	t.Cleanup(func() { must(t, "delete", "namespace", name, "--wait=false") })
	must(t, "wait", "--for=create", "-n", name, "serviceaccount/default", "--timeout=60s")
	return name
}

// must runs kubectl as the administrator.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := up.kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply gives the cluster a manifest.
func apply(t *testing.T, namespace, manifest string) {
	t.Helper()
	if _, err := up.kubectlWith(manifest, "apply", "-n", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}
