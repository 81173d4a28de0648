package decode

import (
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// Schema is the whole language, as the body of a plan file.
var Schema = &Block{
	Name: "plan",
	Doc:  "A plan file: what is tested, what it is sent, and what must hold.",
	Attrs: []*Attr{
		{Name: "include", Type: "list of paths", Doc: "Further plan files whose blocks belong to this plan. Relative to this file, inside the repository."},
	},
	Blocks: []*Block{gateBlock, variableBlock, localsBlock, serverBlock, workloadBlock, assertBlock, compareBlock, pricesBlock, historyBlock, reportBlock},
}

// policyAttrs lists the attributes of the gate that a workload may override. The
// defaults are the gate's.
func policyAttrs(inWorkload bool) []*Attr {
	attrs := []*Attr{
		{Name: "confidence", Type: "number", Default: `0.95`, Doc: "Confidence of every certified verdict, above 0.5 and below 1.", Max: 1},
		{Name: "decide", Type: "string", Default: `"certified"`, Doc: "`certified` decides by exact tests at that confidence; `estimate` compares the point estimate.", OneOf: []string{"certified", "estimate"}},
		{Name: "on_inconclusive", Type: "string", Default: `"stop"`, Doc: "What an inconclusive verdict does: `stop` (exit 3), `extend` (more requests within budget and max_requests, then stop) or `warn` (exit 0).", OneOf: []string{"stop", "extend", "warn"}},
		{Name: "window", Type: "string", Default: `"steady"`, Doc: "The time that throughput and other rates are taken over: `steady` while every slot is busy, ramp and drain left out; `all` from the first measured request to the end of the last, with measured requests only, as published reports do.", OneOf: []string{"steady", "all"}},
		{Name: "clusters", Type: "string", Default: `"wave"`, Doc: "Which requests a certified share (`success`, `goodput`) assumes to fail together: `wave`, all requests in flight, until failures turn out to come singly; `round`, all requests of a round, in any case; `none`, no requests, unless rounds turn out to differ.", OneOf: []string{"wave", "round", "none"}},
		{Name: "max_requests", Type: "number", Computed: "four times the planned requests", Doc: "The most measured requests of one level under `extend`.", Min: 1, Max: maxCount},
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
		&Attr{Name: "budget", Type: "duration", Computed: "none", Doc: "Wall clock of the whole run, starts and teardown included.", Min: second, Max: maxDuration},
		&Attr{Name: "measure_only", Type: "bool", Default: `false`, Doc: "The plan may require nothing."},
		&Attr{Name: "must_detect", Type: "map of strings", Computed: "nothing", Doc: "Regressions that the gate must notice in 95 of 100 simulated runs, else `plan` and `run` exit 2: how much longer `decode`, `prefill` or `overhead` takes, such as { decode = \"+25%\" }. See `tokgate strength`."},
	),
}

var variableBlock = &Block{
	Name: "variable", Labels: []string{"name"}, Repeat: true,
	Doc: "A value that the caller may set with --var, --var-file or TOKGATE_VAR_name; used as var.name.",
	Attrs: []*Attr{
		{Name: "type", Type: "type", Computed: "any", Doc: "A type constraint: string, number, bool, list(…), set(…), map(…), object({…}) with optional(…), tuple([…]) or any."},
		{Name: "default", Type: "any", Computed: "none: a value is required", Doc: "The value when none is set. A constant."},
		{Name: "description", Type: "string", Doc: "What the variable is for."},
		{Name: "sensitive", Type: "bool", Default: `false`, Doc: "The value is never printed or written."},
	},
	Blocks: []*Block{{
		Name: "validation", Repeat: true, Doc: "A condition on the value.",
		Attrs: []*Attr{
			{Name: "condition", Type: "bool", Required: true, Doc: "Must be true."},
			{Name: "error_message", Type: "string", Required: true, Doc: "The message if it is not."},
		},
	}},
}

var localsBlock = &Block{
	Name: "locals", Repeat: true, Free: "a named value, used as local.name",
	Doc: "Named values, in any order.",
}

var serverBlock = &Block{
	Name: "server", Labels: []string{"name"}, Repeat: true,
	Doc: "One server under test: an endpoint, a process, a container, or a simulator alone.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "One server for each element; each.key and each.value identify it. Addressed as server.name[\"key\"]."},
		{Name: "engine", Type: "string", Default: `"openai"`, Doc: "The engine: `" + strings.Join(engine.Names(engine.Engine.Known), "`, `") + "`, or `" + engine.Plain + "` for anything compatible.", OneOf: engine.Names(nil)},
		{Name: "title", Type: "string", Doc: "Its name in reports, instead of the address."},
		{Name: "description", Type: "string", Doc: "One line for the report."},
		{Name: "model", Type: "string", Doc: "The model's real name, for people and reports."},
		{Name: "flags", Type: "object", Doc: "The engine's own command line, flag by flag: true is --x; false is --no-x, or an error where the engine has none; null leaves it out; a list is one flag with many words; an object becomes JSON."},
		{Name: "args", Type: "list of strings", Doc: "Raw words, after the flags."},
	},
	Blocks: []*Block{
		{
			Name: "endpoint", Doc: "A server that runs already.",
			Attrs: []*Attr{
				{Name: "url", Type: "string", Required: true, Doc: "Base URL, with or without /v1."},
				{Name: "api_key", Type: "string", Computed: "none is sent", Doc: "Sent as a bearer token; never printed or written."},
				{Name: "headers", Type: "map of strings", Doc: "Sent with every request."},
				{Name: "ca_file", Type: "path", Computed: "the system's", Doc: "PEM file with the certificate authority to trust, relative to the plan."},
				{Name: "h2c", Type: "bool", Default: `false`, Doc: "Speak HTTP/2 without TLS to an http:// URL, without asking first. Over https HTTP/2 is spoken where the server offers it."},
				{Name: "redirects", Type: "string", Default: `"same"`, Doc: "Which redirects are followed: `same` are those to the same host (or to its https), `any` those to other hosts too; the last one is then part of the fingerprint.", OneOf: []string{"same", "any"}},
				{Name: "served_as", Type: "string", Computed: "asked from /v1/models", Doc: "The model id to send."},
				{Name: "replicas", Type: "number", Doc: "How many servers stand behind the URL.", Later: true},
			},
		},
		{
			Name: "process", Doc: "A server that tokgate starts as a child and ends with everything it started.",
			Attrs: []*Attr{
				{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "Program and arguments; flags and args follow. {port} stands for the port."},
				{Name: "env", Type: "map of strings", Doc: "Environment variables on top of tokgate's own; never printed."},
				{Name: "dir", Type: "path", Default: `"."`, Doc: "Working folder, relative to the plan."},
				{Name: "port", Type: "number", Computed: "a free one", Doc: "The port it listens on.", Min: 1, Max: maxPort},
				{Name: "gpus", Type: gpusType, Computed: "all that tokgate itself may use", Doc: gpusDoc},
				{Name: "served_as", Type: "string", Computed: "asked from /v1/models", Doc: "The model id to send."},
			},
		},
		{
			Name: "container", Doc: "A server that tokgate starts in a container and removes with it.",
			Attrs: []*Attr{
				{Name: "image", Type: "string", Required: true, Doc: "Image by tag or digest. The digest that ran is in the report."},
				{Name: "runtime", Type: "string", Computed: "docker, or podman where there is no docker on the PATH", Doc: "`docker` or `podman`.", OneOf: []string{"docker", "podman"}},
				{Name: "pull", Type: "string", Default: `"missing"`, Doc: "When the image is pulled: `missing`, `always` or `never`.", OneOf: []string{"missing", "always", "never"}},
				{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "What the image's entrypoint is given; flags and args follow. {port} stands for the port inside the container."},
				{Name: "entrypoint", Type: "string", Computed: "the engine's program; the image's own where command is set", Doc: "Program to run instead of the image's own."},
				{Name: "env", Type: "map of strings", Doc: "Environment variables; never printed, and never on a command line."},
				{Name: "gpus", Type: gpusType, Computed: "none", Doc: gpusDoc},
				{Name: "volumes", Type: "list of strings", Doc: "Folders to mount: \"host:container\" or \"host:container:ro\". A host path that begins with . is relative to the plan; a name is a volume of the runtime."},
				{Name: "shm_size", Type: "string", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "Size of /dev/shm, such as \"16g\"."},
				{Name: "network", Type: "string", Computed: "the runtime's own", Doc: "Network to join. With \"host\" no port is published: the server listens on 127.0.0.1 itself."},
				{Name: "user", Type: "string", Computed: "the image's own", Doc: "User, or user:group, to run as."},
				{Name: "options", Type: "list of strings", Doc: "Further words for `docker create`, such as [\"--ipc\", \"host\"]."},
				{Name: "port", Type: "number", Computed: "a free one", Doc: "The port on 127.0.0.1.", Min: 1, Max: maxPort},
				{Name: "container_port", Type: "number", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The port that the server listens on inside the container.", Min: 1, Max: maxPort},
				{Name: "served_as", Type: "string", Computed: "asked from /v1/models", Doc: "The model id to send."},
			},
		},
		{
			Name: "simulator", Doc: "The built-in server. Beside another target, `run --simulate` runs it in place of that target, in virtual time.",
			Attrs: []*Attr{
				{Name: "profile", Type: "string", Default: `"default"`, Doc: "Name of a shipped profile, or a file relative to the plan."},
				{Name: "seed", Type: "number", Default: `1`, Doc: "Seed of its noise.", Min: -maxInteger, Max: maxInteger},
			},
		},
		{
			Name: "ready", Doc: "When a server counts as ready: one real completion.",
			Attrs: []*Attr{
				{Name: "timeout", Type: "duration", Computed: "10m for a process, 20m for a container, its pull left out, 30s for an endpoint or the simulator", Doc: "How long to wait for it.", Min: millisecond, Max: day},
			},
		},
		{
			Name: "telemetry", Doc: "How the server is watched from the inside while the load runs: its metrics page, and its GPUs.",
			Attrs: []*Attr{
				{Name: "enabled", Type: "bool", Default: `true`, Doc: "Whether telemetry is read."},
				{Name: "interval", Type: "duration", Default: `"1s"`, Doc: "Between two readings, at least 100ms.", Min: minInterval, Max: hour},
				{Name: "metrics_url", Type: "string", Computed: "the engine's own page: see [Engines](engines.md#how-they-are-started)", Doc: "URL of the page with the server's metrics in Prometheus's text format."},
				{Name: "dcgm_url", Type: "string", Computed: "nvidia-smi or amd-smi is asked, on this machine", Doc: "URL of a DCGM exporter's page, for GPUs of another machine."},
				{Name: "gpus", Type: "list of numbers or strings", Computed: "those of the process; none of an endpoint", Doc: "The server's GPUs, by index or UUID. For an endpoint they are looked for on this machine only if named here, or at dcgm_url."},
				{Name: "require", Type: "map of strings", Computed: `{ throttled = "< 1%" }, where the GPUs report it`, Doc: "Conditions on the GPUs, without which a measured round is not valid: `throttled`, the share of readings under thermal or hardware slowdown; `clock_spread`, the difference between the mean clocks of the two legs of a comparison's round; `foreign_processes`, the largest number of compute processes on them that are not the run's own. \"any\" requires nothing."},
			},
		},
		{
			Name: "expect", Free: "a key of the server's fingerprint and the value that must be found",
			Doc: "What must be observed of the server before any load; anything else ends the run. Keys are those of the [fingerprint](servers.md#what-it-is), such as version, gpu or model.",
		},
	},
}

// Documentation of the GPUs of a process and of a container.
const (
	gpusType = "number, list of strings or \"all\""
	gpusDoc  = "The server's GPUs: a number of free ones, a list of indexes or UUIDs, or \"all\". Only GPUs that tokgate itself may use (CUDA_VISIBLE_DEVICES) are taken. 0 means none. No other run of tokgate may use them meanwhile."
)

var workloadBlock = &Block{
	Name: "workload", Labels: []string{"name"}, Repeat: true,
	Doc: "What is sent, how it arrives, and what must hold.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "One workload for each element; each.key and each.value identify it."},
		{Name: "title", Type: "string", Computed: "the preset's", Doc: "Its name in reports, instead of the address."},
		{Name: "description", Type: "string", Computed: "the preset's", Doc: "What people use it for: one sentence for the report."},
		{Name: "users_per_request", Type: "list of numbers", Computed: "the preset's; unknown without one", Doc: "How many people one request in flight stands for, who read and think between their requests: the fewest and the most, such as [4, 5]. Reports then say how many users a capacity is."},
		{Name: "preset", Type: "string", Doc: "A named use case that fills in input_tokens, output_tokens and thresholds; own settings win."},
		{Name: "server", Type: "server or list of servers", Computed: "every server of the plan", Doc: "Where it runs: server.name."},
		{Name: "api", Type: "string", Default: `"chat"`, Doc: "`chat` or `completions`.", OneOf: []string{"chat", "completions"}},
		{Name: "mix", Type: "map of shares", Computed: "not a mix", Doc: "A mix of other workloads of the plan, each with its share of the requests: { chat = \"70%\", long = \"30%\" }, 100% together. Shares are exact over a level and within one request in each round. Over a trace, write the type of a part's rows in place of its share, { chat = \"/v1/chat\" }; lengths and prompts then come from the rows. A part keeps its lengths, prompts, request fields and sla blocks; the sla blocks apply to the part's requests at the mix's levels. The mix does not use a part's own load block, and a part needs none. The results of a part are named \"mix/part\"."},
		{Name: "input_tokens", Type: "number", Computed: "required, unless a preset sets it, or prompts come from a data set or a trace", Doc: "Tokens of each prompt, by the server's own count, chat template included."},
		{Name: "output_tokens", Type: "number or object", Computed: "required, unless a preset or a trace sets it", Doc: "Tokens of each answer: a number, { mean, jitter } for uniform lengths around a mean, or { natural = true, max } for answers that end by themselves."},
	},
	Blocks: []*Block{
		{
			Name: "request", Free: "a further field of the request body",
			Doc: "What else each request carries.",
			Attrs: []*Attr{
				{Name: "model", Type: "string", Computed: "the server's", Doc: "The model id to send."},
				{Name: "temperature", Type: "number", Computed: "not sent", Doc: "Sampling temperature, 0 to 2.", Max: 2},
				{Name: "stop", Type: "string or list of strings", Computed: "not sent", Doc: "Stop sequences."},
			},
		},
		loadBlock, slaBlock, goodBlock, scoreBlock, answersBlock,
		{Name: "gate", Doc: "The gate's policy, overridden for this workload.", Attrs: policyAttrs(true)},
		promptBlock,
		capacityBlock,
	},
}

var promptBlock = &Block{
	Name: "prompt", Doc: "Where prompts come from, when they are not synthetic and unique.",
	Attrs: []*Attr{
		{Name: "dataset", Type: "path", Computed: "prompts are made from input_tokens", Doc: "A built-in task with exact answers (`builtin:recall`, `builtin:arithmetic`, `builtin:copy`, `builtin:table`, `builtin:json`; with input_tokens they are filled up to exactly that many tokens), or real prompts, relative to the plan: JSON lines or a JSON array of {\"messages\": […]} or {\"prompt\": \"…\"}, each optionally with max_tokens, tools, response_format and answer; or a CSV file. Each row is sent once before any is sent again. With input_tokens, prompts get exactly that many tokens: a row is cut at the end of its last user message, or joined with the rows after it."},
		{Name: "order", Type: "string", Default: `"shuffled"`, Doc: "The order in which the rows are sent: `shuffled` (by the first seed) or `file` (as in the file).", OneOf: []string{string(plan.Shuffled), string(plan.InOrder)}},
		{Name: "column", Type: "string", Computed: "only of a CSV file", Doc: "The column of a CSV file that holds the prompts. Columns named max_tokens and answer mean the same as in JSON."},
		{Name: "shared_prefix", Type: "object", Computed: "nothing is shared", Doc: "The common beginning of prompts, within input_tokens: { tokens = 2048, groups = 20 }. Each prompt belongs to one of the groups (default 1), at random, and begins with the tokens of its group."},
		{Name: "hit_rate", Type: "number or share", Computed: "nothing is shared", Doc: "Instead of shared_prefix: the share of prompt tokens that a server with enough room finds in its prefix cache, such as \"80%\". tokgate then chooses 16 groups, and prefixes in whole blocks of up to 128 tokens."},
		{Name: "warm", Type: "bool", Default: `true`, Doc: "Send each shared prefix once, not measured, before a level begins, and after each start of the server."},
		{Name: "turns", Type: "number or object", Computed: "1", Doc: "Turns of a conversation, of users or of a rate: a number, or { mean = 6, max = 20 }, from a geometric distribution that starts at 1. Each turn adds input_tokens, and its prompt holds all that was said before, with the server's own answers. A turn that fails ends its conversation, and the missing turns count as failed. Only with api = \"chat\", and without dataset."},
	},
}

var loadBlock = &Block{
	Name: "load", Repeat: true,
	Doc: "How requests arrive: a closed loop (concurrency), bursts, users, a rate or recorded traffic (trace). Each number is one level.",
	Attrs: []*Attr{
		{Name: "title", Type: "map of strings", Doc: "Names of its levels in reports, by number or name: { 39 = \"Lunch hour\" }."},
		{Name: "description", Type: "map of strings", Doc: "What its levels stand for, for reports, in the same form: { 39 = \"Everyone is back from lunch.\" }."},
		{Name: "concurrency", Type: "number or list of numbers", Doc: "Closed loop: the number of requests in flight. Levels are named by the number."},
		{Name: "burst", Type: "number or list of numbers", Doc: "The number of requests sent at once; a round is one burst. Levels are named \"burst N\"."},
		{Name: "bursts", Type: "number", Default: `10`, Doc: "How often each burst is sent."},
		{Name: "requests", Type: "number or object", Computed: "200 up to level 10, else the larger of 300 and 10 × the level", Doc: "Measured requests of each level and server, split evenly over the rounds; by default at least enough for a round of each seed that the plan names. An object sets them by level: { 1 = 60, default = 300 }."},
		{Name: "duration", Type: "duration", Computed: "until `requests` were sent", Doc: "Closed loop: for how long measured requests are started at each level and server, instead of `requests`. The time is split evenly over the rounds, each of which has at least one request for each in flight. Only a failure ends the level earlier; under `extend` it may last up to four times as long. Rate: rate × duration requests, which arrive over that time on average; 5m if neither is set.", Min: second, Max: maxDuration},
		{Name: "seeds", Type: "list of numbers", Default: `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`, Doc: "One round for each seed; prompts differ by seed, round and level. Of the default seeds a level uses at least five, and as many as leave one request for each in flight in every round (two in a capacity search)."},
		{Name: "warmup", Type: "number, duration or \"auto\"", Default: `"auto"`, Doc: "Requests before each round that are not measured; `auto`: as many as the level's concurrency. Requests beyond a whole number for each slot are sent first, and the round begins when they have ended. For a rate, a duration; `auto`: until the backlog no longer grows, for at least three and at most ten mean requests. For a trace, a duration: that much of the recording before `from` is sent first; `auto`: 1m."},
		{Name: "stagger", Type: "duration or \"auto\"", Default: `"auto"`, Doc: "Time between two slots' starts; `auto` spreads them over one request."},
		{Name: "pause", Type: "duration", Default: `"0s"`, Doc: "Time between a slot's answer and its next request.", Max: day},
		{Name: "timeout", Type: "duration", Default: `"10m"`, Doc: "Time limit of one request; a request that takes longer has failed.", Min: millisecond, Max: day},
		{Name: "rate", Type: "string or list of strings", Doc: "Open loop: requests that arrive at that rate, whatever is in flight, such as \"4 req/s\" or \"240 req/min\". Levels are named by the rate in requests per second: \"4 req/s\". The clock of a request starts when it is due."},
		{Name: "arrivals", Type: "string", Default: `"poisson"`, Doc: "How the requests of a rate follow each other: `constant` (evenly), `poisson` (independently of each other) or `gamma` (by burstiness).", OneOf: arrivals},
		{Name: "burstiness", Type: "number", Computed: "only of gamma", Doc: "The shape of gamma distributed gaps: 1 is Poisson, below 1 requests come in bursts, above 1 more evenly.", Max: 1000},
		{Name: "max_in_flight", Type: "number", Default: `4096`, Doc: "For a rate or a trace: a level is given up when this many requests are in flight.", Min: 1, Max: maxLevel},
		{Name: "trace", Type: "path", Doc: "Recorded traffic, relative to the plan: each request is sent at its recorded time, with a prompt and an answer of the recorded lengths. Prompts share the beginnings that the recorded ones shared. Levels are named \"trace\" and \"trace x2\". The lengths take the place of input_tokens and output_tokens."},
		{Name: "format", Type: "string", Computed: "found out by the names in the file", Doc: "The format of the trace: " + formatList() + ". With columns none.", OneOf: formatNames()},
		{Name: "columns", Type: "object", Computed: "those of the format", Doc: "For a trace in any other CSV or JSON lines: the columns with what a replay needs, { time = \"ts\", input = \"prompt_tokens\", output = \"completion_tokens\" }, and optionally session, hash_ids with block, prefix, delay, type and unit (of numbers in time; \"1s\")."},
		{Name: "from", Type: "duration", Default: `"0s"`, Doc: "Where the replayed stretch begins, since the first request of the trace.", Max: maxTrace},
		{Name: "to", Type: "duration", Computed: "the end of the trace", Doc: "Where it ends.", Max: maxTrace},
		{Name: "speedup", Type: "number or list of numbers", Default: `[1]`, Doc: "How many times faster than recorded the trace is replayed; each is a level."},
		{Name: "spread", Type: "duration", Default: `"0s"`, Doc: "Delays each request of the trace by a random time up to this, drawn by the first seed. It is for rounded times, such as \"3s\" for Mooncake's.", Max: hour},
		{Name: "truncate", Type: "bool", Default: `false`, Doc: "Cut requests of the trace that do not fit the server's context, and count them, instead of refusing them. The answer keeps at least half of the context; the prompt loses its end."},
		{Name: "users", Type: "number or list of numbers", Doc: "The number of people; each sends the next message after the last answer and some thinking time. Levels are named \"50 users\". A level is one window of `duration`, 5m by default; its ten rounds are parts of that window."},
		{Name: "ramp_up", Type: "duration", Default: `"0s"`, Doc: "The time over which the users come, one after the other.", Max: day},
		{Name: "think_time", Type: "duration or object", Computed: "no thinking", Doc: "How long a person thinks, after an answer has ended and before the next message is due: a duration, or { mean = \"20s\", cv = 1 }, log-normal with that coefficient of variation. Only for users, and for a rate with turns."},
	},
	Blocks: []*Block{stageBlock},
}

// stageBlock describes one stage of an open loop.
var stageBlock = &Block{
	Name: "stage", Labels: []string{"name"}, Repeat: true,
	Doc: "A stage of a rate: stages follow each other without a pause, and each is a level of that name. A round is one pass of all stages, with one seed; five rounds if the plan names no seeds. An sla holds at a stage only if its `at` names the stage.",
	Attrs: []*Attr{
		{Name: "rate", Type: "rate or object", Required: true, Doc: "How many requests arrive, such as \"2 req/s\"; or a ramp: { from = \"2 req/s\", to = \"12 req/s\" }."},
		{Name: "duration", Type: "duration", Required: true, Doc: "How long the stage takes: rate × duration requests, which arrive over that time on average.", Min: second, Max: day},
	},
}

var slaBlock = &Block{
	Name: "sla", Repeat: true,
	Doc: "Thresholds. A metric of single requests needs a statistic (mean, p1 to p99.9, min, max, every), and every number its unit.",
	Attrs: append([]*Attr{
		{Name: "at", Type: "level or list of levels", Computed: "every level, and the capacity where it is searched", Doc: "The levels at which they must hold, by number or name; \"capacity\" stands for the search of the capacity block."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "`error` fails the gate; `warn` is shown only.", OneOf: severities},
	}, metricAttrs(func(metric.Def) bool { return true })...),
}

var goodBlock = &Block{
	Name:  "good",
	Doc:   "Bounds of a good request, without a statistic; gated as goodput = \"share >= 95%\".",
	Attrs: metricAttrs(boundsRequest),
}

var scoreBlock = &Block{
	Name: "score",
	Doc:  "When an answer is right; gated as accuracy = \"rate >= 85%\". A built-in data set brings its own.",
	Attrs: []*Attr{
		{Name: "match", Type: "string or object", Required: true, Doc: "How an answer is compared with the row's: `number` (its last number), `exact`, `contains`, `choice` (the letter that it names), `json_schema` (the JSON that response_format asks for, and the row's where it has one), `tool_call` (a valid call, and the row's { name, arguments } where it has one), or { regex = \"…\", group = 1 }, whose last match is the row's answer."},
	},
}

var answersBlock = &Block{
	Name: "answers",
	Doc:  "What is kept of natural answers in answers.jsonl, for `judge` and reports.",
	Attrs: []*Attr{
		{Name: "store", Type: "string", Computed: "text where a score, a threshold, a good block or a comparison judges what answers say, else none", Doc: "`text` without secrets, at most 64 MiB of a run; `hash`, the SHA-256 sum alone: `judge` cannot score these again; or `none`.", OneOf: []string{string(plan.StoreText), string(plan.StoreHash), string(plan.StoreNone)}},
	},
}

// maxTrace is the length limit of a trace.
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

// arrivals lists the distributions that the arrivals of a rate can have.
var arrivals = []string{string(plan.Constant), string(plan.Poisson), string(plan.Gamma)}

// severities lists the severities that a threshold, a change or a night can have.
var severities = []string{"error", "warn"}

// boundsRequest reports whether a bound on the metric can make a request good or bad.
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
	Doc: "A free condition over results. It is a point estimate, and the report says so.",
	Attrs: []*Attr{
		{Name: "condition", Type: "bool", Required: true, Doc: "Must be true: result.SERVER.WORKLOAD.level[N].METRIC.STATISTIC."},
		{Name: "error_message", Type: "string", Required: true, Doc: "The message if it is not."},
	},
}

var pricesBlock = &Block{
	Name: "prices",
	Doc:  "What a server costs. With prices, cost_per_hour and cost_per_million_tokens have values, and `tokgate plan` shows what the run costs.",
	Attrs: []*Attr{
		{Name: "currency", Type: "string", Default: `"USD"`, Doc: "The currency of all prices and of thresholds on costs."},
		{Name: "per_hour", Type: "number or object", Computed: "not priced", Doc: "An hour of a server, with everything in it. An object sets it by server: { vllm = 2.5, default = 4 }."},
		{Name: "electricity", Type: "number", Computed: "not priced", Doc: "A kilowatt-hour; the power is that of the GPUs, as measured.", Max: maxPrice},
	},
}

var reportBlock = &Block{
	Name: "report",
	Doc:  "What heads the report: it changes no measurement and no verdict.",
	Attrs: []*Attr{
		{Name: "title", Type: "string", Computed: "the plan's name", Doc: "Title of the report."},
		{Name: "subtitle", Type: "string", Doc: "A line under the title."},
		{Name: "organization", Type: "string", Doc: "Who publishes it."},
		{Name: "logo", Type: "path", Doc: "A PNG or JPEG picture of at most 64 KiB, relative to the plan and inside the repository. The report holds it."},
		{Name: "notes", Type: "list of strings", Doc: "Paragraphs on the first page, such as what was left out and why."},
	},
}

var historyBlock = &Block{
	Name: "history",
	Doc:  "The nights of a control plan, kept in a folder: `tokgate run` adds the night and compares it with the nights before it, and `tokgate history` shows them.",
	Attrs: []*Attr{
		{Name: "folder", Type: "path", Required: true, Doc: "Where the history is, from the plan's own folder. It is made by the first night."},
		{Name: "ignore", Type: "string", Default: `"1%"`, Doc: "A change smaller than this is not reported, however certain."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "`error` fails the run of a night that is worse; `warn` only says so.", OneOf: severities},
	},
}

// capacityBlock describes the search for the largest load at which the
// thresholds still hold.
var capacityBlock = &Block{
	Name: "capacity",
	Doc:  "Searches, after the levels of the load blocks, for the largest load at which the thresholds still hold: every sla block with severity \"error\" whose at names \"capacity\", or that has no at.",
	Attrs: []*Attr{
		{Name: "over", Type: "string", Default: `"concurrency"`, Doc: "What grows: `concurrency` (requests in flight), `burst` (requests sent at once: the largest safe queue), `users` (people as in the workload's load of users; a probe has one to four windows of its duration), `rate` (requests that arrive) or `speedup` (how many times as fast the trace is replayed)."},
		{Name: "up_to", Type: "number or rate", Required: true, Doc: "The largest load that is tried. If it passes, the capacity is \"at least\" this load. For a rate: \"40 req/s\".", Min: 1, Max: maxLevel},
		{Name: "from", Type: "number or rate", Default: `1`, Doc: "The smallest load of interest; any rate, a speedup of 0.1.", Min: 1, Max: maxLevel},
		{Name: "resolution", Type: "number or share", Default: `1`, Doc: "How far apart the largest load that passes and the smallest that fails may stay: a number, or a share of the capacity such as \"5%\". For a rate or a speedup: how far below the estimate the certified load may stay, 5% by default."},
		{Name: "require", Type: "number or rate", Computed: "none: the capacity is measured only", Doc: "The least capacity that passes the gate.", Min: 1, Max: maxLevel},
		{Name: "budget", Type: "duration", Computed: "what the plan's budget leaves", Doc: "Wall clock of the search on one server.", Min: second, Max: maxDuration},
		{Name: "requests", Type: "number", Computed: "as the requests of a level", Doc: "Measured requests at the first look at a level, at least five waves. A level that is undecided then gets up to four times as many. For a rate: the requests of a probe that estimates, 300 by default.", Min: 1, Max: maxCount},
		{Name: "max_requests", Type: "number", Computed: "the gate's max_requests, else sixteen times the first look", Doc: "The most measured requests of one level. More than four times the first look are sent only if many neighbouring levels stay undecided: at one or two of them, to confirm the answer, and at `require`.", Min: 1, Max: maxCount},
		{Name: "confirm", Type: "bool", Default: `true`, Doc: "Measure the answer once more on fresh requests before it is given. Not for a rate."},
	},
}

var compareBlock = &Block{
	Name: "compare", Labels: []string{"name"}, Repeat: true,
	Doc: "A candidate against a control, on the same prompts and in turns. Every workload that both run on is compared; its sla is judged on the candidate only. With requests left at their default, each leg (one round on one server) gets as many as a level has otherwise.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "One comparison for each element; each.key and each.value identify it: a control against each of several candidates. Named compare.name[\"key\"]."},
		{Name: "control", Type: "server", Required: true, Doc: "What the candidate is compared with: server.name; base.server.name, the server of the same plan on the base branch (--base DIR); or baseline(\"FOLDER\"), a recorded run, with the server's address there as a second argument if it is not the candidate's."},
		{Name: "candidate", Type: "server", Required: true, Doc: "The server under test: server.name."},
		{Name: "rounds", Type: "number", Computed: "8, or 16 under restart = \"order\" and side_by_side", Doc: "Rounds on each server, at least 5, in turns: A B B A … If two rounds are one observation: an even number, at least 10."},
		{Name: "restart", Type: "string", Computed: "`leg`, or `never` where a server is an endpoint", Doc: "When a server is restarted: `leg` (for each round), `order` (for each turn, so that the legs of B in A B B A share one start, and four legs are one observation) or `never` (both run side by side all the time; the verdict then covers only these two starts)."},
		{Name: "side_by_side", Type: "bool", Default: "false", Doc: "Run both legs of a round at the same time, each server on GPUs of its own that the two swap from round to round, so that a faster card does not decide. Two rounds are then one observation. Both servers list as many `gpus`, by index or UUID, and none twice; only under restart = \"leg\"."},
		{Name: "changed", Type: "list of strings", Computed: "nothing", Doc: "What may differ between the two: keys of what is declared and observed, such as `flags`, `flags.max-model-len`, `image`, `version`. Anything else that differs is an error."},
	},
	Blocks: []*Block{
		readingBlock,
		{Name: "tolerate", Repeat: true, Doc: "How much worse the candidate may be, as a share of the control's value (\"p95 +10%\"), or in percentage points if the metric is a share itself (\"rate -1pp\").", Attrs: append(claimAttrs(), pairedAttrs()...)},
		{Name: "improve", Repeat: true, Doc: "How much better the candidate must be, written in the same way.", Attrs: claimAttrs()},
	},
}

// readingBlock describes the answers block of a comparison: the control scores what
// both servers answer.
var readingBlock = &Block{
	Name: "answers",
	Doc:  "Both servers answer the same prompts of the compared workloads, at temperature 0, in each leg right after its measured requests and with as many in flight. The control then reports how likely it finds every answer. `answers {}` sets these bounds, unless a tolerate block sets them: odd_answers \"count +2\", answer_nll \"mean +0.05\", empty, invalid_text and repetition \"rate +1pp\", answer_tokens \"mean +-10%\". Not against a recorded run.",
	Attrs: []*Attr{
		{Name: "prompts", Type: "number", Default: "700", Doc: "How many prompts each server answers, spread over the workloads and the rounds. With 200 a fault in 5 % of the answers is found, with 500 one in 2 %, with 700 one in 1 %. The control answers nearly a quarter of them twice.", Min: leastAnswers, Max: mostAnswers},
		{Name: "max_tokens", Type: "number", Default: "64", Doc: "The most tokens of an answer, or fewer if the workload's own answers may have fewer.", Min: 1, Max: 4096},
	},
}

// Limits on the prompts of an answers block: fewer than the minimum show nothing.
const (
	leastAnswers = 50
	mostAnswers  = 100_000
)

func claimAttrs() []*Attr {
	attrs := []*Attr{
		{Name: "workloads", Type: "workload or list of workloads", Computed: "every workload that is compared", Doc: "The workloads that it applies to: workload.name."},
		{Name: "at", Type: "level or list of levels", Computed: "every level", Doc: "The levels at which it must hold, by number or name."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "`error` fails the gate; `warn` is shown only.", OneOf: severities},
		{Name: "capacity", Type: "change", Doc: "The candidate must be certified at the control's capacity minus the tolerance: \"-15%\"."},
	}
	return append(attrs, metricAttrs(comparable)...)
}

// pairedAttrs lists the metrics from scoring answers on the control, without those that
// are only shown.
func pairedAttrs() []*Attr {
	var attrs []*Attr
	for _, d := range metric.OfPairs {
		if d.Better != metric.Neutral {
			attrs = append(attrs, &Attr{Name: d.Name, Type: "change", Doc: d.Doc})
		}
	}
	return attrs
}

// comparable reports whether a comparison may bound the metric. It may not bound the
// generator's own lateness. It also may not bound values that can be zero or have no
// zero point, because a relative change of those has no meaning.
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
