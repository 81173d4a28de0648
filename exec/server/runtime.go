package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
)

// tokgate gives these labels to a container. They let a later run find a server that a killed run
// left behind, and spare the containers of live runs.
const (
	labelRun     = "tokgate.run"
	labelPlan    = "tokgate.plan"
	labelServer  = "tokgate.server"
	labelPID     = "tokgate.pid"
	labelStart   = "tokgate.pid-start"
	labelStarted = "tokgate.started"
	labelPort    = "tokgate.port"
)

type cli struct {
	Clock clock.Clock
	name  string // docker, podman or kubectl
	path  string
	env   []string // more of the environment of each call
}

const asked = time.Minute

// If name is "", it looks for docker and then for podman.
func findRuntime(c clock.Clock, name string) (*cli, error) {
	names := []string{"docker", "podman"}
	if name != "" {
		names = []string{name}
	}
	for _, n := range names {
		if path, err := osexec.LookPath(n); err == nil {
			return &cli{Clock: c, name: n, path: path}, nil
		}
	}
	return nil, fmt.Errorf("%s is not on the PATH, so the server cannot be started", strings.Join(names, " or "))
}

// command prepares a call of the container runtime. A Ctrl-C at the terminal does not interrupt the
// call.
func (r *cli) command(ctx context.Context, env []string, words ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(ctx, r.path, words...)
	cmd.Env = slices.Concat(os.Environ(), r.env, env)
	cmd.WaitDelay = reaped
	ownGroup(cmd)
	return cmd
}

// An error has the last words of the runtime.
func (r *cli) run(ctx context.Context, env []string, words ...string) (string, error) {
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, asked)
	defer cancel()
	return clock.Await(ctx, r.Clock, func(ctx context.Context) (string, error) {
		return r.output(ctx, env, words...)
	})
}

// feed is run with a standard input.
func (r *cli) feed(ctx context.Context, in []byte, words ...string) (string, error) {
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, asked)
	defer cancel()
	return clock.Await(ctx, r.Clock, func(ctx context.Context) (string, error) {
		cmd := r.command(ctx, nil, words...)
		cmd.Stdin = bytes.NewReader(in)
		return r.said(ctx, cmd, words[0])
	})
}

// output does the work of run without its time limit, and is safe to call from any goroutine.
func (r *cli) output(ctx context.Context, env []string, words ...string) (string, error) {
	return r.said(ctx, r.command(ctx, env, words...), words[0])
}

func (r *cli) said(ctx context.Context, cmd *osexec.Cmd, call string) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("%s %s: %w", r.name, call, context.Cause(ctx))
		}
		said := strings.TrimSpace(errs.String())
		if said == "" {
			return "", fmt.Errorf("%s %s: %w", r.name, call, err)
		}
		return "", &runtimeError{r.name, call, lastWords(said)}
	}
	return strings.TrimSpace(out.String()), nil
}

// runtimeError is an error with the message of the container runtime.
type runtimeError struct{ runtime, call, said string }

func (e *runtimeError) Error() string { return fmt.Sprintf("%s %s: %s", e.runtime, e.call, e.said) }

// kubectlLog matches a line such as "E1128 15:12:54.777321   31045 memcache.go:265] …".
var kubectlLog = regexp.MustCompile(`^[EIW]\d{4} \d\d:`)

func lastWords(said string) string {
	lines := strings.Split(said, "\n")
	// Remove empty lines, lines in which Docker points to its own help, and what kubectl logs for its authors.
	lines = slices.DeleteFunc(lines, func(s string) bool {
		return strings.TrimSpace(s) == "" || kubectlLog.MatchString(s) || strings.HasPrefix(s, "Run 'docker ") || strings.HasPrefix(s, "See 'docker ")
	})
	return shorten(strings.Join(lines[max(len(lines)-3, 0):], "; "), 600)
}

// absent reports whether the error says that the container or image does not exist.
func absent(err error) bool {
	e, ok := errors.AsType[*runtimeError](err)
	said := ""
	if ok {
		said = strings.ToLower(e.said)
	}
	return strings.Contains(said, "no such") || strings.Contains(said, "no container with name") || strings.Contains(said, "image not known")
}

type image struct {
	ID      string
	Digests []string // repository@digest
}

func (r *cli) image(ctx context.Context, name string) (image, bool, error) {
	out, err := r.run(ctx, nil, "image", "inspect", "--format", "{{.Id}} {{json .RepoDigests}}", name)
	if err != nil {
		if absent(err) {
			return image{}, false, nil
		}
		return image{}, false, err
	}
	i, err := readImage(out)
	if err != nil {
		return i, false, fmt.Errorf("%s image inspect did not write the expected JSON: %w", r.name, err)
	}
	return i, true, nil
}

// readImage reads the output of the runtime about an image: its id, and a JSON list of digests.
func readImage(out string) (i image, err error) {
	id, digests, _ := strings.Cut(out, " ")
	i.ID = id
	return i, json.Unmarshal([]byte(digests), &i.Digests)
}

// digest returns a permanent name of the image. It is the digest in the image's repository, or the
// image's id if there is no digest.
func (i image) digest(name string) string {
	repository := name
	if at := strings.IndexByte(name, '@'); at >= 0 {
		repository = name[:at]
	} else if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		repository = name[:colon]
	}
	best := ""
	for _, d := range i.Digests {
		repo, digest, ok := strings.Cut(d, "@")
		// Docker writes docker.io/library/x as x.
		if ok && (repo == repository || strings.HasSuffix(repo, "/"+repository)) {
			return digest
		}
		if ok && best == "" {
			best = digest
		}
	}
	if best != "" {
		return best
	}
	if i.ID != "" && !strings.Contains(i.ID, ":") {
		return "sha256:" + i.ID
	}
	return i.ID
}

func (r *cli) pull(ctx context.Context, name string, say func(string)) error {
	_, err := clock.Await(ctx, r.Clock, func(ctx context.Context) (struct{}, error) {
		log := &tail{watch: func(line string) {
			if line = strings.TrimSpace(line); line != "" {
				r.Clock.Post(func() { say(line) })
			}
		}}
		cmd := r.command(ctx, nil, "pull", name)
		cmd.Stdout, cmd.Stderr = log, log
		err := cmd.Run()
		log.finish()
		switch {
		case err == nil:
			return struct{}{}, nil
		case ctx.Err() != nil:
			return struct{}{}, context.Cause(ctx)
		}
		return struct{}{}, fmt.Errorf("%s pull %s: %s", r.name, name, lastWords(log.String()))
	})
	return err
}

type containerState struct {
	Running   bool
	OOMKilled bool
	ExitCode  int
	Error     string
	StartedAt string
}

func (r *cli) inspect(ctx context.Context, name string) (s containerState, err error) {
	err = r.inspected(ctx, name, "State", &s)
	return s, err
}

func (r *cli) inspected(ctx context.Context, name, part string, into any) error {
	out, err := r.output(ctx, nil, "container", "inspect", "--format", "{{json ."+part+"}}", name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		return fmt.Errorf("%s inspect did not write the expected JSON: %w", r.name, err)
	}
	return nil
}

type hostPort struct{ HostIP, HostPort string }

// ports returns the ports of a container, such as "8000/tcp", with the addresses that are passed on to
// them.
func (r *cli) ports(ctx context.Context, name string) (ports map[string][]hostPort, err error) {
	err = r.inspected(ctx, name, "NetworkSettings.Ports", &ports)
	return ports, err
}

// published returns an error unless a container's port is reached at the port outside.
func published(ports map[string][]hostPort, inside, outside int, name string) error {
	for _, at := range ports[fmt.Sprintf("%d/tcp", inside)] {
		if at.HostPort == strconv.Itoa(outside) {
			return nil
		}
	}
	return fmt.Errorf("another program answers on port %d: container %s does not publish its port %d there, so this is not the declared server", outside, name, inside)
}

func (r *cli) exists(ctx context.Context, name string) (bool, error) {
	_, err := r.run(ctx, nil, "container", "inspect", "--format", "{{.Id}}", name)
	if absent(err) {
		return false, nil
	}
	return err == nil, err
}

// It returns no error if the container does not exist.
func (r *cli) remove(ctx context.Context, name string) error {
	_, err := r.run(ctx, nil, "rm", "--force", "--volumes", name)
	if absent(err) {
		return nil
	}
	return err
}

// labelled lists containers on this machine that a killed run of tokgate left behind. It knows them
// by their labels.
func (r *cli) labelled(ctx context.Context) ([]lease.Server, error) {
	format := `{{.Names}}`
	for _, label := range []string{labelRun, labelPlan, labelServer, labelPID, labelStart, labelStarted, labelPort} {
		format += "\t" + r.labelTemplate(label)
	}
	out, err := r.run(ctx, nil, "ps", "--all", "--no-trunc", "--filter", "label="+labelRun, "--format", format)
	if err != nil {
		return nil, err
	}
	return r.readLabelled(out), nil
}

func (r *cli) readLabelled(out string) (found []lease.Server) {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 8 {
			continue
		}
		pid, _ := strconv.Atoi(f[4])
		if pid > 0 && f[5] != "" && startOf(pid) == f[5] {
			continue // its tokgate lives
		}
		port, _ := strconv.Atoi(f[7])
		found = append(found, lease.Server{
			Holder:    lease.Holder{Run: f[1], Plan: f[2], Server: f[3], PID: pid, Started: f[6]},
			Container: f[0], Runtime: r.name, Port: port,
		})
	}
	return found
}

func (r *cli) labelTemplate(label string) string {
	if r.name == "podman" {
		return `{{index .Labels "` + label + `"}}`
	}
	return `{{.Label "` + label + `"}}`
}

// absolute makes the path of a volume on the host absolute. Without this, the runtime would take a
// relative path for the name of a volume.
func absolute(volume string) string {
	source, rest, ok := strings.Cut(volume, ":")
	if !ok || !strings.HasPrefix(source, ".") {
		return volume
	}
	if abs, err := filepath.Abs(source); err == nil {
		source = abs
	}
	return source + ":" + rest
}
