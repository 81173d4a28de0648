package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/sim"
)

// behindPlan measures four replicas behind a gateway.
const behindPlan = `
server "s" {
  engine = "vllm"
  endpoint {
    url            = %q
    session_header = "x-session-id"
    headers        = { X-Gateway-Key = "for-the-gateway" }
    replicas       = [%s]
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 16, jitter = "50%%" }
  %s
  sla {
    success = "observed >= 50%%"
    %s
  }
}
`

const closed = "load {\n concurrency = 8\n requests = 120\n seeds = [1, 2]\n}"

// farm is four built-in servers behind a reverse proxy.
type farm struct {
	servers  [4]atomic.Pointer[sim.Server]
	replicas [4]string // their URLs
	gateway  string
	serve    http.HandlerFunc // of the gateway
	posts    atomic.Int64     // completions that the gateway got
	// choose returns the replica for a request; nil is one after the other.
	choose func(r *http.Request, n int64) int
	// before sees each request to a replica, and reports whether it answered.
	before func(i int, w http.ResponseWriter, r *http.Request) bool
}

func newFarm(t *testing.T) *farm {
	f := &farm{}
	through := &http.Transport{DialContext: memory.DialContext}
	t.Cleanup(through.CloseIdleConnections)
	for i := range f.servers {
		f.start(t, i)
		s := front(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Gateway-Key") != "" && r.Header.Get("Via") == "" {
				t.Errorf("%s of a replica got the gateway's key", r.URL.Path)
			}
			if r.Method == http.MethodPost && r.Header.Get("Via") == "" {
				t.Errorf("a replica got load: %s", r.URL.Path)
			}
			if f.before == nil || !f.before(i, w, r) {
				f.servers[i].Load().ServeHTTP(w, r)
			}
		})
		s.Start()
		f.replicas[i] = s.URL
	}
	var asked atomic.Int64
	f.serve = func(w http.ResponseWriter, r *http.Request) {
		n, load := asked.Add(1), strings.HasSuffix(r.URL.Path, "/completions")
		if load {
			n = f.posts.Add(1)
		}
		i := int(n) % 4
		if f.choose != nil && load {
			i = f.choose(r, n)
		}
		r.Header.Set("Via", "1.1 gateway")
		relay(w, r, through, strings.TrimPrefix(f.replicas[i], "http://"))
	}
	s := front(t, f.serve)
	s.Start()
	f.gateway = s.URL
	return f
}

// relay sends a request on to another host, and the answer back as it comes. httputil's ReverseProxy
// crashes the Go runtime in a synctest bubble under the race detector, by its timer (go1.26.8).
func relay(w http.ResponseWriter, r *http.Request, through *http.Transport, host string) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", host, ""
	answer, err := through.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	for buf := make([]byte, 4096); ; {
		n, err := answer.Body.Read(buf)
		if err != nil && err != io.EOF {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(buf[:n])
		_ = http.NewResponseController(w).Flush()
		if err != nil {
			return
		}
	}
}

// start starts replica i, or starts it anew.
func (f *farm) start(t *testing.T, i int) {
	f.servers[i].Store(startSim(t, sim.Options{Listen: memory.Listen}))
}

func (f *farm) run(t *testing.T, load, sla string) (r result, dir string) {
	t.Helper()
	var list []string
	for _, url := range f.replicas {
		list = append(list, fmt.Sprintf("{ url = %q }", url))
	}
	dir = t.TempDir()
	r = tokgate(t, "run", "--out", dir, writePlan(t, fmt.Sprintf(behindPlan, f.gateway, strings.Join(list, ", "), load, sla)))
	return r, dir
}

// level returns the only level of a recorded run.
func (f *farm) level(t *testing.T, dir string) *metric.Level {
	t.Helper()
	run, _, err := record.Read(dir)
	must.Do(t, err)
	return run.Levels[0]
}

func hashed(r *http.Request, _ int64) int {
	h := fnv.New32a()
	fmt.Fprint(h, r.Header.Get("X-Session-Id"))
	return int(h.Sum32() % 4)
}

// weighted sends 70 of 100 requests to replica 2, and ten to each other.
func weighted(_ *http.Request, n int64) int {
	if k := n * 7 % 10; k < 7 {
		return 2
	} else {
		return []int{0, 1, 3}[k-7]
	}
}

// The counters of the replicas add up to the token: to what the client
// received.
func TestReplicasAddUp(t *testing.T) {
	for name, choose := range map[string]func(*http.Request, int64) int{"in turn": nil, "by hash": hashed} {
		t.Run(name, inBubble(func(t *testing.T) {
			f := newFarm(t)
			f.choose = choose
			r, dir := f.run(t, "load {\n burst = 40\n seeds = [1, 2, 3]\n}", "")
			r.check(t, verdict.ExitPass, "Replica by replica", f.replicas[0], f.replicas[3])
			l := f.level(t, dir)
			received, sum, requests := 0.0, 0.0, 0.0
			for _, x := range l.Replicas {
				sum, requests = sum+x.Added[metric.GeneratedTokens], requests+x.Requests
			}
			n := 0
			for _, round := range l.Rounds {
				for _, s := range round.All() {
					if s.Phase != metric.Warmup { // the first burst's stands before the load
						received, n = received+float64(s.Usage.Output), n+1
					}
				}
			}
			if sum != received || requests != float64(n) || n < 120 {
				t.Errorf("the replicas counted %v tokens of %v requests, the client %v of %d", sum, requests, received, n)
			}
			busiest, share, of, why := l.Busiest()
			if v := l.Value("imbalance", metric.Steady, nil, nil); why != "" || of != 4 || math.Abs(v.V-4*share) > 1e-12 || busiest.URL == "" {
				t.Errorf("imbalance %v of %v, %d replicas, %q", v, share, of, why)
			}
		}))
	}
}

// The replicas of a level that a failed request ends early are counted once, and at rest.
func TestReplicasOfALevelThatEndsEarly(t *testing.T) {
	inBubble(func(t *testing.T) {
		f := newFarm(t)
		f.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			broken := r.Method == http.MethodPost && f.posts.Load() == 60
			if broken {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return broken
		}
		r, dir := f.run(t, closed, `speed = "every > 1 tok/s"`)
		r.check(t, verdict.ExitFail, "ended early", "Replica by replica")
		l := f.level(t, dir)
		sum, received := 0.0, 0.0
		for _, x := range l.Replicas {
			sum += x.Added[metric.GeneratedTokens]
		}
		for _, round := range l.Rounds {
			for _, s := range round.All() {
				if s.Usage != nil && s.Phase != metric.Warmup { // the first stands before the load
					received += float64(s.Usage.Output)
				}
			}
		}
		// Of the eight requests that were cut, the client got no usage; as many may have warmed up.
		if sum < received || sum > received+16*24 || received < 600 {
			t.Errorf("the replicas counted %v tokens, the client %v", sum, received)
		}
	})(t)
}

// A planted imbalance is named, and even and random spreads never are.
func TestLongImbalance(t *testing.T) { imbalances(t, 20) }
func TestImbalance(t *testing.T)     { imbalances(t, 2) }

func imbalances(t *testing.T, salts int) {
	const named = "are loaded unevenly"
	for salt := range salts {
		random := rand.New(rand.NewPCG(1, uint64(salt)))
		for _, tt := range []struct {
			name   string
			choose func(*http.Request, int64) int
			uneven bool
		}{
			{"70 10 10 10", weighted, true},
			{"in turn", nil, false},
			{"by hash", hashed, false},
			{"at random", func(*http.Request, int64) int { return random.IntN(4) }, false},
		} {
			t.Run(fmt.Sprint(tt.name, " ", salt), inBubble(func(t *testing.T) {
				f := newFarm(t)
				var mu sync.Mutex
				if f.choose = tt.choose; tt.name == "at random" {
					f.choose = func(r *http.Request, n int64) int {
						mu.Lock()
						defer mu.Unlock()
						return tt.choose(r, n)
					}
				}
				code := verdict.ExitPass
				if tt.uneven {
					code = verdict.ExitFail
				}
				r, _ := f.run(t, closed, `imbalance = "< 2"`)
				r.check(t, code, "imbalance")
				if said := strings.Contains(r.out, named); said != tt.uneven {
					t.Errorf("uneven: said %v, want %v\n%s", said, tt.uneven, r.out)
				}
				if tt.uneven && !strings.Contains(r.out, f.replicas[2]+" made ") {
					t.Errorf("the busiest replica is not named:\n%s", r.out)
				}
			}))
		}
	}
}

// Few conversations that each stay on a replica are said to be uneven by chance.
func TestFewSticky(t *testing.T) {
	inBubble(func(t *testing.T) {
		f := newFarm(t)
		var seen sync.Map
		next := atomic.Int64{}
		f.choose = func(r *http.Request, _ int64) int {
			i, ok := seen.Load(r.Header.Get("X-Session-Id"))
			if !ok { // of eight, the first four go to replica 0
				i = []int{0, 0, 0, 1, 2, 0, 3, 1}[next.Add(1)%8]
				seen.Store(r.Header.Get("X-Session-Id"), i)
			}
			return i.(int)
		}
		r, _ := f.run(t, "prompt {\n turns = 6\n}\n load {\n users = 2\n duration = \"20s\"\n}", "")
		r.check(t, verdict.ExitPass, "chance alone may spread them as unevenly")
		if strings.Contains(r.out, "are loaded unevenly") {
			t.Errorf("named:\n%s", r.out)
		}
	})(t)
}

// A replica that restarts, is of another version, or cannot be reached is an error that names it.
func TestLongReplicaFaults(t *testing.T) { replicaFaults(t, 20) }
func TestReplicaFaults(t *testing.T)     { replicaFaults(t, 1) }

func replicaFaults(t *testing.T, salts int) {
	for salt := range salts {
		which, at := salt%4, int64(30+4*salt)
		for _, tt := range []struct {
			name  string
			words string
			plant func(t *testing.T, f *farm)
		}{
			{"restarted", "was restarted under the load", func(t *testing.T, f *farm) {
				var once sync.Once
				f.choose = func(_ *http.Request, n int64) int {
					if n >= at {
						once.Do(func() { f.start(t, which) })
					}
					return int(n) % 4
				}
			}},
			{"restarted at the end", "was restarted under the load", func(t *testing.T, f *farm) {
				var once sync.Once
				f.before = func(i int, _ http.ResponseWriter, r *http.Request) bool {
					if i == which && r.URL.Path == "/version" && f.posts.Load() >= at {
						once.Do(func() { f.start(t, which) })
					}
					return false
				}
			}},
			{"another version", `differs from`, func(_ *testing.T, f *farm) {
				f.before = func(i int, w http.ResponseWriter, r *http.Request) bool {
					if i != max(which, 1) || r.URL.Path != "/version" {
						return false
					}
					fmt.Fprint(w, `{"version": "0.9"}`)
					return true
				}
			}},
			{"changed", `changed under the load: version was "`, func(_ *testing.T, f *farm) {
				f.before = func(i int, w http.ResponseWriter, r *http.Request) bool {
					if i != which || r.URL.Path != "/version" || f.posts.Load() < at {
						return false
					}
					fmt.Fprint(w, `{"version": "0.9"}`)
					return true
				}
			}},
			{"never reachable", "cannot be used", func(_ *testing.T, f *farm) {
				f.before = func(i int, _ http.ResponseWriter, r *http.Request) bool {
					if i == which && r.Header.Get("Via") == "" {
						panic(http.ErrAbortHandler)
					}
					return false
				}
			}},
			{"gone", "no longer answers", func(_ *testing.T, f *farm) {
				f.before = func(i int, _ http.ResponseWriter, r *http.Request) bool {
					if i == which && f.posts.Load() >= at && r.Header.Get("Via") == "" {
						panic(http.ErrAbortHandler)
					}
					return false
				}
			}},
		} {
			t.Run(fmt.Sprint(tt.name, " ", salt), inBubble(func(t *testing.T) {
				f := newFarm(t)
				tt.plant(t, f)
				name := f.replicas[which]
				if tt.name == "another version" {
					name = f.replicas[max(which, 1)]
				}
				r, _ := f.run(t, closed, "")
				r.check(t, verdict.ExitError, "the replica "+name, tt.words)
			}))
		}
	}
}

// Requests go to the front ends of a server in turn, each with the key, and every
// sample says where it went. A front end that leads to another server is an error with its name.
func TestUrls(t *testing.T) {
	for _, differs := range []bool{false, true} {
		t.Run(fmt.Sprint("differs ", differs), inBubble(func(t *testing.T) {
			backend := simServer(t)
			var got [2]atomic.Int64
			var urls [2]string
			for i := range urls {
				s := front(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "Bearer k-1" || r.URL.Query().Get("api-version") != "2025" {
						t.Errorf("%s without the key or the query", r.URL)
					}
					if strings.HasSuffix(r.URL.Path, "/completions") {
						got[i].Add(1)
					}
					if differs && i == 1 && r.URL.Path == "/version" {
						fmt.Fprint(w, `{"version": "0.9"}`)
						return
					}
					backend.ServeHTTP(w, r)
				})
				s.Start()
				urls[i] = s.URL
			}
			dir := t.TempDir()
			endpoint := fmt.Sprintf("engine = \"vllm\"\n  endpoint {\n urls = [%q, %q]\n api_key = \"k-1\"\n url_query = { api-version = \"2025\" }\n }", urls[0], urls[1])
			src := strings.Replace(fmt.Sprintf(smallPlan, "http://x", `ttft = "p95 < 2s"`), `endpoint { url = "http://x" }`, endpoint, 1)
			r := tokgate(t, "run", "--out", dir, writePlan(t, src))
			if differs {
				r.check(t, verdict.ExitError, "the front end "+urls[1]+" differs from "+urls[0])
				return
			}
			r.check(t, verdict.ExitPass, "20 of 20 requests completed")
			run, _, err := record.Read(dir)
			must.Do(t, err)
			sent := map[string]int{}
			for _, round := range run.Levels[0].Rounds {
				for _, s := range round.All() {
					sent[s.Front]++
				}
			}
			// The front ends also get what checks that the server is ready, and learns how it counts tokens.
			a, b := sent[urls[0]], sent[urls[1]]
			if sent[""] != 0 || a+b < 20 || a-b > 1 || b-a > 1 || a > int(got[0].Load()) || b > int(got[1].Load()) {
				t.Errorf("the samples say %v; the front ends got %d and %d", sent, got[0].Load(), got[1].Load())
			}
		}))
	}
}
