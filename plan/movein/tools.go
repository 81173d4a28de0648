package movein

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// vllmBench reads the flags of `vllm bench serve`.
func vllmBench(o *options, b *Benchmark) {
	o.drop("save-result", "save-detailed", "append-result", "result-dir", "result-filename", "label", "metadata", "disable-tqdm",
		"percentile-metrics", "metric-percentiles", "tokenizer", "tokenizer-mode", "trust-remote-code", "skip-tokenizer-init",
		"request-id-prefix", "plot-timeline", "timeline-itl-thresholds", "plot-dataset-stats", "ready-check-timeout-sec", "profile")
	b.URL = o.text("http://"+net.JoinHostPort(o.text("127.0.0.1", "host"), o.text("8000", "port")), "base-url")
	b.Model, b.ServedAs = o.text("", "model"), o.text("", "served-model-name")
	backend := o.text("openai", "backend", "endpoint-type")
	api := map[string]string{"openai": "completions", "vllm": "completions", "openai-chat": "chat", "sglang": "completions", "tensorrt-llm": "completions"}[backend]
	o.fail(api == "", "--backend %s: a plan speaks chat and completions with an OpenAI-compatible server", backend)
	if backend == "sglang" {
		b.Engine = backend
	}
	if strings.HasSuffix(o.text("", "endpoint"), "/chat/completions") {
		api = "chat"
	}
	l := Load{API: api}
	o.dataset(&l, b)
	l.Name = shape(l)
	o.sampling(&l)
	o.headers(b, "=", "header")
	for _, slo := range o.slo() {
		l.Good = append(l.Good, Pair{map[string]string{"ttft": "ttft", "tpot": "tpot", "e2el": "e2e"}[slo.Name], quote("< " + slo.Value + "ms")})
	}
	l.Requests, l.Warmup = o.whole("num-prompts"), o.count(0, "num-warmups")
	if l.Requests == nil {
		l.Requests = []int{1000}
	}
	l.Concurrency = o.whole("max-concurrency")
	rate, burstiness := o.number(math.Inf(1), "request-rate"), o.number(1, "burstiness")
	switch {
	case !math.IsInf(rate, 1):
		if l.Concurrency != nil {
			b.lose("--max-concurrency %v beside a rate: a plan sends every request when it is due", l.Concurrency[0])
		}
		l.Concurrency, l.Rates, l.Warmup = nil, []float64{rate}, 0
		if l.arrive(burstiness); burstiness == 1 {
			l.Arrivals = ""
		}
	case l.Concurrency == nil:
		l.Burst, l.Requests, l.Warmup = l.Requests[0], nil, 0
	}
	if l.API == "chat" && l.Input > 0 {
		b.lose("lengths of chat prompts: this tool does not count the chat template in them, a plan does")
	}
	b.Loads = []Load{l}
}

// arrive sets how the arrivals of a rate are spread, by the shape of a gamma distribution.
func (l *Load) arrive(shape float64) {
	switch {
	case math.IsInf(shape, 1):
		l.Arrivals = "constant"
	case shape != 1:
		l.Arrivals, l.Burstiness = "gamma", shape
	}
}

// shape names a load by its lengths.
func shape(l Load) string {
	switch {
	case l.Dataset != "":
		return "dataset"
	case l.Trace != "":
		return "trace"
	}
	return fmt.Sprintf("in%d-out%d", l.Input, l.Output)
}

// dataset reads the lengths or the file of `vllm bench serve`.
func (o *options) dataset(l *Load, b *Benchmark) {
	file := o.text("", "dataset-path")
	general := o.whole("input-len")
	out := o.count(0, "output-len")
	ignore := o.is("ignore-eos")
	o.drop("disable-shuffle")
	o.seed(b)
	switch name := o.text("random", "dataset-name"); name {
	case "random":
		l.Input, l.Output = o.count(1024, "random-input-len"), o.count(128, "random-output-len")
		if general != nil {
			l.Input = general[0]
		}
		if out > 0 {
			l.Output = out
		}
		if l.Prefix = o.count(0, "random-prefix-len"); l.Prefix > 0 {
			l.Input, l.Groups = l.Input+l.Prefix, 1
		}
		in, jitter := o.ranges()
		if l.Jitter = jitter; in > 0 {
			b.lose("prompts of %g%% around %d tokens: prompts of a workload have one length; several workloads and a mix have several", 100*in, l.Input)
		}
	case "prefix_repetition":
		l.Prefix, l.Groups = o.count(256, "prefix-repetition-prefix-len"), o.count(10, "prefix-repetition-num-prefixes")
		l.Input = l.Prefix + o.count(256, "prefix-repetition-suffix-len")
		if l.Output = o.count(128, "prefix-repetition-output-len"); out > 0 {
			l.Output = out
		}
		l.Natural = !ignore
	case "sharegpt", "custom", "speed_bench":
		o.fail(file == "", "--dataset-name %s needs --dataset-path: a plan names the file", name)
		prefix := strings.ReplaceAll(name, "_", "-")
		l.Dataset, l.Natural = relative(file, o.plan), !ignore
		l.Output = o.count(map[string]int{"sharegpt": 1024, "custom": 256, "speed_bench": 256}[name], prefix+"-output-len")
		if out > 0 {
			l.Output = out
		}
		if name == "sharegpt" {
			b.lose("lengths of the file's answers: at most %d tokens each", l.Output)
		}
	case "timed_trace":
		o.fail(file == "", "--dataset-name timed_trace needs --dataset-path: a plan names the file")
		l.Trace = relative(file, o.plan)
	default:
		o.fail(true, "--dataset-name %s: a plan has prompts of a length, or of a file (sharegpt, custom, timed_trace)", name)
	}
}

// ranges reads --random-range-ratio, one number or one each for prompts and answers.
func (o *options) ranges() (in, out float64) {
	text := o.text("0", "random-range-ratio")
	if strings.HasPrefix(text, "{") {
		var both struct{ Input, Output float64 }
		o.fail(json.Unmarshal([]byte(text), &both) != nil, "--random-range-ratio %s is no number", text)
		return both.Input, both.Output
	}
	n, err := strconv.ParseFloat(text, 64)
	o.fail(err != nil || n < 0 || n >= 1, "--random-range-ratio %s is no number from 0 to 1", text)
	return n, n
}

// guidellm reads the flags of `guidellm run`, and of `guidellm benchmark` before it.
func guidellm(o *options, b *Benchmark) {
	o.drop("output", "output-path", "output-dir", "outputs", "output-extras", "disable-progress", "disable-console", "disable-console-outputs",
		"disable-console-interactive", "label", "l", "tokenizer", "processor", "processor-args", "display-scheduler-stats", "data-loader", "data-samples")
	o.seed(b)
	o.fail(o.is("config", "scenario", "c"), "a scenario file: write its settings as flags")
	backend, data := o.settings("backend"), o.settings("data")
	profile, limit := o.settings("profile", "rate-type"), o.settings("constraint")
	b.URL, b.Model = withScheme(o.text(backend["target"], "target")), o.text(backend["model"], "model")
	l := Load{API: "chat"}
	switch request := o.text(backend["request_format"], "request-type", "request-format"); {
	case strings.HasSuffix(request, "text_completions") || strings.HasSuffix(request, "/v1/completions"):
		l.API = "completions"
	case request != "" && !strings.Contains(request, "chat"):
		o.fail(true, "requests of the type %s: a plan speaks chat and completions", request)
	}
	l.Input, l.Output = o.setting(data, "prompt_tokens"), o.setting(data, "output_tokens")
	if file := strings.TrimPrefix(data["path"]+data["source"], "file:"); l.Input == 0 {
		o.fail(file == "", "--data has neither prompt_tokens nor the path of a file")
		l.Dataset, l.Natural, l.Output = relative(file, o.plan), true, 512
		if strings.HasPrefix(data["kind"], "trace") {
			l.Dataset, l.Trace = "", relative(file, o.plan)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if strings.HasSuffix(name, "_stdev") || strings.HasSuffix(name, "_min") || strings.HasSuffix(name, "_max") || name == "prefix_buckets" {
			b.lose("--data %s=%s: every prompt and answer has the mean length", name, data[name])
		}
	}
	o.single(data["turns"])
	l.Name = shape(l)
	o.rates(&l, b, profile)
	if n := max(o.setting(limit, "count"), o.setting(limit, "max_num"), o.count(0, "max-requests")); n > 0 {
		l.Requests = []int{n}
	} else if l.Seconds = max(float64(o.setting(limit, "seconds")), float64(o.setting(limit, "max_duration")), o.number(0, "max-seconds")); l.Seconds == 0 {
		b.lose("an end: the command sets none, so the plan's defaults do")
	}
	b.Loads = []Load{l}
}

// rates reads the profile of guidellm: what its strategies send.
func (o *options) rates(l *Load, b *Benchmark, profile map[string]string) {
	override, _ := o.take("override") // a name and its values, again and again
	for i := 0; i+1 < len(override); i += 2 {
		profile[strings.TrimPrefix(override[i], "profile.")] = override[i+1]
	}
	rate := o.numbers("rate")
	list := func(name string) []float64 {
		if text := profile[name]; text != "" {
			o.values[name] = []string{strings.NewReplacer("[", "", "]", "", " ", "").Replace(text)}
			return o.numbers(name)
		}
		return rate
	}
	if profile["rampup_duration"] != "" {
		b.lose("rampup_duration: slots start spread over one request, and are measured once all run")
	}
	switch kind := profile["kind"]; kind {
	case "synchronous":
		l.Concurrency = []int{1}
	case "concurrent", "throughput":
		streams := list("streams")
		if kind == "throughput" {
			streams = list("max_concurrency")
		}
		o.fail(len(streams) == 0, "profile %s without a number of streams: a plan names its levels", kind)
		for _, n := range streams {
			l.Concurrency = append(l.Concurrency, int(n))
		}
	case "constant", "async", "poisson":
		l.Rates = list("rate")
		o.fail(len(l.Rates) == 0, "profile %s without a rate", kind)
		if kind != "poisson" {
			l.Arrivals = "constant"
		}
	case "replay":
		o.fail(l.Trace == "", "profile replay needs a trace as --data")
	case "sweep", "":
		l.Concurrency = []int{1}
		b.lose("profile sweep: its rates follow from the server; only its first step, one request at a time, is here. capacity { over = \"rate\" } searches the largest rate that holds the SLA")
	default:
		o.fail(true, "profile %s: no load of a plan", kind)
	}
}

// aiperf reads the flags of `aiperf profile`.
func aiperf(o *options, b *Benchmark) {
	o.drop("tokenizer", "tokenizer-trust-remote-code", "tokenizer-revision", "streaming", "artifact-dir", "output-artifact-dir", "profile-export-prefix",
		"ui", "ui-type", "no-server-metrics", "server-metrics", "gpu-telemetry", "no-gpu-telemetry", "workers-max", "record-processors",
		"export-level", "num-dataset-entries", "num-prompts", "random-seed", "log-level", "v", "verbose", "model-selection-strategy",
		"use-server-token-count", "slice-duration", "prompt-input-tokens-block-size", "request-timeout-seconds")
	b.URL, b.Model = withScheme(o.text("", "url", "u")), o.text("", "model", "model-names", "m")
	l := Load{API: o.text("chat", "endpoint-type")}
	o.fail(l.API != "chat" && l.API != "completions", "--endpoint-type %s: a plan speaks chat and completions", l.API)
	if o.is("api-key") {
		b.lose("--api-key: uncomment api_key, and set the key in the environment")
	}
	o.headers(b, ":", "header", "H")
	l.Request = o.fields("extra-inputs")
	exact := false
	l.Request = slices.DeleteFunc(l.Request, func(p Pair) bool {
		exact = exact || p.Name == "ignore_eos" || p.Name == "min_tokens"
		return p.Name == "ignore_eos" || p.Name == "min_tokens"
	})
	in, out := o.whole("isl", "synthetic-input-tokens-mean", "prompt-input-tokens-mean"), o.count(0, "osl", "output-tokens-mean", "prompt-output-tokens-mean")
	o.fail(len(in) > 1, "--isl with several lengths: write one line for each")
	l.Output, l.Natural = out, !exact || out == 0
	if l.Output == 0 {
		l.Output = 1024
		b.lose("no --osl: answers end by themselves, at the latest after %d tokens", l.Output)
	}
	if l.Input = 550; len(in) > 0 {
		l.Input = in[0]
	}
	for _, name := range []string{"isl-stddev", "synthetic-input-tokens-stddev", "prompt-input-tokens-stddev", "osl-stddev", "output-tokens-stddev", "prompt-output-tokens-stddev"} {
		if n := o.number(0, name); n > 0 {
			b.lose("--%s %g: every prompt and answer has the mean length", name, n)
		}
	}
	o.prefixes(&l)
	if file := o.text("", "input-file"); file != "" {
		l.Input, l.Dataset = 0, relative(file, o.plan)
		if kind := o.text("", "custom-dataset-type"); strings.HasSuffix(kind, "_trace") {
			l.Dataset, l.Trace = "", l.Dataset
			l.Output, l.Natural = 0, false
			o.drop("fixed-schedule", "fixed-schedule-auto-offset")
		}
	}
	l.Name = shape(l)
	for _, slo := range o.slo() {
		name := map[string]string{"time_to_first_token": "ttft", "request_latency": "e2e", "inter_token_latency": "tpot"}[slo.Name]
		if name == "" {
			b.lose("--goodput %s:%s: no metric of a single request here", slo.Name, slo.Value)
			continue
		}
		l.Good = append(l.Good, Pair{name, quote("< " + slo.Value + "ms")})
	}
	o.schedule(&l, b)
	b.Loads = []Load{l}
}

// prefixes reads what prompts of `aiperf profile` share.
func (o *options) prefixes(l *Load) {
	pool, length := o.count(0, "num-prefix-prompts", "prefix-prompt-pool-size", "prompt-prefix-pool-size"), o.count(0, "prefix-prompt-length", "prompt-prefix-length")
	if system := o.count(0, "shared-system-prompt-length"); system > 0 {
		pool, length = 1, system
	}
	if pool > 0 && length > 0 {
		l.Prefix, l.Groups, l.Input = length, pool, l.Input+length
	}
	o.single(o.text("", "conversation-turn-mean", "session-turns-mean"))
}

// single refuses conversations: the tools count them in ways of their own.
func (o *options) single(turns string) {
	o.fail(turns != "" && turns != "1", "conversations of %s turns: write users, think_time and turns by hand, as docs/traffic.md shows", turns)
}

// schedule reads how requests of `aiperf profile` arrive.
func (o *options) schedule(l *Load, b *Benchmark) {
	l.Concurrency, l.Rates = o.whole("concurrency"), o.numbers("request-rate")
	l.Requests, l.Seconds = o.whole("request-count", "num-requests"), o.number(0, "benchmark-duration")
	l.Warmup = o.count(0, "warmup-request-count", "num-warmup-requests")
	pattern, smooth := o.text("poisson", "arrival-pattern", "request-rate-mode"), o.number(1, "arrival-smoothness", "vllm-burstiness")
	switch {
	case l.Trace != "":
		l.Concurrency, l.Rates = nil, nil
		return
	case len(l.Rates) > 0:
		if l.Concurrency != nil {
			b.lose("--concurrency %d beside a rate: a plan sends every request when it is due", l.Concurrency[0])
		}
		l.Concurrency, l.Warmup = nil, 0
		if l.arrive(smooth); pattern == "constant" {
			l.Arrivals = pattern
		}
	case l.Concurrency == nil:
		l.Concurrency = []int{1}
	}
	if l.Requests == nil && l.Seconds == 0 {
		for _, n := range l.Concurrency {
			l.Requests = append(l.Requests, max(10, 2*n)) // its default
		}
	}
}

// sampling reads the fields that `vllm bench serve` adds to the body of each request.
func (o *options) sampling(l *Load) {
	for _, name := range []string{"temperature", "top-p", "top-k", "min-p", "frequency-penalty", "presence-penalty", "repetition-penalty"} {
		if v := o.text("", name); v != "" {
			_, err := strconv.ParseFloat(v, 64)
			o.fail(err != nil, "--%s %s is no number", name, v)
			l.Request = append(l.Request, Pair{strings.ReplaceAll(name, "-", "_"), v})
		}
	}
	l.Request = append(l.Request, o.fields("extra-body")...)
}

// headers reads HTTP headers. A plan holds no secrets, so those that may be one are left out.
func (o *options) headers(b *Benchmark, separator string, names ...string) {
	values, _ := o.take(names...)
	for _, v := range values {
		name, value, _ := strings.Cut(v, separator)
		if secret.MatchString(name) {
			b.lose("the header %s, which may be a secret: write env.NAME for its value, or uncomment api_key", name)
			continue
		}
		b.Headers = append(b.Headers, Pair{strings.TrimSpace(name), quote(strings.TrimSpace(value))})
	}
}

var secret = regexp.MustCompile("(?i)auth|key|token|cookie|secret")

// slo reads objectives such as "ttft:200 tpot:50", in milliseconds.
func (o *options) slo() []Pair {
	var all []Pair
	values, _ := o.take("goodput")
	for _, s := range strings.Fields(strings.Join(values, " ")) {
		name, value, _ := strings.Cut(s, ":")
		_, err := strconv.ParseFloat(value, 64)
		o.fail(err != nil, "--goodput %s is not NAME:MILLISECONDS", s)
		all = append(all, Pair{name, value})
	}
	return all
}

// seed notes that a plan has seeds of its own.
func (o *options) seed(b *Benchmark) {
	if v := o.text("", "seed", "random-seed"); v != "" && v != "0" {
		b.lose("--seed %s: prompts of a plan differ in every round, and are the same in every run", v)
	}
}

// settings reads kind=x,a=1,b=2 or JSON; a value without = is the kind.
func (o *options) settings(names ...string) map[string]string {
	all := map[string]string{}
	values, _ := o.take(names...)
	for _, v := range values {
		var members map[string]any
		if strings.HasPrefix(v, "{") {
			o.fail(json.Unmarshal([]byte(v), &members) != nil, "--%s is no JSON object", names[0])
			for name, m := range members {
				text, _ := json.Marshal(m)
				all[name] = strings.Trim(string(text), `"`)
			}
			continue
		}
		for _, part := range strings.Split(v, ",") {
			name, value, has := strings.Cut(part, "=")
			if !has {
				name, value = "kind", part
			}
			all[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return all
}

// setting returns a whole number of settings; 0 if it is not there.
func (o *options) setting(all map[string]string, name string) int {
	if all[name] == "" {
		return 0
	}
	n, err := strconv.ParseFloat(all[name], 64)
	o.fail(err != nil || n < 0 || n > 1e9, "%s is %q, but not a number", name, all[name])
	return int(n)
}

// is reports whether one of these flags is there.
func (o *options) is(names ...string) bool {
	_, found := o.take(names...)
	return found
}

// fail sets the error, unless there is one already.
func (o *options) fail(failed bool, format string, args ...any) {
	if failed && o.err == nil {
		o.err = fmt.Errorf(format, args...)
	}
}

func withScheme(url string) string {
	if url != "" && !strings.Contains(url, "://") {
		return "http://" + url
	}
	return url
}

// expression writes JSON as an expression: a string may hold what begins a template.
func expression(raw json.RawMessage) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(raw))
}
