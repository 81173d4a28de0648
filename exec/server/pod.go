package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// pod is a server in a pod of a cluster. It is followed by kubectl, and reached by its address or, from
// outside the cluster, by a forwarded port.
type pod struct {
	*Launcher
	kube      *kubectl
	name      string
	container string // of the server
	inside    int    // port of the server in the pod
	port      int    // port of this machine that is passed on to it; 0 if tokgate is in the cluster
	log       *tail
	died      []string // see engine.Engine
	ctx       context.Context
	stop      context.CancelFunc
	followed  chan struct{} // closed when the log was read to its end, or could not be
	served    bool          // the server is ready
	cut       error         // why no request reaches the pod any more
	reread    bool          // the log was read once more
	closing   bool

	mu        sync.Mutex
	last      podObject // as the cluster told it last
	deleted   bool      // the cluster said that the pod is no longer there
	forwarder int       // process that passes the port on
	blind     error     // why the pod can no longer be watched
}

// podLife is how long a pod may live whose run has no budget.
const podLife = 6 * time.Hour

// podRun is the label with the run of a pod.
const podRun = "tokgate.dev/run"

// pod starts a server in a pod, and waits until its container runs. If it returns a pod and an error, the
// caller must end the pod.
func (l *Launcher) pod(
	ctx context.Context, s *plan.Server, h *held, log *tail, found metric.Fingerprint, state func(string),
) (running, error) {
	kube, err := findKubectl(l.Clock, s.Pod.Namespace, h.server.Mark)
	if err != nil {
		return nil, err
	}
	if kube.namespace == "" {
		kube.namespace, _ = plan.Under(s.Pod.Template, "metadata")["namespace"].(string)
	}
	kube.namespace = cmp.Or(kube.namespace, kube.ownNamespace(ctx))
	if err := kube.allows(ctx, podRights(inCluster())); err != nil {
		return nil, err
	}
	l.pods++
	p := &pod{Launcher: l, kube: kube, inside: s.Pod.Inside, log: log, died: engine.Of(s.Engine).Died, followed: make(chan struct{}),
		name: podName(l.Holder.Run, s.Address(), l.pods)}
	close(p.followed)
	p.ctx, p.stop = context.WithCancel(context.Background())
	manifest, won, err := l.manifest(s, p, kube.owner(ctx))
	if err != nil {
		return nil, err
	}
	// Write the note before the pod exists, so that a later run can remove the pod.
	h.server.Container, h.server.Runtime, h.server.Namespace, h.server.Cluster = p.name, kubernetes, kube.namespace, kube.cluster(ctx)
	if err := h.update(); err != nil {
		return nil, fmt.Errorf("could not note the server: %w", err)
	}
	created, err := kube.create(ctx, manifest)
	if err == nil {
		err = kube.read(created, &p.last)
	}
	if err != nil {
		return p, err
	}
	state(fmt.Sprintf("created pod %s in namespace %s", p.name, kube.namespace))
	own := p.last // before others write it
	p.watch(0)
	p.beat()
	if err := l.endDeadPods(ctx, kube, &own, state); err != nil {
		return p, err
	}
	if err := p.starts(ctx, s.Ready.Timeout, state); err != nil {
		return p, err
	}
	p.follow()
	o := p.now()
	events, _ := kube.events(ctx, &o) // without the right to list them, the pull counts as a part of the start
	h.pulled = events.pull(p.container)
	found["image"], found["node"] = s.Pod.Image, o.Spec.NodeName
	put(found, "image_digest", o.digest(p.container))
	put(found, "template", won)
	if !inCluster() {
		found["reached"] = "kubectl port-forward, which adds latency"
		return p, p.passOn(s, h)
	}
	h.url = "http://" + net.JoinHostPort(o.Status.PodIP, strconv.Itoa(p.inside))
	return p, nil
}

// passOn takes a port of this machine, and passes it on to the pod.
func (p *pod) passOn(s *plan.Server, h *held) error {
	if err := p.takePort(h, s); err != nil {
		return err
	}
	p.port, h.url = h.port, local(h.port)
	p.forward()
	return nil
}

func podName(run, address string, n int) string {
	safe := strings.TrimSuffix(strings.TrimPrefix(logName(address), "server-"), ".log")
	safe = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(safe)), "-")
	return fmt.Sprintf("tokgate-%s-%s-%d", strings.ToLower(run), safe[:min(len(safe), 20)], n)
}

// endDeadPods removes the pods that killed runs left in the namespace: those whose note or owner says so,
// and those that nobody touched for two minutes. own is a pod that was created now.
func (l *Launcher) endDeadPods(ctx context.Context, kube *kubectl, own *podObject, state func(string)) error {
	var list struct{ Items []*podObject }
	if err := kube.get(ctx, &list, "pods", "--selector", podRun, "--show-managed-fields"); err != nil {
		return err
	}
	for _, o := range list.Items {
		run := o.Metadata.Labels[podRun]
		if run == l.Holder.Run || !l.Reap && !l.dead[run] && !o.silent(own.Metadata.CreationTimestamp) && !kube.orphan(ctx, o) {
			continue
		}
		state(fmt.Sprintf("removing pod %s, which run %s left behind", o.Metadata.Name, run))
		if err := l.removed(ctx, kube, o.Metadata.Name); err != nil {
			return fmt.Errorf("could not remove pod %s, which a killed run left behind: %w", o.Metadata.Name, err)
		}
	}
	return nil
}

// podRuns reports whether the pod in a note is there, or what may still create it.
func (l *Launcher) podRuns(ctx context.Context, o leftover) (bool, error) {
	if !l.doubt {
		l.dead[o.Holder.Run] = true
	}
	if len(family(0, o.Mark)) > 0 {
		return true, nil
	}
	kube, err := findKubectl(l.Clock, o.Namespace, "")
	if err != nil {
		return false, err
	}
	if now := kube.cluster(ctx); o.Cluster != "" && now != o.Cluster {
		return true, nil
	}
	return kube.exists(ctx, o.Container)
}

func (l *Launcher) removePod(ctx context.Context, o leftover) error {
	if !killAll(l.Clock, 0, o.Mark) {
		return errors.New("its kubectl did not end")
	}
	kube, err := findKubectl(l.Clock, o.Namespace, "")
	if err != nil {
		return err
	}
	if now := kube.cluster(ctx); o.Cluster != "" && now != o.Cluster {
		return beyond(fmt.Sprintf("it is in the cluster %s, and kubectl speaks to %s. Run with the other KUBECONFIG, or with --reap to forget it", o.Cluster, cmp.Or(now, "none")))
	}
	return l.removed(ctx, kube, o.Container)
}

func (l *Launcher) removed(ctx context.Context, kube *kubectl, name string) error {
	_, err := clock.Await(ctx, l.Clock, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, kube.remove(ctx, name, leftoverGrace)
	})
	return err
}

// lookEvents is how often the events of a pod are read while it waits on its node.
const lookEvents = 10 * time.Second

// starts waits until the container of the server runs. A node must be found in time, and the pod's volumes and
// network be made there. Pulls and init containers have no limit but the pod's life.
func (p *pod) starts(ctx context.Context, patience time.Duration, state func(string)) error {
	since, looked := p.Clock.Now(), time.Duration(0)
	placed, made := false, false // it has a node; and its volumes and network there
	warning := ""
	for {
		o := p.now()
		if o.runs(p.container) {
			return nil
		}
		if err := p.gone(); err != nil {
			return err
		}
		now := p.Clock.Now()
		if o.Spec.NodeName != "" && !placed {
			placed, since, looked = true, now, now
		}
		late := now-since > patience
		if made = made || o.made(); placed && !made && (late || now-looked >= lookEvents) {
			looked = now
			events, err := p.kube.events(ctx, &o)
			made, warning = events.images(), events.warning()
			if err != nil {
				warning = "its events say why, but " + err.Error()
			}
		}
		what, hopeless := o.waiting()
		switch {
		case hopeless:
			return fmt.Errorf("pod %s does not start: %s", p.name, what)
		case late && !placed:
			return fmt.Errorf("pod %s got no node within %v: %s", p.name, patience, what)
		case late && !made:
			return fmt.Errorf("pod %s got no volumes and network on node %s within %v: %s", p.name, o.Spec.NodeName, patience, cmp.Or(warning, what))
		case !made && warning != "":
			what = warning
		}
		state(fmt.Sprintf("pod %s: %s", p.name, what))
		if err := clock.Sleep(ctx, p.Clock, again); err != nil {
			return err
		}
	}
}

func (p *pod) now() podObject {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// watchTries is how often in a row a pod may fail to be watched.
const watchTries = 8

// watch follows the pod's state. A watch may end at any time, and is then begun again.
func (p *pod) watch(failed int) {
	cmd := p.kube.command(p.ctx, nil, p.kube.words("get", "pod", p.name, "--output", "json", "--watch", "--output-watch-events")...)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	go func() {
		seen := false
		if err == nil {
			for lines := json.NewDecoder(pipe); ; seen = true {
				var e struct {
					Type   string
					Object podObject
				}
				if lines.Decode(&e) != nil {
					break
				}
				p.mu.Lock()
				p.last, p.deleted = e.Object, e.Type == "DELETED"
				p.mu.Unlock()
			}
			err = cmd.Wait()
		}
		p.Clock.Post(func() { p.rewatch(seen, failed, err) })
	}()
}

func (p *pod) rewatch(seen bool, failed int, err error) {
	if seen {
		failed = 0
	}
	p.mu.Lock()
	over := p.closing || p.deleted || p.ctx.Err() != nil
	if !over && failed >= watchTries {
		over, p.blind = true, cmp.Or(err, fmt.Errorf("kubectl get --watch ended"))
	}
	p.mu.Unlock()
	if !over {
		p.Clock.Timer(p.Clock.Now()+min(again<<failed, silence/8), func() { p.watch(failed + 1) })
	}
}

// beat shows the cluster that the run lives.
func (p *pod) beat() {
	p.Clock.Timer(p.Clock.Now()+beat, func() {
		if p.closing {
			return
		}
		at := strconv.Itoa(int(p.Clock.Now().Seconds()))
		// A beat that is missed is harmless, unless all of two minutes are.
		go func() {
			_, _ = p.kube.output(p.ctx, nil, p.kube.words("annotate", "pod", p.name, "--overwrite", heartbeat+"="+at)...)
		}()
		p.beat()
	})
}

func (p *pod) follow() {
	p.followed = make(chan struct{})
	cmd := p.kube.command(p.ctx, nil, p.kube.words("logs", p.name, "--container", p.container, "--follow")...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	go func() {
		defer close(p.followed)
		_ = cmd.Run() // what is missing then is read at the end
	}()
}

// forward passes a port of this machine on to the pod. kubectl ends it when a connection fails, which is
// usual until the server listens.
func (p *pod) forward() {
	said := &tail{}
	cmd := p.kube.command(p.ctx, nil, p.kube.words("port-forward", "pod/"+p.name, fmt.Sprintf("%d:%d", p.port, p.inside), "--address", "127.0.0.1")...)
	cmd.Stdout, cmd.Stderr = said, said
	err := cmd.Start()
	if err == nil {
		p.mu.Lock()
		p.forwarder = cmd.Process.Pid
		p.mu.Unlock()
	}
	go func() {
		if err == nil {
			_ = cmd.Wait()
		}
		said.finish()
		p.Clock.Post(func() {
			switch {
			case p.closing:
			case p.served:
				p.cut = fmt.Errorf("kubectl port-forward ended: %s", lastWords(said.String()))
			default:
				p.Clock.Timer(p.Clock.Now()+soon, func() {
					if !p.closing {
						p.forward()
					}
				})
			}
		})
	}()
}

// gone implements running.
func (p *pod) gone() error {
	if p.closing {
		return nil
	}
	p.mu.Lock()
	o, deleted, blind := p.last, p.deleted, p.blind
	p.mu.Unlock()
	how, byItself := o.ended(p.container)
	if how == "" && deleted {
		how = "somebody deleted the pod"
	}
	switch {
	case how != "":
		p.readAgain()
		how = fmt.Sprintf("pod %s ended: %s", p.name, how)
		if byItself {
			return endOf(how, p.log.String(), p.died)
		}
		return &exec.ServerError{Err: errors.New(how), Log: p.log.String()}
	case blind != nil:
		return &exec.ServerError{Err: fmt.Errorf("pod %s can no longer be watched: %w", p.name, blind), Log: p.log.String()}
	case p.cut != nil:
		return &exec.ServerError{Err: p.cut, Log: p.log.String()}
	}
	return nil
}

// readAgain reads the last lines of the log, and adds those that were not followed. A pod that is gone has
// none.
func (p *pod) readAgain() {
	if p.reread {
		return
	}
	p.reread = true
	within(p.Clock, constant(reaped), func() bool { return closed(p.followed) })
	out, err := p.kube.run(p.ctx, nil, p.kube.words("logs", p.name, "--container", p.container, "--tail", "500")...)
	if err != nil {
		return
	}
	lines, last := strings.Split(out, "\n"), p.log.lastLine()
	for i := len(lines) - 1; i >= 0 && last != ""; i-- {
		if shorten(strings.TrimSpace(p.redactor.Text(lines[i])), lastSize) == last {
			lines = lines[i+1:]
			break
		}
	}
	if strings.Join(lines, "") != "" {
		_, _ = fmt.Fprintln(p.log, strings.Join(lines, "\n"))
	}
}

// instance implements running.
func (p *pod) instance(context.Context) string {
	o := p.now()
	if run := o.container(p.container).State.Running; run != nil {
		return o.Metadata.UID + " " + run.StartedAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// listens implements running. Nothing but the pod's containers listens at the pod's address, and nothing but
// kubectl may at a forwarded port.
func (p *pod) listens(context.Context) (fact string, err error) {
	if p.port == 0 {
		return "", nil
	}
	p.mu.Lock()
	forwarder := p.forwarder
	p.mu.Unlock()
	found, err := sockets(p.port, family(forwarder, ""))
	if err != nil {
		return "not known: " + err.Error(), nil
	}
	return whose(p.port, found)
}

// settled implements running.
func (p *pod) settled() { p.served = true }

// end implements running. It waits until the pod is gone, because the next start needs its GPUs.
func (p *pod) end() error {
	if p.closing {
		return nil
	}
	o := p.now()
	if o.Spec.NodeName != "" && (!o.runs(p.container) || closed(p.followed)) {
		p.readAgain()
	}
	p.closing = true
	defer p.stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done, grace := make(chan error, 1), p.patience()
	go func() { done <- p.kube.remove(ctx, p.name, grace) }()
	late := within(p.Clock, func() time.Duration { return o.grace(p.patience()) + reaped }, func() bool { return len(done) > 0 })
	cancel()
	err := <-done
	switch {
	case late:
		return fmt.Errorf("pod %s in namespace %s is still being deleted", p.name, p.kube.namespace)
	case err != nil:
		return fmt.Errorf("pod %s in namespace %s could not be removed: %w", p.name, p.kube.namespace, err)
	}
	return nil
}
