package plan

import "github.com/hashicorp/hcl/v2"

// Endpoint is a server that is already running.
type Endpoint struct {
	URL  string   `plan:"url"`  // base URL, with or without /v1 at the end
	More []string `plan:"urls"` // further front ends of the same server: requests go to URL and to these in turn
	// Replicas are the servers behind the URL, if the plan names them. They get no load.
	Replicas []Replica         `plan:"replicas"`
	APIKey   string            `plan:"api_key"` // "" sends none
	Headers  map[string]string `plan:"headers"` // sent with every request
	CAFile   string            `plan:"ca_file"` // PEM file of the CA to trust; resolved against the plan's folder
	// CertFile and KeyFile are PEM files of the certificate that is shown to the server, and of its
	// key, resolved against the plan's folder; both are "" if none is shown.
	CertFile string            `plan:"cert_file"`
	KeyFile  string            `plan:"key_file"`
	Query    map[string]string `plan:"url_query"` // added to the URL of every request
	// SessionHeader is the header whose value all turns of a conversation share; "" sends none.
	SessionHeader string `plan:"session_header"`
	ServedAs      string `plan:"served_as"` // model id in requests; "" takes the id that /v1/models lists
	H2C           bool   `plan:"h2c"`       // use HTTP/2 without TLS and without negotiation
	// Redirects is "any" to follow redirects to all hosts, or "same" for the server's own host
	// only.
	Redirects string `plan:"redirects"`
	Range     hcl.Range
}

// URLs lists the front ends of the server.
func (e *Endpoint) URLs() []string { return append([]string{e.URL}, e.More...) }

// Replica is one of several servers behind an endpoint.
type Replica struct {
	URL     string            `plan:"url"`
	Headers map[string]string `plan:"headers"` // sent with every request to its pages
}
