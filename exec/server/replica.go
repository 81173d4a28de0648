package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// behind adds a replica. It gets neither the key nor the headers of the endpoint.
func (r *reached) behind(x plan.Replica, roots *x509.CertPool) error {
	c := client.Config{BaseURL: x.URL, Headers: x.Headers, RootCAs: roots, Engine: r.config.Engine, Now: r.config.Now, Dial: r.config.Dial}
	api, err := client.New(c)
	r.replicas = append(r.replicas, &replica{url: x.URL, api: api})
	return err
}

// meet waits until every replica answers, and adds to the fingerprint what the gateway does not tell.
// It returns an error that names a replica which does not answer or differs from the first.
func (r *reached) meet(ctx context.Context, to metric.Fingerprint) error {
	if len(r.replicas) == 0 {
		return nil
	}
	for _, x := range r.replicas {
		var err error
		ask := func(ctx context.Context) (metric.Fingerprint, error) { return r.look(ctx, x) }
		if x.found, err = r.awaitFacts(ctx, "the replica "+x.url, ask); err != nil {
			return err
		}
		x.started, _ = clock.Await(ctx, r.Clock, x.api.StartTime) // not every engine reports it
		if key := differs(r.replicas[0].found, x.found); key != "" {
			first := r.replicas[0]
			return fmt.Errorf("the replica %s differs from %s: %s is %q, not %q. Replicas of one endpoint must be alike", x.url, first.url, key, x.found[key], first.found[key])
		}
	}
	for key, value := range r.replicas[0].found {
		if key != "served_as" && key != "model" && to[key] == "" {
			to[key] = value
		}
	}
	to["replicas"] = fmt.Sprint(len(r.replicas))
	return nil
}

// awaitFacts asks a server for its facts until it answers.
func (r *reached) awaitFacts(
	ctx context.Context, name string, ask func(context.Context) (metric.Fingerprint, error),
) (metric.Fingerprint, error) {
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, cmp.Or(r.server.Ready.Timeout, lastLook))
	defer cancel()
	r.state("asking " + name)
	for {
		found, err := ask(ctx)
		if err == nil {
			return found, nil
		}
		if hopeless(err) || clock.Sleep(ctx, r.Clock, again) != nil {
			return nil, fmt.Errorf("%s cannot be used: %w", name, err)
		}
	}
}

// meetFronts checks that the further front ends of the server answer, and as the first does.
func (r *reached) meetFronts(ctx context.Context, first metric.Fingerprint) error {
	for i, h := range r.fronts {
		url := r.server.Endpoint.More[i]
		found, err := r.awaitFacts(ctx, "the front end "+url, func(ctx context.Context) (metric.Fingerprint, error) {
			other := *r
			other.api = h
			id, err := clock.Await(ctx, r.Clock, other.identify)
			return other.fingerprint(id), err
		})
		if err != nil {
			return err
		}
		if key := otherServer(first, found); key != "" {
			return fmt.Errorf("the front end %s differs from %s: %s is %q, not %q. The urls of one endpoint must lead to the same server", url, r.url, key, found[key], first[key])
		}
	}
	return nil
}

// look asks a replica for its facts. A gateway may serve the model under another name, which the
// replica does not know.
func (r *reached) look(ctx context.Context, x *replica) (metric.Fingerprint, error) {
	return clock.Await(ctx, r.Clock, func(ctx context.Context) (metric.Fingerprint, error) {
		models, err := x.api.Models(ctx)
		if err != nil {
			return nil, err
		}
		model, err := pick(models, "", cmp.Or(r.servedAs, r.server.Model))
		if err != nil && len(models) > 0 {
			model = models[0]
		}
		other := reached{Launcher: r.Launcher, server: r.server, config: r.config, api: x.api}
		id := identity{model: model}
		id.version, _ = x.api.Version(ctx) // not every server reports it
		out := other.fingerprint(id)
		if e := r.config.Engine; len(e.Labels) > 0 && !r.server.Telemetry.Off {
			if page, err := x.api.Text(ctx, e.Pages.Metrics, telemetry.MaxPage); err == nil {
				maps.Copy(out, telemetry.Labels(page, e.Labels))
			}
		}
		x.model = model.ID
		return out, ctx.Err()
	})
}

// differs returns a fact that two replicas, or one replica at two times, report differently; "" if
// there is none. A server may no longer report a fact.
func differs(a, b metric.Fingerprint) string {
	for _, key := range a.Keys() {
		if is, ok := b[key]; ok && key != "gateway" && metric.Differs(key, a[key], is) {
			return key
		}
	}
	return ""
}

// unchanged asks every replica whether it is still the same: after each round, and at the end. It
// asks again if a replica does not answer.
func (r *reached) unchanged(ctx context.Context) error {
	for _, x := range r.replicas {
		var now metric.Fingerprint
		var err error
		for range 3 {
			ctx, cancel := clock.WithTimeout(ctx, r.Clock, lookTime)
			now, err = r.look(ctx, x)
			if cancel(); err == nil {
				break
			}
		}
		started := ""
		if err == nil && x.started != "" {
			started, _ = clock.Await(ctx, r.Clock, x.api.StartTime)
		}
		if err == nil && x.counters != nil { // not every engine says when it was started
			page := r.reading(x.api, r.config.Engine.Pages.Metrics, x.model)
			if reading, err := clock.Await(ctx, r.Clock, page); err == nil {
				x.compare(reading)
			}
		}
		switch key := differs(x.found, now); {
		case err != nil:
			return fmt.Errorf("the replica %s no longer answers: %w", x.url, err)
		case key != "":
			return fmt.Errorf("the replica %s changed under the load: %s was %q and is %q", x.url, key, x.found[key], now[key])
		case started != "" && started != x.started:
			return fmt.Errorf("the replica %s was restarted under the load, so there is no verdict", x.url)
		}
	}
	return r.restarted()
}

// restarted returns an error if a reading showed that a replica was restarted.
func (r *reached) restarted() error {
	for _, x := range r.replicas {
		if x.lost != nil {
			return x.lost
		}
	}
	return nil
}

// sameAll is the last check of a server with its front ends and replicas. Replicas come first, because
// only they can be named.
func (r *reached) sameAll(ctx context.Context, found metric.Fingerprint, first [2]string) error {
	if err := cmp.Or(r.unchanged(ctx), r.meetFronts(ctx, found)); err != nil {
		return err
	}
	if err := r.checkSame(ctx, found, first); len(r.replicas) == 0 || err != nil && !errors.Is(err, exec.ErrIdentityUnknown) {
		return err
	}
	if slices.ContainsFunc(r.replicas, func(x *replica) bool { return x.started == "" && x.counters == nil }) {
		return fmt.Errorf("%w: a replica reports the same facts as before, but neither when it was started nor its counters", exec.ErrIdentityUnknown)
	}
	return nil
}

// compare notices a restart: a counter that falls, also between two rounds.
func (x *replica) compare(now *telemetry.Reading) {
	for name, was := range x.counters {
		if is, ok := now.Counters[name]; x.lost == nil && (!ok || is < was) {
			x.lost = fmt.Errorf("the replica %s was restarted under the load, so there is no verdict: its counter of %s fell from %.0f to %.0f", x.url, name, was, is)
		}
	}
	x.counters = now.Counters
}
