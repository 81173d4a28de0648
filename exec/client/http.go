package client

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// Config describes how to reach a server over HTTP.
type Config struct {
	// BaseURL is the server's URL, with or without /v1.
	BaseURL string
	// APIKey is sent as a bearer token; "" means that none is sent. Neither the key nor Headers are
	// sent to another host, not even after a redirect.
	APIKey  string
	Headers map[string]string
	// Query is added to the URL of every request. A redirect gets what its Location says.
	Query map[string]string
	// Certificates are shown to a server that asks for one; none if empty.
	Certificates []tls.Certificate
	// RootCAs are the trusted certificates; nil means the system's. See LoadCA.
	RootCAs *x509.CertPool
	// Now returns the run's monotonic time. It is required, and called from many goroutines. The
	// time must be above zero, because zero means "never" in a Sample.
	Now func() time.Duration
	// Engine determines the engine's own request fields and pages. The zero Engine has none.
	Engine engine.Engine
	// MaxConns is the largest number of connections; 0 means no limit. A request without a
	// connection waits before it is sent.
	MaxConns int
	// Dial opens connections in place of the network; tests use it to stay in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AnyRedirect follows redirects to other hosts too, without the key and the headers. Otherwise
	// a redirect to another host is a failure, because the answers would come from another server.
	AnyRedirect bool
	// Standard sends streams with net/http, even if package direct could. Samples are the same.
	Standard bool
	// Pollers is the number of pollers that read streams; see direct.Config. 0 is as many as needed.
	Pollers int
	// H2C uses HTTP/2 without TLS, with prior knowledge (RFC 9113, section 3.3).
	H2C bool
	// OnFresh, if not nil, is called when FreshConns becomes true. It is called once, from any
	// goroutine, with the reason in one line.
	OnFresh func(reason string)
}

// HTTP is the Transport to one server over HTTP.
type HTTP struct {
	config Config
	root   string       // the base URL without /v1, and without a slash at the end
	base   string       // the server's URL with /v1
	host   string       // scheme and authority of the only server that gets the key
	kept   *http.Client // keeps connections alive
	fresh  *http.Client // opens a new connection for each request
	own    *own         // sends streams without net/http; nil if that cannot be done here
	detour string       // why own is nil

	freshOnly   atomic.Bool
	redirecting atomic.Bool // the server redirects, so net/http sends all streams
	redirected  atomic.Pointer[string]
	gateway     atomic.Pointer[string]
	looked      atomic.Int64                  // answers searched so far for a gateway's name
	forms       sync.Map                      // for each API, the tokenizer request that works
	scores      atomic.Pointer[engine.Scores] // form of scoring request that works
}

// dialTimeout bounds the time to open a connection.
const dialTimeout = 30 * time.Second

// IdleTimeout is how long an unused connection stays open. uvicorn, which serves vLLM and SGLang,
// closes an idle connection after five seconds, so the client must close it earlier.
const IdleTimeout = 4 * time.Second

// New returns a Transport to the server that the Config describes. It does not use the network.
func New(c Config) (*HTTP, error) {
	if c.Now == nil {
		return nil, errors.New("client: Config.Now is missing")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("could not read the URL %q: %w", c.BaseURL, errors.Unwrap(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL %q is not http://HOST or https://HOST", c.BaseURL)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("the URL of %s must not contain a user, a query or a fragment", u.Host)
	}
	h := &HTTP{config: c, host: u.Scheme + "://" + u.Host}
	u.Path = strings.TrimRight(u.Path, "/")
	if isVersion(path.Base(u.Path)) {
		h.base = u.String()
		u.Path = strings.TrimRight(path.Dir(u.Path), "/.")
		h.root = u.String()
	} else {
		h.root = u.String()
		h.base = h.root + "/v1"
	}
	h.kept = h.client(false)
	h.fresh = h.client(true)
	h.freshOnly.Store(c.Engine.Dialect.FreshConns)
	h.own, h.detour = newOwn(h)
	return h, nil
}

// Base returns the URL below which the pages of the OpenAI API are, such as http://host/v1.
func (h *HTTP) Base() string { return h.base }

func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}

// LoadCA returns the system's certificates together with those of a PEM file.
func LoadCA(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}

// client builds one of the two HTTP clients. If fresh is set, it opens a new connection for each
// request.
func (h *HTTP) client(fresh bool) *http.Client {
	var protocols *http.Protocols // nil: the usual protocols
	if h.config.H2C {
		protocols = new(http.Protocols)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Client{
		CheckRedirect: h.redirect,
		Transport: &http.Transport{
			Protocols: protocols,
			// Loopback is never proxied.
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := h.dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &stampedConn{Conn: conn, now: h.config.Now}, nil
			},
			TLSClientConfig:     &tls.Config{RootCAs: h.config.RootCAs, Certificates: h.config.Certificates, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: dialTimeout,
			ForceAttemptHTTP2:   true,
			// Compression would hold tokens back. If a server compresses without
			// being asked, we decompress.
			DisableCompression:  true,
			DisableKeepAlives:   fresh,
			MaxConnsPerHost:     h.config.MaxConns,
			MaxIdleConnsPerHost: 1 << 20,
			IdleConnTimeout:     IdleTimeout,
		},
	}
}

func (h *HTTP) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if h.config.Dial != nil {
		return h.config.Dial(ctx, network, address)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
}

// redirect follows up to ten redirects that keep method and body. It sends the key and the headers
// only to the same host.
func (h *HTTP) redirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return &Error{Kind: metric.FailStatus, Message: "stopped after 10 redirects"}
	}
	if r.Method != via[0].Method {
		return &Error{Kind: metric.FailStatus, Status: r.Response.StatusCode, Message: fmt.Sprintf(
			"the server redirects to %s in a way that would turn a %s into a %s; write that URL in the plan",
			r.URL.Host, via[0].Method, r.Method)}
	}
	if c := callOf(r.Context()); c != nil {
		c.redirects++
	}
	if to := r.URL.Scheme + "://" + r.URL.Host; to != h.host {
		upgraded := r.URL.Scheme == "https" && via[0].URL.Scheme == "http" && r.URL.Hostname() == via[0].URL.Hostname()
		if !upgraded && !h.config.AnyRedirect {
			return &Error{Kind: metric.FailStatus, Status: r.Response.StatusCode, Message: fmt.Sprintf(
				"the server redirects to %s, which is another server; write that URL in the plan, or allow it with redirects = \"any\"", to)}
		}
		h.redirected.Store(&to)
		r.Header.Del("Authorization")
		r.Header.Del("Referer") // it has url_query
		for name := range h.config.Headers {
			r.Header.Del(name)
		}
		if c := callOf(r.Context()); c != nil {
			for name := range c.headers {
				r.Header.Del(name)
			}
		}
	}
	return nil
}

// FreshConns reports whether each request gets a new connection, because the engine needs that or
// because a connection that was kept open turned out to be dead.
func (h *HTTP) FreshConns() bool { return h.freshOnly.Load() }

// Detour returns why net/http carries the streams; "" if it does not.
func (h *HTTP) Detour() string {
	if h.own != nil && h.redirecting.Load() {
		return "the server redirects"
	}
	return h.detour
}

// Redirected returns the scheme and authority to which the server redirected requests; "" if there
// was no redirect.
func (h *HTTP) Redirected() string {
	if to := h.redirected.Load(); to != nil {
		return *to
	}
	return ""
}

// Close drops idle connections.
func (h *HTTP) Close() {
	if h.own != nil {
		h.own.Close()
	}
	h.kept.CloseIdleConnections()
	h.fresh.CloseIdleConnections()
}

// maxUnary limits the bytes of an answer that is not a stream. maxWords limits the bytes of a
// refusal.
const (
	maxUnary = 64 << 20
	maxWords = 64 << 10
)

// doer adds the header fields that every request has, and limits the size of answers that are not
// streams.
type doer struct{ h *HTTP }

func (d doer) Do(r *http.Request) (*http.Response, error) {
	call := callOf(r.Context())
	if call == nil {
		d.h.dress(r, nil)
		resp, err := d.h.pick().Do(r)
		if err == nil {
			d.h.noteGateway(resp.Header)
			err = limit(resp, maxUnary)
		}
		return resp, err
	}
	d.h.dress(r, call.headers)
	call.give(r)
	resp, err := call.do(d.h, r)
	if err != nil {
		return nil, err
	}
	d.h.noteGateway(resp.Header)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		resp.Body.Close()
		return nil, &Error{Kind: metric.FailStatus, Status: resp.StatusCode, Message: resp.Status + " without a Location header"}
	}
	if resp.StatusCode >= 400 {
		return resp, limit(resp, maxWords)
	}
	call.resp = resp
	return resp, nil
}

func (h *HTTP) dress(r *http.Request, own map[string]string) {
	if key := h.config.APIKey; key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for _, headers := range []map[string]string{h.config.Headers, own} {
		for name, value := range headers {
			if http.CanonicalHeaderKey(name) == "Host" {
				r.Host = value
				continue
			}
			r.Header.Set(name, value)
		}
	}
	r.Header.Set("User-Agent", "tokgate")
	if len(h.config.Query) > 0 {
		query := r.URL.Query()
		for name, value := range h.config.Query {
			query.Set(name, value)
		}
		r.URL.RawQuery = query.Encode()
	}
}

func (h *HTTP) pick() *http.Client {
	if h.freshOnly.Load() {
		return h.fresh
	}
	return h.kept
}

func limit(resp *http.Response, n int64) error {
	body, err := plainBody(resp)
	if err != nil {
		resp.Body.Close()
		return err
	}
	resp.Body = limited{io.LimitReader(body, n), resp.Body}
	return nil
}

// plainBody returns the body of an answer, decompressed if necessary. Some gateways compress
// although the client did not ask for it.
func plainBody(resp *http.Response) (io.Reader, error) {
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(resp.Body)
	default:
		return nil, &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf("the answer is encoded as %q, but the request did not ask for that", encoding)}
	}
}

// limited is a body that is read through its Reader. Its Closer closes the original body.
type limited struct {
	io.Reader
	io.Closer
}
