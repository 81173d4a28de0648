package server

import (
	"context"
	"crypto/tls"
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
	"github.com/tokgate/tokgate/plan"
)

// again is how long to wait between two looks at a server that is not ready;
// one that was just started is looked at sooner at first, since small ones are
// ready at once.
const (
	again = 500 * time.Millisecond
	soon  = 50 * time.Millisecond
)

// reached is a server that is spoken to over HTTP.
type reached struct {
	*Launcher
	server   *plan.Server
	config   client.Config // of http
	given    []string      // the GPUs that it was given; nil: as the plan says
	state    func(string)
	url      string
	http     *client.HTTP
	servedAs string       // id to send; "": asked for
	gone     func() error // why it is gone; nil: not known
	log      func() string
	cleanup  func() error // what ends it; nil: not ours
	// Of a server that was started on this machine; else nil.
	facts     func(metric.Fingerprint)     // adds what else is known of it
	instance  func(context.Context) string // tells it from one in its place
	lastWords func() string                // of its log
}

// reach prepares to speak to a server; it touches no network.
func (l *Launcher) reach(s *plan.Server, state func(string), c client.Config) (*reached, error) {
	c.Now, c.Dial = l.Clock.Now, l.Dial
	c.OnFresh = func(reason string) { l.Clock.Post(func() { state(reason) }) }
	h, err := client.New(c)
	if err != nil {
		return nil, err
	}
	return &reached{Launcher: l, server: s, config: c, state: state, url: c.BaseURL, http: h, servedAs: s.ServedAs()}, nil
}

// identity is what a server says of itself.
type identity struct {
	model   client.Model
	version string // "": not told
	// cold is the first completion.
	cold *metric.Sample
}

// target waits until the server is ready and identifies it.
func (r *reached) target(ctx context.Context) (*exec.Target, error) {
	id, err := r.ready(ctx)
	if err != nil {
		r.http.Close()
		return nil, err
	}
	found := r.fingerprint(id)
	if r.facts != nil {
		r.facts(found)
	}
	if err := declared(r.server, found, id.model.Root != ""); err != nil {
		r.http.Close()
		return nil, r.failed(err)
	}
	first := r.incarnation(ctx)
	makers := map[string]*promptMaker{}
	inside, leave := r.inside(id.model.ID)
	t := &exec.Target{
		Transport:   r.http,
		Model:       id.model.ID,
		Fingerprint: found,
		Prompts: func(ctx context.Context, w *plan.Workload, salt uint64) (exec.Prompts, error) {
			return r.prompts(ctx, w, salt, id.model, makers)
		},
		Err:    r.gone,
		Check:  func(ctx context.Context) error { return r.same(ctx, found, first) },
		Log:    r.log,
		Inside: inside,
		Close: func() error {
			leave()
			r.http.Close()
			if r.cleanup != nil {
				return r.cleanup()
			}
			return nil
		},
	}
	t.Cold, t.ColdEnd = cold(id.cold)
	return t, nil
}

// cold is what the first completion took, to its first token and to its end.
func cold(s *metric.Sample) (first, end time.Duration) {
	if s == nil || s.First == 0 {
		return 0, 0
	}
	return s.First - s.Sent, s.End - s.Sent
}

// ready waits for the server's first completion.
func (r *reached) ready(ctx context.Context) (identity, error) {
	caller := ctx
	timeout := r.server.Ready.Timeout
	if timeout > 0 {
		var cancel func()
		ctx, cancel = clock.WithTimeout(ctx, r.Clock, timeout)
		defer cancel()
	}
	var last error
	wait := again
	if r.gone != nil {
		wait = soon
	}
	for {
		r.state(r.awaited(last))
		id, err := clock.Await(ctx, r.Clock, r.try)
		switch {
		case err == nil:
			return id, nil
		case caller.Err() != nil:
			return identity{}, context.Cause(caller)
		case r.gone != nil && r.gone() != nil:
			return identity{}, r.gone()
		case ctx.Err() != nil:
			if last == nil {
				last = errors.New("its first completion did not end")
			}
			return identity{}, r.failed(fmt.Errorf("%s was not ready after %v: %w", r.url, timeout, last))
		case hopeless(err):
			return identity{}, r.failed(fmt.Errorf("%s cannot be used: %w%s", r.url, err, r.hint(err)))
		}
		last = err
		// A context that ends in between is seen by the next look.
		_ = clock.Sleep(ctx, r.Clock, wait)
		wait = min(2*wait, again)
	}
}

func (r *reached) awaited(last error) string {
	what := "one completion"
	if last != nil {
		what = last.Error()
	}
	if r.lastWords != nil {
		if words := r.lastWords(); words != "" {
			// What it does meanwhile tells more than that it refuses
			// connections.
			what = words
		}
	}
	return fmt.Sprintf("waiting for %s: %s", r.url, what)
}

func (r *reached) failed(err error) error {
	if r.log == nil {
		return err
	}
	return &exec.ServerError{Err: err, Log: r.log()}
}

// hopeless says that asking again would be answered the same.
func hopeless(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return true
	}
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status >= 400 && e.Status < 500 &&
		e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooEarly && e.Status != http.StatusTooManyRequests ||
		errors.Is(err, errModel)
}

// hint is what may help a server that refuses the form of a request.
func (r *reached) hint(err error) string {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity || !r.config.Engine.Dialect.IgnoreEOS {
		return ""
	}
	return fmt.Sprintf(" (it was sent %s's own request fields; engine = \"openai\" sends none)", r.config.Engine.Name)
}

// errModel says that it is not clear which model to ask for.
var errModel = errors.New("which model to ask for is not clear")

// try asks for the models and completes one token.
func (r *reached) try(ctx context.Context) (identity, error) {
	id, err := r.identify(ctx)
	if err != nil {
		return id, err
	}
	first := errors.New("")
	for i, api := range []plan.API{plan.Chat, plan.Completions} {
		s, err := r.http.Complete(ctx, &client.Request{
			API: string(api), Model: id.model.ID, Prompt: client.Prompt{Text: "Hello"}, Output: 1,
		})
		// One token may be half a character and no text yet.
		if err == nil || s.Failure.Kind == metric.FailEmpty && s.Usage != nil {
			id.cold = s
			return id, nil
		}
		if i == 0 {
			first = err
		}
		// A model without a chat template, or a server without the one API,
		// may have the other.
		if !hopeless(err) {
			break
		}
	}
	return id, first
}

// identify asks which model is served, and in which version.
func (r *reached) identify(ctx context.Context) (identity, error) {
	var id identity
	models, err := r.http.Models(ctx)
	if err != nil {
		var ok bool
		if id.model.ID, ok = r.unlisted(err); !ok {
			return id, fmt.Errorf("asking for its models: %w", err)
		}
	} else if id.model, err = pick(models, r.servedAs, r.server.Model); err != nil {
		return id, err
	}
	// Best effort: not every server tells.
	if version, err := r.http.Version(ctx); err == nil {
		id.version = version
	}
	return id, ctx.Err()
}

// unlisted is the model to ask for although the server answered the question
// for its models with err. An id in the plan needs no list, which some servers
// cannot make and some gateways refuse; whether it is served, the completion
// will tell. The model's real name is only tried where there is no list at all.
func (r *reached) unlisted(err error) (string, bool) {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return "", false
	case r.servedAs != "":
		return r.servedAs, e.Status > 0
	}
	return r.server.Model, r.server.Model != "" &&
		(e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented)
}

// pick finds the model to ask for: as the plan says, else by its real name,
// else the only one there is.
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
		var unlisted client.Model // gateways do not list all
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
	var ids []string
	for _, m := range models {
		ids = append(ids, m.ID)
	}
	return client.Model{}, fmt.Errorf("%w: the server lists %s; set served_as", errModel, strings.Join(ids, ", "))
}

// fingerprint is what could be observed; a key that could not is absent.
func (r *reached) fingerprint(id identity) metric.Fingerprint {
	f := metric.Fingerprint{"served_as": id.model.ID}
	if id.model.Root != "" {
		f["model"] = id.model.Root
	} else {
		f["model"] = id.model.ID
	}
	if id.model.Context > 0 {
		f["max_model_len"] = strconv.Itoa(id.model.Context)
	}
	if id.version != "" {
		f["version"] = id.version
		// That it answers where only this engine has an answer is observed.
		if r.config.Engine.Known() {
			f["engine"] = r.config.Engine.Name
		}
	}
	return f
}

// incarnation tells a running server from a later one in its place: its own
// start, as Prometheus clients tell it, and what the machine tells of it. "":
// not known.
func (r *reached) incarnation(ctx context.Context) [2]string {
	var out [2]string
	// Best effort: what cannot be told now may be told later, and says nothing.
	if at, err := clock.Await(ctx, r.Clock, r.http.StartTime); err == nil {
		out[0] = at
	}
	if r.instance != nil {
		out[1], _ = clock.Await(ctx, r.Clock, func(ctx context.Context) (string, error) { return r.instance(ctx), nil })
	}
	return out
}

// replicas is how often a server that seems to be another is asked again:
// behind one URL there may be several, and any of them answers.
const replicas = 8

// replaced says whether the server is no longer the one that was there first.
func (r *reached) replaced(ctx context.Context, first [2]string) bool {
	for range replicas {
		other := false
		for i, now := range r.incarnation(ctx) {
			other = other || first[i] != "" && now != "" && now != first[i]
		}
		if !other {
			return false
		}
	}
	return true
}

// same looks at the server again after the load.
func (r *reached) same(ctx context.Context, before metric.Fingerprint, first [2]string) error {
	if r.gone != nil {
		if err := r.gone(); err != nil {
			return err
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, 30*time.Second)
	defer cancel()
	id, err := clock.Await(ctx, r.Clock, r.identify)
	if err != nil {
		return r.failed(fmt.Errorf("the server no longer answers: %w", err))
	}
	if r.replaced(ctx, first) {
		return r.failed(errors.New("the server was started again under the load: no verdict can be given over two"))
	}
	after := r.fingerprint(id)
	for _, key := range []string{"model", "served_as", "version", "max_model_len"} {
		was, is := before[key], after[key]
		// A version that is suddenly not told says nothing.
		if was != "" && is != "" && was != is {
			return fmt.Errorf("this is not the server that was there before the load: %s was %q and is %q", key, was, is)
		}
	}
	return nil
}
