package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A problem does not prevent the measurement. If a source is missing, the Watch holds the reason.
func (r *reached) openWatch(model string) (w *telemetry.Watch, done func()) {
	t := r.server.Telemetry
	w = &telemetry.Watch{Clock: r.Clock, Interval: t.Interval}
	if t.Off {
		w.NoServer, w.NoGPU = "telemetry is off in the plan", "telemetry is off in the plan"
		return w, func() {}
	}
	leave := r.queries(w)
	if len(r.replicas) > 0 {
		w.Replicas = r.pagesBehind()
		stop := r.gpuSource(w, t)
		return w, func() {
			leave()
			stop()
		}
	}
	// A separate client reads the metrics page, so the load's connections stay undisturbed.
	page, path, err := r.pages(t.URL)
	if err != nil {
		w.NoServer = err.Error()
	} else {
		asked := leave
		leave = func() {
			asked()
			page.Close()
		}
		w.Server = telemetry.Fetch(r.Clock, r.reading(page, path, model))
	}
	stop := r.gpuSource(w, t)
	return w, func() {
		leave()
		stop()
	}
}

// reading returns a function that reads a metrics page once.
func (r *reached) reading(from *client.HTTP, path, model string) func(context.Context) (*telemetry.Reading, error) {
	return func(ctx context.Context) (*telemetry.Reading, error) {
		raw, err := from.Text(ctx, path, telemetry.MaxPage)
		if err != nil {
			return nil, fmt.Errorf("its metrics could not be read: %w%s", err, r.pageHint(err))
		}
		reading, err := telemetry.ParsePage(raw, model)
		if err != nil {
			return nil, fmt.Errorf("its page of metrics could not be used: %w%s", err, r.pageHint(err))
		}
		return reading, nil
	}
}

// pagesBehind returns the sources of readings of the replicas.
func (r *reached) pagesBehind() (out []telemetry.Replica) {
	for _, x := range r.replicas {
		source := telemetry.Fetch(r.Clock, r.reading(x.api, r.config.Engine.Pages.Metrics, x.model))
		out = append(out, telemetry.Replica{URL: x.url, Read: func(ctx context.Context, done func(*telemetry.Reading, error)) {
			source(ctx, func(reading *telemetry.Reading, err error) {
				if err == nil {
					x.compare(reading)
				}
				done(reading, err)
			})
		}})
	}
	return out
}

// It adds nothing if the page cannot be read; the reason is reported elsewhere.
func (r *reached) labels(ctx context.Context, to metric.Fingerprint) {
	e := r.config.Engine
	if len(e.Labels) == 0 || r.server.Telemetry.Off || len(r.replicas) > 0 {
		return
	}
	page, err := clock.Await(ctx, r.Clock, func(ctx context.Context) ([]byte, error) {
		return r.api.Text(ctx, e.Pages.Metrics, telemetry.MaxPage)
	})
	if err == nil {
		maps.Copy(to, telemetry.Labels(page, e.Labels))
	}
}

// pages returns a client for a metrics page; "" is the page of the server under test. The client
// sends the server's key and headers only if the page is on the server's host.
func (r *reached) pages(page string) (h *client.HTTP, path string, err error) {
	c, path := r.config, r.config.Engine.Pages.Metrics
	if page != "" {
		path = ""
		c.BaseURL = page
		if !sameHost(page, r.url) {
			c.APIKey, c.Headers, c.Query, c.Certificates, c.RootCAs = "", nil, nil, nil, nil
		}
	}
	c.OnFresh = nil
	h, err = client.New(c)
	return h, path, err
}

func sameHost(a, b string) bool {
	u, err1 := url.Parse(a)
	v, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && u.Scheme == v.Scheme && u.Host == v.Host
}

func (r *reached) pageHint(err error) string {
	hints := r.config.Engine.Hints
	e, _ := errors.AsType[*client.Error](err)
	switch {
	case errors.Is(err, telemetry.ErrNothing) && hints.NoSeries != "":
		return " (" + hints.NoSeries + ")"
	case e != nil && (e.Status == http.StatusNotFound || e.Status == http.StatusNotImplemented) && hints.NoPage != "":
		return " (" + hints.NoPage + ")"
	}
	return ""
}

// If there is no source, it sets w.NoGPU to the reason. stop ends the source.
func (r *reached) gpuSource(w *telemetry.Watch, t plan.Telemetry) (stop func()) {
	stop = func() {}
	gpus := t.GPUs
	if gpus == nil {
		gpus = r.gpus()
	}
	switch {
	case r.gpu != nil:
		w.GPU = r.gpu
		return stop
	case t.DCGM != "":
		page, path, err := r.pages(t.DCGM)
		if err != nil {
			w.NoGPU = err.Error()
			return stop
		}
		w.GPU = telemetry.Fetch(r.Clock, func(ctx context.Context) (*telemetry.Reading, error) {
			raw, err := page.Text(ctx, path, telemetry.MaxPage)
			if err != nil {
				return nil, fmt.Errorf("the DCGM exporter could not be read: %w", err)
			}
			return telemetry.ParseDCGM(raw, gpus)
		})
		return page.Close
	case t.GPUs == nil && !r.server.Local():
		w.NoGPU = "the server was not started by tokgate on this machine, so its GPUs are not known: list them in telemetry { gpus = […] }"
		if r.server.BuiltIn() {
			w.NoGPU = "the built-in server has no GPU"
		}
		return stop
	case gpus != nil && len(gpus) == 0:
		w.NoGPU = "the server has no GPU"
		return stop
	}
	if path, err := osexec.LookPath("nvidia-smi"); err == nil {
		return r.nvidia(w, t, path, gpus)
	}
	if path, err := osexec.LookPath("amd-smi"); err == nil {
		w.GPU = telemetry.AMDSMI(r.Clock, path, gpus)
		if r.countsForeign(t) {
			w.GPU = r.addForeign(func(ctx context.Context) (*telemetry.Reading, error) { return telemetry.ReadAMD(ctx, path, gpus) },
				func(ctx context.Context) ([]int, error) { return telemetry.AMDProcesses(ctx, path, gpus) })
		}
		return stop
	}
	w.NoGPU = "there is no nvidia-smi and no amd-smi on the PATH"
	return stop
}

func (r *reached) nvidia(w *telemetry.Watch, t plan.Telemetry, path string, gpus []string) (stop func()) {
	every := t.Interval
	if every <= 0 {
		every = time.Second
	}
	smi, err := telemetry.StartNvidiaSMI(r.Clock, path, gpus, every, ownGroup)
	if err != nil {
		w.NoGPU = "nvidia-smi could not be started: " + err.Error()
		return func() {}
	}
	w.GPU = smi.Source()
	if r.countsForeign(t) {
		w.GPU = r.addForeign(func(context.Context) (*telemetry.Reading, error) { return smi.Read() },
			func(ctx context.Context) ([]int, error) { return telemetry.ComputeProcesses(ctx, path, gpus) })
	}
	return smi.Close
}

// countsForeign reports whether tokgate counts foreign processes, those of others, on the server's
// GPUs. The plan must ask for it, and tokgate must have started the server as a process.
func (r *reached) countsForeign(t plan.Telemetry) bool {
	return t.Require.ForeignProcesses != nil && r.server.Process != nil && r.Holder.Run != ""
}

// addForeign returns a source of readings, which come from the function read. To each reading it
// adds the number of foreign processes among those that the function list returns.
func (r *reached) addForeign(
	read func(context.Context) (*telemetry.Reading, error), list func(context.Context) ([]int, error),
) telemetry.Source {
	others := foreign{run: r.Holder.Run, now: r.Clock.Now, list: list}
	return telemetry.Fetch(r.Clock, func(ctx context.Context) (*telemetry.Reading, error) {
		reading, err := read(ctx)
		if err == nil {
			others.add(ctx, reading)
		}
		return reading, err
	})
}

func (r *reached) gpus() []string {
	switch g := r.server.GPUs(); {
	case r.given != nil:
		return r.given
	case g != nil && len(g.IDs) > 0:
		return g.IDs
	case g != nil && !g.All && g.Count == 0:
		return []string{}
	case g != nil || r.server.Process == nil:
		return nil
	}
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} {
		visible, set := r.server.Process.Env[name]
		if !set {
			visible, set = os.LookupEnv(name)
		}
		if !set {
			continue
		}
		gpus := []string{}
		for _, id := range strings.Split(visible, ",") {
			if id = strings.TrimSpace(id); id != "" && id != "-1" && id != "NoDevFiles" {
				gpus = append(gpus, id)
			}
		}
		return gpus
	}
	return nil
}
