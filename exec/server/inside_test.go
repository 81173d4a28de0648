//go:build unix

package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// watched reads a server's metrics until the function enough returns true. It returns the telemetry
// session and the time. Call it in a synctest bubble.
func watched(t *testing.T, l *Launcher, s *plan.Server, url string, headers map[string]string, enough func(*telemetry.Session, time.Duration) bool) (*telemetry.Session, time.Duration) {
	t.Helper()
	c := l.Clock
	r := &reached{Launcher: l, server: s, url: url}
	r.config.BaseURL, r.config.Now, r.config.APIKey, r.config.Headers, r.config.Dial = url, c.Now, "sk-verysecret", headers, l.Dial
	r.config.Engine = engine.Of(s.Engine)
	w, leave := r.openWatch("tokgate-sim")
	defer leave()
	session := w.Begin(t.Context())
	defer session.End()
	deadline := c.Now() + 20*time.Second
	for !enough(session, c.Now()) {
		if c.Now() > deadline {
			t.Fatalf("it never came: %+v", session.Over(0, c.Now()))
		}
		must.Do(t, clock.Sleep(t.Context(), c, 2*time.Millisecond))
	}
	return session, c.Now()
}

func reads(n int) func(*telemetry.Session, time.Duration) bool {
	return func(s *telemetry.Session, now time.Duration) bool { return s.Over(0, now).Reads >= n }
}

func plain(engine string) *plan.Server {
	return &plan.Server{Name: "s", Engine: engine, Endpoint: &plan.Endpoint{}, Telemetry: plan.Telemetry{Interval: 10 * time.Millisecond}}
}

func TestInsideOfTheBuiltInServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, now := watched(t, newWorld(t, sim.Options{}).Launcher, plain("vllm"), "http://server.test", nil, reads(3))
		got := session.Over(0, now)
		must.Hold(t, got.Failed == 0 && got.Gauges["kv_usage"].N >= 2 && got.Gauges["running"].Max == 0, "got %+v", got)
		why := got.Missing["power"]
		must.Hold(t, strings.Contains(why, "was not started by tokgate"), "power: %q", why)
	})
}

// If a server's metrics page is missing, broken or incomplete, the result says why.
func TestInsideOfServersThatDoNotTell(t *testing.T) {
	for _, tt := range []struct {
		name, engine string
		answer       http.HandlerFunc
		want         []string
	}{
		{"SGLang without the flag", "sglang", http.NotFound, []string{"404", "--enable-metrics"}},
		{"llama.cpp without the flag", "llama.cpp", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotImplemented)
			fmt.Fprint(w, `{"error":{"code":501,"message":"This server does not support metrics endpoint. Start it with `+"`--metrics`"+`","type":"not_supported_error"}}`)
		}, []string{"501", "Start it with `--metrics`"}},
		{"a failing one", "vllm", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "collector crashed", 500) }, []string{"500", "collector crashed"}},
		{"a page cut by its length", "vllm", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			fmt.Fprint(w, "vllm:num_requests_running 12\n")
		}, []string{"unexpected EOF"}},
		{"a page cut by a proxy", "vllm", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "vllm:num_requests_running 12\nvllm:num_requests_wai")
		}, []string{"cut off"}},
		{"another server's page", "openai", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "go_goroutines 12\n") }, []string{"no metric of vLLM, SGLang, llama.cpp"}},
		{"a gateway's start page", "openai", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html></html>\n") }, []string{"no metric of vLLM"}},
		{"a page without an end", "vllm", func(w http.ResponseWriter, r *http.Request) {
			line := strings.Repeat("# ", 32000) + "\n"
			for range 9 << 20 / len(line) {
				fmt.Fprint(w, line)
			}
		}, []string{"longer than 8388608 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				w.instead = tt.answer
				session, now := watched(t, w.Launcher, plain(tt.engine), "http://server.test", nil, reads(1))
				got := session.Over(0, now)
				for _, want := range tt.want {
					why := got.Missing["queue_wait"]
					must.Hold(t, strings.Contains(why, want), "missing because %q, want %q in it", why, want)
				}
			})
		})
	}
}

// If some reads of the metrics page fail, the other readings are used. The failures are counted.
func TestInsideBridgesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		var pages atomic.Int32 // number of requests, which may come from several connections
		w.instead = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			n := pages.Add(1)
			if n%6 == 2 {
				http.Error(rw, "now and then", 500)
				return
			}
			fmt.Fprintf(rw, "vllm:num_preemptions_total %d\nvllm:num_requests_waiting 4\n", n)
		})
		session, now := watched(t, w.Launcher, plain("vllm"), "http://server.test", nil, reads(9))
		got := session.Over(0, now)
		must.Hold(t, got.Failed >= 2 && got.Gauges["waiting"].N >= 5 && got.Gauges["waiting"].Max == 4 && got.Gauges["waiting"].Missed == got.Failed, "got %+v", got)
	})
}

// A metrics page on the server's host gets the server's API key. A page on another host does not.
func TestInsideKeepsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		var own, other atomic.Value
		w.instead = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			seen := &own
			if r.Host != "server.test" {
				seen = &other
			}
			seen.Store(r.URL.Path + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Team"))
			fmt.Fprint(rw, "vllm:num_requests_waiting 4\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 300\n")
		})
		const url = "http://server.test/v1"
		headers := map[string]string{"X-Team": "perf"}

		s := plain("vllm")
		watched(t, w.Launcher, s, url, headers, reads(1))
		must.Hold(t, own.Load() == "/metrics Bearer sk-verysecret perf", "the server saw %q", own.Load())
		s.Telemetry.URL, s.Telemetry.DCGM = "http://server.test/admin/metrics", "http://exporter.test/metrics"
		watched(t, w.Launcher, s, url, headers, func(s *telemetry.Session, now time.Duration) bool {
			return s.Over(0, now).Gauges["power"].Max == 300
		})
		must.Hold(t, own.Load() == "/admin/metrics Bearer sk-verysecret perf", "the server saw %q", own.Load())
		must.Hold(t, other.Load() == "/metrics  ", "the exporter saw %q", other.Load())
	})
}

func TestInsideOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plain("vllm")
		s.Telemetry.Off = true
		session, _ := watched(t, newWorld(t, sim.Options{}).Launcher, s, "http://server.test", nil, reads(0))
		got := session.Over(0, time.Second)
		if got.Reads != 0 || got.Missing["waiting"] != "telemetry is off in the plan" || got.Missing["power"] != "telemetry is off in the plan" {
			t.Errorf("got %+v", got)
		}
	})
}

// standIn sets a PATH that contains only the given scripts, by name.
func standIn(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script), 0o755))
	}
	t.Setenv("PATH", dir)
}

const nvidia = `echo "$@" > "$0.args"
while :; do echo "0, GPU-a, 300.5, 90, 1024, 60, 1700"; sleep 0.02; done`

const amd = `echo "$@" > "$0.args"; echo '{"gpu_data": [{"power": {"socket_power": {"value": 742, "unit": "W"}}}]}'`

// The test starts real programs, and waits for their output without a time limit.
func TestInsideFindsTheGPUs(t *testing.T) {
	process := func(change func(*plan.Server)) *plan.Server {
		s := plain("vllm")
		s.Endpoint, s.Process = nil, &plan.Process{}
		if change != nil {
			change(s)
		}
		return s
	}
	for _, tt := range []struct {
		name    string
		scripts map[string]string
		server  *plan.Server
		power   float64
		args    string // expected end of the monitoring program's command line
		why     string
	}{
		{"nvidia-smi", map[string]string{"nvidia-smi": nvidia, "amd-smi": amd}, process(nil), 300.5, "-lms 100", ""},
		{"amd-smi", map[string]string{"amd-smi": amd}, process(nil), 742, "metric --json", ""},
		{"neither", nil, process(nil), 0, "", "there is no nvidia-smi and no amd-smi on the PATH"},
		{"by the environment of the process", map[string]string{"nvidia-smi": nvidia}, process(func(s *plan.Server) {
			s.Process.Env = map[string]string{"CUDA_VISIBLE_DEVICES": " 3 "}
		}), 300.5, "-i 3", ""},
		{"the process sees none", map[string]string{"nvidia-smi": nvidia}, process(func(s *plan.Server) {
			s.Process.Env = map[string]string{"CUDA_VISIBLE_DEVICES": ""}
		}), 0, "", "the server has no GPU"},
		{"by the process's gpus", map[string]string{"nvidia-smi": nvidia}, process(func(s *plan.Server) {
			s.Process.GPUs = &plan.GPUs{IDs: []string{"GPU-a"}}
		}), 300.5, "-i GPU-a", ""},
		{"a container without GPUs", map[string]string{"nvidia-smi": nvidia}, process(func(s *plan.Server) {
			s.Process, s.Container = nil, &plan.Container{}
		}), 0, "", "the server has no GPU"},
		{"an endpoint's GPUs are not looked for here", map[string]string{"nvidia-smi": nvidia}, plain("vllm"), 0, "", "was not started by tokgate"},
		{"unless they are named", map[string]string{"nvidia-smi": nvidia}, func() *plan.Server {
			s := plain("vllm")
			s.Telemetry.GPUs = []string{"1"}
			return s
		}(), 300.5, "-i 1", ""},
		{"no driver", map[string]string{"nvidia-smi": `echo "NVIDIA-SMI has failed"; exit 9`}, process(nil), 0, "", "nvidia-smi ended: NVIDIA-SMI has failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			standIn(t, tt.scripts)
			for _, name := range []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} {
				t.Setenv(name, "")
				os.Unsetenv(name)
			}
			tt.server.Telemetry.Interval = 100 * time.Millisecond
			l := New(Options{Clock: clock.NewReal()})
			var w telemetry.Watch
			defer (&reached{Launcher: l, server: tt.server}).gpuSource(&w, tt.server.Telemetry)()
			power, why := 0.0, w.NoGPU
			for w.GPU != nil && power == 0 && (tt.why == "" || !strings.Contains(why, tt.why)) {
				answered := false
				w.GPU(t.Context(), func(r *telemetry.Reading, err error) {
					if answered = true; err != nil {
						why = err.Error()
						return
					}
					power, why = r.Gauges["power"], ""
				})
				if clock.Until(t.Context(), l.Clock, func() bool { return answered }) != nil || clock.Sleep(t.Context(), l.Clock, 2*time.Millisecond) != nil {
					t.Fatal(t.Context().Err())
				}
			}
			if power != tt.power || !strings.Contains(why, tt.why) || (tt.why == "") != (why == "") {
				t.Errorf("%v W, %q; want %v W, %q", power, why, tt.power, tt.why)
			}
			for name := range tt.scripts {
				raw, err := os.ReadFile(filepath.Join(os.Getenv("PATH"), name+".args"))
				ran := err == nil && strings.HasSuffix(strings.TrimSpace(string(raw)), tt.args)
				must.Hold(t, tt.args == "" || ran == (name == "nvidia-smi" || len(tt.scripts) == 1), "%s was run with %q", name, raw)
			}
		})
	}
}

// BenchmarkScrape reports the share of one core that is used to read a metrics page once a second.
// The page has 1,500 lines and comes over a socket. The share includes the work of the server.
func BenchmarkScrape(b *testing.B) {
	var page strings.Builder
	for i := range 1400 {
		fmt.Fprintf(&page, "http_request_duration_seconds_bucket{handler=\"/v1/chat/completions\",le=\"%d\",method=\"POST\"} %d.0\n", i, i)
	}
	for i := range 98 {
		fmt.Fprintf(&page, "vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"%d\",model_name=\"m\"} %d.0\n", i, i)
	}
	page.WriteString("vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 100\nvllm:request_queue_time_seconds_sum{engine=\"0\",model_name=\"m\"} 9\n")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(page.String())) }))
	defer front.Close()
	c := clock.NewReal()
	r := &reached{Launcher: New(Options{Clock: c}), server: plain("vllm"), url: front.URL}
	r.config.BaseURL, r.config.Now, r.config.Engine = front.URL, c.Now, engine.Of("vllm")
	w, leave := r.openWatch("m")
	defer leave()
	before, _ := CPUTime()
	for b.Loop() {
		done := false
		w.Server(context.Background(), func(_ *telemetry.Reading, err error) {
			must.Do(b, err)
			done = true
		})
		must.Do(b, clock.Until(context.Background(), c, func() bool { return done }))
	}
	after, _ := CPUTime()
	b.ReportMetric((after-before).Seconds()/float64(b.N)*100, "%core/(1/s)")
}
