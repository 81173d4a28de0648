//go:build unix

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/server/gpu"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// docker is a shell script that stands in for the program docker. It runs this test binary as the
// server in its only container. A test replaces the words DIR, SELFPATH and MODEWORD.
const docker = `
S=DIR; SELF=SELFPATH; MODE=MODEWORD
printf '%s\n' "$*" >> $S/calls
tested() { [ -d $S ] && kill -0 $PPID 2>/dev/null; } # else nobody waits any more
died() { while tested && [ ! -f $S/exit ]; do sleep 0.02; done; }
case "$1" in
image)
	[ -f $S/image ] || { echo "Error response from daemon: No such image: $5" >&2; exit 1; }
	echo 'sha256:1d1d ["registry.example.com/engine@sha256:d16e57"]' ;;
version) echo 28.2.2 ;;
pull)
	echo "Pulling from engine"
	[ ! -f $S/nopull ] || { echo "Error response from daemon: manifest unknown" >&2; exit 1; }
	touch $S/image ;;
create)
	[ ! -f $S/nocreate ] || { echo "Error response from daemon: could not select device driver" >&2; echo "Run 'docker create --help' for more information" >&2; exit 125; }
	env > $S/env
	for w in "$@"; do printf '%s\n' "$w"; done > $S/words
	touch $S/there; echo 4711 ;;
start)
	while read w; do case "$w" in 127.0.0.1:*:*) p=${w#127.0.0.1:}; p=${p%:*} ;; esac; done < $S/words
	( TOKGATE_TEST_CHILD=$MODE "$SELF" in-container --port $p & echo $! > $S/pid; wait $!; echo $? > $S/code; mv $S/code $S/exit ) > $S/log 2>&1 &
	while tested && [ ! -s $S/pid ]; do sleep 0.01; done
	echo started ;;
logs)
	exec 3< $S/log
	while tested; do cat <&3; [ -f $S/exit ] && { cat <&3; exit; }; sleep 0.02; done ;;
wait) died; cat $S/exit ;;
container)
	[ -f $S/there ] || { echo "Error response from daemon: No such container: x" >&2; exit 1; }
	code=0; running=true; oom=false
	[ -f $S/exit ] && { code=$(cat $S/exit); running=false; }
	[ -f $S/oom ] && oom=true
	case "$4" in
	*Ports*) cat $S/ports 2>/dev/null || { while read w; do case "$w" in 127.0.0.1:*:*) p=${w#127.0.0.1:} ;; esac; done < $S/words; echo "{\"${p#*:}/tcp\":[{\"HostIp\":\"127.0.0.1\",\"HostPort\":\"${p%:*}\"}]}"; } ;;
	*State*) echo "{\"Running\":$running,\"OOMKilled\":$oom,\"ExitCode\":$code,\"StartedAt\":\"$(cat $S/since 2>/dev/null)\"}" ;;
	*) echo 4711 ;;
	esac ;;
stop) kill -TERM $(cat $S/pid); died ;;
rm)
	[ -f $S/there ] || { echo "Error response from daemon: No such container: x" >&2; exit 1; }
	[ -f $S/pid ] && { kill -KILL $(cat $S/pid) 2>/dev/null; died; }
	rm -f $S/there ;;
ps) cat $S/ps 2>/dev/null ;;
esac
exit 0
`

// dock is a script in place of docker. dir is the folder for the script's files.
type dock struct{ dir string }

func newDock(t *testing.T, mode string) dock {
	t.Helper()
	self := must.Get(os.Executable())(t)
	d := dock{t.TempDir()}
	path := bin(t)
	for _, tool := range []string{"mv"} {
		_ = os.Symlink("/bin/"+tool, filepath.Join(path, tool))
	}
	script(t, path, "docker", strings.NewReplacer("DIR", d.dir, "SELFPATH", self, "MODEWORD", mode).Replace(docker))
	return d
}

func (d dock) put(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

func (d dock) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(d.dir, name))
	return string(raw)
}

func (d dock) has(name string) bool {
	_, err := os.Stat(filepath.Join(d.dir, name))
	return err == nil
}

func containerServer() *plan.Server {
	return &plan.Server{
		Name: "vllm", Engine: "vllm", Model: "tokgate-sim", Ready: plan.Ready{Timeout: time.Minute},
		Flags: []plan.Flag{{Name: "max-num-seqs", Value: cty.NumberIntVal(64)}},
		Container: &plan.Container{
			Image: "registry.example.com/engine:v1", Pull: plan.PullMissing, Inside: 8000, SharedMem: "16g",
			Env: map[string]string{"HF_TOKEN": "sk-verysecret", "HOME": "/root"},
		},
	}
}

func TestContainer(t *testing.T) {
	d := newDock(t, "serve")
	l := childLauncher(t)
	var states []string
	target := must.Get(l.Launch(t.Context(), containerServer(), func(s string) { states = append(states, s) }))(t)
	if !slices.ContainsFunc(states, func(s string) bool { return s == "pulling registry.example.com/engine:v1: Pulling from engine" }) {
		t.Errorf("states %q tell nothing of the pull", states)
	}
	for key, want := range map[string]string{
		"image": "registry.example.com/engine:v1", "image_digest": "sha256:d16e57", "runtime": "docker 28.2.2",
		"gpu": "none", "flags": "--max-num-seqs 64", "admission_cap": "64",
	} {
		must.Same(t, key, want, target.Fingerprint[key])
	}
	words := strings.Split(strings.TrimSpace(d.read("words")), "\n")
	must.Same(t, "", []string{
		"create", "--name", "tokgate-…", "--label", "tokgate.run=" + l.Holder.Run, "--label", "tokgate.plan=test.hcl",
		"--label", "tokgate.server=vllm", "--label", fmt.Sprintf("tokgate.pid=%d", os.Getpid()), "--label", "tokgate.pid-start=" + startOf(os.Getpid()),
		"--label", "tokgate.started=now", "--label", "tokgate.port=…", "--publish", "127.0.0.1:…:8000",
		"--log-driver", "local", "--log-opt", "max-size=16m", "--shm-size", "16g",
		"--env", "HF_TOKEN", "--env", "HOME=/root", "--env", "VLLM_SERVER_DEV_MODE", "--entrypoint", "vllm",
		"registry.example.com/engine:v1", "serve", "tokgate-sim", "--host", "0.0.0.0", "--port", "8000", "--max-num-seqs", "64",
	}, vague(words))
	if strings.Contains(d.read("calls"), "verysecret") || !strings.Contains(d.read("env"), "HF_TOKEN=sk-verysecret\n") {
		t.Error("a secret is on a command line, or not in the environment")
	}
	logged(t, l, target, "args in-container --port ")
	err := target.Check(t.Context())
	must.Hold(t, err == nil, "%v", err)
	d.put(t, "since", "2026-11-21T20:00:00Z") // the container reports a start time from here on
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if d.has("there") || !strings.Contains(d.read("calls"), "stop --time") || !strings.Contains(d.read("calls"), "rm --force --volumes tokgate-test-") {
		t.Errorf("it was not removed:\n%s", d.read("calls"))
	}
	nothingHeld(t, l)
}

// vague replaces the parts of a command that are different in every run.
func vague(words []string) []string {
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "tokgate-test-"):
			words[i] = "tokgate-…"
		case strings.HasPrefix(w, "tokgate.port="):
			words[i] = "tokgate.port=…"
		case strings.HasPrefix(w, "127.0.0.1:"):
			words[i] = "127.0.0.1:…" + w[strings.LastIndex(w, ":"):]
		}
	}
	return words
}

func nothingHeld(t *testing.T, l *Launcher) {
	t.Helper()
	entries, err := os.ReadDir(string(l.State))
	must.Need(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".start") {
			continue // a .start file holds nothing: it records how long a start took
		}
		t.Errorf("%s is still held", e.Name())
	}
}

func TestContainerFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mode   string
		files  []string // files of the stand-in
		change func(*plan.Server)
		want   []string // text that the error or the log must contain
	}{
		{"it dies", "die", nil, nil, []string{"the server's container ended by itself: exit status 3", "it ran out of memory: CUDA error: out of memory", "args in-container"}},
		{"it takes too much memory", "die", []string{"oom"}, nil, []string{"exit status 3, killed because it used more memory than allowed"}},
		{"never ready", "sleep", nil, func(s *plan.Server) { s.Ready.Timeout = 500 * time.Millisecond }, []string{"was not ready after 500ms"}},
		{"no such image", "serve", []string{"nopull"}, nil, []string{"docker pull registry.example.com/engine:v1: Pulling from engine; Error response from daemon: manifest unknown"}},
		{"it may not be pulled", "serve", nil, func(s *plan.Server) { s.Container.Pull = plan.PullNever }, []string{`is not on this machine, and pull = "never"`}},
		{"no GPUs in containers", "serve", []string{"nocreate"}, nil, []string{"docker create: Error response from daemon: could not select device driver"}},
		{"no such runtime", "serve", nil, func(s *plan.Server) { s.Container.Runtime = "podman" }, []string{"podman is not on the PATH"}},
		{"a secret would steer docker", "serve", nil, func(s *plan.Server) { s.Container.Env["DOCKER_HOST"] = "x-sk-verysecret" }, []string{"env DOCKER_HOST holds a secret"}},
		{"not the model", "serve", nil, func(s *plan.Server) { s.Expect = map[string]string{"image_digest": "sha256:beef"} }, []string{`image_digest = "sha256:beef" was expected, but "sha256:d16e57" was found`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDock(t, tt.mode)
			for _, f := range tt.files {
				d.put(t, f, "")
			}
			s := containerServer()
			if tt.change != nil {
				tt.change(s)
			}
			l := childLauncher(t)
			_, err := l.Launch(t.Context(), s, func(string) {})
			must.Need(t, err != nil, "no error")
			text := err.Error()
			if e, ok := errors.AsType[*exec.ServerError](err); ok {
				text += e.Log
			}
			for _, want := range tt.want {
				must.Hold(t, strings.Contains(text, want), "error %q, want %q in it", text, want)
			}
			must.Hold(t, !d.has("there"), "the container is still there")
			nothingHeld(t, l)
		})
	}
}

func TestContainerEndsUnderWay(t *testing.T) {
	d := newDock(t, "serve")
	l := childLauncher(t)
	target := must.Get(l.Launch(t.Context(), containerServer(), func(string) {}))(t)
	d.put(t, "oom", "")
	kill9(t, strings.TrimSpace(d.read("pid")))
	eventually(t, l, func() bool { return target.Err() != nil })
	must.Same(t, "error", "the server's container ended by itself: exit status 137, killed because it used more memory than allowed", target.Err().Error())
	err := target.Close()
	must.Hold(t, err == nil, "%v", err)
}

func TestContainerIsRestarted(t *testing.T) {
	d := newDock(t, "serve")
	d.put(t, "since", "20:00")
	target := must.Get(childLauncher(t).Launch(t.Context(), containerServer(), func(string) {}))(t)
	defer target.Close()
	d.put(t, "since", "20:07")
	err := target.Check(t.Context())
	must.Hold(t, err != nil && strings.Contains(err.Error(), "restarted under the load"), "a restarted container gave %v", err)
}

// A container that ignores the stop signal is killed.
func TestStubbornContainer(t *testing.T) {
	d := newDock(t, "stubborn")
	l := childLauncher(t)
	target := must.Get(l.Launch(t.Context(), containerServer(), func(string) {}))(t)
	grandchild := logged(t, l, target, "grandchild ")
	err := target.Close()
	must.Hold(t, err == nil, "%v", err)
	must.Hold(t, !d.has("there"), "the container is still there")
	kill9(t, grandchild) // end the process that the stand-in for docker leaves behind
}

func TestCreate(t *testing.T) {
	h100 := []gpu.GPU{{ID: "0", Vendor: "nvidia"}, {ID: "2", Vendor: "nvidia"}}
	for _, tt := range []struct {
		name    string
		runtime string
		gpus    []gpu.GPU
		change  func(*plan.Container)
		want    string // a part of the command's words
	}{
		{"docker's GPUs", "docker", h100, nil, `--gpus "device=0,2" `},
		{"podman's GPUs", "podman", h100, nil, `--device nvidia.com/gpu=0 --device nvidia.com/gpu=2 `},
		{"AMD's", "docker", []gpu.GPU{{ID: "1", Vendor: "amd"}}, nil, "--device /dev/kfd --device /dev/dri --group-add video --security-opt seccomp=unconfined --env CUDA_VISIBLE_DEVICES --env HF_TOKEN --env HIP_VISIBLE_DEVICES "},
		{"podman's log", "podman", nil, nil, "--log-driver k8s-file --log-opt max-size=16m"},
		{"another log", "docker", nil, func(c *plan.Container) { c.Options = []string{"--log-driver=none"} }, "--publish 127.0.0.1:9000:8000 --shm-size 16g"},
		{"the host's network", "docker", nil, func(c *plan.Container) { c.Network, c.Inside = "host", 0 }, "--host 127.0.0.1 --port 9000"},
		{"another network", "docker", nil, func(c *plan.Container) { c.Network = "ci" }, "--publish 127.0.0.1:9000:8000 --network ci"},
		{"user, volumes, options", "docker", nil, func(c *plan.Container) {
			c.User, c.Volumes, c.Options = "1000", []string{"/a:/b:ro", "name:/c"}, []string{"--ipc", "host"}
		}, "--user 1000 --volume /a:/b:ro --volume name:/c --env HF_TOKEN --env HOME=/root --env VLLM_SERVER_DEV_MODE --entrypoint vllm --ipc host registry.example.com/engine:v1 serve"},
		{"a command of its own", "docker", nil, func(c *plan.Container) { c.Command = []string{"--listen", "{port}"} }, "registry.example.com/engine:v1 --listen 8000 --max-num-seqs 64"},
	} {
		s := containerServer()
		if tt.change != nil {
			tt.change(s.Container)
		}
		l := New(Options{Redact: []string{"sk-verysecret"}})
		words, env, err := l.create(&cli{name: tt.runtime}, s, &held{port: 9000, gpus: tt.gpus}, "x")
		must.Hold(t, err == nil && strings.Contains(strings.Join(words, " "), tt.want), "%s: %q, %v; want %s", tt.name, words, err, tt.want)
		must.Hold(t, slices.Contains(env, "HF_TOKEN=sk-verysecret"), "%s: environment %q", tt.name, env)
	}
}

func TestDigest(t *testing.T) {
	for _, tt := range []struct {
		image image
		name  string
		want  string
	}{
		{image{"sha256:1d", []string{"b@sha256:bb", "a/x@sha256:aa"}}, "a/x:v1", "sha256:aa"},
		{image{"sha256:1d", []string{"docker.io/vllm/vllm-openai@sha256:aa"}}, "vllm/vllm-openai@sha256:aa", "sha256:aa"},
		{image{"sha256:1d", []string{"localhost:5000/x@sha256:aa"}}, "localhost:5000/x", "sha256:aa"},
		{image{"sha256:1d", []string{"other@sha256:aa"}}, "x", "sha256:aa"},
		{image{"sha256:1d", nil}, "x", "sha256:1d"}, // without a digest, the id counts
		{image{"1d", nil}, "x", "sha256:1d"},        // podman leaves out the prefix sha256:
	} {
		must.Same(t, fmt.Sprintf("%+v as %s", tt.image, tt.name), tt.want, tt.image.digest(tt.name))
	}
}

func TestSteers(t *testing.T) {
	for name, want := range map[string]bool{"HF_TOKEN": false, "VLLM_USE_V1": false, "PATH": true, "DOCKER_HOST": true, "https_proxy": true, "HTTP_PROXY": true, "LD_PRELOAD": true} {
		must.Same(t, fmt.Sprintf("steers(%s)", name), want, steers(name))
	}
}

// The file that a killed run leaves behind names its container. Without the file, the container is
// found by its labels.
func TestLeftoverContainer(t *testing.T) {
	for _, noted := range []bool{true, false} {
		d := newDock(t, "serve")
		d.put(t, "image", "")
		d.put(t, "there", "")
		l := childLauncher(t)
		if noted {
			n := must.Get(l.State.Begin(lease.Server{Holder: lease.Holder{Run: "run-1", Plan: "night.hcl", Server: "vllm"}, Container: "tokgate-run-1", Runtime: "docker", Port: 8000}))(t)
			n.Leave()
		} else {
			// The first container belongs to this process, which is alive. The second container
			// belongs to a process that is dead.
			d.put(t, "ps", fmt.Sprintf("tokgate-alive\tr\tp\ts\t%d\t%s\tnow\t1\n", os.Getpid(), startOf(os.Getpid()))+
				"tokgate-run-1\trun-1\tnight.hcl\tvllm\t999999\tboot/1\tyesterday\t8000\n")
		}
		var said []string
		say := func(s string) { said = append(said, s) }
		l.doubt = noted
		_, err := l.Launch(t.Context(), containerServer(), say)
		if !errors.Is(err, errLeftover) || !strings.Contains(err.Error(), "docker container tokgate-run-1 on port 8000, of run run-1 of night.hcl") || !strings.Contains(err.Error(), "--reap") {
			t.Fatalf("noted %v: %v", noted, err)
		}
		must.Hold(t, d.has("there") && !strings.Contains(d.read("calls"), "rm "), "it was removed without being asked to")
		l.doubt, l.Reap = false, !noted // the process id in the label may belong to another machine
		target, err := l.Launch(t.Context(), containerServer(), say)
		must.Do(t, err)
		calls := d.read("calls")
		must.Hold(t, strings.Contains(calls, "rm --force --volumes tokgate-run-1\n") && !strings.Contains(calls, "tokgate-alive"), "calls:\n%s", calls)
		if !slices.ContainsFunc(said, func(s string) bool {
			return strings.Contains(s, "docker container tokgate-run-1") && strings.HasPrefix(s, "removing ")
		}) {
			t.Errorf("said %q", said)
		}
		if err := target.Close(); err != nil {
			t.Error(err)
		}
		nothingHeld(t, l)
	}
}
