package decode

import (
	"strings"

	"github.com/tokgate/tokgate/engine"
)

var serverBlock = &Block{
	Name: "server", Labels: []string{"name"}, Repeat: true, ToServer: true,
	Doc: "One server under test: an endpoint, a process, a container, a pod, a stack or a simulator.",
	Attrs: []*Attr{
		{Name: "for_each", Type: "map or set of strings", Doc: "Declares one server for each element, named server.name[\"key\"]. In the block, each.key and each.value are the key and the value of the element."},
		{Name: "engine", Type: "string", Default: `"openai"`, Doc: "The engine: `" + strings.Join(engine.Names(engine.Engine.Known), "`, `") + "`, or `" + engine.Plain + "` for any other server with an OpenAI-compatible API.", OneOf: engine.Names(nil)},
		{Name: "title", Type: "string", Doc: "The name of the server in reports, instead of its address."},
		{Name: "description", Type: "string", Doc: "One line about the server, for the report."},
		{Name: "model", Type: "string", Doc: "The name of the model. Reports show it, and tokgate starts an engine with it if no `command` is set."},
		{Name: "flags", Type: "object", Doc: "The engine's own flags, by name without dashes. `true` becomes --name. `false` becomes --no-name; it is an error if the engine has no such flag. `null` leaves the flag out. A list becomes one flag with several words. An object becomes JSON."},
		{Name: "args", Type: "list of strings", Doc: "More arguments for the server. They follow the flags on its command line."},
	},
	Blocks: []*Block{
		{
			Name: "endpoint", ToServer: true, Doc: "A server that runs already.",
			Attrs: []*Attr{
				{Name: "url", Type: "url", Required: true, Doc: "Base URL of the server, with or without /v1.", Example: `"http://127.0.0.1:8000"`, Not: []Clash{{"urls", "write every front end in urls"}}},
				{Name: "urls", Type: "list of urls", Doc: "Base URLs of several front ends of one server. Requests go to them in turn, and each sample says where it went.", Example: `["http://10.0.0.1:8000", "http://10.0.0.2:8000"]`},
				{Name: "api_key", Type: "string", Computed: "no key is sent", Doc: "The key that tokgate sends as a bearer token. tokgate never prints or stores it."},
				{Name: "headers", Type: "map of headers", Doc: "Headers that are sent with every request."},
				{Name: "ca_file", Type: "path", Computed: "the system's", Doc: "A PEM file with the certificate authority that tokgate trusts. The path is relative to the plan. A file outside the repository may contain only certificates."},
				{Name: "cert_file", Type: "path", Computed: "tokgate shows no certificate", Doc: "A PEM file with the certificate that tokgate shows to a server that asks for one (mutual TLS), and those of its issuers. The path is relative to the plan.", Example: `"client.pem"`, Not: []Clash{{`redirects = "any"`, "another host could then ask for the certificate"}}},
				{Name: "key_file", Type: "path", Required: true, Doc: "A PEM file with the key of `cert_file`. The path is relative to the plan. tokgate never prints or stores what it contains.", Example: `"client.key"`, With: []string{"cert_file"}},
				{Name: "url_query", Type: "map of parameters", Doc: "Query parameters that are added to the URL of every request, such as { api-version = \"2025-04-01-preview\" }. They are not sent to another host."},
				{Name: "session_header", Type: "string", Computed: "no session is sent", Doc: "The name of a header that tells a gateway which requests belong together, such as \"x-session-id\". Each conversation has its own value, which all its turns carry; a request without a conversation has a value of its own. The values are random in each run.", Example: `"x-session-id"`},
				{Name: "h2c", Type: "bool", Default: `false`, Doc: "Whether requests to an http:// URL use HTTP/2 from the start, without TLS. Requests to an https:// URL use HTTP/2 anyway if the server offers it."},
				{Name: "redirects", Type: "string", Default: `"same"`, Doc: "Which redirects tokgate follows. `same`: redirects to the same host, also from http to https. `any`: redirects to other hosts too; the fingerprint then records the last host.", OneOf: []string{"same", "any"}},
				{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that tokgate sends in each request."},
				{Name: "replicas", Type: "list of objects", Doc: "The servers behind a gateway, such as [{ url = \"http://10.0.0.1:8000\" }, { url = \"http://10.0.0.2:8000\" }]. tokgate reads what each reports about itself and its metrics page, and sends it no load. It sends them neither `api_key` nor the `headers` of the endpoint. A replica that restarts, changes or differs from the others is an error.", Example: `[{ url = "http://10.0.0.1:8000" }, { url = "http://10.0.0.2:8000" }]`, Keys: []*Attr{
					{Name: "url", Type: "url", Required: true, Doc: "Base URL of the replica."},
					{Name: "headers", Type: "map of headers", Doc: "Headers that are sent with every request to the pages of the replica."},
				}},
			},
		},
		{
			Name: "process", ToServer: true, Doc: "A server that tokgate starts as a child process. At the end, tokgate stops it and every process that it started.",
			Attrs: []*Attr{
				{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The program and its arguments. tokgate appends `flags` and `args`, and replaces {port} by the port."},
				{Name: "env", Type: "map of variables", Doc: "Environment variables of the process, in addition to tokgate's own. tokgate never prints their values."},
				{Name: "dir", Type: "path", Default: `"."`, Doc: "The working folder of the process. The path is relative to the plan."},
				{Name: "port", Type: "number", Computed: "a free port", Doc: "The port that the server listens on.", Bounds: Bounds{Min: 1, Max: maxPort}},
				{Name: "gpus", Type: gpusType, Computed: "all GPUs that tokgate itself may use", Doc: gpusDoc, Bounds: Bounds{Max: maxGPUs}},
				{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that tokgate sends in each request."},
			},
		},
		{
			Name: "container", ToServer: true, Doc: "A server that tokgate starts in a container. tokgate removes the container afterwards.",
			Attrs: []*Attr{
				{Name: "image", Type: "string", Required: true, Doc: "The image, by tag or digest. The report shows the digest of the image that ran."},
				{Name: "runtime", Type: "string", Computed: "docker, or podman if docker is not on the PATH", Doc: "The container runtime: `docker` or `podman`.", OneOf: []string{"docker", "podman"}},
				{Name: "pull", Type: "string", Default: `"missing"`, Doc: "When tokgate pulls the image. `missing`: only if it is not on the machine. `always`: even if it is on the machine. `never`: not at all.", OneOf: []string{"missing", "always", "never"}},
				{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The arguments of the image's entrypoint. tokgate appends `flags` and `args`, and replaces {port} by the port inside the container."},
				{Name: "entrypoint", Type: "string", Computed: "the engine's program, or the image's own entrypoint if command is set", Doc: "The program to run instead of the image's own entrypoint."},
				{Name: "env", Type: "map of variables", Doc: "Environment variables of the container. tokgate never prints their values, and never passes them on a command line."},
				{Name: "gpus", Type: gpusType, Computed: "none", Doc: gpusDoc, Bounds: Bounds{Max: maxGPUs}},
				{Name: "volumes", Type: "list of strings", Doc: "Folders to mount: \"host:container\" or \"host:container:ro\". A host path that begins with . is relative to the plan. A name without a slash, as in \"cache:/root/.cache\", is a named volume of docker or podman."},
				{Name: "shm_size", Type: "string", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The size of /dev/shm in the container, such as \"16g\"."},
				{Name: "network", Type: "string", Computed: "the runtime's default network", Doc: "The network that the container joins. With \"host\" the container uses the network of the machine: tokgate publishes no port, and the server listens on 127.0.0.1."},
				{Name: "user", Type: "string", Computed: "the image's own user", Doc: "The user of the container, or user:group."},
				{Name: "options", Type: "list of strings", Doc: "More options for `docker create` or `podman create`, such as [\"--ipc\", \"host\"]."},
				{Name: "port", Type: "number", Computed: "a free port", Doc: "The port on 127.0.0.1 at which tokgate reaches the container.", Bounds: Bounds{Min: 1, Max: maxPort}},
				{Name: "container_port", Type: "number", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The port that the server listens on inside the container.", Bounds: Bounds{Min: 1, Max: maxPort}, Not: []Clash{{`network = "host"`, "the container then uses the ports of the machine. Set port instead"}}},
				{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that tokgate sends in each request."},
			},
		},
		podBlock,
		stackBlock,
		{
			Name: "simulator", Doc: "The built-in simulator. If the server has no other target, the simulator is the server under test. If it has one, `run --simulate` uses the simulator in its place, in virtual time.",
			Attrs: []*Attr{
				{Name: "profile", Type: "string", Default: `"default"`, Doc: "The name of a built-in profile, or the path of a profile file relative to the plan. A file outside the repository needs `--files`."},
				{Name: "seed", Type: "number", Default: `1`, Doc: "The seed of the simulator's random noise.", Bounds: Bounds{Min: -maxInteger, Max: maxInteger}},
			},
		},
		{
			Name: "ready", Doc: "The wait for the server. A server is ready when it has answered one real completion.",
			Attrs: []*Attr{
				{Name: "timeout", Type: "duration", Computed: "30s for an endpoint or the simulator, 10m for a process or a stack (not counting `up`), 20m for a container or a pod (not counting the pull)", Doc: "How long tokgate waits until the server is ready.", Bounds: Bounds{Min: millisecond, Max: day}},
			},
		},
		{
			Name: "telemetry", ToServer: true, Doc: "What tokgate reads while the load runs: the server's metrics page and the state of its GPUs.",
			Attrs: []*Attr{
				{Name: "enabled", Type: "bool", Default: `true`, Doc: "Whether tokgate reads telemetry."},
				{Name: "interval", Type: "duration", Default: `"1s"`, Doc: "The time between two readings, at least 100ms.", Bounds: Bounds{Min: minInterval, Max: hour}},
				{Name: "metrics_url", Type: "url", Computed: "the engine's own page: see [Engines](engines.md#how-they-are-started)", Doc: "The URL of the server's metrics page. It must be in Prometheus's text format.", Not: []Clash{{"endpoint.replicas", "tokgate reads the metrics page of each replica. Remove it"}}},
				{Name: "dcgm_url", Type: "url", Computed: "readings come from nvidia-smi or amd-smi on this machine", Doc: "The URL of a DCGM exporter's page. Set it if the GPUs are in another machine."},
				{Name: "gpus", Type: "list of numbers or strings", Computed: "the GPUs of the process or container; none for an endpoint, a pod or a stack", Doc: "The GPUs that the server uses, by index or UUID. tokgate does not know the GPUs of an endpoint, a pod or a stack. If they are in this machine, list them, or tokgate reads nothing from them. With `dcgm_url` the list is optional: without it, tokgate reads every GPU on the page."},
				{Name: "require", Type: "object of limits", Computed: `{ throttled = "< 1%" }, if the GPUs report it`, Doc: "Upper limits on the state of the GPUs while a round is measured. A round that breaks a limit is not valid. \"any\" removes a limit.", Example: `{ throttled = "< 1%" }`, Keys: []*Attr{
					{Name: "throttled", Type: "limit", Doc: "The share of readings with thermal or hardware slowdown."},
					{Name: "clock_spread", Type: "limit", Doc: "In a comparison, how much the mean GPU clocks of control and candidate differ in a round."},
					{Name: "foreign_processes", Type: "limit", Doc: "The number of processes on the GPUs that this run did not start."},
				}},
			},
			Blocks: []*Block{prometheusBlock},
		},
		{
			Name: "expect", ToServer: true, Free: "a key of the fingerprint, with the value that tokgate must find",
			Doc: "What tokgate must find at the server before it sends load. If it finds another value, the run ends. The keys are those of the [fingerprint](servers.md#what-it-is), such as version, gpu or model.",
		},
	},
	One: []string{"endpoint", "process", "container", "pod", "stack"},
	Any: []string{"simulator"},
}

const (
	gpusType = "number, list of strings or \"all\""
	gpusDoc  = "The GPUs that the server gets: a number of free GPUs (0 for none), a list of indexes or UUIDs, or \"all\". tokgate gives only GPUs that it may use itself (CUDA_VISIBLE_DEVICES). It reserves them, so that no other run of tokgate uses them at the same time."
)
