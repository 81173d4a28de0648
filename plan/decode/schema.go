package decode

import (
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

var schema = &Block{
	Name: "plan",
	Doc:  "A plan file: the servers under test, the requests that they get, and what must hold.",
	Attrs: []*Attr{
		{Name: "include", Type: "list of paths", Doc: "More plan files; their blocks belong to this plan too. Paths are relative to this file, and must stay inside the repository."},
	},
	Blocks: []*Block{gateBlock, variableBlock, localsBlock, serverBlock, workloadBlock, assertBlock, compareBlock, acceptBlock, pricesBlock, historyBlock, reportBlock},
}

// In a workload, their default is the gate's value.
func policyAttrs(inWorkload bool) []*Attr {
	attrs := []*Attr{
		{Name: "confidence", Type: "number", Default: `0.95`, Doc: "Confidence of every certified verdict: above 0.5 and below 1.", Bounds: Bounds{Min: 0.5, Max: 1, Above: true, Below: true}},
		{Name: "decide", Type: "string", Default: `"certified"`, Doc: "How a threshold is decided. `certified`: by a statistical test at the given `confidence`. `estimate`: by comparing the point estimate with the limit, without a test.", OneOf: []string{"certified", "estimate"}},
		{Name: "on_inconclusive", Type: "string", Default: `"stop"`, Doc: "What happens if a verdict is inconclusive. `stop`: the run exits with 3. `extend`: tokgate sends more requests, within `budget` and `max_requests`; if the verdict is still inconclusive, the run exits with 3. `warn`: the run exits with 0.", OneOf: []string{"stop", "extend", "warn"}},
		{Name: "window", Type: "string", Default: `"steady"`, Doc: "The time over which throughput and other rates are computed. `steady`: the time in which every slot is busy, without ramp-up and drain; everything that the server sends in that time counts. `all`: from the first measured request to the end of the last one; only measured requests count, as in published reports.", OneOf: []string{"steady", "all"}},
		{Name: "clusters", Type: "string", Default: `"wave"`, Doc: "Which requests a verdict on a certified share (`success`, `goodput`) treats as one, because they may fail together. `wave`: all requests in flight, unless the failures turn out to be isolated. `round`: all requests of a round; a closed loop has no rounds. `none`: each request counts on its own, unless rounds or batches differ.", OneOf: []string{"wave", "round", "none"}},
		{Name: "max_requests", Type: "number", Computed: "four times the planned requests", Doc: "The most measured requests that one level may have if `on_inconclusive` is `extend`.", Bounds: Bounds{Min: 1, Max: maxCount}},
	}
	if inWorkload {
		for _, a := range attrs {
			a.Default, a.Computed = "", "the plan's gate"
		}
	}
	return attrs
}

var slowdowns = []*Attr{
	{Name: "overhead", Type: "limit", Doc: "What the server does for a request besides the model."},
	{Name: "prefill", Type: "limit", Doc: "The work on a prompt."},
	{Name: "decode", Type: "limit", Doc: "The work on a token of an answer."},
}

var gateBlock = &Block{
	Name: "gate",
	Doc:  "The policy of the plan.",
	Attrs: append(policyAttrs(false),
		&Attr{Name: "budget", Type: "duration", Computed: "none", Doc: "The longest time that the whole run may take, including the start and the end of the servers.", Bounds: Bounds{Min: second, Max: maxDuration}},
		&Attr{Name: "measure_only", Type: "bool", Default: `false`, Doc: "Whether the plan only measures. Then a threshold, a capacity or a comparison that does not hold is a warning. Otherwise the plan needs a threshold, or another condition that can fail."},
		&Attr{Name: "must_detect", Type: "object of limits", Computed: "nothing", Example: `{ decode = "+25%" }`, Keys: slowdowns, Doc: "Slowdowns that the gate must notice in at least 95 of 100 simulated runs. Each value says how much longer that part takes, such as { decode = \"+25%\" }. If the gate notices fewer, `plan` and `run` exit with 2. See `tokgate strength`."},
	),
}

var variableBlock = &Block{
	Name: "variable", Labels: []string{"name"}, Repeat: true,
	Doc: "A value that the caller may set with --var, --var-file or TOKGATE_VAR_name. The plan refers to it as var.name.",
	Attrs: []*Attr{
		{Name: "type", Type: "type", Computed: "any", Doc: "A type constraint: string, number, bool, list(…), set(…), map(…), object({…}) with optional(…), tuple([…]) or any."},
		{Name: "default", Type: "any", Computed: "none: a value is required", Doc: "The value if the caller does not set the variable. It must be a constant."},
		{Name: "description", Type: "string", Doc: "What the variable is for."},
		{Name: "sensitive", Type: "bool", Default: `false`, Doc: "Whether the value is secret: never printed or written."},
	},
	Blocks: []*Block{{
		Name: "validation", Repeat: true, Doc: "A condition on the value.",
		Attrs: []*Attr{
			{Name: "condition", Type: "bool", Required: true, Doc: "The condition that must be true."},
			{Name: "error_message", Type: "string", Required: true, Doc: "The message to show if the condition is false."},
		},
	}},
}

var localsBlock = &Block{
	Name: "locals", Repeat: true, Free: "a value with a name of your choice; refer to it as local.NAME",
	Doc: "Values with names. Their order does not matter.",
}

var (
	ofParts   = []Clash{{"mix", "each part of a mix sets its own. Remove it here, and set it in the parts"}}
	ofAnswers = append([]Clash{{`api = "embeddings"`, "embeddings are vectors that come whole. Remove the block"}}, ofParts...)
	ofTalks   = []string{`workload.api = "chat"`, `workload.api = "responses"`, `workload.api = "messages"`}
)

var workloadBlock = &Block{
	Name: "workload", Labels: []string{"name"}, Repeat: true,
	Doc: "One kind of load: the requests that tokgate sends, how they arrive, and the thresholds that must hold.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "Declares one workload for each element, named workload.name[\"key\"]. In the block, each.key and each.value are the key and the value of the element."},
		{Name: "title", Type: "string", Computed: "the preset's", Doc: "The name of the workload in reports, instead of its address."},
		{Name: "description", Type: "string", Computed: "the preset's", Doc: "One sentence for the report: what people use this workload for."},
		{Name: "users_per_request", Type: "list of numbers", Computed: "the preset's; unknown without one", Doc: "How many people one request in flight stands for: the smallest and the largest number, such as [4, 5]. It is more than one because people read and think between requests. Reports use it to convert a capacity into a number of users.", Bounds: Bounds{Min: 1, Max: maxCount}},
		{Name: "preset", Type: "string", Doc: "A named use case. It sets input_tokens, output_tokens and thresholds. Values that the workload sets itself replace those of the preset.", Not: append([]Clash{{`api = "embeddings"`, "presets bound how answers stream. Set input_tokens and thresholds instead"}}, ofParts...)},
		{Name: "server", Type: "server or list of servers", Computed: "every server of the plan", Doc: "The servers that the workload runs on: server.name."},
		{Name: "api", Type: "string", Default: `"chat"`, Doc: "The API that requests use. `chat` and `completions`: OpenAI's. `responses`: OpenAI's Responses. `messages`: Anthropic's Messages. `embeddings`: OpenAI's embeddings, which are not streamed and have no output tokens.", OneOf: engine.APIs, Not: ofParts},
		{Name: "inputs", Type: "number", Computed: "1", Doc: "How many texts a request for embeddings has. Each has input_tokens tokens.", Bounds: Bounds{Min: 1, Max: maxInputs}, With: []string{`api = "embeddings"`}},
		{Name: "headers", Type: "map of headers", Doc: "Headers that are sent with the requests of this workload. They replace headers of the server's `endpoint` with the same name.", Not: ofParts},
		{Name: "mix", Type: "map of shares", Bounds: Bounds{Max: 1, Above: true, Below: true}, Computed: "the workload is not a mix", Doc: "Sends the requests of other workloads, its parts, together. Each part has a share of the requests: { chat = \"70%\", long = \"30%\" }. The shares add up to 100%. They are exact over a level, and within one request in each round. If the mix replays a trace, write a type of its rows instead of a share: { chat = \"/v1/chat\" }. The rows then set the lengths and the prompts. A part keeps its lengths, prompts, request fields and sla blocks. Its sla blocks apply to its own requests, at the levels of the mix. Its load blocks do not apply in the mix, and it needs none. Reports name the results of a part \"mix/part\"."},
		{Name: "input_tokens", Type: "number", Computed: "required, unless a preset sets a length, or prompts come from a data set or a trace", Doc: "The length of each prompt in tokens. It is the number that the server counts, including the chat template.", Bounds: Bounds{Min: 1, Max: maxTokens}, Not: ofParts},
		{Name: "output_tokens", Type: "number or object", Computed: "required, unless a preset or a trace sets the lengths", Doc: "The length of each answer in tokens. A number, such as 256, is the length of every answer. { mean = 256, jitter = \"20%\" } varies the length, and { natural = true, max = 512 } lets answers end by themselves.", Example: `{ mean = 256, jitter = "20%" }`, Bare: "mean", Not: append([]Clash{{`api = "embeddings"`, "embeddings have no output tokens. Remove it"}}, ofParts...), Keys: []*Attr{
			{Name: "mean", Type: "number", Required: true, Doc: "The mean length.", Bounds: Bounds{Min: 1, Max: maxTokens}, Not: []Clash{{"natural = true", "natural answers end by themselves. Set max, or remove natural"}}},
			{Name: "jitter", Type: "share", Default: `"0%"`, Doc: "Draws lengths evenly from this share below the mean to this share above it.", Bounds: Bounds{Max: 1, Below: true}, Not: []Clash{{"natural = true", "natural answers vary by themselves. Remove jitter"}}},
			{Name: "natural", Type: "bool", Computed: "`false`", Doc: "Whether the model ends an answer by itself."},
			{Name: "max", Type: "number", Required: true, Example: `512`, Doc: "The length at which an answer is cut off.", Bounds: Bounds{Min: 1, Max: maxTokens}, With: []string{"natural = true"}},
		}},
	},
	Blocks: []*Block{
		{
			Name: "request", ToServer: true, Not: ofParts, Free: "another field of the request body",
			Doc: "More fields for the body of each request.",
			Attrs: []*Attr{
				{Name: "model", Type: "string", Computed: "the server's", Doc: "The model id that tokgate sends in each request."},
				{Name: "temperature", Type: "number", Computed: "not sent", Doc: "The sampling temperature, from 0 to 2.", Bounds: Bounds{Max: 2}},
				{Name: "stop", Type: "string or list of strings", Computed: "not sent", Doc: "Stop sequences."},
			},
		},
		loadBlock, slaBlock, goodBlock, scoreBlock, answersBlock,
		{Name: "gate", Doc: "Settings for this workload that differ from the plan's gate block.", Attrs: policyAttrs(true)},
		promptBlock, cancelBlock, residueBlock,
		capacityBlock,
	},
}

var ofGenerated = []Clash{{"dataset", "only generated prompts have it. Remove one of the two"}}

var promptBlock = &Block{
	Name: "prompt", Not: append([]Clash{{"load.trace", "the trace sets the prompts. Remove the block, or move it to another workload"}}, ofParts...), Doc: "Where prompts come from. Without this block tokgate generates the prompts, and they have nothing in common.",
	Attrs: []*Attr{
		{Name: "dataset", Type: "path", Computed: "prompts are made from input_tokens", Doc: "A file of real prompts, or a built-in task with exact answers. The file has JSON lines, one JSON array, or CSV. Its path is relative to the plan. A file outside the repository needs `--files`. A JSON row is {\"messages\": […]} or {\"prompt\": \"…\"}. It may also have max_tokens, tools, response_format and answer. The built-in tasks are `builtin:recall`, `builtin:arithmetic`, `builtin:copy`, `builtin:table` and `builtin:json`. Every row is sent once before a row is sent again. Without input_tokens each row keeps its length. With input_tokens every prompt has exactly that many tokens. tokgate then cuts a long row at the end of the user's last message. It joins a short row with the next rows, and lengthens the items of a built-in task.", Example: `"prompts.jsonl"`},
		{Name: "order", Type: "string", Default: `"shuffled"`, Doc: "The order in which tokgate sends the rows of the data set. `shuffled`: a random order, drawn with the first seed. `file`: the order of the file.", OneOf: []string{string(plan.Shuffled), string(plan.InOrder)}, With: []string{"dataset"}},
		{Name: "replies", Type: "string", Computed: "a row is one request", Doc: "Sends each row of the data set as a conversation, turn by turn. A turn ends where the row has an answer (role `assistant`, or `gpt` in ShareGPT). What later turns repeat as the earlier answers: `recorded`, those of the row; `own`, those of the server. A conversation needs a load of users or a rate, and api = \"chat\".", OneOf: []string{string(plan.RecordedReplies), string(plan.Own)}, Example: `"recorded"`, With: []string{"dataset"}},
		{Name: "column", Type: "string", Computed: "only for a CSV file", Doc: "The column of a CSV data set that contains the prompts. Columns named max_tokens and answer have the same meaning as in JSON.", With: []string{"dataset"}},
		{Name: "shared_prefix", Type: "object", Computed: "nothing is shared", Doc: "Tokens that prompts have in common at the beginning: { tokens = 2048, groups = 20 }. Each prompt belongs to a random group, and all prompts of a group begin with the same tokens. The shared tokens count as part of input_tokens.", Example: `{ tokens = 2048, groups = 20 }`, Not: ofGenerated, Keys: []*Attr{
			{Name: "tokens", Type: "number", Required: true, Doc: "The number of shared tokens.", Bounds: Bounds{Min: 1, Max: maxTokens}},
			{Name: "groups", Type: "number", Computed: "1", Doc: "The number of groups.", Bounds: Bounds{Min: 1, Max: maxCount}},
		}},
		{Name: "hit_rate", Type: "number or share", Computed: "nothing is shared", Doc: "The share of prompt tokens that a server finds in its prefix cache, such as \"80%\". This assumes that all shared prefixes fit into the cache. tokgate makes 16 groups of prompts, and all prompts of a group share a prefix. The length of a prefix is a multiple of 128 tokens, or of 64, 32 or 16 if the prompts are short.", Example: `"80%"`, Bounds: Bounds{Max: 1, Above: true, Below: true}, Not: append([]Clash{{"shared_prefix", "hit_rate sets the shared prefix itself. Remove one of the two"}}, ofGenerated...)},
		{Name: "warm", Type: "bool", Default: `true`, Doc: "Whether tokgate sends each shared prefix once before a level begins, and after each start of the server. These requests are not measured.", With: []string{"shared_prefix", "hit_rate", "system"}},
		{Name: "system", Type: "object", Computed: "no system prompt", Doc: "The system prompt with which every conversation, or single request, begins. Its tokens are not part of input_tokens. Write { tokens = 2048 } for one that tokgate makes, or { text = file(\"system.txt\") } for your own. Before a data set it is { text = … }.", Example: `{ tokens = 2048 }`, With: ofTalks, Not: []Clash{{"shared_prefix", "the shared prefix would not be the beginning. Remove one of the two"}, {"hit_rate", "the shared prefix would not be the beginning. Remove one of the two"}}, Keys: []*Attr{
			{Name: "tokens", Type: "number", Computed: "as many as the text has", Doc: "How many tokens it adds to a prompt, by the server's count.", Bounds: Bounds{Min: 1, Max: maxTokens}, Not: []Clash{{"text", "a text has its own length. Remove one of the two"}}},
			{Name: "groups", Type: "number", Computed: "1", Doc: "How many different system prompts there are. Each conversation has one of them, drawn at random.", Bounds: Bounds{Min: 1, Max: maxCount}, With: []string{"tokens"}},
			{Name: "text", Type: "string", Computed: "made by tokgate", Doc: "The text itself."},
		}},
		{Name: "turns", Type: "number or object", Computed: "1", Doc: "How many turns a conversation has. Write a number, or { mean = 6, max = 20 } to draw it from a geometric distribution that begins at 1. A turn is one message and its answer. Each message has input_tokens tokens. The prompt of a turn contains all earlier turns, with the server's own answers. If a turn fails, its conversation ends, and the missing turns count as failed. turns needs a load of users or a rate.", Example: `{ mean = 6, max = 20 }`, Bare: "max", With: ofTalks, Not: ofGenerated, Keys: []*Attr{
			{Name: "mean", Type: "number", Required: true, Doc: "The mean number: from 1 to (max + 1) / 2.", Bounds: Bounds{Min: 1, Max: 1000}},
			{Name: "max", Type: "number", Required: true, Doc: "The largest number.", Bounds: Bounds{Min: 1, Max: 1000}},
		}},
	},
}

var loadBlock = &Block{
	Name: "load", Repeat: true,
	Doc: "How requests arrive: a closed loop (concurrency), bursts, users, a rate, or recorded traffic (trace). Each number in a list is one level.",
	Attrs: []*Attr{
		{Name: "title", Type: "map of strings", Doc: "The titles of levels in reports. The key is the level's number or name: { 39 = \"Lunch hour\" }."},
		{Name: "description", Type: "map of strings", Doc: "The descriptions of levels in reports. The key is the level's number or name: { 39 = \"Everyone is back from lunch.\" }."},
		{Name: "concurrency", Type: "number or list of numbers", Doc: "A closed loop: the number of requests in flight. When a request ends, the next one starts. Each number is one level, and its name.", Example: `[1, 8]`, Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "burst", Type: "number or list of numbers", Doc: "Bursts: how many requests tokgate sends at once. Each burst is one round. Levels are named \"burst N\".", Example: `[8]`, Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "bursts", Type: "number", Default: `10`, Doc: "How many times tokgate sends each burst.", Bounds: Bounds{Min: 1, Max: 100_000}, With: []string{"burst"}, Else: map[string]string{"concurrency": ", and set requests", "rate": ", and set duration or requests", "users": ", and set duration", "trace": ": a trace is replayed once"}},
		{Name: "requests", Type: "number or object", Computed: "20 waves: 200 up to level 10, else 20 × the level", Doc: "The most measured requests of each level on each server. A closed loop is [one window](verdicts.md#a-closed-loop-is-one-window) of up to 20 batches, and ends when a look decides. A certified threshold needs at least five times as many requests as are in flight. An object sets the number by level: { 1 = 60, default = 300 }.", Bounds: Bounds{Min: 1, Max: maxCount}, With: []string{"concurrency", "rate"}, Else: map[string]string{"burst": ": to send a burst more often, set bursts", "users": ", and set duration: how many messages users send depends on how fast the server answers", "stage": ": each stage sets its own duration", "trace": ": to replay only a part of the trace, set from and to"}, Not: []Clash{{"duration", "a level ends after a time or after a number of requests, so remove one of the two"}}},
		{Name: "waves", Type: "number", Computed: "20, if the plan sets no `requests`", Doc: "The most measured requests of each level, in waves. A wave is as many requests as are in flight, and at least ten. 20 is usual, 10 is cheap, and with fewer than 5 no threshold can be certified.", Bounds: Bounds{Min: 1, Max: 10_000}, With: []string{"concurrency"}, Not: []Clash{{"requests", "waves sets how many requests a window has, so remove one of the two"}, {"duration", "a level ends after a time or after a number of waves, so remove one of the two"}}},
		{Name: "duration", Type: "duration", Computed: "5m for a rate or users; without `duration`, a closed loop ends by its number of `requests`", Doc: "How long tokgate starts measured requests at each level, on each server. In a closed loop the window is divided into ten batches of equal time. Only a failure ends the level earlier. If `on_inconclusive` is `extend`, the level may take up to four times as long. With a rate, tokgate sends rate × duration requests, which takes this time on average. With users, it is the length of the measured window. In a comparison, each leg at a rate takes this time; a closed loop and users divide it among the rounds.", Bounds: Bounds{Min: second, Max: maxDuration}, With: []string{"concurrency", "rate", "users"}, Else: map[string]string{"burst": ": a burst ends when its requests end. To send it more often, set bursts", "stage": ": each stage sets its own duration", "trace": ": to replay only a part of the trace, set from and to"}},
		{Name: "seeds", Type: "list of numbers", Default: `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`, Doc: "They choose prompts and lengths. A round or batch takes the next seed, and after the last one the first again. In stages each seed gives one round.", Example: `[1, 2, 3]`, Bounds: Bounds{Min: -maxInteger, Max: maxInteger}},
		{Name: "warmup", Type: "number, duration or \"auto\"", Default: `"auto"`, Doc: "What tokgate sends first and does not measure. Closed loop and burst: a number of requests before the window or the burst; `auto` is the number in flight. Rate: a duration; `auto` lasts until the backlog no longer grows, three to ten times as long as a mean request. Users: a duration after `ramp_up`; `auto` is the thinking time of a mean conversation. Trace: how much of the recording before `from` is sent; `auto` is 1m. If a number of requests is not a multiple of the level, the remainder is sent first and ends before the others start.", Bounds: Bounds{Max: maxCount}},
		{Name: "stagger", Type: "duration or \"auto\"", Default: `"auto"`, Doc: "The time between the first requests of two slots. A slot sends one request after another, so a closed loop of 8 has 8 slots. `auto` spreads the first requests evenly over the time of one request.", Bounds: Bounds{Max: hour}, With: []string{"concurrency"}, Else: map[string]string{"burst": ": a burst starts all its requests at once", "rate": ": arrivals sets how requests follow each other", "stage": ": arrivals sets how requests follow each other", "users": ": ramp_up sets how long it takes until all users have started", "trace": ": the recording sets when each request is sent"}},
		{Name: "pause", Type: "duration", Default: `"0s"`, Doc: "How long a slot waits after an answer before it sends its next request.", Bounds: Bounds{Max: day}, With: []string{"concurrency", "burst"}, Else: map[string]string{"rate": ": for more time between requests, lower the rate", "stage": ": for more time between requests, lower the rate", "users": ": think_time is the time between messages", "trace": ": the recording sets when each request is sent"}},
		{Name: "timeout", Type: "duration", Default: `"10m"`, Doc: "The longest time that a request may take. A request that takes longer counts as failed.", Bounds: Bounds{Min: millisecond, Max: day}},
		{Name: "rate", Type: "string or list of strings", Doc: "An open loop: how many requests arrive in a second or a minute, such as \"4 req/s\" or \"240 req/min\". They arrive even if earlier requests have not ended. The name of a level is its rate per second: \"4 req/s\". The time of a request begins when the request is due.", Example: `["4 req/s"]`, Bounds: Bounds{Min: leastRate, Max: maxRate}},
		{Name: "arrivals", Type: "string", Default: `"poisson"`, Doc: "How the arrivals of a rate are spaced in time. `constant`: evenly. `poisson`: at random and independently. `gamma`: at random, in bursts or more evenly; `burstiness` sets which.", OneOf: arrivals, With: []string{"rate", "stage"}, Else: map[string]string{"trace": ": the recording sets when each request is sent"}},
		{Name: "burstiness", Type: "number", Doc: "How evenly requests arrive. It is the shape of the gamma distribution of the time between two requests. 1 is the same as `poisson`. Below 1, requests come in bursts. Above 1, they come more evenly.", Required: true, Example: `0.5`, Bounds: Bounds{Min: 0.05, Max: 1000}, With: []string{`arrivals = "gamma"`}},
		{Name: "max_in_flight", Type: "number", Default: `4096`, Doc: "The most requests in flight at a level of a rate or a trace. At this number tokgate ends the level early, and the level fails or is invalid.", Bounds: Bounds{Min: 1, Max: maxLevel}, With: []string{"rate", "stage", "trace"}},
		{Name: "saturate", Type: "bool", Default: `true`, Doc: "Whether tokgate first measures the largest rate that the server can sustain, with 256 requests in flight for a minute. Without it only the backlog of a level shows whether the server sustains the rate, and a percentile counts one request for each time that a request takes. So levels must last longer. A search then needs `largest_rate`.", With: []string{"rate"}},
		{Name: "trace", Type: "path", Doc: "A file of recorded traffic to replay. The path is relative to the plan. A file outside the repository needs `--files`. tokgate sends each request at its recorded time, with the recorded lengths of prompt and answer. Do not set input_tokens or output_tokens. Prompts have the same beginnings in common as the recorded ones. Levels are named \"trace\", or \"trace x2\" at twice the speed.", Example: `"requests.jsonl"`, Not: []Clash{{`workload.api = "embeddings"`, "a trace says how long answers are. Write a rate instead"}}},
		{Name: "format", Type: "string", Computed: "recognised by the names in the file", Doc: "The format of the trace: " + formatList() + ".", OneOf: formatNames(), With: []string{"trace"}, Not: []Clash{{"columns", "columns already describes the format of the trace. Remove format"}}},
		{Name: "columns", Type: "object", Computed: "the columns of the format", Doc: "The names of the columns in a trace whose format tokgate does not know (CSV or JSON lines): { time = \"ts\", input = \"prompt_tokens\", output = \"completion_tokens\" }.", Example: `{ time = "ts", input = "prompt_tokens", output = "completion_tokens" }`, With: []string{"trace"}, Keys: []*Attr{
			{Name: "time", Type: "string", Required: true, Doc: "The column with the time of a request."},
			{Name: "input", Type: "string", Required: true, Doc: "The column with the number of tokens of the prompt."},
			{Name: "output", Type: "string", Required: true, Doc: "The column with the number of tokens of the answer."},
			{Name: "session", Type: "string", Doc: "The column with the session. A row waits for the earlier rows of its session."},
			{Name: "delay", Type: "string", Doc: "The column with the time from the previous answer of the session to this row."},
			{Name: "prefix", Type: "string", Doc: "The column with the number of first tokens of the prompt that repeat earlier text of the session."},
			{Name: "type", Type: "string", Doc: "The column with the kind of request, for a mix."},
			{Name: "hash_ids", Type: "string", Example: `"hash_ids"`, Doc: "The column with the ids of the blocks of a prompt."},
			{Name: "block", Type: "number", Required: true, Example: `512`, Doc: "The number of tokens that one id stands for.", Bounds: Bounds{Min: 1, Max: maxTokens}, With: []string{"hash_ids"}},
			{Name: "unit", Type: "duration", Computed: "`1s`", Doc: "The unit of the numbers in the columns `time` and `delay`.", Bounds: Bounds{Min: 1, Max: hour}},
		}},
		{Name: "from", Type: "duration", Default: `"0s"`, Doc: "Where in the trace the replay begins: the time since its first request.", Bounds: Bounds{Max: maxTrace}, With: []string{"trace"}},
		{Name: "to", Type: "duration", Computed: "the end of the trace", Doc: "Where in the trace the replay ends: the time since its first request.", Bounds: Bounds{Max: maxTrace}, With: []string{"trace"}},
		{Name: "speedup", Type: "number or list of numbers", Default: `[1]`, Doc: "How fast the trace is replayed: 2 is twice as fast as recorded. Each number in a list is one level.", Example: `[1, 2]`, Bounds: Bounds{Min: 0.01, Max: 1000}, With: []string{"trace"}},
		{Name: "spread", Type: "duration", Default: `"0s"`, Doc: "The longest random delay of a request of the trace. tokgate draws the delays with the first seed. Use it if the recorded times are rounded down, for example \"3s\" for Mooncake traces.", Bounds: Bounds{Max: hour}, With: []string{"trace"}},
		{Name: "truncate", Type: "bool", Default: `false`, Doc: "Whether tokgate shortens requests of the trace that do not fit into the server's context. The report counts them. Without `truncate` such a request is an error. tokgate first shortens the answer, to no less than half of the context. Then it cuts the end of the prompt.", With: []string{"trace"}},
		{Name: "users", Type: "number or list of numbers", Doc: "How many people use the server. Each person waits for the answer, thinks for `think_time`, and sends the next message. Levels are named \"50 users\". A level is one window as long as `duration`, divided into ten rounds.", Example: `[50]`, Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "ramp_up", Type: "duration", Default: `"0s"`, Doc: "How long it takes until all users have arrived. They arrive one after another.", Bounds: Bounds{Max: day}, With: []string{"users"}},
		{Name: "think_time", Type: "duration or object", Computed: "no thinking", Doc: "How long a person thinks between the end of an answer and the next message: a duration, or { mean = \"20s\", cv = 1 } for a log-normal distribution. With a rate it is the time between the turns of a conversation.", Example: `{ mean = "20s", cv = 1 }`, Bare: "mean", With: []string{"users", "rate"}, Else: map[string]string{"concurrency": ", and set pause", "burst": ", and set pause", "stage": ": stages send single requests", "trace": ": the recording sets how long people think"}, Keys: []*Attr{
			{Name: "mean", Type: "duration", Required: true, Doc: "The mean time.", Bounds: Bounds{Max: day}},
			{Name: "cv", Type: "number", Computed: "0", Doc: "The coefficient of variation.", Bounds: Bounds{Max: 10}},
		}},
	},
	Blocks: []*Block{stageBlock},
	One:    []string{"concurrency", "burst", "users", "stage", "rate", "trace"},
}

var stageBlock = &Block{
	Name: "stage", Labels: []string{"name"}, Repeat: true,
	Doc: "One stage of a rate that changes over time. Stages follow each other without a pause. Each stage is a level with the name of the stage. One pass through all stages is a round, and each seed gives one round. If the plan sets no `seeds`, there are five rounds. An sla block applies to a stage only if its argument `at` names the stage.",
	Attrs: []*Attr{
		{Name: "rate", Type: "rate or object", Required: true, Doc: "How many requests arrive, such as \"2 req/s\", or { from = \"2 req/s\", to = \"12 req/s\" } for a ramp.", Example: `{ from = "2 req/s", to = "12 req/s" }`, Bare: "from", Keys: []*Attr{
			{Name: "from", Type: "rate", Required: true, Doc: "The rate at the beginning.", Bounds: Bounds{Min: leastRate, Max: maxRate}},
			{Name: "to", Type: "rate", Required: true, Doc: "The rate at the end.", Bounds: Bounds{Min: leastRate, Max: maxRate}},
		}},
		{Name: "duration", Type: "duration", Required: true, Doc: "How long the stage lasts on average. tokgate sends rate × duration requests in it.", Bounds: Bounds{Min: second, Max: day}},
	},
}

var slaBlock = &Block{
	Name: "sla", Repeat: true, Series: true,
	Doc: "Thresholds that the results must meet. A metric that has a value for each request, such as ttft, needs a statistic: `mean`, `p0.1` to `p99.9`, `min`, `max`, or `every` (each request must meet the limit). Write a limit with its unit, such as \"p95 < 2s\"; only `preemptions` and `foreign_processes` have no unit.",
	Attrs: append([]*Attr{
		{Name: "at", Type: "level or list of levels", Computed: "every level, and the capacity if a capacity block searches for it", Doc: "The levels that this block applies to, by number or name. \"capacity\" stands for the search of the capacity block.", Example: `[8]`},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What happens if a threshold of this block fails. `error`: the gate fails. `warn`: the report shows it, and the gate does not fail.", OneOf: severities},
	}, metricAttrs(func(metric.Def) bool { return true })...),
}

var goodBlock = &Block{
	Name:  "good",
	Doc:   "Defines which requests are good: those that meet every bound of this block. A bound is on a single request, such as ttft = \"< 2s\", so it has no statistic. A threshold on goodput, such as goodput = \"share >= 95%\", counts good requests.",
	Attrs: metricAttrs(boundsRequest),
}

var scoreBlock = &Block{
	Name: "score", Not: ofAnswers,
	Doc: "Defines which answers are right. A threshold on accuracy, such as accuracy = \"rate >= 85%\", counts right answers. A built-in data set needs no score block.",
	Attrs: []*Attr{
		{Name: "match", Type: "string or object", Required: true, Doc: "How tokgate decides whether the server's answer is right. Most rules compare it with the answer in the row of the data set. `number`: both have the same last number. `exact`: both are the same text. `contains`: the server's text contains the row's answer. `choice`: both name the same letter. `json_schema`: the JSON is what response_format asks for. If the row has an answer, the JSON must also equal it. `tool_call`: the call is valid. If the row has { name, arguments }, the call must also equal them. { regex = \"…\", group = 1 }: in the last match of the pattern, this group equals the row's answer.", Example: `{ regex = "answer: (.*)", group = 1 }`, Keys: []*Attr{
			{Name: "regex", Type: "string", Required: true, Doc: "A regular expression, as of Go (RE2)."},
			{Name: "group", Type: "number", Computed: "0, the whole match", Doc: "The group of the pattern that is compared.", Bounds: Bounds{Max: 1000}},
		}},
	},
}

var answersBlock = &Block{
	Name: "answers", Not: ofAnswers,
	Doc: "What tokgate stores of natural answers, in answers.jsonl, and what may be wrong with them. `judge` and reports read this file.",
	Attrs: []*Attr{
		{Name: "store", Type: "string", Computed: "`text` if a score, a threshold, a good block or a comparison judges the content of answers, else `none`", Doc: "What tokgate stores of each answer. `text`: the text without secrets, at most 64 MiB for a run. `hash`: only the SHA-256 sum, so `judge` cannot score the answers again. `none`: nothing.", OneOf: []string{string(plan.StoreText), string(plan.StoreHash), string(plan.StoreNone)}},
		{Name: "repeating", Type: "string", Computed: "a level is not valid if more than half of its answers are empty or repeat themselves", Doc: "`allowed`: this model rambles, as one with random weights or a base model does, so such answers are no error. A comparison needs no such permission: it checks that the candidate has no more of them than the control. Nor does a plan whose last green run in its history had them.", OneOf: []string{plan.RepeatingAllowed}},
	},
}

// maxTrace is the longest time that a trace may cover.
const maxTrace = 366 * day

func formatNames() []string {
	var names []string
	for _, f := range traffic.Formats {
		names = append(names, f.Name)
	}
	return names
}

func formatList() string { return "`" + strings.Join(formatNames(), "`, `") + "`" }

var arrivals = []string{string(plan.Constant), string(plan.Poisson), string(plan.Gamma)}

var severities = []string{"error", "warn"}

func boundsRequest(d metric.Def) bool {
	return d.OfAnswers || d.Scope == metric.PerRequest && d.Source == metric.Client && d.Better != metric.Neutral && d.Name != "lag"
}

func metricAttrs(keep func(metric.Def) bool) []*Attr {
	var attrs []*Attr
	for _, d := range metric.Defs {
		if keep(d) {
			attrs = append(attrs, &Attr{Name: d.Name, Type: "threshold or list of thresholds", Doc: d.Doc})
		}
	}
	return attrs
}

var assertBlock = &Block{
	Name: "assert", Labels: []string{"name"}, Repeat: true,
	Doc: "A condition of your own on the results. It compares point estimates, without a statistical test, and the report says so.",
	Attrs: []*Attr{
		{Name: "condition", Type: "bool", Required: true, Doc: "The condition that must be true. Write a result as result.SERVER.WORKLOAD.level[N].METRIC.STATISTIC."},
		{Name: "error_message", Type: "string", Required: true, Doc: "The message to show if the condition is false."},
	},
}

var pricesBlock = &Block{
	Name: "prices",
	Doc:  "What a server costs. The metrics cost_per_hour and cost_per_million_tokens need this block. With it, `tokgate plan` also shows the price of the run.",
	Attrs: []*Attr{
		{Name: "currency", Type: "string", Default: `"USD"`, Doc: "The currency of all prices, and of thresholds on costs."},
		{Name: "per_hour", Type: "number or object", Computed: "not priced", Doc: "The price of one server for one hour. If you also set `electricity`, leave the electricity out of this price. An object sets the price by server: { vllm = 2.5, default = 4 }.", Example: `2.5`, Bounds: Bounds{Max: maxPrice}},
		{Name: "electricity", Type: "number", Computed: "not priced", Doc: "The price of one kilowatt-hour. tokgate multiplies it by the measured energy of the GPUs only.", Bounds: Bounds{Max: maxPrice}, Example: `0.10`},
	},
	Any: []string{"per_hour", "electricity"},
}

var historyBlock = &Block{
	Name: "history",
	Doc:  "Keeps the results of nightly runs in a folder. Each `tokgate run` adds one night, and compares it with the nights before. `tokgate history` shows all nights.",
	Attrs: []*Attr{
		{Name: "folder", Type: "path", Required: true, Doc: "The folder of the history, relative to the plan. The first run creates it."},
		{Name: "ignore", Type: "number or share", Default: `"1%"`, Doc: "The smallest change that tokgate reports. A smaller change is not reported, even if it is significant.", Bounds: Bounds{Max: 1, Below: true}},
		{Name: "improvement", Type: "string", Default: `"adopt"`, Doc: "What happens after an improvement. `adopt`: a better level becomes the reference when it has lasted ten nights, so losing it again fails. `wait`: it becomes the reference only when its run is pinned.", OneOf: []string{plan.ImprovementAdopt, plan.ImprovementWait}},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What happens if a night is worse than before. `error`: its run fails. `warn`: the report shows it, and the run does not fail.", OneOf: severities},
	},
}

var capacityBlock = &Block{
	Name: "capacity",
	Doc:  "Searches for the largest load at which the thresholds still hold. The search begins after the levels of the load blocks. It uses the sla blocks with severity \"error\" whose argument `at` is not set, or names \"capacity\".",
	Attrs: []*Attr{
		{Name: "over", Type: "string", Default: `"concurrency"`, Doc: "What the search varies. `concurrency`: the number of requests in flight. `burst`: the number of requests sent at once; the result is the largest burst that the server handles within the thresholds. `users`: the number of people. The workload needs a load of users; one probe takes one to four times the `duration` of that load. `rate`: the rate at which requests arrive. `speedup`: how fast the trace is replayed.", OneOf: []string{"concurrency", "burst", "users", "rate", "speedup"}},
		{Name: "up_to", Type: "number or rate", Required: true, Doc: "The largest load that the search tries. If this load still passes, the report says that the capacity is \"at least\" this load. For a rate write \"40 req/s\".", Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "from", Type: "number or rate", Default: `1`, Doc: "The smallest load that the search tries. For a rate there is no smallest load by default, and for a speedup it is 0.1.", Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "resolution", Type: "number or share", Default: `1`, Doc: "How exact the result must be. The search ends when the smallest load that fails is at most this far above the largest load that passes. Write a number, or a share of the capacity such as \"5%\". For a speedup write a share; the default is \"5%\". For a rate also write a share, \"5%\" by default: the search ends when the certified rate is at most this far below the estimated capacity.", Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "require", Type: "number or rate", Computed: "none: the capacity is only measured", Doc: "The smallest capacity with which the gate passes.", Bounds: Bounds{Min: 1, Max: maxLevel}},
		{Name: "largest_rate", Type: "rate", Computed: "measured, with 256 requests in flight for a minute", Doc: "The largest rate that the server can sustain, if you know it. The server is then not saturated before the search. The rate only plans the probes: what a rate certifies is its own backlog alone, so probes take longer. A rate that is too high or too low costs requests, and certifies nothing.", Example: `"12 req/s"`, With: []string{`over = "rate"`}},
		{Name: "budget", Type: "duration", Computed: "what the plan's budget leaves", Doc: "The longest time that the search may take on each server.", Bounds: Bounds{Min: second, Max: maxDuration}},
		{Name: "requests", Type: "number", Computed: "the default of `requests` in a load block", Doc: "The number of measured requests with which the search first tries a level, at least five times the number in flight. A level that is still undecided gets up to twice as many, and one of bursts, users or a speedup up to four times. For a rate it is the number of requests of an estimating probe, 300 by default.", Bounds: Bounds{Min: 1, Max: maxCount}, Not: []Clash{{`over = "speedup"`, "every probe replays all requests of the trace. Remove it"}, {`over = "users"`, "the duration of the load of users sets how long a probe lasts. Remove it"}}},
		{Name: "max_requests", Type: "number", Computed: "the gate's max_requests, else four times the number of requests when the search first tries a level: 80 waves. 16 times for a rate", Doc: "The most measured requests that the search sends at one level. Only a level that is to be certified gets as many: the level that `require` names, if it stays undecided, or one at 0.8, 0.65 or 0.5 of the estimated limit.", Bounds: Bounds{Min: 1, Max: maxCount}, Not: []Clash{{`over = "users"`, "the duration of the load of users sets how long a probe lasts. Remove it"}}},
		{Name: "confirm", Type: "bool", Default: `true`, Doc: "Whether tokgate measures the capacity once more, with new requests, before it reports the capacity.", Not: []Clash{{`over = "rate"`, "new requests always certify that capacity. Remove it"}}},
	},
}

var compareBlock = &Block{
	Name: "compare", Labels: []string{"name"}, Repeat: true,
	Doc: "Compares a candidate with a control. Both get the same prompts. They take turns, unless `side_by_side` is set. Every workload that runs on both servers is compared. Its sla blocks apply to the candidate only. A leg is one round on one server. If the plan sets no `requests` for a closed loop, each leg gets 200 requests up to level 10, else the larger of 300 and 10 × the level.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "Declares one comparison for each element, named compare.name[\"key\"]. Use it to compare one control with several candidates. In the block, each.key and each.value are the key and the value of the element."},
		{Name: "control", Type: "server", Required: true, Doc: "The server that the candidate is compared with. server.name: a server of this plan. base.server.name: the server of that name in the plan on the base branch (--base DIR). baseline(\"FOLDER\"): a recorded run. tokgate takes the server in it that has the candidate's name, or its only server. For another server, add its name: baseline(\"FOLDER\", \"vllm\")."},
		{Name: "candidate", Type: "server", Required: true, Doc: "The server under test: server.name."},
		{Name: "rounds", Type: "number", Computed: "12; 8 if the comparison is judged once, or if the plan sets `requests`", Doc: "The most rounds on each server, at least 3. The servers take turns: A B B A … With restart = \"leg\" the comparison is judged after each round from `least_rounds` on, and ends when it is decided. Otherwise it is judged once, after at least 5 rounds. `requests` of a closed loop is divided by `rounds`. With side_by_side two rounds count as one observation; the number must then be even, the least is 6, and the default 24 or 16."},
		{Name: "least_rounds", Type: "number", Computed: "3, or 6 with side_by_side", Doc: "After how many rounds the comparison is judged for the first time, with restart = \"leg\". More rounds see more starts of each server, so they miss fewer servers that are only sometimes slow."},
		{Name: "restart", Type: "string", Computed: "`leg`, or `never` if a server is an endpoint", Doc: "When tokgate restarts the servers. `leg`: before every leg (one round on one server). `never`: not at all. Both servers then run all the time, and the verdict holds for these two starts only.", OneOf: []string{string(plan.RestartLeg), string(plan.RestartNever)}},
		{Name: "side_by_side", Type: "bool", Default: "false", Doc: "Whether both servers are measured at the same time, each on its own GPUs. They swap their GPUs after every round, so that neither always has the faster card. Two rounds then count as one observation. Both servers must list the same number of `gpus`, by index or UUID, and have no GPU in common. It needs restart = \"leg\"."},
		{Name: "changed", Type: "list of strings", Computed: "nothing", Doc: "What may differ between the two servers, such as `flags`, `flags.max-model-len`, `image` or `version`. Any other difference is an error, whether the plan declares it or tokgate observes it."},
	},
	Blocks: []*Block{
		readingBlock,
		{Name: "tolerate", Repeat: true, Series: true, Doc: "How much worse than the control the candidate may be. Write a share of the control's value, such as \"p95 +10%\". If the metric is a share itself, write percentage points, such as \"rate -1pp\".", Attrs: append(claimAttrs(), pairedAttrs()...)},
		{Name: "improve", Repeat: true, Series: true, Doc: "How much better than the control the candidate must be. Write the change as in a tolerate block.", Attrs: claimAttrs()},
	},
}

var readingBlock = &Block{
	Name: "answers",
	Doc:  "Compares what the two servers answer. Both answer the same prompts at temperature 0. tokgate sends these prompts in each leg, right after the measured requests, with as many in flight. The control then reports how likely every answer is, and how likely 64 measured answers of each server are, so it must not be a recorded run. `answers {}` sets default bounds, unless a tolerate block sets others: odd_answers \"count +2\", answer_nll \"mean +0.05\", empty, invalid_text and repetition \"rate +1pp\", answer_tokens \"mean +-10%\".",
	Attrs: []*Attr{
		{Name: "prompts", Type: "number", Default: "700", Doc: "How many prompts each server answers, over all workloads and rounds. 200 prompts find a fault in 5 % of the answers; 500 find one in 2 %, and 700 one in 1 %. The control answers nearly a quarter of the prompts twice.", Bounds: Bounds{Min: leastAnswers, Max: mostAnswers}},
		{Name: "max_tokens", Type: "number", Default: "64", Doc: "The most tokens that an answer may have. If the workload allows fewer, its own limit applies.", Bounds: Bounds{Min: 1, Max: 4096}},
	},
}

// Limits on the number of prompts of an answers block. Fewer prompts than the minimum show nothing.
const (
	leastAnswers = 50
	mostAnswers  = 100_000

	maxInputs = 2048 // of OpenAI's API
)

func claimAttrs() []*Attr {
	attrs := []*Attr{
		{Name: "workloads", Type: "workload or list of workloads", Computed: "every compared workload", Doc: "The workloads that this block applies to: workload.name."},
		{Name: "at", Type: "level or list of levels", Computed: "every level", Doc: "The levels that this block applies to, by number or name.", Example: `[8]`},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What happens if a threshold of this block fails. `error`: the gate fails. `warn`: the report shows it, and the gate does not fail.", OneOf: severities},
		{Name: "capacity", Type: "change", Doc: "How much the capacity may fall, or must rise, such as \"-15%\" in tolerate. tokgate then certifies the candidate at 85 % of the control's capacity."},
	}
	return append(attrs, metricAttrs(comparable)...)
}

// Metrics that are only shown have none.
func pairedAttrs() []*Attr {
	var attrs []*Attr
	for _, d := range metric.OfPairs {
		if d.Better != metric.Neutral {
			attrs = append(attrs, &Attr{Name: d.Name, Type: "change", Doc: d.Doc})
		}
	}
	return attrs
}

// Metrics that can be zero, and temperatures, have no useful relative change. The load generator's
// own lateness cannot be compared either.
func comparable(d metric.Def) bool {
	switch d.Unit {
	case metric.Count, metric.Requests, metric.Celsius:
		return false
	}
	return !d.Paired && (d.Better != metric.Neutral || d.TwoSided) && d.Name != "lag" && d.Name != "backlog_growth" && d.Name != "recovery"
}

var capacityDef = metric.Def{
	Name: "capacity", Title: "Capacity", Unit: metric.Requests, Better: metric.HigherIsBetter, Scope: metric.PerLevel,
	Doc: "The largest load at which the thresholds still hold. The capacity block searches for it.",
}
