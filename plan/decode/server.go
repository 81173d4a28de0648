package decode

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

const (
	readyProcess   = 10 * time.Minute
	readyContainer = 20 * time.Minute
	readyEndpoint  = 30 * time.Second
)

func (d *decoder) decodeServers() {
	families(d, "server", d.servers, &scope{ctx: d.base}, &d.out.Servers, d.decodeServer)
}

func (d *decoder) decodeServer(name, key string, blk *hcl.Block, sc *scope) *plan.Server {
	s := &plan.Server{Name: name, Key: key, Range: blk.DefRange}
	b := d.open(serverBlock, blk, sc, "server."+s.Address())
	b.bind(s)
	s.Flags = readFlags(b)
	_, diags := plan.CommandLine(s.Engine, s.Flags, s.Args)
	d.add(diags...)

	s.Endpoint = readEndpoint(b)
	s.Process = readProcess(b, s)
	s.Container = readContainer(b, s)
	s.Pod = readPod(b, s)
	s.Stack = readStack(b)
	b.bindBlocks(s)
	if sim := b.child("simulator"); sim != nil {
		checkProfile(sim, s.Simulator)
	}
	d.checkTarget(s, blk.DefRange, b.stray)
	setReady(b, s)
	s.Telemetry = readTelemetry(b)
	if e := s.Endpoint; e != nil && len(e.Replicas) > 0 && s.Telemetry.URL != "" {
		d.errorf(s.Telemetry.Range, sumConflict, "metrics_url does not go with replicas: tokgate reads the metrics page of each replica. Remove it.")
	}
	s.Expect = readExpect(b)
	d.namedSecrets(s)
	return s
}

// checkTarget reports an error if a server has several targets, or none. stray means that the block
// contains an unknown name. That may be a misspelt target, so a missing target is then not reported
// too.
func (d *decoder) checkTarget(s *plan.Server, rng hcl.Range, stray bool) {
	type target struct {
		name string
		rng  hcl.Range
	}
	var found []target
	if s.Endpoint != nil {
		found = append(found, target{"an endpoint", s.Endpoint.Range})
	}
	if s.Process != nil {
		found = append(found, target{"a process", s.Process.Range})
	}
	if s.Container != nil {
		found = append(found, target{"a container", s.Container.Range})
	}
	if s.Pod != nil {
		found = append(found, target{"a pod", s.Pod.Range})
	}
	if s.Stack != nil {
		found = append(found, target{"a stack", s.Stack.Range})
	}
	if len(found) == 0 && s.Simulator == nil && !stray {
		d.errorf(rng, sumServerTarget, "server.%s needs an endpoint, process, container, pod, stack or simulator block.", s.Address())
	}
	for _, t := range found[min(1, len(found)):] {
		d.errorf(t.rng, sumServerTargets, "server.%s has %s (at %s) and %s. Remove one of them.", s.Address(), found[0].name, found[0].rng, t.name)
	}
}

func setReady(b *body, s *plan.Server) {
	if s.Ready.Timeout > 0 {
		return
	}
	why := "it runs already"
	s.Ready.Timeout = readyEndpoint
	switch {
	case s.Process != nil:
		s.Ready.Timeout, why = readyProcess, "tokgate starts it"
	case s.Container != nil:
		s.Ready.Timeout, why = readyContainer, "tokgate starts it; the pull of the image does not count"
	case s.Pod != nil:
		s.Ready.Timeout, why = readyContainer, "tokgate starts it; the pull of the image does not count"
	case s.Stack != nil:
		s.Ready.Timeout, why = readyProcess, "tokgate starts it; up does not count"
	}
	r := cmp.Or(b.child("ready"), b.absent("ready"))
	if !r.given("timeout") {
		r.note("timeout", fmt.Sprintf("%q", plan.PlainDuration(s.Ready.Timeout)), why)
	}
}

func readExpect(b *body) map[string]string {
	e := b.child("expect")
	if e == nil {
		return nil
	}
	out := map[string]string{}
	var known []string
	for _, f := range metric.Facts {
		known = append(known, f.Key)
	}
	for _, attr := range sortedAttributes(e.attrs) {
		if !slices.Contains(known, attr.Name) {
			b.d.errorf(attr.NameRange, sumOneOf, "expect has no key %s.%s", attr.Name, suggest.DidYouMean(attr.Name, known))
			continue
		}
		if s, ok := get(e, attr.Name, item.words); ok {
			out[attr.Name] = s
		}
	}
	return out
}

// The shipped profiles have names without a slash and without .json.
func checkProfile(b *body, s *plan.Simulator) {
	if !strings.HasSuffix(s.Profile, ".json") && !strings.ContainsAny(s.Profile, `/\`) {
		return
	}
	if _, err := b.d.within(b.d.dir, s.Profile); err != nil {
		b.d.errorf(b.rangeOf("profile"), sumProfile, "The profile cannot be used: %s.", err)
		s.Profile = ""
	}
}

// checkCA checks the file of the certificate authority while the plan is loaded, so that a mistake
// is found before the first request. If the plan is only checked, a missing file gives just a
// warning if its path is absolute, because another machine may have it. The file may lie anywhere
// if it holds nothing but certificates.
func checkCA(b *body, path string) {
	if path == "" || path == unknownText {
		return
	}
	written := b.text("ca_file")
	inside, outside := b.d.within(b.d.dir, written)
	var src []byte
	var err error
	if outside == nil {
		src, err = b.d.read(inside)
	} else if _, elsewhere := errors.AsType[*outsideError](outside); elsewhere {
		src, err = b.d.readGiven(path)
	} else {
		b.d.errorf(b.rangeOf("ca_file"), sumAuthority, "%s.", outside)
		return
	}
	switch {
	case err != nil && filepath.IsAbs(written) && !b.d.opts.RequireEnv:
		b.d.warnf(b.rangeOf("ca_file"), sumAuthority, "%s; a run needs it.", readError(path, err))
	case err != nil:
		b.d.errorf(b.rangeOf("ca_file"), sumAuthority, "%s.", readError(path, err))
	case outside != nil && !onlyCertificates(src):
		b.d.errorf(b.rangeOf("ca_file"), sumAuthority, "The file %q lies outside the repository (%s). There, a ca_file may contain only certificates in PEM format, and comments that begin with #.", written, b.d.root)
	case !x509.NewCertPool().AppendCertsFromPEM(src):
		b.d.errorf(b.rangeOf("ca_file"), sumAuthority, `The file %q contains no certificate. Name a PEM file that contains "-----BEGIN CERTIFICATE-----".`, path)
	}
}

func onlyCertificates(src []byte) bool {
	found := false
	for len(src) > 0 {
		begin := bytes.Index(src, []byte("-----BEGIN "))
		if begin < 0 {
			begin = len(src)
		}
		for line := range bytes.Lines(src[:begin]) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
				return false
			}
		}
		if src = src[begin:]; len(src) == 0 {
			break
		}
		// Decode skips what it cannot read, so the block must be the one that begins here.
		block, rest := pem.Decode(src)
		if block == nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0 || bytes.Count(src[:len(src)-len(rest)], []byte("-----BEGIN ")) != 1 {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		found, src = true, rest
	}
	return found
}

func readEndpoint(b *body) *plan.Endpoint {
	e := b.child("endpoint")
	if e == nil {
		return nil
	}
	out := &plan.Endpoint{Range: e.rng}
	e.bind(out)
	name, urls := "urls", e.texts("urls")
	if text, ok := get(e, "url", item.text); ok {
		name, urls = "url", []string{text}
	}
	for i, text := range urls {
		checkURL(e, name, text)
		if slices.Contains(urls[:i], text) {
			b.d.errorf(e.rangeOf("urls"), sumConflict, "urls names %s twice. Remove one of them.", text)
		}
	}
	if len(urls) > 0 {
		out.URL, out.More = urls[0], urls[1:]
	}
	if attr := e.attrs["api_key"]; attr != nil {
		if v, ok := b.d.eval(attr.Expr, e.scope); ok && !v.IsNull() {
			out.APIKey, _ = e.itemOf("api_key", b.d.unmark(v), attr.Expr.Range()).text()
			b.d.addSecret(out.APIKey)
		}
	}
	checkCA(e, out.CAFile)
	checkCertificate(e, out)
	checkHeaders(e, "headers", out.Headers)
	readReplicas(e, out)
	for name, value := range out.Query {
		if secretHeader.MatchString(name) {
			b.d.addSecret(value)
		}
	}
	checkSession(e, out)
	return out
}

func readReplicas(e *body, out *plan.Endpoint) {
	urls := out.URLs()
	for _, o := range e.objects("replicas") {
		var r plan.Replica
		if o.bind(&r); r.URL == "" {
			continue
		}
		checkURL(e, "replicas", r.URL)
		checkHeaders(e, "replicas", r.Headers)
		if slices.Contains(urls, r.URL) && r.URL != unknownText {
			e.d.errorf(e.rangeOf("replicas"), sumConflict,
				"%s stands in the endpoint twice. A replica has a URL of its own, which is not that of the gateway.", r.URL)
		}
		out.Replicas, urls = append(out.Replicas, r), append(urls, r.URL)
	}
}

// The values of headers that authenticate are secrets.
func checkHeaders(b *body, attr string, headers map[string]string) {
	for name, value := range headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			b.d.errorf(b.rangeOf(attr), sumOutOfRange, "%q is not a valid HTTP header.", name)
		}
		if secretHeader.MatchString(name) {
			b.d.addSecret(value)
		}
	}
}

// The session must not take the place of a header that the request needs.
func checkSession(e *body, out *plan.Endpoint) {
	name := out.SessionHeader
	if name == "" || name == unknownText {
		return
	}
	switch http.CanonicalHeaderKey(name) {
	case "Authorization", "Host", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Accept", "User-Agent":
		e.d.errorf(e.rangeOf("session_header"), sumOutOfRange, `%q has a meaning of its own in HTTP. Use the header that the gateway routes by, such as "x-session-id".`, name)
		return
	}
	if !headerName.MatchString(name) {
		e.d.errorf(e.rangeOf("session_header"), sumOutOfRange, "%q is not a valid HTTP header.", name)
	}
	for other := range out.Headers {
		if strings.EqualFold(name, other) {
			e.d.errorf(e.rangeOf("session_header"), sumOutOfRange, "headers sets %q too, to one value for all requests. Set it in one place.", other)
		}
	}
}

// checkCertificate checks the files of the client's certificate while the plan is loaded. What they
// contain is never quoted.
func checkCertificate(e *body, out *plan.Endpoint) {
	var pair [2][]byte
	if out.CertFile == "" || out.KeyFile == "" || out.Redirects == "any" {
		return // what does not go together is reported by the schema
	}
	for i, name := range []string{"cert_file", "key_file"} {
		written := e.text(name)
		if written == unknownText {
			return
		}
		inside, err := e.d.within(e.d.dir, written)
		if err == nil {
			pair[i], err = e.d.read(inside)
		}
		if err != nil {
			e.d.errorf(e.rangeOf(name), sumCertificate, "%s.", readError(written, err))
			return
		}
	}
	if _, err := tls.X509KeyPair(pair[0], pair[1]); err != nil {
		e.d.errorf(e.rangeOf("cert_file"), sumCertificate, "%q and %q are not a certificate in PEM format and its key without a passphrase.", e.text("cert_file"), e.text("key_file"))
	}
}

var (
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie`)
)

func checkURL(b *body, name, text string) {
	if text == unknownText {
		return
	}
	if problem := URLProblem(text); problem != "" {
		b.d.errorf(b.rangeOf(name), sumURL, "%s", problem)
	}
}

// URLProblem describes what is wrong with the base URL of a server. It returns "" if the URL is
// valid.
func URLProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Sprintf(`%q is not a valid URL. It must start with http:// or https://, such as "http://127.0.0.1:8000".`, text)
	case u.Scheme != "http" && u.Scheme != "https":
		return `The URL must start with http:// or https://, such as "http://127.0.0.1:8000".`
	case u.Host == "" || u.Hostname() == "":
		return "The URL names no host."
	case u.User != nil:
		return "The URL contains credentials, and logs show URLs. Use api_key or headers instead."
	case u.RawQuery != "" || u.Fragment != "":
		return "The URL must not contain ? or #, because tokgate appends paths to the URL."
	}
	return ""
}

// address reads an attribute that is a URL. It returns "" if the plan does not set it.
func address(b *body, name string) string {
	text := b.text(name)
	if text == unknownText {
		return ""
	}
	if text != "" {
		checkURL(b, name, text)
	}
	return text
}

func readTelemetry(b *body) plan.Telemetry {
	t := b.child("telemetry")
	if t == nil {
		t = b.absent("telemetry")
	}
	out := plan.Telemetry{Off: !t.boolean("enabled"), URL: address(t, "metrics_url"), DCGM: address(t, "dcgm_url")}
	if len(b.blocks["telemetry"]) > 0 {
		out.Range = t.rng
	}
	t.bind(&out)
	if t.given("gpus") && len(out.GPUs) == 0 {
		out.GPUs = []string{} // an empty list means no GPUs; nil would mean the default
	}
	out.Require = readRequire(t)
	out.Prometheus = readPrometheus(t)
	return out
}

// readRequire reads conditions on the GPUs, such as { throttled = "< 1%", foreign_processes = 0 }.
func readRequire(b *body) plan.Require {
	var out plan.Require
	texts, rng := b.textMap("require"), b.rangeOf("require")
	share := func(key, text string) *float64 {
		limit, below := strings.CutPrefix(text, "<")
		x, p := parseLimit(strings.TrimSpace(limit), metric.Ratio, metric.Def{Name: key, Unit: metric.Ratio})
		if !below || p != nil {
			b.d.errorf(rng, sumOutOfRange, `require %s = %q is not valid. Write an upper limit, such as "< 1%%", or "any".`, key, text)
			return nil
		}
		return &x
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		text := texts[key]
		switch {
		case !slices.Contains(requirable, key):
			b.d.errorf(rng, sumOneOf, "require has no key %q.%s Its keys are %s.", key, suggest.DidYouMean(key, requirable), choices(requirable))
		case text == "any" && key == "throttled":
			any := math.Inf(1)
			out.Throttled = &any
		case text == "any":
		case key == "foreign_processes":
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || n > 1000 {
				b.d.errorf(rng, sumOutOfRange, `require foreign_processes = %q is not valid. Write the largest allowed number of processes, such as 0, or "any".`, text)
				continue
			}
			out.ForeignProcesses = &n
		case key == "throttled":
			out.Throttled = share(key, text)
		default:
			out.ClockSpread = share(key, text)
		}
	}
	return out
}

var requirable = []string{"throttled", "clock_spread", "foreign_processes"}
