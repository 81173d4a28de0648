package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/gpu"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

type container struct {
	runtime  *cli
	Clock    clock.Clock
	name     string
	network  string // of the plan
	inside   int    // port that the server listens on in the container
	port     int    // port of this machine that is passed on to it
	log      *tail
	died     []string      // words in the container's log that report its end; see engine.Engine
	follower *osexec.Cmd   // passes the log on; nil if it could not be started
	followed chan struct{} // closed when the whole log has been read
	exited   chan struct{} // closed when the container has ended or can no longer be watched
	state    containerState
	err      error // why the container can no longer be watched; valid after exited is closed
	grace    func() time.Duration
	closing  bool // tokgate has asked the container to stop
	stop     context.CancelFunc
}

// It adds facts about the image to found. If it returns a container and an error, the caller must
// end the container.
func (l *Launcher) container(
	ctx context.Context, s *plan.Server, h *held, log *tail, found metric.Fingerprint, state func(string),
) (running, error) {
	r, err := findRuntime(l.Clock, s.Container.Runtime)
	if err != nil {
		return nil, err
	}
	begun := l.Clock.Now()
	pulled, err := l.fetch(ctx, r, s.Container, found, state)
	if err != nil {
		return nil, err
	}
	if pulled {
		h.pulled = l.Clock.Now() - begun
	}
	if version, err := r.run(ctx, nil, "version", "--format", "{{.Client.Version}}"); err == nil {
		found["runtime"] = r.name + " " + version
	}
	c := &container{
		runtime: r, Clock: l.Clock, log: log, died: engine.Of(s.Engine).Died, grace: l.patience,
		name: containerName(l.Holder.Run, s.Address(), h.port), network: s.Container.Network, inside: s.Container.Inside, port: h.port,
		followed: make(chan struct{}), exited: make(chan struct{}), stop: func() {},
	}
	words, env, err := l.create(r, s, h, c.name)
	if err != nil {
		return nil, err
	}
	// Write the note before the container exists, so that a later run can remove the container.
	h.server.Container, h.server.Runtime = c.name, r.name
	if err := h.update(); err != nil {
		return nil, fmt.Errorf("could not note the server: %w", err)
	}
	close(c.followed)
	if _, err := r.run(ctx, env, words...); err != nil {
		return c, err
	}
	if _, err := r.run(ctx, nil, "start", c.name); err != nil {
		return c, err
	}
	state(fmt.Sprintf("started %s in container %s on port %d", s.Container.Image, c.name, h.port))
	c.follow()
	return c, nil
}

func (l *Launcher) fetch(
	ctx context.Context, r *cli, c *plan.Container, found metric.Fingerprint, state func(string),
) (pulled bool, err error) {
	img, there, err := r.image(ctx, c.Image)
	if err != nil {
		return pulled, err
	}
	switch {
	case c.Pull == plan.PullNever && !there:
		return pulled, fmt.Errorf("image %s is not on this machine, and pull = \"never\"", c.Image)
	case c.Pull == plan.PullAlways || c.Pull != plan.PullNever && !there:
		pulled = true
		state("pulling " + c.Image)
		told := func(line string) { state("pulling " + c.Image + ": " + l.redactor.Text(shorten(line, lastSize))) }
		if err := r.pull(ctx, c.Image, told); err != nil {
			return pulled, err
		}
		if img, there, err = r.image(ctx, c.Image); err != nil {
			return pulled, err
		} else if !there {
			return pulled, fmt.Errorf("image %s was pulled but is not there", c.Image)
		}
	}
	found["image"] = c.Image
	if d := img.digest(c.Image); d != "" {
		found["image_digest"] = d
	}
	return pulled, nil
}

func containerName(run, address string, port int) string {
	safe := strings.TrimSuffix(strings.TrimPrefix(logName(address), "server-"), ".log")
	return strings.Trim(fmt.Sprintf("tokgate-%s-%s-%d", strings.ToLower(run), safe, port), "-.")
}

// create returns the command that creates the container, and the environment of that command. The
// command names environment variables without their values, because any user may list commands.
func (l *Launcher) create(r *cli, s *plan.Server, h *held, name string) (words, env []string, err error) {
	c := s.Container
	words = []string{"create", "--name", name}
	for _, label := range [][2]string{
		{labelRun, l.Holder.Run}, {labelPlan, l.Holder.Plan}, {labelServer, s.Address()}, {labelPID, strconv.Itoa(os.Getpid())},
		{labelStart, startOf(os.Getpid())}, {labelStarted, l.Holder.Started}, {labelPort, strconv.Itoa(h.port)},
	} {
		words = append(words, "--label", label[0]+"="+label[1])
	}
	host, inside := "0.0.0.0", c.Inside
	if c.Network == "host" {
		host, inside = "127.0.0.1", h.port
	} else {
		words = append(words, "--publish", fmt.Sprintf("127.0.0.1:%d:%d", h.port, inside))
	}
	if c.Network != "" {
		words = append(words, "--network", c.Network)
	}
	if !slices.ContainsFunc(c.Options, func(o string) bool { return strings.HasPrefix(o, "--log-") }) {
		driver := map[string]string{"docker": "local", "podman": "k8s-file"}[r.name]
		// Both log drivers, local and k8s-file, drop the oldest lines before the disk is full.
		words = append(words, "--log-driver", driver, "--log-opt", "max-size=16m")
	}
	if c.SharedMem != "" {
		words = append(words, "--shm-size", c.SharedMem)
	}
	if c.User != "" {
		words = append(words, "--user", c.User)
	}
	for _, v := range c.Volumes {
		words = append(words, "--volume", absolute(v))
	}
	all := maps.Clone(engine.Of(s.Engine).Launch.Env)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, c.Env)
	gpus, more := r.gpus(h.gpus)
	words = append(words, gpus...)
	maps.Copy(all, more)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if !steers(name) {
			words, env = append(words, "--env", name), append(env, name+"="+value)
			continue
		}
		if l.redactor.Text(value) != value {
			return nil, nil, fmt.Errorf("env %s holds a secret, and in the environment of %s itself it would have another meaning: give it another name", name, r.name)
		}
		words = append(words, "--env", name+"="+value)
	}
	if entry := s.Entrypoint(); entry != "" {
		words = append(words, "--entrypoint", entry)
	}
	words = append(words, c.Options...)
	words = append(words, c.Image)
	return append(words, s.Launch(host, strconv.Itoa(inside))...), env, nil
}

// steers reports whether an environment variable affects the command of the container runtime
// itself. Such a variable cannot be passed on to the container through the command's environment.
func steers(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "TMPDIR", "LANG", "TERM", "SSH_AUTH_SOCK", "GODEBUG":
		return true
	}
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"DOCKER_", "BUILDKIT_", "PODMAN_", "CONTAINER_", "CONTAINERS_", "XDG_", "LD_", "DYLD_", "LC_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return strings.HasSuffix(upper, "_PROXY")
}

func (r *cli) gpus(gpus []gpu.GPU) (words []string, env map[string]string) {
	if len(gpus) == 0 {
		return nil, nil
	}
	switch {
	case gpus[0].Vendor == "amd":
		// All GPUs share the kernel's devices, so environment variables choose the container's
		// GPUs.
		return []string{"--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video", "--security-opt", "seccomp=unconfined"}, gpu.Confine(gpus)
	case r.name == "podman":
		for _, id := range gpu.IDs(gpus) {
			words = append(words, "--device", "nvidia.com/gpu="+id)
		}
		return words, nil
	}
	// The quotes keep the comma-separated list of GPUs in one field.
	return []string{"--gpus", `"device=` + strings.Join(gpu.IDs(gpus), ",") + `"`}, nil
}

func (c *container) follow() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.followed = make(chan struct{})
	c.follower = c.runtime.command(ctx, nil, "logs", "--follow", c.name)
	c.follower.Stdout, c.follower.Stderr = c.log, c.log
	go func() {
		defer close(c.followed)
		// Ignore the error: a server may be measured even if its log cannot be read.
		_ = c.follower.Run()
	}()
	go func() {
		defer close(c.exited)
		_, err := c.runtime.output(ctx, nil, "wait", c.name)
		if ctx.Err() != nil {
			return
		}
		state, inspectErr := c.runtime.inspect(ctx, c.name)
		switch {
		case inspectErr != nil && err == nil:
			err = inspectErr
		case inspectErr == nil && !state.Running:
			err = nil
		}
		c.state, c.err = state, err
	}()
}

func (c *container) ended() bool { return closed(c.exited) }

func (c *container) gone() error {
	if c.closing || !c.ended() {
		return nil
	}
	// The rest of the log may come a moment later.
	within(c.Clock, constant(reaped), c.read)
	log := c.log.String()
	if c.err != nil {
		return &exec.ServerError{Err: fmt.Errorf("container %s can no longer be followed: %w", c.name, c.err), Log: log}
	}
	how := fmt.Sprintf("exit status %d", c.state.ExitCode)
	if c.state.Error != "" {
		how += ": " + c.state.Error
	}
	if c.state.OOMKilled {
		how += ", killed because it used more memory than allowed"
	}
	return endOf("the server's container ended by itself: "+how, log, c.died)
}

func (c *container) read() bool { return closed(c.followed) }

func (c *container) instance(ctx context.Context) string {
	state, err := c.runtime.inspect(ctx, c.name)
	if err != nil {
		return ""
	}
	return state.StartedAt
}

// listens implements running. The port must be the container's in the runtime's own list.
func (c *container) listens(ctx context.Context) (fact string, err error) {
	if c.network == "host" {
		return "not known: the container shares the network of this machine", nil
	}
	ports, err := c.runtime.ports(ctx, c.name)
	if err != nil {
		return "not known: " + err.Error(), nil
	}
	return "", published(ports, c.inside, c.port, c.name)
}

// settled does nothing, because a container that restarts counts as ended.
func (c *container) settled() {}

func (c *container) end() error {
	if c.closing {
		return nil
	}
	c.closing = true
	if c.follower != nil && !c.ended() {
		// The command stop kills the container after a fixed time. But the grace period may change
		// during the wait, so the code below ends the wait itself.
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		seconds := strconv.Itoa(int(c.grace().Round(time.Second).Seconds()))
		go func() {
			defer close(stopped)
			_, _ = c.runtime.output(ctx, nil, "stop", "--time", seconds, c.name)
		}()
		within(c.Clock, c.grace, c.ended)
		cancel()
		<-stopped
	}
	err := c.runtime.remove(context.Background(), c.name)
	within(c.Clock, constant(reaped), func() bool { return c.follower == nil || c.read() && c.ended() })
	c.stop()
	if c.follower != nil {
		<-c.followed
		<-c.exited
	}
	if err != nil {
		return fmt.Errorf("container %s could not be removed: %w", c.name, err)
	}
	return nil
}
