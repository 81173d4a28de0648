//go:build linux

package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/sim"
)

var (
	realGatewaysPage  = flag.String("real-gateways-page", "", "put what was seen behind real gateways into this `page`, docs/gateways.md")
	realGatewaysTimes = flag.Int("real-gateways-times", 10, "how many `runs` each gateway gets of an even, a hashed and a planted spread, and of a restart")
)

// TestRealGateways measures four built-in servers behind real gateways, and writes what was seen.
// `make real ENGINES=gateways` runs it. Only its times depend on the machine.
func TestRealGateways(t *testing.T) {
	if *realGatewaysPage == "" {
		t.Skip("make real ENGINES=gateways")
	}
	g := &behindGateways{trial: newTrial(t, "gateways")}
	must.Do(t, os.MkdirAll(g.out, 0o755))
	for i := range g.servers {
		g.start(i, "127.0.0.1:0")
		defer func() { g.servers[i].Load().Close() }()
	}
	rows := []string{g.row("none", g.servers[0].Load().URL(), "")}
	for _, x := range gatewaysTried {
		if x.weights == planted {
			continue
		}
		url, certificate, end := g.gateway(x)
		rows = append(rows, g.row(x.name, url, certificate))
		end()
	}
	page := read(t, *realGatewaysPage)
	before, rest, _ := strings.Cut(page, "<!-- gateways -->\n")
	_, after, ok := strings.Cut(rest, "<!-- /gateways -->")
	must.Need(t, ok, "the page has no place for it")
	table := "| gateway | path | TTFT mean, client / replicas | speed | verdict | imbalance |\n|---|---|---|---|---|---|\n" + strings.Join(rows, "")
	page = before + "<!-- gateways -->\n" + table + "\n" + g.repeated() + "\n<!-- /gateways -->" + after
	must.Do(t, os.WriteFile(*realGatewaysPage, []byte(page), 0o644))
}

// tried is one configuration of a gateway, with the weights of the replicas.
type tried struct {
	name, program   string
	replicas, leads string // lines of the configuration: on the replicas, and on the way to them
	weights         [4]int
	tls             bool
}

var (
	evenly  = [4]int{1, 1, 1, 1}
	planted = [4]int{70, 10, 10, 10}
)

const (
	kept   = "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off;"
	atOnce = "option http-no-delay"
	hashes = "hash $http_x_session_id consistent;"
	header = "balance hdr(x-session-id)\n  hash-type consistent"
)

var gatewaysTried = []tried{
	{"nginx, `proxy_pass` alone", "nginx", "", "", evenly, false},
	{"nginx", "nginx", "", kept, evenly, false},
	{"nginx, TLS", "nginx", "", kept, evenly, true},
	{"nginx, by hash", "nginx", hashes, kept, evenly, false},
	{"nginx, 70/10/10/10", "nginx", "", kept, planted, false},
	{"HAProxy, defaults", "haproxy", "balance roundrobin", "", evenly, false},
	{"HAProxy", "haproxy", "balance roundrobin", atOnce, evenly, false},
	{"HAProxy, by hash", "haproxy", header, atOnce, evenly, false},
	{"HAProxy, 70/10/10/10", "haproxy", "balance roundrobin", atOnce, planted, false},
	{"sglang-router", "sglang-router", "", "", evenly, false},
}

// behindGateways is four built-in servers, and what starts gateways before them.
type behindGateways struct {
	*trial
	servers [4]atomic.Pointer[sim.Server]
	served  [4]atomic.Int64
	restart atomic.Int64 // 1 + number of the replica that is restarted at its 15th answer; 0: none
	tried   int
}

func (g *behindGateways) start(i int, address string) {
	o := sim.Options{OnServed: func(sim.Served) {
		if g.served[i].Add(1) == 15 && g.restart.CompareAndSwap(int64(i)+1, 0) {
			go func() {
				old := g.servers[i].Load()
				old.Close()
				g.start(i, strings.TrimPrefix(old.URL(), "http://"))
			}()
		}
	}}
	o.Profile = sim.DefaultProfile()
	o.Profile.OverheadMS, o.Profile.Prefill = 10, sim.PrefillCost{USPerToken: 20}
	o.Profile.Decode = sim.DecodeCost{BaseMS: 2.5, PerSeqMS: 0.05}
	s := must.Get(sim.New(o))(g.t)
	must.Do(g.t, s.Start(address))
	g.servers[i].Store(s)
}

// gateway starts a gateway before the servers. certificate is the file of its authority; "" without TLS.
func (g *behindGateways) gateway(x tried) (url, certificate string, end func()) {
	g.tried++
	dir := filepath.Join(g.out, fmt.Sprintf("%s-%d", x.program, g.tried))
	must.Do(g.t, os.MkdirAll(dir, 0o755))
	file, port, secret := filepath.Join(dir, x.program+".conf"), g.freePort(), g.freePort()
	var urls, b strings.Builder
	for i := range g.servers {
		address := strings.TrimPrefix(g.servers[i].Load().URL(), "http://")
		if x.program == "nginx" {
			fmt.Fprintf(&b, "server %s weight=%d; ", address, x.weights[i])
		} else {
			fmt.Fprintf(&b, "  server r%d %s weight %d\n", i, address, x.weights[i])
		}
		urls.WriteString(" http://" + address)
	}
	switch x.program {
	case "nginx":
		listen := fmt.Sprintf("listen 127.0.0.1:%d;", port)
		if x.tls {
			var pair string
			certificate, pair = g.authority(dir)
			listen += fmt.Sprintf(" listen 127.0.0.1:%d ssl; ssl_certificate %s; ssl_certificate_key %[2]s;", secret, pair)
		}
		must.Do(g.t, os.WriteFile(file, fmt.Appendf(nil, `daemon off; master_process off; pid nginx.pid;
events {}
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  upstream replicas { %s %s keepalive 64; }
  server { %s location / { proxy_pass http://replicas; %s } }
}
`, x.replicas, b.String(), listen, x.leads), 0o600))
		url, end = g.serveAt(port, "/health", "nginx", "-p", dir, "-c", file, "-e", "stderr")
		if x.tls {
			url = fmt.Sprintf("https://127.0.0.1:%d", secret)
		}
	case "haproxy":
		must.Do(g.t, os.WriteFile(file, fmt.Appendf(nil, `defaults
  mode http
  timeout connect 5s
  timeout client 5m
  timeout server 5m
  %s
frontend front
  bind 127.0.0.1:%d
  default_backend replicas
backend replicas
  %s
%s`, x.leads, port, x.replicas, b.String()), 0o600))
		url, end = g.serveAt(port, "/health", "haproxy", "-db", "-f", file)
	default:
		words := append([]string{"sglang-router", "launch", "--host", "127.0.0.1", "--port", "{port}", "--policy", "round_robin",
			"--prometheus-port", fmt.Sprint(secret), "--worker-urls"}, strings.Fields(urls.String())...)
		url, end = g.serveAt(port, "/health", words...)
	}
	return url, certificate, end
}

// authority writes a certificate for 127.0.0.1, and the certificate with its key.
func (g *behindGateways) authority(dir string) (certificate, pair string) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey))(g.t)})
	certificate, pair = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "pair.pem")
	must.Do(g.t, os.WriteFile(certificate, raw, 0o600))
	must.Do(g.t, os.WriteFile(pair, append(raw, key...), 0o600))
	return certificate, pair
}

// measure runs a workload of the plan. Without a gateway there are no replicas.
func (g *behindGateways) measure(what, workload, url, certificate string) (*metric.Run, *metric.Level, report.Document) {
	vars := []string{"TOKGATE_VAR_url=" + url, "TOKGATE_VAR_ca_file=" + certificate}
	if url != g.servers[0].Load().URL() {
		var list []string
		for i := range g.servers {
			list = append(list, fmt.Sprintf("{ url = %q }", g.servers[i].Load().URL()))
		}
		vars = append(vars, "TOKGATE_VAR_replicas=["+strings.Join(list, ", ")+"]")
	}
	cmd, out := g.command(what+" "+workload, "gateways.hcl", vars...)
	cmd.Args = append(cmd.Args, "--only", workload)
	g.run(what, cmd, out, nil)
	run, _, err := record.Read(out)
	must.Do(g.t, err)
	var doc report.Document
	must.Do(g.t, json.Unmarshal([]byte(read(g.t, filepath.Join(out, "results.json"))), &doc))
	i := slices.IndexFunc(run.Levels, func(l *metric.Level) bool { return l.Workload == workload })
	must.Need(g.t, i >= 0, "%s: no level of %s", what, workload)
	return run, run.Levels[i], doc
}

// row measures both workloads, and returns a row of the table.
func (g *behindGateways) row(what, url, certificate string) string {
	run, level, doc := g.measure(what, "closed", url, certificate)
	var served metric.Histogram
	for _, r := range level.Rounds {
		if h, ok := r.Telemetry.Histograms["server_ttft"]; ok {
			served.Sum, served.Counts = served.Sum+h.Sum, append(served.Counts, h.Counts...)
		}
	}
	theirs, _ := served.Mean()
	path, _, _ := strings.Cut(run.Servers[0].Path, " transport")
	word, ttft, speed, imbalance := strings.ToLower(doc.Word()), "–", "–", "–"
	for _, v := range doc.Verdicts {
		switch {
		case v.Threshold != nil && v.Threshold.Metric.Name == "ttft" && v.Value.OK:
			ttft = fmt.Sprintf("%.1f/%.1f ms", 1e3*v.Value.V, 1e3*theirs)
		case v.Threshold != nil && v.Threshold.Metric.Name == "speed" && v.Value.OK:
			speed = fmt.Sprintf("%.0f tok/s", v.Value.V)
		}
		if v.Outcome == verdict.Fail || v.Outcome == verdict.Error {
			word = fmt.Sprintf("exit %d: %s", doc.ExitCode, v.Message)
			if strings.Contains(v.Message, "streams were held back") {
				word = fmt.Sprintf("exit %d: held back", doc.ExitCode)
			}
		}
	}
	if url != g.servers[0].Load().URL() {
		_, level, doc = g.measure(what, "sum", url, certificate)
		imbalance = fmt.Sprintf("%.2f", level.Value("imbalance", metric.Steady, nil, nil).V)
		if received, counted := sumsOf(level); received != counted || received == 0 {
			g.t.Errorf("%s: %.0f tokens received, %.0f counted", what, received, counted)
		}
		if doc.ExitCode != verdict.ExitPass {
			imbalance += ": " + strings.ToLower(doc.Word())
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", what, path, ttft, speed, word, imbalance)
}

// sumsOf returns the output tokens that the client received, and that the replicas counted.
func sumsOf(l *metric.Level) (received, counted float64) {
	for _, x := range l.Replicas {
		counted += x.Added[metric.GeneratedTokens]
	}
	for _, round := range slices.Concat(l.Rounds, l.Voided) {
		for _, s := range round.All() {
			if s.Phase != metric.Warmup { // the first burst's stands before the load
				received += float64(s.Usage.Output)
			}
		}
	}
	return received, counted
}

// repeated measures each spread several times, and says how often it was named and the sums were
// exact, and how often a restarted replica was an error with its name.
func (g *behindGateways) repeated() string {
	var n, named, sums, bad, restarts, caught int
	uneven := 0
	for _, x := range gatewaysTried {
		if x.tls || x.program == "sglang-router" || x.leads == "" {
			continue
		}
		url, _, end := g.gateway(x)
		for i := range *realGatewaysTimes {
			_, level, doc := g.measure(fmt.Sprint(x.name, " ", i), "sum", url, "")
			received, counted := sumsOf(level)
			if n++; received == counted && received > 0 {
				sums++
			}
			said := doc.ExitCode == verdict.ExitFail && strings.Contains(string(must.Get(json.Marshal(doc))(g.t)), "are loaded unevenly")
			switch {
			case x.weights == planted:
				if uneven++; said {
					named++
				}
			case said || doc.ExitCode != verdict.ExitPass:
				bad++
			}
			if x.replicas != hashes && x.replicas != header && x.weights == evenly {
				restarts++
				which := i % 4
				name := g.servers[which].Load().URL()
				g.served[which].Store(0)
				g.restart.Store(int64(which) + 1)
				_, _, doc := g.measure(fmt.Sprint(x.name, " restart ", i), "closed", url, "")
				if doc.ExitCode == verdict.ExitError && strings.Contains(doc.Headline()+fmt.Sprint(doc.Verdicts), "the replica "+name) {
					caught++
				}
			}
		}
		end()
	}
	if named < uneven || sums < n || bad > 0 || caught < restarts {
		g.t.Errorf("named %d of %d, sums exact %d of %d, even spreads named or red %d, restarts caught %d of %d", named, uneven, sums, n, bad, caught, restarts)
	}
	return fmt.Sprintf("nginx and HAProxy, %d runs each way: sums exact to the token in %d of %d; 70/10/10/10 named in %d of %d, other spreads in %d of %d; "+
		"a replica restarted in the middle: exit 4 with its name, %d of %d.", *realGatewaysTimes, sums, n, named, uneven, bad, n-uneven, caught, restarts)
}
