package decode

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
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
	noted := len(d.out.Defaults)
	b.bind(s)
	s.Flags = readFlags(b)
	_, diags := plan.CommandLine(s.Engine, s.Flags, s.Args)
	d.add(diags...)

	for _, t := range targets {
		if c := b.child(t.name); c != nil {
			t.finish(c, s)
		}
	}
	setReady(b, s)
	readTelemetry(b, &s.Telemetry)
	s.Expect = readExpect(b)
	d.namedSecrets(s)
	// The defaults of a block stand together.
	slices.SortStableFunc(d.out.Defaults[noted:], func(a, b plan.Default) int { return cmp.Compare(a.Path, b.Path) })
	return s
}

// targets lists what a server can be. finish checks a block, and reads what its schema does not say.
var targets = []struct {
	name   string
	finish func(*body, *plan.Server)
}{
	{"endpoint", finishEndpoint},
	{"process", finishProcess},
	{"container", finishContainer},
	{"pod", finishPod},
	{"stack", finishStack},
	{"simulator", checkProfile},
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
func checkProfile(b *body, s *plan.Server) {
	name := s.Simulator.Profile
	if !strings.HasSuffix(name, ".json") && !strings.ContainsAny(name, `/\`) {
		return
	}
	if _, err := b.d.within(b.d.dir, name); err != nil {
		b.d.errorf(b.rangeOf("profile"), sumProfile, "The profile cannot be used: %s.", err)
		s.Simulator.Profile = ""
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

func finishEndpoint(b *body, s *plan.Server) {
	e := s.Endpoint
	for i, url := range e.More {
		if slices.Contains(e.More[:i], url) {
			b.d.errorf(b.rangeOf("urls"), sumConflict, "urls names %s twice. Remove one of them.", url)
		}
	}
	if e.URL == "" && len(e.More) > 0 {
		e.URL, e.More = e.More[0], e.More[1:]
	}
	urls := e.URLs()
	for _, r := range e.Replicas {
		if slices.Contains(urls, r.URL) && r.URL != unknownText {
			b.d.errorf(b.rangeOf("replicas"), sumConflict,
				"%s stands in the endpoint twice. A replica has a URL of its own, which is not that of the gateway.", r.URL)
		}
		urls = append(urls, r.URL)
	}
	b.d.addSecret(e.APIKey)
	checkCA(b, e.CAFile)
	checkCertificate(b, e)
	checkSession(b, e)
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

func readTelemetry(b *body, out *plan.Telemetry) {
	t := cmp.Or(b.child("telemetry"), b.absent("telemetry"))
	out.Off = !t.boolean("enabled")
	if t.given("gpus") && len(out.GPUs) == 0 {
		out.GPUs = []string{} // an empty list means no GPUs; nil would mean the default
	}
	out.Require = readRequire(t)
	if p := t.child("prometheus"); p != nil {
		readSeries(p, out.Prometheus)
	}
}

// readRequire reads conditions on the GPUs, such as { throttled = "< 1%", foreign_processes = 0 }.
func readRequire(t *body) (out plan.Require) {
	o := t.object("require")
	if o == nil {
		return out
	}
	read := func(key, such string, parse func(text string) bool) {
		text, ok := get(o, key, item.words)
		if ok && text != "any" && !parse(text) {
			o.d.errorf(o.rng, sumOutOfRange, `require %s = %q is not valid. Write %s, or "any".`, key, text, such)
		}
	}
	share := func(key string, into **float64) {
		read(key, `an upper limit, such as "< 1%"`, func(text string) bool {
			limit, below := strings.CutPrefix(text, "<")
			x, p := parseLimit(strings.TrimSpace(limit), metric.Ratio, metric.Def{Name: key, Unit: metric.Ratio})
			*into = &x
			return below && p == nil
		})
	}
	if o.text("throttled") == "any" {
		any := math.Inf(1)
		out.Throttled = &any
	}
	share("throttled", &out.Throttled)
	share("clock_spread", &out.ClockSpread)
	read("foreign_processes", "the largest allowed number of processes, such as 0", func(text string) bool {
		n, err := strconv.Atoi(text)
		out.ForeignProcesses = &n
		return err == nil && n >= 0 && n <= 1000
	})
	return out
}
