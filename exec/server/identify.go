package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

type identity struct {
	model   client.Model
	version string         // "": not told
	cold    *metric.Sample // of the first completion
}

// errModel means that the plan does not determine the model name to send in requests.
var errModel = errors.New("which model to ask for is not clear")

func (r *reached) identify(ctx context.Context) (identity, error) {
	var id identity
	models, err := r.api.Models(ctx)
	if err != nil {
		var ok bool
		if id.model.ID, ok = r.unlisted(err); !ok {
			return id, fmt.Errorf("asking for its models: %w", err)
		}
	} else if id.model, err = pick(models, r.servedAs, r.server.Model); err != nil {
		return id, err
	}
	r.listed = ids(models)
	// Ignore an error, because not every server reports a version.
	if version, err := r.api.Version(ctx); err == nil {
		id.version = version
	}
	return id, ctx.Err()
}

// unlisted returns the model to ask for if reading the server's list of models gave the error err.
// It is the id in the plan if the server answered. Without an id, it is the name of the plan's
// model, but only if err says that the server has no list.
func (r *reached) unlisted(err error) (string, bool) {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return "", false
	case r.servedAs != "":
		return r.servedAs, e.Status > 0
	}
	return r.server.Model, r.server.Model != "" && unlists(e)
}

// unlists reports whether a server says that it has no list of models.
func unlists(e *client.Error) bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented
}

func pick(models []client.Model, servedAs, name string) (client.Model, error) {
	by := func(f func(client.Model) bool) (client.Model, bool) {
		i := slices.IndexFunc(models, f)
		if i < 0 {
			return client.Model{}, false
		}
		return models[i], true
	}
	if servedAs != "" {
		if m, ok := by(func(m client.Model) bool { return m.ID == servedAs }); ok {
			return m, nil
		}
		var unlisted client.Model // a model that the list lacks: gateways may list only some
		unlisted.ID = servedAs
		return unlisted, nil
	}
	if name != "" {
		if m, ok := by(func(m client.Model) bool { return m.ID == name }); ok {
			return m, nil
		}
		if m, ok := by(func(m client.Model) bool { return m.Root == name }); ok {
			return m, nil
		}
	}
	switch len(models) {
	case 0:
		return client.Model{}, fmt.Errorf("%w: the server lists none; set served_as", errModel)
	case 1:
		return models[0], nil
	}
	return client.Model{}, fmt.Errorf("%w: the server lists %s; set served_as", errModel, strings.Join(ids(models), ", "))
}

func ids(models []client.Model) []string {
	var out []string
	for _, m := range models {
		out = append(out, m.ID)
	}
	return out
}

func (r *reached) fingerprint(id identity) metric.Fingerprint {
	// A server may list only the name under which it serves a model, and this name may come from a
	// gateway. Then the plan's name for the model is used. But if the plan expects a certain model,
	// the name must come from the server.
	declared := r.server.Model
	if _, expected := r.server.Expect["model"]; expected {
		declared = ""
	}
	f := metric.Fingerprint{"served_as": id.model.ID, "model": cmp.Or(id.model.Root, declared, id.model.ID)}
	if to := r.api.Redirected(); to != "" {
		f["redirected_to"] = to
	}
	if name := r.api.Gateway(); name != "" {
		f["gateway"] = name
	}
	if id.model.Context > 0 {
		f["max_model_len"] = strconv.Itoa(id.model.Context)
	}
	if id.version != "" {
		f["version"] = id.version
		// Only this engine has the version page that just answered. So the engine counts as
		// observed.
		if r.config.Engine.Known() {
			f["engine"] = r.config.Engine.Name
		}
	}
	return f
}

// incarnation returns values that identify the running server: the start time in its Prometheus
// metrics, and facts of the machine. A server that is started later in its place has different
// values. "" means not known. The start time is read only if start is true, because a server
// without it may take long to answer.
func (r *reached) incarnation(ctx context.Context, start bool) [2]string {
	var out [2]string
	if start {
		if at, err := clock.Await(ctx, r.Clock, r.api.StartTime); err == nil {
			out[0] = at
		}
	}
	if r.program != nil {
		out[1], _ = clock.Await(ctx, r.Clock, func(ctx context.Context) (string, error) { return r.program.instance(ctx), nil })
	}
	return out
}

// replicas limits how often tokgate asks if a server seems to have been replaced. The answer may
// come from another of several servers that share one URL.
const replicas = 8

// replaced reports whether the server is another one than at the start. The argument first is the
// incarnation (the values that identify a running server) at the start, and the result now is that
// of the server which answered last.
func (r *reached) replaced(ctx context.Context, first [2]string) (replaced bool, now [2]string) {
	for range replicas {
		other := false
		now = r.incarnation(ctx, first[0] != "")
		for i := range now {
			other = other || first[i] != "" && now[i] != "" && now[i] != first[i]
		}
		if !other {
			return false, now
		}
	}
	return true, now
}

// looks is how often a server is asked for its facts at the start. Several servers may share one URL,
// and each new connection may reach another of them. Of two servers that take turns at random, the
// looks miss one in 1 of 16 starts; each round is followed by another look.
const looks = 4

const lookTime = 2 * time.Second

// It asks again on new connections. Servers that do not answer now are left out.
func (r *reached) alike(ctx context.Context, found metric.Fingerprint, times int) error {
	for range times {
		now, err := clock.Await(ctx, r.Clock, r.again)
		if err != nil {
			continue
		}
		if key := otherServer(found, now); key != "" {
			return r.failed(fmt.Errorf("several servers answer at %s, and they differ: %s is %q or %q. Measure each at a URL of its own", r.url, key, found[key], now[key]))
		}
	}
	return nil
}

func (r *reached) again(ctx context.Context) (metric.Fingerprint, error) {
	c := r.config
	c.OnFresh = nil
	fresh, err := client.New(c)
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	other := *r
	other.api = fresh
	id, err := other.identify(ctx)
	return other.fingerprint(id), err
}

// A server may no longer report its version.
func otherServer(before, after metric.Fingerprint) (key string) {
	for _, key := range []string{"model", "served_as", "version", "max_model_len"} {
		if was, is := before[key], after[key]; was != "" && is != "" && was != is {
			return key
		}
	}
	return ""
}

// lastLook is the time limit for identifying a server again after the load. It is not part of the
// run's budget.
const lastLook = 15 * time.Second

func (r *reached) checkSame(ctx context.Context, before metric.Fingerprint, first [2]string) error {
	if r.program != nil {
		if err := r.program.gone(); err != nil {
			return err
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, lastLook)
	defer cancel()
	if err := r.listening(ctx, metric.Fingerprint{}); err != nil {
		return r.failed(err)
	}
	id, err := clock.Await(ctx, r.Clock, r.identify)
	if err != nil {
		return r.failed(fmt.Errorf("the server no longer answers: %w", err))
	}
	replaced, now := r.replaced(ctx, first)
	if replaced {
		return r.failed(errors.New("the server was restarted under the load, so there is no verdict"))
	}
	after := r.fingerprint(id)
	if key := otherServer(before, after); key != "" {
		return fmt.Errorf("this is not the server that was there before the load: %s was %q and is %q", key, before[key], after[key])
	}
	if to := after["redirected_to"]; to != before["redirected_to"] {
		return fmt.Errorf("this is not the server that was there before the load: it now redirects to %q", to)
	}
	if first[0] != "" && now[0] == "" {
		return fmt.Errorf("%w: before the load its metrics page reported when it was started, but now it does not", exec.ErrIdentityUnknown)
	}
	// A server whose processes tokgate does not see may have been restarted unseen.
	if first == [2]string{} && r.server.Unseen() {
		return fmt.Errorf("%w: it reports the same facts as before, but not when it was started", exec.ErrIdentityUnknown)
	}
	return nil
}
