//go:build unix

package server

import (
	"archive/tar"
	"bytes"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// TestRealRuntimes runs the built-in server in containers of every runtime that works
// on this machine.
func TestRealRuntimes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an image")
	}
	tried := 0
	for _, name := range []string{"docker", "podman"} {
		t.Run(name, func(t *testing.T) {
			path, err := osexec.LookPath(name)
			if err != nil {
				t.Skipf("there is no %s", name)
			}
			if out, err := osexec.Command(path, "ps").CombinedOutput(); err != nil {
				t.Skipf("%s does not work here: %s", name, lastWords(string(out)))
			}
			image := simImage(t, path)
			if out, err := osexec.Command(path, "run", "--rm", image, "/tokgate", "version").CombinedOutput(); err != nil {
				t.Skipf("%s can run no container here: %s", name, lastWords(string(out)))
			}
			tried++
			realContainer(t, name, image)
		})
	}
	if tried == 0 {
		t.Skip("no container runtime works here")
	}
}

func realContainer(t *testing.T, name, image string) {
	s := &plan.Server{
		Name: "sim", Engine: "vllm", Ready: plan.Ready{Timeout: time.Minute},
		Container: &plan.Container{
			Runtime: name, Image: image, Pull: plan.PullNever, Inside: 8000, Entrypoint: "/tokgate",
			Command: []string{"sim", "--listen", "0.0.0.0:{port}"}, Env: map[string]string{"TOKEN": "sk-verysecret"},
		},
	}
	l := childLauncher(t)
	target := must.Get(l.Launch(t.Context(), s, func(string) {}))(t)
	if f := target.Fingerprint; f["version"] != "tokgate-sim-1" || !strings.HasPrefix(f["image_digest"], "sha256:") || !strings.HasPrefix(f["runtime"], name+" ") {
		t.Errorf("fingerprint %v", f)
	}
	err := target.Check(t.Context())
	must.Hold(t, err == nil, "%v", err)
	log := target.Log()
	must.Hold(t, strings.Contains(log, "interrupt to stop"), "log %q", log)
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	c := must.Get(findRuntime(l.Clock, name))(t)
	left := func() string {
		out := must.Get(c.run(t.Context(), nil, "ps", "--all", "--quiet", "--filter", "label="+labelRun+"="+l.Holder.Run))(t)
		return out
	}
	out := left()
	must.Hold(t, out == "", "container %s is still there", out)
	nothingHeld(t, l)

	// Now the container ends while the server is in use.
	target = must.Get(l.Launch(t.Context(), s, func(string) {}))(t)
	if _, err := c.run(t.Context(), nil, "kill", left()); err != nil {
		t.Error(err)
	}
	eventually(t, l, func() bool { return target.Err() != nil })
	got := target.Err().Error()
	must.Hold(t, strings.HasPrefix(got, "the server's container ended by itself: exit status 137"), "error %q", got)
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if out := left(); out != "" {
		t.Errorf("container %s is still there", out)
	}
}

// simImage makes an image that contains only tokgate.
func simImage(t *testing.T, runtime string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tokgate")
	build := osexec.Command("go", "build", "-ldflags=-s -w", "-o", program, "github.com/tokgate/tokgate/cmd/tokgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	raw := must.Get(os.ReadFile(program))(t)
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	must.Do(t, w.WriteHeader(&tar.Header{Name: "tokgate", Mode: 0o755, Size: int64(len(raw))}))
	w.Write(raw)
	w.Close()
	const image = "localhost/tokgate-sim:under-test"
	cmd := osexec.Command(runtime, "import", "-", image)
	cmd.Stdin = &layer
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("no image can be made: %s", lastWords(string(out)))
	}
	t.Cleanup(func() { _ = osexec.Command(runtime, "rmi", "--force", image).Run() })
	return image
}
