package metric

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// Unit is the base unit in which a metric is kept and compared.
type Unit string

// These are the base units. Only displays add prefixes such as ms and k.
const (
	Seconds         Unit = "s"
	SecondsPerToken Unit = "s/token"
	TokensPerSecond Unit = "tok/s"
	PerSecond       Unit = "req/s"
	Ratio           Unit = "ratio"
	Tokens          Unit = "tokens"
	Requests        Unit = "requests"
	Watts           Unit = "W"
	JoulesPerToken  Unit = "J/token"
	Count           Unit = "count"
	Bytes           Unit = "B"
	Celsius         Unit = "°C"
	Hertz           Unit = "Hz"
	NatsPerToken    Unit = "nats/token"
	// In these units, "money" stands for the currency of the plan's prices.
	MoneyPerHour          Unit = "money/h"
	MoneyPerMillionTokens Unit = "money/Mtok"
)

// Direction is the direction in which a metric improves.
type Direction int

// Neutral is the Direction of metrics for which neither lower nor higher is better.
const (
	Neutral Direction = iota
	LowerIsBetter
	HigherIsBetter
)

// String returns "lower", "higher" or "neutral".
func (d Direction) String() string { return [...]string{"neutral", "lower", "higher"}[d] }

// Scope is the thing that each observation of a metric belongs to: a request, a gap, a level.
type Scope int

const (
	// PerRequest metrics have one observation for each request. A threshold on such a metric names
	// a statistic, such as p95.
	PerRequest Scope = iota
	// PerGap metrics have one observation for each gap between two consecutive chunks with tokens,
	// from all requests together. A threshold on them names a statistic.
	PerGap
	// PerLevel metrics have one value for a whole level. So a threshold on them names no statistic,
	// except on success (rate, observed or every), on goodput as a share (share or observed) and on
	// a share of answers (rate or observed).
	PerLevel
	// Counted metrics come from a histogram of the server, with one observation for each request
	// that finished in the window. The histogram shows only the bucket of an observation. A
	// threshold names the mean or a percentile.
	Counted
	// PerReading metrics have one observation for each time that a gauge was read. The gauge is one
	// of the server or of a GPU. A threshold on such a metric names mean, min or max.
	PerReading
)

// Source is where the values of a metric come from.
type Source int

const (
	// Client metrics come from the streams that tokgate reads.
	Client Source = iota
	// Server metrics come from the /metrics page of the server.
	Server
	// GPU metrics come from GPU telemetry.
	GPU
	// Prices metrics are computed from other metrics and the plan's prices.
	Prices
	// Starts metrics are the times that tokgate's starts of the server took. The value belongs to the
	// server: each level whose requests it served has it.
	Starts
	// Queried metrics are series that the plan names itself, read from a Prometheus server.
	Queried
)

// Def is the definition of a metric. The language, the judgement, the reports and the documentation
// all use it.
type Def struct {
	Name    string    // name in plans: lower case with underscores
	Title   string    // as in a table heading, at most 24 characters
	Unit    Unit      // base unit of every value
	Better  Direction // which way is better
	Scope   Scope
	Source  Source
	Doc     string // one sentence: the definition
	NoValue string // explains when the metric has no value, for the documentation
	// Streams means that the metric measures the time between the first and the last chunk of an
	// answer. An answer in one chunk has no value. A level has no value if its streams were
	// buffered; see Level.Unstreamed.
	Streams bool
	// Pooled means that the mean of the metric is the tokens of all answers divided by their total
	// streaming time. So an answer with more tokens counts more.
	Pooled bool
	// OfAnswers means that the metric is the share of natural answers that have some property. A
	// failed request counts as bad.
	OfAnswers bool
	// Paired means that the metric compares the answers of two servers to the same prompts. Only a
	// tolerate block can limit it.
	Paired bool
	// TwoSided means that a change in either direction is bad. A comparison then limits the change
	// in both directions.
	TwoSided bool
}

// named is a definition in JSON: what readers of results need without tokgate's tables.
type named struct {
	Name   string `json:"name"`
	Unit   Unit   `json:"unit"`   // with the currency of the plan in place of money
	Better string `json:"better"` // "lower", "higher" or "neutral"
}

// MarshalJSON writes the name, the unit and the direction.
func (d Def) MarshalJSON() ([]byte, error) {
	return json.Marshal(named{d.Name, d.Unit, d.Better.String()})
}

// UnmarshalJSON reads what MarshalJSON writes. A metric that this version does not know has only
// what was written.
func (d *Def) UnmarshalJSON(b []byte) error {
	var n named
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*d, _ = Lookup(n.Name)
	d.Name, d.Unit, d.Title = n.Name, n.Unit, cmp.Or(d.Title, n.Name)
	for better := Neutral; better <= HigherIsBetter; better++ {
		if better.String() == n.Better {
			d.Better = better
		}
	}
	return nil
}

// Defs lists every metric in the order in which reports show them.
var Defs = []Def{
	{Name: "ttft", Title: "TTFT", Unit: Seconds, Better: LowerIsBetter, Scope: PerRequest,
		Doc:     "Time to first token: the time from the first byte sent to the first chunk with non-empty content, reasoning or tool call. A chunk that is empty or has only a role does not count. At a rate or with users, the time counts from when the request was due.",
		NoValue: "no token came"},
	{Name: "ttft_turn_1", Title: "TTFT, first turn", Unit: Seconds, Better: LowerIsBetter, Scope: PerRequest,
		Doc:     "Like ttft, but only for the first turn of each conversation.",
		NoValue: "no conversation began"},
	{Name: "ttft_later", Title: "TTFT, later turns", Unit: Seconds, Better: LowerIsBetter, Scope: PerRequest,
		Doc:     "Like ttft, but for every turn of a conversation except the first. A prefix cache may hold the earlier turns.",
		NoValue: "no conversation had a second turn"},
	{Name: "ttfa", Title: "TTFA", Unit: Seconds, Better: LowerIsBetter, Scope: PerRequest,
		Doc:     "Time to first answer: like ttft, but a chunk of reasoning does not count.",
		NoValue: "no answer came"},
	{Name: "tpot", Title: "TPOT", Unit: SecondsPerToken, Better: LowerIsBetter, Scope: PerRequest, Streams: true,
		Doc:     "Time per output token after the first chunk: (time of the last chunk − time of the first) / (n − k). n is the answer's output tokens by the server's usage; k is the tokens in the first chunk, or 1 if the server does not report them.",
		NoValue: "all tokens came in the first chunk"},
	{Name: "speed", Title: "Speed", Unit: TokensPerSecond, Better: HigherIsBetter, Scope: PerRequest, Streams: true, Pooled: true,
		Doc:     "1 / tpot: the speed at which one user's text streams. The mean is pooled: all tokens after the first chunk of each answer / the total time in which these tokens streamed.",
		NoValue: "tpot has no value"},
	{Name: "request_speed", Title: "Speed by request", Unit: TokensPerSecond, Better: HigherIsBetter, Scope: PerRequest, Streams: true,
		Doc:     "1 / tpot, like speed, but the mean is the arithmetic mean of the requests' speeds, as in published reports. One answer whose chunks all came together can make this mean very large.",
		NoValue: "tpot has no value"},
	{Name: "itl", Title: "ITL", Unit: Seconds, Better: LowerIsBetter, Scope: PerGap, Streams: true,
		Doc:     "Inter-token latency: the time between two consecutive chunks that carry tokens. The gaps of all requests are pooled. A chunk may carry several tokens; tokens_per_chunk says how many.",
		NoValue: "fewer than two chunks"},
	{Name: "e2e", Title: "E2E", Unit: Seconds, Better: LowerIsBetter, Scope: PerRequest,
		Doc:     "End-to-end latency: the time from the first byte sent to the last token's chunk, or to the end of the embeddings. At a rate or with users, the time counts from when the request was due.",
		NoValue: "the stream did not complete"},
	{Name: "e2e_speed", Title: "E2E speed", Unit: TokensPerSecond, Better: HigherIsBetter, Scope: PerRequest,
		Doc:     "Output tokens / e2e: the speed of one user's text, with the wait for the first token included.",
		NoValue: "e2e has no value"},
	{Name: "tokens_per_chunk", Title: "Tokens per chunk", Unit: Tokens, Better: Neutral, Scope: PerRequest,
		Doc:     "Output tokens of an answer / chunks of the answer that carry tokens. With speculative decoding it is above 1.",
		NoValue: "no chunk came or the server sent no usage"},
	{Name: "answer_tokens", Title: "Answer tokens", Unit: Tokens, Better: Neutral, Scope: PerRequest, TwoSided: true,
		Doc:     "For requests with natural = true: the number of tokens in the answer, reasoning included, by the server's usage. A tolerate block bounds this metric on both sides, such as \"mean +-10%\".",
		NoValue: "the answers do not end by themselves (output_tokens lacks natural = true), or the server sent no usage"},
	{Name: "stop_rate", Title: "Ended by itself", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "For requests with natural = true: answers that the model ended itself / requests due. The finish_reason of such an answer is stop or tool_calls.",
		NoValue: noNaturalAnswer},
	{Name: "empty", Title: "Empty answers", Unit: Ratio, Better: LowerIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "For requests with natural = true: the share of answers with neither visible text nor a tool call. A failed request counts as an empty answer.",
		NoValue: noNaturalAnswer},
	{Name: "repetition", Title: "Repeating answers", Unit: Ratio, Better: LowerIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "For requests with natural = true: the share of answers that repeat themselves. An answer repeats itself if 1 − distinct 4-grams / all 4-grams > 0.6 in its last 256 words. A word is a run of letters and digits, a single ideograph or any other single sign. A failed request counts as a repeating answer.",
		NoValue: noNaturalAnswer},
	{Name: "invalid_text", Title: "Invalid text", Unit: Ratio, Better: LowerIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "For requests with natural = true: the share of answers that contain a replacement character (U+FFFD), NUL or half a surrogate pair. A character that the token limit cut in two at the very end does not count. A failed request counts as invalid text.",
		NoValue: noNaturalAnswer},
	{Name: "valid_json", Title: "Valid JSON", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "For requests with natural = true and a JSON response_format: the share of valid answers. A valid answer parses, and meets the schema if there is one. A failed request counts as invalid.",
		NoValue: "no request has both natural = true and a JSON response_format"},
	{Name: "valid_tool_call", Title: "Valid tool calls", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "For requests with natural = true that offer tools: the share of valid answers. A valid answer calls at least one tool and only tools that were offered, and the arguments of every call parse and meet the tool's schema. An answer in text alone and a failed request count as invalid.",
		NoValue: "no request with natural = true offers tools"},
	{Name: "accuracy", Title: "Accuracy", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel, OfAnswers: true,
		Doc:     "Share of answers that are right by the workload's score block. A failed request counts as a wrong answer.",
		NoValue: "the workload has no `score` block"},
	{Name: "offered_rate", Title: "Offered rate", Unit: PerSecond, Better: Neutral, Scope: PerLevel,
		Doc:     "For a rate: requests due in the window / the window's length.",
		NoValue: "only a rate has it"},
	{Name: "in_flight", Title: "In flight", Unit: Requests, Better: Neutral, Scope: PerLevel,
		Doc:     "For a rate: the mean number of requests in the window that were due and had not ended.",
		NoValue: "only a rate has it"},
	{Name: "backlog_growth", Title: "Backlog growth", Unit: Ratio, Better: LowerIsBetter, Scope: PerLevel,
		Doc:     "For a rate: the growth of the backlog in the window / requests due in the window. The backlog is the requests in flight and the requests that timed out in the window. About 0 means that the server keeps up; 0.1 means that it cannot serve a tenth of the rate.",
		NoValue: "only a rate has it"},
	{Name: "recovery", Title: "Recovery", Unit: Seconds, Better: LowerIsBetter, Scope: PerLevel,
		Doc:     "For a stage: the time from its beginning until ten requests in a row are good again. A good request meets the bounds of the `good` block. If there is no such block, it meets the bounds of the sla blocks on single requests. If the schedule runs several times, the longest time counts.",
		NoValue: "only a stage has it"},
	{Name: "lag", Title: "Send lag", Unit: Seconds, Better: LowerIsBetter, Scope: PerRequest,
		Doc:     "How late the generator sent a request: the time sent − the time due.",
		NoValue: "nothing was sent"},
	{Name: "success", Title: "Success", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Requests that completed correctly / requests due.",
		NoValue: "no request was due"},
	{Name: "goodput", Title: "Goodput", Unit: PerSecond, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Good requests / the window's length. A good request completed and met every bound of the workload's `good` block. The statistic `share` is good requests / requests due.",
		NoValue: "the workload does not say which requests are good (it has no `good` block)"},
	{Name: "throughput", Title: "Throughput", Unit: TokensPerSecond, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Output tokens in the level's window / the window's length. The window is the time in which every slot was busy, unless window = \"all\".",
		NoValue: "no token came in the window"},
	{Name: "input_throughput", Title: "Input throughput", Unit: TokensPerSecond, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Input tokens of the requests whose first token, or embeddings, came in the window / the window's length.",
		NoValue: "throughput has no value"},
	{Name: "request_rate", Title: "Request rate", Unit: PerSecond, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Requests completed in the window / the window's length.",
		NoValue: "throughput has no value"},
	{Name: "scaling_efficiency", Title: "Scaling efficiency", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "throughput(N) / (N × throughput(1)).",
		NoValue: "level 1 was not run"},
	{Name: "prefill_speed", Title: "Prefill speed", Unit: TokensPerSecond, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Input tokens / the server's prefill time. If the server reports no prefill time, the value is from ttft at concurrency 1, and a note says so.",
		NoValue: "neither prefill time nor ttft at concurrency 1 was measured"},
	{Name: "cache_hit_rate", Title: "Cache hit rate", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel,
		Doc:     "Cached prompt tokens / prompt tokens, by the server's usage. If the usage does not report cached tokens, the value is from the server's counters in the window.",
		NoValue: "the server does not report cached tokens"},
	{Name: "synchrony", Title: "Synchrony", Unit: Ratio, Better: Neutral, Scope: PerLevel,
		Doc:     "How closely the slots of a closed loop start together: 0 means spread evenly, 1 means all at the same time.",
		NoValue: "fewer than two slots"},

	{Name: "queue_wait", Title: "Queue wait", Unit: Seconds, Better: LowerIsBetter, Scope: Counted, Source: Server,
		Doc: "The time that a request waits in the server's queue, by the server's own histogram.", NoValue: "the server reports no such value"},
	{Name: "prefill", Title: "Prefill", Unit: Seconds, Better: LowerIsBetter, Scope: Counted, Source: Server,
		Doc: "The time from when a request was scheduled to its first token, by the server's own histogram.", NoValue: "the server reports no such value"},
	{Name: "decode", Title: "Decode", Unit: Seconds, Better: LowerIsBetter, Scope: Counted, Source: Server,
		Doc: "The time from a request's first token to its last, by the server's own histogram.", NoValue: "the server reports no such value"},
	{Name: "server_ttft", Title: "TTFT by the server", Unit: Seconds, Better: LowerIsBetter, Scope: Counted, Source: Server,
		Doc: "The time to first token, by the server's own histogram. It starts when the server has accepted the request. It does not include HTTP and, on most servers, the chat template and the tokenizer.", NoValue: "the server reports no such value"},
	{Name: "server_itl", Title: "ITL by the server", Unit: Seconds, Better: LowerIsBetter, Scope: Counted, Source: Server,
		Doc: "The time between two steps of a request, by the server's own histogram. Without speculative decoding this is the time of one token.", NoValue: "the server reports no such value"},
	{Name: "server_e2e", Title: "E2E by the server", Unit: Seconds, Better: LowerIsBetter, Scope: Counted, Source: Server,
		Doc: "The end-to-end latency of the requests that the server finished, by the server's own histogram.", NoValue: "the server reports no such value"},
	{Name: "running", Title: "Running", Unit: Requests, Better: Neutral, Scope: PerReading, Source: Server,
		Doc: "Requests in the server's batches.", NoValue: "the server reports no such value"},
	{Name: "waiting", Title: "Waiting", Unit: Requests, Better: LowerIsBetter, Scope: PerReading, Source: Server,
		Doc: "Requests in the server's queue.", NoValue: "the server reports no such value"},
	{Name: "waiting_for_room", Title: "Waiting for room", Unit: Requests, Better: LowerIsBetter, Scope: PerReading, Source: Server,
		Doc: "Requests in the queue that wait for room in the batch or in the KV cache.", NoValue: "the server reports no such value"},
	{Name: "waiting_deferred", Title: "Waiting, deferred", Unit: Requests, Better: LowerIsBetter, Scope: PerReading, Source: Server,
		Doc: "Requests in the queue that the scheduler put off for another reason, such as a KV transfer.", NoValue: "the server reports no such value"},
	{Name: "kv_usage", Title: "KV cache used", Unit: Ratio, Better: LowerIsBetter, Scope: PerReading, Source: Server,
		Doc: "Share of the KV cache in use.", NoValue: "the server reports no such value"},
	{Name: "preemptions", Title: "Preemptions", Unit: Count, Better: LowerIsBetter, Scope: PerLevel, Source: Server,
		Doc: "Requests that the scheduler preempted in the window.", NoValue: "the server reports no such value"},
	{Name: "imbalance", Title: "Imbalance", Unit: Count, Better: LowerIsBetter, Scope: PerLevel, Source: Server,
		Doc: "Behind a gateway: the largest replica's share of the output tokens / its fair share. 1 means that all replicas made the same number; with four replicas, 4 means that one made them all.", NoValue: "the plan does not name several `replicas` of the endpoint"},
	{Name: "accept_rate", Title: "Accept rate", Unit: Ratio, Better: HigherIsBetter, Scope: PerLevel, Source: Server,
		Doc: "Speculative decoding: accepted tokens / drafted tokens. accept_rate[i] in a report, and accept_rate_at[i] in an assert, is the share of drafts in which the token at position i was accepted.", NoValue: "no speculative decoding, or the server does not report it"},
	{Name: "accept_length", Title: "Accept length", Unit: Tokens, Better: HigherIsBetter, Scope: PerLevel, Source: Server,
		Doc: "Speculative decoding: mean number of tokens that a step yields, 1 + accepted tokens / drafts. The 1 is the target model's own token.", NoValue: "accept_rate has no value"},
	{Name: "power", Title: "Power", Unit: Watts, Better: LowerIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Power of all GPUs of the server together.", NoValue: "no GPU telemetry"},
	{Name: "gpu_utilization", Title: "GPU busy", Unit: Ratio, Better: Neutral, Scope: PerReading, Source: GPU,
		Doc: "Share of the time in which a GPU was busy, averaged over the server's GPUs.", NoValue: "no GPU telemetry"},
	{Name: "gpu_memory", Title: "GPU memory", Unit: Bytes, Better: LowerIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Memory in use on all GPUs of the server together.", NoValue: "no GPU telemetry"},
	{Name: "gpu_temperature", Title: "GPU temperature", Unit: Celsius, Better: LowerIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Temperature of the hottest GPU of the server.", NoValue: "no GPU telemetry"},
	{Name: "gpu_clock", Title: "GPU clock", Unit: Hertz, Better: HigherIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Clock of the streaming multiprocessors (SM) of the server's slowest GPU. It drops when a GPU throttles.", NoValue: "no GPU telemetry"},
	{Name: "gpu_throttled", Title: "GPU throttled", Unit: Ratio, Better: LowerIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Share of the readings in which the heat or the hardware of a GPU held its clocks down. Thermal slowdown, hardware slowdown and a power brake count. A software power cap does not count.", NoValue: "no GPU telemetry"},
	{Name: "gpu_power_capped", Title: "GPU power capped", Unit: Ratio, Better: LowerIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Share of the readings in which a software power cap held the clocks of a GPU down.", NoValue: "no GPU telemetry"},
	{Name: "foreign_processes", Title: "Foreign processes", Unit: Count, Better: LowerIsBetter, Scope: PerReading, Source: GPU,
		Doc: "Compute processes on the server's GPUs that this run did not start. They are counted only if telemetry requires foreign_processes.", NoValue: "telemetry did not count them"},
	{Name: "energy_per_token", Title: "Energy per token", Unit: JoulesPerToken, Better: LowerIsBetter, Scope: PerLevel, Source: GPU,
		Doc: "Energy of the GPUs in the window / output tokens. The energy is from the GPUs' own energy counters. Without such counters the value is mean power / throughput.", NoValue: "no GPU telemetry"},
	{Name: "start_cold", Title: "Start, cold", Unit: Seconds, Better: LowerIsBetter, Scope: PerReading, Source: Starts,
		Doc:     "Time from the launch of the server to when it was ready, without the pull of its image, for a cold start: the first with this program, model and flags since the machine booted. An sla block limits its max. It is never compared: the first start of one server reads the weights from disk, and that of the other finds them in memory.",
		NoValue: "no start was cold: the machine had started the server before"},
	{Name: "start_warm", Title: "Start, warm", Unit: Seconds, Better: LowerIsBetter, Scope: PerReading, Source: Starts,
		Doc:     "Like start_cold, but for every later start: the weights may be in memory, and the kernels compiled. An sla block limits its max, and a tolerate block its mean, such as \"mean +10%\", from the fourth start of each server on.",
		NoValue: "no start was warm: each was the first since the machine booted"},
	{Name: "cost_per_hour", Title: "Cost per hour", Unit: MoneyPerHour, Better: LowerIsBetter, Scope: PerLevel, Source: Prices,
		Doc: "Cost of the server for an hour, by the plan's prices. If electricity has a price, mean power × this price is added to the server's price.", NoValue: "the plan has no prices"},
	{Name: "cost_per_million_tokens", Title: "Cost per 1M tokens", Unit: MoneyPerMillionTokens, Better: LowerIsBetter, Scope: PerLevel, Source: Prices,
		Doc: "Cost of a million output tokens: cost_per_hour / millions of output tokens in an hour at the level's throughput. The cost of reading the input is included.", NoValue: "the plan has no prices"},
}

// OfPairs lists the metrics of answers that a comparison computes from the control's scores. A
// metric with Better = Neutral is only shown, and no plan can limit it.
var OfPairs = []Def{
	{Name: "odd_answers", Title: "Odd answers", Unit: Count, Better: LowerIsBetter, Scope: PerLevel, Paired: true,
		Doc:     "The number of the candidate's odd answers − the number that the control's own odd answers predict. An answer is odd if the control finds it more than 1 nat per token less likely than its own answer to the same prompt, or if it stops where the control's answer goes on. It is also odd if it has a fault that the control's answer lacks: it fails, is empty, has invalid text, repeats itself or is longer than asked. An answer is odd by its least likely token too: if the control finds that token at least 1 nat less likely than any of its own answer, and less likely than in 99.9 % of its own answers of like length. A measured answer is odd if the control finds it, or one of its tokens, less likely than in 99.9 % of the control's own measured answers. Example: \"count +2\".",
		NoValue: "the comparison has no `answers` block"},
	{Name: "answer_nll", Title: "Loss of answers", Unit: NatsPerToken, Better: LowerIsBetter, Scope: PerRequest, Paired: true,
		Doc:     "How much less likely the control finds the candidate's answers than its own, in nats per token. That is the mean negative log-likelihood of the candidate's answers (teacher forcing) minus the mean of the control's own answers to the same prompts. The same difference between the control's second answers and its first answers is subtracted. Odd answers are left out; odd_answers counts them. Example: \"mean +0.05\".",
		NoValue: "the control does not report how likely a given text is"},
	{Name: "cosine_distance", Title: "Distance of vectors", Unit: Count, Better: LowerIsBetter, Scope: PerRequest, Paired: true,
		Doc:     "How far the candidate's embeddings are from the control's of the same inputs: the mean of 1 − the cosine of the angle between the two vectors. The same distance between the control's second and first embeddings is subtracted. Noise of 5 % of a component makes it 0.00125, an unrelated vector about 1. Example: \"mean +0.0005\".",
		NoValue: "the comparison has no `answers` block, or no workload with embeddings"},
	{Name: "agreement", Title: "Agreement", Unit: Ratio, Better: Neutral, Scope: PerRequest, Paired: true,
		Doc:     "How long the candidate's answer agrees with the control's answer to the same prompt: characters before the first difference / characters of the longer answer. This metric is only shown: a plan cannot bound it, because even a harmless change of kernels makes answers differ early.",
		NoValue: "the comparison has no `answers` block"},
	{Name: "logprob_gap", Title: "Gap of log-probabilities", Unit: NatsPerToken, Better: Neutral, Scope: PerRequest, Paired: true,
		Doc:     "Mean absolute difference between the two servers' log-probabilities of the same token. Both servers score a quarter of the candidate's answers (teacher forcing). Odd answers are left out. This metric is only shown: a plan cannot bound it.",
		NoValue: "one of the two servers does not report how likely a given text is"},
}

// Untimed reports whether the metric depends only on an answer's content. A late generator cannot
// change such a metric.
func (d Def) Untimed() bool {
	return d.OfAnswers || d.Name == "answer_tokens" || d.Name == "tokens_per_chunk"
}

// OfEmbeddings reports whether the metric can have a value if a server answers with embeddings, which
// come whole and without output tokens.
func (d Def) OfEmbeddings() bool {
	switch d.Name {
	case "ttft", "ttft_turn_1", "ttft_later", "ttfa", "e2e_speed", "tokens_per_chunk", "answer_tokens", "throughput", "scaling_efficiency",
		"accept_rate", "accept_length", "decode", "server_ttft", "server_itl", "energy_per_token", "cost_per_million_tokens":
		return false
	}
	return !d.Streams && !d.OfAnswers && (!d.Paired || d.Name == "cosine_distance")
}

// Most returns the largest value that the metric can have: 1 if it is a part of a whole, such as a
// hit rate, and otherwise +Inf.
func (d Def) Most() float64 {
	if d.Unit == Ratio && d.Name != "backlog_growth" && d.Name != "scaling_efficiency" {
		return 1
	}
	return math.Inf(1)
}

// noNaturalAnswer is the reason why a metric of answers has no value.
const noNaturalAnswer = "the answers do not end by themselves, because output_tokens lacks natural = true"

// Lookup returns the definition of the metric with that name, including the metrics of OfPairs.
func Lookup(name string) (Def, bool) {
	for _, defs := range [][]Def{Defs, OfPairs} {
		if i := slices.IndexFunc(defs, func(d Def) bool { return d.Name == name }); i >= 0 {
			return defs[i], true
		}
	}
	return Def{}, false
}

// MustLookup is Lookup for a name in the source code. It panics if there is no such metric.
func MustLookup(name string) Def {
	def, ok := Lookup(name)
	if !ok {
		panic("metric: no " + name)
	}
	return def
}

// Names lists the names of the metrics for which keep returns true, in the order of Defs. If keep
// is nil, it lists all names.
func Names(keep func(Def) bool) []string {
	var names []string
	for _, d := range Defs {
		if keep == nil || keep(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// IgnoresFailures reports whether a statistic gives failed requests little or no weight. A mean, and what the
// server observes, cover only completed requests. A failed request has few gaps between tokens.
// How long starts take has nothing to do with requests.
func (d Def) IgnoresFailures(s Stat) bool {
	return d.Source != Starts && (s.Kind == Mean || d.Scope == PerGap || d.Scope == Counted)
}

// String returns the metric's name, as a plan writes it.
func (d Def) String() string { return strings.TrimSpace(d.Name) }
