package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// metrics holds what /metrics shows in addition to the engine's own counters. The metrics have the
// names of SGLang or vLLM, whichever is simulated. The time of a token is the end of the engine's
// step, not the time at which its bytes were written.
type metrics struct {
	like                           string
	ttft, itl, tpot, e2e           *histogram
	queue, prefill, decode, inside *histogram
	finished                       map[string]int // by finish reason
	text                           []byte         // of the last page
}

// The buckets have the bounds of vLLM's histograms (vllm/v1/metrics/loggers.py). So a reader of
// vLLM's metrics can read these metrics.
var (
	firstBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1,
		2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenBounds   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

func newMetrics(like string) *metrics {
	return &metrics{
		like: like,
		ttft: newHistogram(firstBounds), itl: newHistogram(tokenBounds), tpot: newHistogram(tokenBounds),
		e2e: newHistogram(requestBounds), queue: newHistogram(requestBounds), prefill: newHistogram(requestBounds),
		decode: newHistogram(requestBounds), inside: newHistogram(requestBounds),
		finished: make(map[string]int),
	}
}

type metricsState struct {
	last   time.Duration // time at which the previous tokens were emitted
	finish string        // finish reason of the answer, once it is complete
}

func (m *metrics) emission(e *Emission, r *metricsState) {
	t := e.Times
	if e.Total == e.Tokens {
		m.ttft.add(t.First - t.Submitted)
	} else {
		m.itl.add(e.At - r.last)
	}
	r.last = e.At
	if !e.Last {
		return
	}
	m.finished[r.finish]++
	m.e2e.add(t.Finished - t.Submitted)
	m.queue.add(t.Scheduled - t.Queued)
	m.prefill.add(t.Prefilled - t.Scheduled)
	m.decode.add(t.Finished - t.Prefilled)
	m.inside.add(t.Finished - t.Scheduled)
	if e.Total > 1 {
		m.tpot.add((t.Finished - t.Prefilled) / time.Duration(e.Total-1))
	}
}

func named(of, ours string) string {
	series := engine.Of(of).Series
	i := slices.IndexFunc(series, func(s engine.Series) bool { return s.Ours == ours })
	return series[i].Name
}

// page returns the page, which is valid until the next call.
func (m *metrics) page(model string, s State) []byte {
	p := page{text: m.text[:0], labels: fmt.Sprintf(`engine="0",model_name="%s"`, labelEscapes.Replace(model))}
	if m.like == sglang {
		m.sglang(&p, s)
	} else {
		m.vllm(&p, s)
	}
	m.text = p.text
	return p.text
}

const (
	vllm   = "vllm"
	sglang = "sglang"
)

func (m *metrics) sglang(p *page, s State) {
	name := func(ours string) string { return named(sglang, ours) }
	p.one(name("running"), "gauge", "The number of running requests.", float64(s.Running))
	p.one(name("waiting"), "gauge", "The number of requests in the waiting queue.", float64(s.Waiting))
	p.one(name("kv_usage"), "gauge", "The token usage.", s.KV)
	p.one(name(metric.Preempted), "counter", "The number of retracted requests.", 0) // the engine model never preempts
	p.one(name(metric.Aborted), "counter", "The number of aborted requests.", float64(m.finished["abort"]))
	p.one(name(metric.CacheQueries), "counter", "Number of prefill tokens processed, cached ones included.", float64(s.PromptTokens))
	p.one(name(metric.CacheHits), "counter", "Number of cached prompt tokens.", float64(s.CacheHits))
	p.head("sglang:evicted_tokens_total", "counter", "The number of tokens that left the prefix cache.")
	p.line("sglang:evicted_tokens_total", `,cache_type="RadixCache"`, float64(s.CacheEvicted))
	p.one(name(metric.GeneratedTokens), "counter", "Number of generation tokens processed.", float64(s.OutputTokens))
	if s.Drafts > 0 {
		p.one(name("accept_rate"), "gauge", "The acceptance rate of speculative decoding.", float64(s.AcceptedTokens)/float64(max(s.DraftTokens, 1)))
		p.one(name("accept_length"), "gauge", "The average acceptance length of speculative decoding.", 1+float64(s.AcceptedTokens)/float64(s.Drafts))
	}
	p.histogram(name("queue_wait"), "Histogram of queueing time in seconds.", m.queue)
	p.histogram(name("server_ttft"), "Histogram of time to first token in seconds.", m.ttft)
	p.histogram(name("server_itl"), "Histogram of inter-token latency in seconds.", m.itl)
	p.histogram(name("server_e2e"), "Histogram of end-to-end request latency in seconds.", m.e2e)
	p.labels += `,stage="prefill_forward"`
	p.histogram(name("prefill"), "Latency of the stages of a request in seconds.", m.prefill)
}

func (m *metrics) vllm(p *page, s State) {
	named := func(ours string) string { return named(vllm, ours) }
	p.one(named("running"), "gauge", "Number of requests in model execution batches.", float64(s.Running))
	p.one(named("waiting"), "gauge", "Number of requests waiting to be processed.", float64(s.Waiting))
	p.one(named("kv_usage"), "gauge", "KV-cache usage. 1 means 100 percent usage.", s.KV)
	p.one(named(metric.Preempted), "counter", "Cumulative number of preemptions from the engine.", 0) // the engine model never preempts
	p.one("vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", float64(s.PromptTokens))
	p.one(named(metric.GeneratedTokens), "counter", "Number of generation tokens processed.", float64(s.OutputTokens))
	p.one(named(metric.CacheQueries), "counter", "Prefix cache queries, in tokens.", float64(s.CacheQueries))
	p.one(named(metric.CacheHits), "counter", "Prefix cache hits, in tokens.", float64(s.CacheHits))
	if len(s.AcceptedAt) > 0 {
		p.one(named(metric.Drafts), "counter", "Number of speculative decoding drafts.", float64(s.Drafts))
		p.one(named(metric.DraftTokens), "counter", "Number of draft tokens.", float64(s.DraftTokens))
		p.one(named(metric.AcceptedTokens), "counter", "Number of accepted tokens.", float64(s.AcceptedTokens))
		at := named(metric.AcceptedTokens + "[i]")
		p.head(at, "counter", "Accepted tokens per draft position.")
		for i, n := range s.AcceptedAt {
			p.line(at, fmt.Sprintf(`,position="%d"`, i), float64(n))
		}
	}
	p.head("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	for _, reason := range []string{"stop", "length", "abort"} {
		p.line("vllm:request_success_total", fmt.Sprintf(`,finished_reason="%s"`, reason), float64(m.finished[reason]))
	}
	p.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", m.ttft)
	p.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", m.itl)
	p.histogram("vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", m.tpot)
	p.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", m.e2e)
	p.histogram(named("queue_wait"), "Histogram of time spent in WAITING phase for request.", m.queue)
	p.histogram(named("prefill"), "Histogram of time spent in PREFILL phase for request.", m.prefill)
	p.histogram(named("decode"), "Histogram of time spent in DECODE phase for request.", m.decode)
	p.histogram("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", m.inside)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

type page struct {
	text   []byte
	labels string
}

func (p *page) head(name, kind, help string) {
	p.add("# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n")
}

func (p *page) add(words ...string) {
	for _, w := range words {
		p.text = append(p.text, w...)
	}
}

func (p *page) line(name, labels string, v float64) {
	p.add(name, "{", p.labels, labels, "} ")
	p.text = strconv.AppendFloat(p.text, v, 'g', -1, 64)
	p.text = append(p.text, '\n')
}

func (p *page) one(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.line(name, "", v)
}

func (p *page) histogram(name, help string, h *histogram) {
	p.head(name, "histogram", help)
	n := 0
	for i, c := range h.counts {
		n += c
		p.add(name, "_bucket{", p.labels, h.les[i])
		p.text = append(strconv.AppendInt(p.text, int64(n), 10), '\n')
	}
	p.line(name+"_sum", "", h.sum)
	p.line(name+"_count", "", float64(n))
}

type histogram struct {
	bounds []float64 // upper, inclusive, ascending
	counts []int     // number of values in each bucket; the last bucket is above all bounds
	les    []string  // ends of the text label of each bucket, such as `,le="+Inf"} `
	sum    float64

	last    time.Duration // value before; the requests of a step have the same
	seconds float64
	place   int
}

func newHistogram(bounds []float64) *histogram {
	h := &histogram{bounds: bounds, counts: make([]int, len(bounds)+1)}
	for _, bound := range bounds {
		h.les = append(h.les, `,le="`+strconv.FormatFloat(bound, 'g', -1, 64)+`"} `)
	}
	h.les = append(h.les, `,le="+Inf"} `)
	return h
}

func (h *histogram) add(d time.Duration) {
	if d != h.last {
		h.last, h.seconds = d, d.Seconds()
		h.place, _ = slices.BinarySearch(h.bounds, h.seconds)
	}
	h.counts[h.place]++
	h.sum += h.seconds
}
