package decode

var stackBlock = &Block{
	Name: "stack", ToServer: true, Doc: "A server that commands of yours start and end, such as a Helm chart, a compose file or a Slurm job. Nothing may answer at the URL before `up`: what answers is ended by `down`. `down` runs at the end, whatever happened. What `up` left running on this machine is then ended too.",
	Attrs: []*Attr{
		{Name: "up", Type: "list of strings", Required: true, Doc: "The command that starts the server, word by word, without a shell. It must end by itself.", Example: `["helm", "upgrade", "--install", "--wait", "llm", "./chart"]`},
		{Name: "down", Type: "list of strings", Required: true, Doc: "The command that ends the server. It must also end one that was started in part.", Example: `["helm", "uninstall", "--wait", "--ignore-not-found", "llm"]`},
		{Name: "url", Type: "url", Required: true, Doc: "Base URL of the server, with or without /v1.", Example: `"http://llm.example.org"`},
		{Name: "api_key", Type: "string", Computed: "no key is sent", Doc: "The key that tokgate sends as a bearer token. tokgate never prints or stores it."},
		{Name: "dir", Type: "path", Default: `"."`, Doc: "The working folder of the commands. The path is relative to the plan."},
		{Name: "env", Type: "map of variables", Doc: "Environment variables of the commands, in addition to tokgate's own. tokgate never prints their values."},
		{Name: "timeout", Type: "duration", Default: `"10m"`, Doc: "The longest time that `up` may take, and `down`. The wait until the server is ready comes after it.", Bounds: Bounds{Min: second, Max: day}},
		{Name: "logs", Type: "list of strings", Computed: "what `up` printed", Doc: "A command that prints the server's log until tokgate ends it. It starts after `up`.", Example: `["kubectl", "logs", "-f", "deploy/llm"]`},
		{Name: "declares", Type: "map of strings", Doc: "What tells this server from another and is on none of its pages, such as the image. Two stacks that are started differently can be compared only if what they report or declare differs.", Example: `{ image = "vllm/vllm-openai:v0.19.1" }`},
		{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that tokgate sends in each request."},
	},
}
