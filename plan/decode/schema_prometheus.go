package decode

var prometheusBlock = &Block{
	Name: "prometheus", ToServer: true,
	Doc: "A Prometheus server that tokgate asks about the server, at the interval of the telemetry.",
	Attrs: []*Attr{
		{Name: "url", Type: "url", Required: true, Doc: "Base URL of the Prometheus server. It gets neither the key nor the headers of the endpoint."},
		{Name: "headers", Type: "map of headers", Doc: "Headers that are sent with every query."},
		{Name: "stale", Type: "duration", Default: `"1m"`, Doc: "How old a sample may be: an older one is no value. It must be longer than the time between two scrapes. A range in a query, such as [1m], limits the age itself.", Bounds: Bounds{Min: second, Max: hour}},
	},
	Any: []string{"series"},
	Blocks: []*Block{{
		Name: "series", Labels: []string{"name"}, Repeat: true, ToServer: true,
		Doc: "One figure by a query, with its mean, minimum and maximum at each level. Its name stands in thresholds, tolerate blocks and asserts like that of a metric, such as replicas = \"max <= 4\". No sample is no value, and passes nothing.",
		Attrs: []*Attr{
			{Name: "promql", Type: "string", Required: true, Doc: "The query. Its result must be one number: write sum(…) or max(…) around several."},
			{Name: "unit", Type: "string", Default: `"count"`, Doc: "The unit of the result.", OneOf: []string{"count", "s", "ratio", "tokens", "requests", "tok/s", "req/s", "B", "W", "°C", "Hz"}},
			{Name: "better", Type: "string", Default: `"neutral"`, Doc: "Which way is better. A tolerate block needs `lower` or `higher`.", OneOf: []string{"neutral", "lower", "higher"}},
		},
	}},
}
