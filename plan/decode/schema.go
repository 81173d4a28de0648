package decode

import (
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// Schema describes the whole language, in the form of the body of a plan file.
var Schema = &Block{
	Name: "plan",
	Doc:  "A plan file: the servers under test, the requests that they get, and what must hold.",
	Attrs: []*Attr{
		{Name: "include", Type: "list of paths", Doc: "Further plan files whose blocks belong to this plan. Paths are relative to this file and stay inside the repository."},
	},
	Blocks: []*Block{gateBlock, variableBlock, localsBlock, serverBlock, workloadBlock, assertBlock, compareBlock, pricesBlock, historyBlock, reportBlock},
}

// policyAttrs lists the attributes of the gate that a workload may override. By default, a workload
// has the gate's values.
func policyAttrs(inWorkload bool) []*Attr {
	attrs := []*Attr{
		{Name: "confidence", Type: "number", Default: `0.95`, Doc: "Confidence of every certified verdict: above 0.5 and below 1.", Max: 1},
		{Name: "decide", Type: "string", Default: `"certified"`, Doc: "How a threshold is decided. `certified`: by a statistical test at the given `confidence`. `estimate`: the point estimate is compared with the limit.", OneOf: []string{"certified", "estimate"}},
		{Name: "on_inconclusive", Type: "string", Default: `"stop"`, Doc: "What an inconclusive verdict does. `stop`: the run exits with 3. `extend`: tokgate sends more requests, within `budget` and `max_requests`, and then does as `stop`. `warn`: the run exits with 0.", OneOf: []string{"stop", "extend", "warn"}},
		{Name: "window", Type: "string", Default: `"steady"`, Doc: "The time over which throughput and other rates are computed. `steady`: the time in which every slot is busy, without ramp and drain. `all`: from the first measured request to the end of the last one, with measured requests only, as published reports do.", OneOf: []string{"steady", "all"}},
		{Name: "clusters", Type: "string", Default: `"wave"`, Doc: "Which requests may fail together, in the verdict on a certified share (`success`, `goodput`). `wave`: all requests in flight, until failures turn out to be isolated. `round`: all requests of a round, whatever the failures show. `none`: requests fail alone, unless the rounds differ.", OneOf: []string{"wave", "round", "none"}},
		{Name: "max_requests", Type: "number", Computed: "four times the planned requests", Doc: "The most measured requests of one level if `on_inconclusive` is `extend`.", Min: 1, Max: maxCount},
	}
	if inWorkload {
		for _, a := range attrs {
			a.Default, a.Computed = "", "the plan's gate"
		}
	}
	return attrs
}

var gateBlock = &Block{
	Name: "gate",
	Doc:  "The policy of the plan.",
	Attrs: append(policyAttrs(false),
		&Attr{Name: "budget", Type: "duration", Computed: "none", Doc: "The longest time that the whole run may take, with the starts of servers and their teardown.", Min: second, Max: maxDuration},
		&Attr{Name: "measure_only", Type: "bool", Default: `false`, Doc: "Whether the plan may have no thresholds."},
		&Attr{Name: "must_detect", Type: "map of strings", Computed: "nothing", Doc: "Regressions that the gate must notice in 95 of 100 simulated runs; otherwise `plan` and `run` exit with 2. Each says how much longer `decode`, `prefill` or `overhead` takes, such as { decode = \"+25%\" }. See `tokgate strength`."},
	),
}

var variableBlock = &Block{
	Name: "variable", Labels: []string{"name"}, Repeat: true,
	Doc: "A value that the caller may set with --var, --var-file or TOKGATE_VAR_name. The plan uses var.name.",
	Attrs: []*Attr{
		{Name: "type", Type: "type", Computed: "any", Doc: "A type constraint: string, number, bool, list(…), set(…), map(…), object({…}) with optional(…), tuple([…]) or any."},
		{Name: "default", Type: "any", Computed: "none: a value is required", Doc: "The value if the caller sets none. It must be a constant."},
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
	Name: "locals", Repeat: true, Free: "a named value; the plan uses local.name",
	Doc: "Named values, in any order.",
}

var serverBlock = &Block{
	Name: "server", Labels: []string{"name"}, Repeat: true,
	Doc: "One server under test: an endpoint, a process, a container or a simulator.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "Declares one server for each element, server.name[\"key\"]. In the block, each.key and each.value stand for the element."},
		{Name: "engine", Type: "string", Default: `"openai"`, Doc: "The engine: `" + strings.Join(engine.Names(engine.Engine.Known), "`, `") + "`, or `" + engine.Plain + "` for anything compatible.", OneOf: engine.Names(nil)},
		{Name: "title", Type: "string", Doc: "The name of the server in reports, instead of its address."},
		{Name: "description", Type: "string", Doc: "A description of the server for the report: one line."},
		{Name: "model", Type: "string", Doc: "The model's real name, for reports."},
		{Name: "flags", Type: "object", Doc: "The engine's own flags, by name. `true` becomes --x. `false` becomes --no-x, and is an error if the engine has no such flag. `null` leaves the flag out. A list becomes one flag with several words. An object becomes JSON."},
		{Name: "args", Type: "list of strings", Doc: "Further words of the command line, after the flags."},
	},
	Blocks: []*Block{
		{
			Name: "endpoint", Doc: "A server that runs already.",
			Attrs: []*Attr{
				{Name: "url", Type: "string", Required: true, Doc: "Base URL of the server, with or without /v1."},
				{Name: "api_key", Type: "string", Computed: "no key is sent", Doc: "Key that is sent as a bearer token. It is never printed or written."},
				{Name: "headers", Type: "map of strings", Doc: "Headers that are sent with every request."},
				{Name: "ca_file", Type: "path", Computed: "the system's", Doc: "PEM file with the certificate authority to trust. The path is relative to the plan."},
				{Name: "h2c", Type: "bool", Default: `false`, Doc: "Whether requests to an http:// URL use HTTP/2 without TLS and without negotiation. Over https, HTTP/2 is used if the server offers it."},
				{Name: "redirects", Type: "string", Default: `"same"`, Doc: "Which redirects are followed. `same`: redirects to the same host, or to its https. `any`: redirects to other hosts too; the fingerprint then holds the last one.", OneOf: []string{"same", "any"}},
				{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that requests carry."},
				{Name: "replicas", Type: "number", Doc: "How many servers stand behind the URL.", Later: true},
			},
		},
		{
			Name: "process", Doc: "A server that tokgate starts as a child process, and ends together with every process that the server started.",
			Attrs: []*Attr{
				{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "Program and arguments. flags and args follow them. {port} stands for the port."},
				{Name: "env", Type: "map of strings", Doc: "Environment variables in addition to tokgate's own. Their values are never printed."},
				{Name: "dir", Type: "path", Default: `"."`, Doc: "Working folder of the process, relative to the plan."},
				{Name: "port", Type: "number", Computed: "a free port", Doc: "The port that the server listens on.", Min: 1, Max: maxPort},
				{Name: "gpus", Type: gpusType, Computed: "all GPUs that tokgate itself may use", Doc: gpusDoc},
				{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that requests carry."},
			},
		},
		{
			Name: "container", Doc: "A server that tokgate starts in a container. tokgate removes the container afterwards.",
			Attrs: []*Attr{
				{Name: "image", Type: "string", Required: true, Doc: "Image by tag or digest. The report names the digest that ran."},
				{Name: "runtime", Type: "string", Computed: "docker, or podman if docker is not on the PATH", Doc: "The container runtime: `docker` or `podman`.", OneOf: []string{"docker", "podman"}},
				{Name: "pull", Type: "string", Default: `"missing"`, Doc: "When the image is pulled. `missing`: if it is not on the machine. `always`: even if it is. `never`: not at all.", OneOf: []string{"missing", "always", "never"}},
				{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "Arguments of the image's entrypoint. flags and args follow them. {port} stands for the port inside the container."},
				{Name: "entrypoint", Type: "string", Computed: "the engine's program, or the image's own entrypoint if command is set", Doc: "Program to run instead of the image's own entrypoint."},
				{Name: "env", Type: "map of strings", Doc: "Environment variables of the container. Their values are never printed, and never appear on a command line."},
				{Name: "gpus", Type: gpusType, Computed: "none", Doc: gpusDoc},
				{Name: "volumes", Type: "list of strings", Doc: "Folders to mount: \"host:container\" or \"host:container:ro\". A host path that begins with . is relative to the plan. A name without a slash is a volume of the runtime."},
				{Name: "shm_size", Type: "string", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "Size of /dev/shm in the container, such as \"16g\"."},
				{Name: "network", Type: "string", Computed: "the runtime's default network", Doc: "Network that the container joins. With \"host\" no port is published, and the server itself listens on 127.0.0.1."},
				{Name: "user", Type: "string", Computed: "the image's own user", Doc: "User of the container, or user:group."},
				{Name: "options", Type: "list of strings", Doc: "Further words for `docker create`, such as [\"--ipc\", \"host\"]."},
				{Name: "port", Type: "number", Computed: "a free port", Doc: "The port on 127.0.0.1 at which tokgate reaches the container.", Min: 1, Max: maxPort},
				{Name: "container_port", Type: "number", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The port that the server listens on inside the container.", Min: 1, Max: maxPort},
				{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that requests carry."},
			},
		},
		{
			Name: "simulator", Doc: "The built-in server. Alone, it is the server under test. Beside another target, `run --simulate` runs it in place of that target, in virtual time.",
			Attrs: []*Attr{
				{Name: "profile", Type: "string", Default: `"default"`, Doc: "Name of a shipped profile, or the path of a profile, relative to the plan."},
				{Name: "seed", Type: "number", Default: `1`, Doc: "Seed of the simulator's noise.", Min: -maxInteger, Max: maxInteger},
			},
		},
		{
			Name: "ready", Doc: "When a server is ready: it has answered one real completion.",
			Attrs: []*Attr{
				{Name: "timeout", Type: "duration", Computed: "30s for an endpoint or the simulator, 10m for a process, 20m for a container (not counting the pull)", Doc: "How long to wait until the server is ready.", Min: millisecond, Max: day},
			},
		},
		{
			Name: "telemetry", Doc: "What tokgate reads while the load runs: the server's metrics page, and its GPUs.",
			Attrs: []*Attr{
				{Name: "enabled", Type: "bool", Default: `true`, Doc: "Whether telemetry is read."},
				{Name: "interval", Type: "duration", Default: `"1s"`, Doc: "Time between two readings, at least 100ms.", Min: minInterval, Max: hour},
				{Name: "metrics_url", Type: "string", Computed: "the engine's own page: see [Engines](engines.md#how-they-are-started)", Doc: "URL of the server's metrics page, in Prometheus's text format."},
				{Name: "dcgm_url", Type: "string", Computed: "readings come from nvidia-smi or amd-smi on this machine", Doc: "URL of a DCGM exporter's page. Set it if the GPUs are in another machine."},
				{Name: "gpus", Type: "list of numbers or strings", Computed: "the GPUs of the process or container; none for an endpoint", Doc: "The server's GPUs, by index or UUID. For an endpoint, tokgate reads the GPUs of this machine only if this list names them; dcgm_url needs no list."},
				{Name: "require", Type: "map of strings", Computed: `{ throttled = "< 1%" }, if the GPUs report it`, Doc: "Conditions on the GPUs while a round is measured. A round that breaks one is not valid. `throttled`: the share of readings under thermal or hardware slowdown. `clock_spread`: how much the mean clocks of the two legs of a comparison's round differ. `foreign_processes`: how many processes compute on the GPUs that this run did not start. \"any\" requires nothing."},
			},
		},
		{
			Name: "expect", Free: "a key of the server's fingerprint and the value that must be found",
			Doc: "Values that tokgate must find at the server before any load. If it finds another value, the run ends. Keys are those of the [fingerprint](servers.md#what-it-is), such as version, gpu or model.",
		},
	},
}

// Documentation of the GPUs of a process and of a container.
const (
	gpusType = "number, list of strings or \"all\""
	gpusDoc  = "Which GPUs the server gets: a number of free GPUs (0 is none), a list by index or UUID, or \"all\". Only GPUs that tokgate itself may use (CUDA_VISIBLE_DEVICES) are given. No other run of tokgate may use these GPUs at the same time."
)

var workloadBlock = &Block{
	Name: "workload", Labels: []string{"name"}, Repeat: true,
	Doc: "What is sent, how the requests arrive, and what must hold.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "Declares one workload for each element. In the block, each.key and each.value stand for the element."},
		{Name: "title", Type: "string", Computed: "the preset's", Doc: "The name of the workload in reports, instead of its address."},
		{Name: "description", Type: "string", Computed: "the preset's", Doc: "What people use the workload for: one sentence for the report."},
		{Name: "users_per_request", Type: "list of numbers", Computed: "the preset's; unknown without one", Doc: "How many people one request in flight stands for, since people read and think between their requests. Write the fewest and the most, such as [4, 5]. Reports then convert a capacity into users."},
		{Name: "preset", Type: "string", Doc: "A named use case that sets input_tokens, output_tokens and thresholds. What the workload sets itself takes precedence."},
		{Name: "server", Type: "server or list of servers", Computed: "every server of the plan", Doc: "The servers that the workload runs on: server.name."},
		{Name: "api", Type: "string", Default: `"chat"`, Doc: "The API that requests use: `chat` or `completions`.", OneOf: []string{"chat", "completions"}},
		{Name: "mix", Type: "map of shares", Computed: "the workload is not a mix", Doc: "A mix of other workloads of the plan, each with a share of the requests: { chat = \"70%\", long = \"30%\" }. The shares add up to 100%. Shares are exact over a level, and within one request in each round. If the mix replays a trace, name a type of its rows for each part instead of a share: { chat = \"/v1/chat\" }. Lengths and prompts then come from the rows. A part keeps its lengths, prompts, request fields and sla blocks; these sla blocks hold at the levels of the mix, for the requests of the part. The load blocks of a part do not belong to the mix, and a part needs none. Results of a part are named \"mix/part\"."},
		{Name: "input_tokens", Type: "number", Computed: "required, unless a preset sets a length, or prompts come from a data set or a trace", Doc: "Tokens of each prompt, as the server counts them, with the chat template."},
		{Name: "output_tokens", Type: "number or object", Computed: "required, unless a preset or a trace sets the lengths", Doc: "Tokens of each answer: a number, { mean, jitter } for uniform lengths around a mean, or { natural = true, max } for answers that end by themselves."},
	},
	Blocks: []*Block{
		{
			Name: "request", Free: "a further field of the request body",
			Doc: "Further fields that each request carries.",
			Attrs: []*Attr{
				{Name: "model", Type: "string", Computed: "the server's", Doc: "The model id that requests carry."},
				{Name: "temperature", Type: "number", Computed: "not sent", Doc: "Sampling temperature, from 0 to 2.", Max: 2},
				{Name: "stop", Type: "string or list of strings", Computed: "not sent", Doc: "Stop sequences."},
			},
		},
		loadBlock, slaBlock, goodBlock, scoreBlock, answersBlock,
		{Name: "gate", Doc: "Settings of the plan's gate block that differ for this workload.", Attrs: policyAttrs(true)},
		promptBlock,
		capacityBlock,
	},
}

var promptBlock = &Block{
	Name: "prompt", Doc: "Where prompts come from, if they are not synthetic and unique.",
	Attrs: []*Attr{
		{Name: "dataset", Type: "path", Computed: "prompts are made from input_tokens", Doc: "A file of real prompts, or a built-in task with exact answers. A file is relative to the plan: JSON lines or a JSON array of {\"messages\": […]} or {\"prompt\": \"…\"}, each optionally with max_tokens, tools, response_format and answer; or a CSV file. The built-in tasks are `builtin:recall`, `builtin:arithmetic`, `builtin:copy`, `builtin:table` and `builtin:json`. Each row is sent once before any row is sent again. Without input_tokens rows keep their length. With input_tokens each prompt has exactly that many tokens: a long row loses the end of its user's last message, a short row is joined with the rows after it, and the items of a built-in task are filled up."},
		{Name: "order", Type: "string", Default: `"shuffled"`, Doc: "The order in which the rows are sent. `shuffled`: a random order, drawn with the first seed. `file`: the order of the file.", OneOf: []string{string(plan.Shuffled), string(plan.InOrder)}},
		{Name: "column", Type: "string", Computed: "only for a CSV file", Doc: "The column of a CSV file that holds the prompts. Columns named max_tokens and answer mean the same as in JSON."},
		{Name: "shared_prefix", Type: "object", Computed: "nothing is shared", Doc: "A beginning that prompts share, as part of input_tokens: { tokens = 2048, groups = 20 }. Each prompt belongs at random to one of the groups (default 1), and begins with the tokens of that group."},
		{Name: "hit_rate", Type: "number or share", Computed: "nothing is shared", Doc: "The share of prompt tokens that a server finds in its prefix cache if the cache has room for all shared prefixes, such as \"80%\". Set hit_rate instead of shared_prefix. tokgate then makes 16 groups. The length of each prefix is a multiple of 128 tokens, or of 64, 32 or 16 if the prompts are short."},
		{Name: "warm", Type: "bool", Default: `true`, Doc: "Whether each shared prefix is sent once before a level begins, and after each start of the server. These requests are not measured."},
		{Name: "turns", Type: "number or object", Computed: "1", Doc: "How many turns a conversation has, with a load of users or a rate. Write a number, or { mean = 6, max = 20 } for a geometric distribution from 1. Each turn adds input_tokens, and the prompt of a turn holds all that was said before, with the server's own answers. A turn that fails ends its conversation, and the missing turns count as failed. turns needs api = \"chat\", and excludes dataset."},
	},
}

var loadBlock = &Block{
	Name: "load", Repeat: true,
	Doc: "How requests arrive: a closed loop (concurrency), bursts, users, a rate or recorded traffic (trace). Each number is one level.",
	Attrs: []*Attr{
		{Name: "title", Type: "map of strings", Doc: "Titles of the levels in reports. The key is the level's number or name: { 39 = \"Lunch hour\" }."},
		{Name: "description", Type: "map of strings", Doc: "Descriptions of the levels in reports. The key is the level's number or name: { 39 = \"Everyone is back from lunch.\" }."},
		{Name: "concurrency", Type: "number or list of numbers", Doc: "Closed loop: the number of requests in flight. Each level is named by its number."},
		{Name: "burst", Type: "number or list of numbers", Doc: "How many requests are sent at once. Each burst is one round. Levels are named \"burst N\"."},
		{Name: "bursts", Type: "number", Default: `10`, Doc: "How often each burst is sent."},
		{Name: "requests", Type: "number or object", Computed: "200 up to level 10, else the larger of 300 and 10 × the level", Doc: "Measured requests of each level on each server, split evenly over the rounds. If the plan sets seeds, the default is raised until every seed has a round with at least one request for each in flight. An object sets the number by level: { 1 = 60, default = 300 }."},
		{Name: "duration", Type: "duration", Computed: "until `requests` requests were sent", Doc: "For a closed loop, instead of `requests`: how long each level on each server starts measured requests. The time is split evenly over the rounds, and each round starts at least one request for each in flight. Only a failure ends the level earlier. If `on_inconclusive` is `extend`, the level may take up to four times as long. For a rate: rate × duration requests arrive, over that time on average. If neither `duration` nor `requests` is set, a rate takes 5m.", Min: second, Max: maxDuration},
		{Name: "seeds", Type: "list of numbers", Default: `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`, Doc: "Each seed gives one round. Prompts differ by seed, round and level. If seeds is not set, a level uses five to ten seeds: as many as leave each round at least one request for each in flight (two in a capacity search)."},
		{Name: "warmup", Type: "number, duration or \"auto\"", Default: `"auto"`, Doc: "What is sent before each round and not measured. For a closed loop or a burst: a number of requests. `auto` is as many as the level; if the number is not a multiple of the level, the rest is sent and ends first. For a rate: a duration. `auto` is three to ten times the time of a mean request, until the backlog no longer grows. For a trace: the duration of the recording before `from` that is sent first. `auto` is 1m."},
		{Name: "stagger", Type: "duration or \"auto\"", Default: `"auto"`, Doc: "Time between the starts of two slots. `auto` spreads the starts over the time of one request."},
		{Name: "pause", Type: "duration", Default: `"0s"`, Doc: "Time between a slot's answer and its next request.", Max: day},
		{Name: "timeout", Type: "duration", Default: `"10m"`, Doc: "The longest time that a request may take. A request that takes longer has failed.", Min: millisecond, Max: day},
		{Name: "rate", Type: "string or list of strings", Doc: "Open loop: the rate at which requests arrive, whatever is in flight, such as \"4 req/s\" or \"240 req/min\". Levels are named by the rate in requests per second: \"4 req/s\". The time of a request is counted from when the request is due."},
		{Name: "arrivals", Type: "string", Default: `"poisson"`, Doc: "How the requests of a rate follow each other. `constant`: evenly. `poisson`: independently of each other. `gamma`: as `burstiness` says.", OneOf: arrivals},
		{Name: "burstiness", Type: "number", Computed: "only for `gamma`", Doc: "The shape of the gamma distribution of the time between two requests. 1 is Poisson. Below 1 requests come in bursts; above 1 they come more evenly.", Max: 1000},
		{Name: "max_in_flight", Type: "number", Default: `4096`, Doc: "A level of a rate or a trace is given up when this many requests are in flight.", Min: 1, Max: maxLevel},
		{Name: "trace", Type: "path", Doc: "A file of recorded traffic, relative to the plan. Each request is sent at its recorded time, with a prompt and an answer of the recorded lengths; input_tokens and output_tokens are not set. Prompts share the beginnings that the recorded prompts shared. Levels are named \"trace\" and \"trace x2\"."},
		{Name: "format", Type: "string", Computed: "recognised by the names in the file", Doc: "The format of the trace: " + formatList() + ". It is not set together with `columns`.", OneOf: formatNames()},
		{Name: "columns", Type: "object", Computed: "the columns of the format", Doc: "The columns that a replay needs, for a trace in any CSV or JSON lines: { time = \"ts\", input = \"prompt_tokens\", output = \"completion_tokens\" }. You may also set session, delay, prefix, type, hash_ids (together with block, the number of tokens in one block) and unit (the unit of the numbers in time, \"1s\" by default)."},
		{Name: "from", Type: "duration", Default: `"0s"`, Doc: "When the replayed stretch begins, counted from the first request of the trace.", Max: maxTrace},
		{Name: "to", Type: "duration", Computed: "the end of the trace", Doc: "When the replayed stretch ends, counted from the first request of the trace.", Max: maxTrace},
		{Name: "speedup", Type: "number or list of numbers", Default: `[1]`, Doc: "How many times as fast as recorded the trace is replayed. Each number is a level."},
		{Name: "spread", Type: "duration", Default: `"0s"`, Doc: "Delays each request of the trace by a random time up to this, drawn with the first seed. Use it for a trace whose times are rounded down, such as \"3s\" for Mooncake's.", Max: hour},
		{Name: "truncate", Type: "bool", Default: `false`, Doc: "Whether requests of the trace that do not fit the server's context are cut and counted. Otherwise they are an error. An answer is cut to no less than half of the context, and the prompt loses its end."},
		{Name: "users", Type: "number or list of numbers", Doc: "How many people use the server. Each sends the next message after the last answer and a time of thinking. Levels are named \"50 users\". A level is one window, as long as `duration` (5m by default), and is divided into ten rounds."},
		{Name: "ramp_up", Type: "duration", Default: `"0s"`, Doc: "The time over which the users arrive, one after the other.", Max: day},
		{Name: "think_time", Type: "duration or object", Computed: "no thinking", Doc: "How long a person thinks after an answer has ended and before the next message is due. Write a duration, or { mean = \"20s\", cv = 1 } for a log-normal distribution with that coefficient of variation. For users, and for a rate with turns."},
	},
	Blocks: []*Block{stageBlock},
}

// stageBlock describes one stage of an open loop.
var stageBlock = &Block{
	Name: "stage", Labels: []string{"name"}, Repeat: true,
	Doc: "A stage of a rate. Stages follow each other without a pause, and each stage is a level of that name. One pass of all stages is a round, and each seed gives one round (five if the plan names no seeds). An sla block holds at a stage only if the argument `at` names the stage.",
	Attrs: []*Attr{
		{Name: "rate", Type: "rate or object", Required: true, Doc: "How many requests arrive, such as \"2 req/s\"; or a ramp: { from = \"2 req/s\", to = \"12 req/s\" }."},
		{Name: "duration", Type: "duration", Required: true, Doc: "How long the stage takes. rate × duration requests arrive, over that time on average.", Min: second, Max: day},
	},
}

var slaBlock = &Block{
	Name: "sla", Repeat: true,
	Doc: "Thresholds. A metric of single requests needs a statistic (mean, p1 to p99.9, min, max, every). Every number needs its unit.",
	Attrs: append([]*Attr{
		{Name: "at", Type: "level or list of levels", Computed: "every level, and the capacity if a capacity block searches for it", Doc: "The levels at which the thresholds of this block must hold, by number or name. \"capacity\" stands for the search of the capacity block."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What a failed threshold does. `error`: the gate fails. `warn`: the report shows it.", OneOf: severities},
	}, metricAttrs(func(metric.Def) bool { return true })...),
}

var goodBlock = &Block{
	Name:  "good",
	Doc:   "Bounds that a good request meets, without a statistic. Thresholds on goodput, such as goodput = \"share >= 95%\", count good requests.",
	Attrs: metricAttrs(boundsRequest),
}

var scoreBlock = &Block{
	Name: "score",
	Doc:  "When an answer is right. Thresholds on accuracy, such as accuracy = \"rate >= 85%\", count right answers. A built-in data set needs no score block.",
	Attrs: []*Attr{
		{Name: "match", Type: "string or object", Required: true, Doc: "How a server's answer is compared with the answer of the row. `number`: the last number is the same. `exact`: the text is the same. `contains`: the text contains the row's answer. `choice`: the letter that the server names is the same. `json_schema`: the JSON is what response_format asks for, and equals the row's answer if the row has one. `tool_call`: the call is valid, and equals the row's { name, arguments } if the row has them. { regex = \"…\", group = 1 }: the group in the last match equals the row's answer."},
	},
}

var answersBlock = &Block{
	Name: "answers",
	Doc:  "What answers.jsonl keeps of natural answers, for `judge` and reports.",
	Attrs: []*Attr{
		{Name: "store", Type: "string", Computed: "`text` if a score, a threshold, a good block or a comparison judges what answers say, else `none`", Doc: "What is kept of each answer. `text`: the text without secrets, at most 64 MiB for a run. `hash`: only the SHA-256 sum; `judge` cannot score such answers again. `none`: nothing.", OneOf: []string{string(plan.StoreText), string(plan.StoreHash), string(plan.StoreNone)}},
	},
}

// maxTrace is the longest time that a trace may cover.
const maxTrace = int64(366 * day)

// formatNames lists the formats of traces.
func formatNames() []string {
	var names []string
	for _, f := range traffic.Formats {
		names = append(names, f.Name)
	}
	return names
}

func formatList() string { return "`" + strings.Join(formatNames(), "`, `") + "`" }

// arrivals lists the distributions that the times between the arrivals of a rate can have.
var arrivals = []string{string(plan.Constant), string(plan.Poisson), string(plan.Gamma)}

// severities lists the severities that a threshold, a change or a night can have.
var severities = []string{"error", "warn"}

// boundsRequest reports whether a good block may bound the metric, so that the value decides
// whether a request is good.
func boundsRequest(d metric.Def) bool {
	return d.OfAnswers || d.Scope == metric.PerRequest && d.Source == metric.Client && d.Better != metric.Neutral && d.Name != "lag"
}

func metricAttrs(keep func(metric.Def) bool) []*Attr {
	var attrs []*Attr
	for _, d := range metric.Defs {
		if keep(d) {
			attrs = append(attrs, &Attr{Name: d.Name, Type: "threshold or list of thresholds", Doc: d.Doc, Later: d.Later})
		}
	}
	return attrs
}

var assertBlock = &Block{
	Name: "assert", Labels: []string{"name"}, Repeat: true,
	Doc: "A free condition over results. Its verdict compares point estimates, and the report says so.",
	Attrs: []*Attr{
		{Name: "condition", Type: "bool", Required: true, Doc: "The condition that must be true. Results are result.SERVER.WORKLOAD.level[N].METRIC.STATISTIC."},
		{Name: "error_message", Type: "string", Required: true, Doc: "The message to show if the condition is false."},
	},
}

var pricesBlock = &Block{
	Name: "prices",
	Doc:  "What a server costs. With prices, cost_per_hour and cost_per_million_tokens have values, and `tokgate plan` shows the price of the run.",
	Attrs: []*Attr{
		{Name: "currency", Type: "string", Default: `"USD"`, Doc: "The currency of all prices and of thresholds on costs."},
		{Name: "per_hour", Type: "number or object", Computed: "not priced", Doc: "Price of an hour of a server, without the electricity that `electricity` prices. An object sets the price by server: { vllm = 2.5, default = 4 }."},
		{Name: "electricity", Type: "number", Computed: "not priced", Doc: "Price of a kilowatt-hour. Only the measured power of the GPUs is counted.", Max: maxPrice},
	},
}

var reportBlock = &Block{
	Name: "report",
	Doc:  "The head of the report. It changes no measurement and no verdict.",
	Attrs: []*Attr{
		{Name: "title", Type: "string", Computed: "the plan's name", Doc: "Title of the report."},
		{Name: "subtitle", Type: "string", Doc: "A line under the title."},
		{Name: "organization", Type: "string", Doc: "Who publishes the report."},
		{Name: "logo", Type: "path", Doc: "A PNG or JPEG picture of at most 64 KiB that the report shows. The path is relative to the plan and inside the repository."},
		{Name: "notes", Type: "list of strings", Doc: "Paragraphs on the first page, such as what was left out and why."},
	},
}

var historyBlock = &Block{
	Name: "history",
	Doc:  "Keeps the nights of a control plan in a folder. `tokgate run` adds a night and compares it with the nights before. `tokgate history` shows them all.",
	Attrs: []*Attr{
		{Name: "folder", Type: "path", Required: true, Doc: "The folder of the history, relative to the plan. The first night creates it."},
		{Name: "ignore", Type: "string", Default: `"1%"`, Doc: "A change smaller than this is not reported, even if it is significant."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What a night that is worse does. `error`: its run fails. `warn`: the report shows it.", OneOf: severities},
	},
}

// capacityBlock describes the search for the largest load at which the server meets the thresholds.
var capacityBlock = &Block{
	Name: "capacity",
	Doc:  "Searches for the largest load at which the thresholds still hold, after the levels of the load blocks. The thresholds are those of every sla block with severity \"error\" in which the argument `at` names \"capacity\" or is not set.",
	Attrs: []*Attr{
		{Name: "over", Type: "string", Default: `"concurrency"`, Doc: "What the search varies. `concurrency`: requests in flight. `burst`: requests sent at once; the result is the largest safe queue. `users`: people, as the workload's load of users declares them; a probe takes one to four windows of the `duration` of that load. `rate`: requests that arrive. `speedup`: how many times as fast as recorded the trace is replayed."},
		{Name: "up_to", Type: "number or rate", Required: true, Doc: "The largest load that is tried. If this load still passes, the capacity is \"at least\" that load. For a rate, write \"40 req/s\".", Min: 1, Max: maxLevel},
		{Name: "from", Type: "number or rate", Default: `1`, Doc: "The smallest load that is tried. If `from` is not set, a search over a rate has no smallest load, and one over speedup begins at 0.1.", Min: 1, Max: maxLevel},
		{Name: "resolution", Type: "number or share", Default: `1`, Doc: "How far apart the largest load that passes and the smallest load that fails may stay: a number, or a share of the capacity such as \"5%\". For a rate or a speedup: how far the certified load may lie below the estimate, 5% by default."},
		{Name: "require", Type: "number or rate", Computed: "none: the capacity is only measured", Doc: "The smallest capacity that passes the gate.", Min: 1, Max: maxLevel},
		{Name: "budget", Type: "duration", Computed: "what the plan's budget leaves", Doc: "The longest time that the search may take on one server.", Min: second, Max: maxDuration},
		{Name: "requests", Type: "number", Computed: "the default of a level of a load block", Doc: "Measured requests at the first look at a level, at least five for each in flight. A level that is still undecided gets up to four times as many. For a rate: the requests of a probe that estimates, 300 by default.", Min: 1, Max: maxCount},
		{Name: "max_requests", Type: "number", Computed: "the gate's max_requests, else sixteen times the first look", Doc: "The most measured requests of one level. A level gets at most four times the requests of its first look, except in three cases. If many neighbouring levels stay undecided, one or two of them get more. The load that `require` names gets more if it stays undecided. The answer gets more when it is confirmed.", Min: 1, Max: maxCount},
		{Name: "confirm", Type: "bool", Default: `true`, Doc: "Whether the capacity is measured once more on fresh requests before it is reported. In a search over a rate, confirm is not set: one probe of fresh requests certifies the capacity."},
	},
}

var compareBlock = &Block{
	Name: "compare", Labels: []string{"name"}, Repeat: true,
	Doc: "Compares a candidate with a control, on the same prompts and in turns. Every workload that runs on both servers is compared. The sla blocks of the workload are judged on the candidate only. If `requests` is not set, each leg (one round on one server) gets as many requests as a level outside a comparison.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "Declares one comparison for each element, compare.name[\"key\"], such as one control with each of several candidates. In the block, each.key and each.value stand for the element."},
		{Name: "control", Type: "server", Required: true, Doc: "What the candidate is compared with. server.name: a server of this plan. base.server.name: the server of the same plan on the base branch (--base DIR). baseline(\"FOLDER\"): a recorded run; if the server has another address in that run than the candidate, write the address as second argument."},
		{Name: "candidate", Type: "server", Required: true, Doc: "The server under test: server.name."},
		{Name: "rounds", Type: "number", Computed: "8, or 16 with restart = \"order\" or side_by_side", Doc: "Rounds on each server, at least 5. The servers take turns: A B B A … If two rounds are one observation (see restart and side_by_side), the number is even and at least 10."},
		{Name: "restart", Type: "string", Computed: "`leg`, or `never` if a server is an endpoint", Doc: "When a server is restarted. `leg`: for each round. `order`: for each turn; the two legs of B in A B B A then share one start, and four legs are one observation. `never`: not at all; both servers run all the time, and the verdict holds for these two starts only."},
		{Name: "side_by_side", Type: "bool", Default: "false", Doc: "Whether both legs of a round run at the same time. Each server has its own GPUs, and the servers swap them from round to round, so that a faster card does not decide. Two rounds are then one observation. Both servers list the same number of `gpus`, by index or UUID, and no GPU twice. side_by_side needs restart = \"leg\"."},
		{Name: "changed", Type: "list of strings", Computed: "nothing", Doc: "What may differ between the two servers: keys of what the plan declares and tokgate observes, such as `flags`, `flags.max-model-len`, `image`, `version`. Any other difference is an error."},
	},
	Blocks: []*Block{
		readingBlock,
		{Name: "tolerate", Repeat: true, Doc: "How much worse the candidate may be, as a share of the control's value (\"p95 +10%\"), or in percentage points if the metric is a share itself (\"rate -1pp\").", Attrs: append(claimAttrs(), pairedAttrs()...)},
		{Name: "improve", Repeat: true, Doc: "How much better the candidate must be. Write the change as in a tolerate block.", Attrs: claimAttrs()},
	},
}

// readingBlock describes the answers block of a comparison. The control scores the answers of both
// servers.
var readingBlock = &Block{
	Name: "answers",
	Doc:  "Compares what the servers answer. Both answer the same prompts of the compared workloads at temperature 0, in each leg right after the measured requests and with as many requests in flight. The control then reports how likely every answer is. `answers {}` has default bounds, unless a tolerate block sets others: odd_answers \"count +2\", answer_nll \"mean +0.05\", empty, invalid_text and repetition \"rate +1pp\", answer_tokens \"mean +-10%\". The control must not be a recorded run.",
	Attrs: []*Attr{
		{Name: "prompts", Type: "number", Default: "700", Doc: "How many prompts each server answers, spread over the workloads and the rounds. 200 prompts find a fault in 5 % of the answers, 500 one in 2 %, 700 one in 1 %. The control answers nearly a quarter of the prompts twice.", Min: leastAnswers, Max: mostAnswers},
		{Name: "max_tokens", Type: "number", Default: "64", Doc: "The most tokens of an answer. If the workload allows fewer, its own limit holds.", Min: 1, Max: 4096},
	},
}

// Limits on the number of prompts of an answers block. Fewer prompts than the minimum show nothing.
const (
	leastAnswers = 50
	mostAnswers  = 100_000
)

func claimAttrs() []*Attr {
	attrs := []*Attr{
		{Name: "workloads", Type: "workload or list of workloads", Computed: "every compared workload", Doc: "The workloads in which the changes of this block are allowed or demanded: workload.name."},
		{Name: "at", Type: "level or list of levels", Computed: "every level", Doc: "The levels at which the changes of this block must hold, by number or name."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What a failed threshold does. `error`: the gate fails. `warn`: the report shows it.", OneOf: severities},
		{Name: "capacity", Type: "change", Doc: "The change of the capacity, such as \"-15%\" in tolerate: the candidate is then certified at 85 % of the control's capacity."},
	}
	return append(attrs, metricAttrs(comparable)...)
}

// pairedAttrs lists the attributes for metrics of scored answers that a plan may bound. Metrics
// that are only shown are left out.
func pairedAttrs() []*Attr {
	var attrs []*Attr
	for _, d := range metric.OfPairs {
		if d.Better != metric.Neutral {
			attrs = append(attrs, &Attr{Name: d.Name, Type: "change", Doc: d.Doc})
		}
	}
	return attrs
}

// comparable reports whether a comparison may bound the metric. It may not bound the load
// generator's own lateness. It may not bound a value that can be zero or that has no zero point
// either, because its relative change means nothing.
func comparable(d metric.Def) bool {
	switch d.Unit {
	case metric.Count, metric.Requests, metric.Celsius:
		return false
	}
	return !d.Paired && (d.Better != metric.Neutral || d.TwoSided) && d.Name != "lag" && d.Name != "backlog_growth" && d.Name != "recovery"
}

// capacityDef describes the capacity as a metric of comparisons.
var capacityDef = metric.Def{
	Name: "capacity", Title: "Capacity", Unit: metric.Requests, Better: metric.HigherIsBetter, Scope: metric.PerLevel,
	Doc: "The largest load at which the thresholds still hold, by the search of the capacity block.",
}
