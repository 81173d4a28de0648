package decode

var podBlock = &Block{
	Name: "pod", ToServer: true, Doc: "A server that tokgate starts in a pod of a Kubernetes cluster, by `kubectl` 1.27 or newer. tokgate deletes the pod afterwards. All starts of a comparison run on the node of its first start.",
	Attrs: []*Attr{
		{Name: "image", Type: "string", Required: true, Doc: "The image, by tag or digest. The report shows the digest of the image that ran."},
		{Name: "command", Type: "list of strings", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The arguments of the image's entrypoint. tokgate appends `flags` and `args`, and replaces {port} by the port inside the pod."},
		{Name: "entrypoint", Type: "string", Computed: "the engine's program, or the image's own entrypoint if command is set", Doc: "The program to run instead of the image's own entrypoint."},
		{Name: "env", Type: "map of variables", Doc: "Environment variables of the container. tokgate never prints their values; whoever may read the pod sees them."},
		{Name: "gpus", Type: "number", Default: `0`, Doc: "How many GPUs the container gets.", Bounds: Bounds{Min: 0, Max: maxGPUs}},
		{Name: "gpu_resource", Type: "string", Default: `"nvidia.com/gpu"`, Doc: "The cluster's name of a GPU, such as `amd.com/gpu`."},
		{Name: "template", Type: "path", Computed: "a pod with one container", Doc: "A YAML file with a pod: node selector, tolerations, volumes, resources and more. The path is relative to the plan. The server runs in the container named `server`, or in the first. What this block says wins, and the report says what it replaced."},
		{Name: "namespace", Type: "string", Computed: "the template's, or that of kubectl", Doc: "The namespace of the pod."},
		{Name: "container_port", Type: "number", Computed: "the engine's own: see [Engines](engines.md#how-they-are-started)", Doc: "The port that the server listens on inside the pod.", Bounds: Bounds{Min: 1, Max: maxPort}},
		{Name: "served_as", Type: "string", Computed: "the server's answer at /v1/models", Doc: "The model id that tokgate sends in each request."},
	},
}
