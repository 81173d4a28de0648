package client

import (
	"net/http"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestGatewayOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header http.Header
		want   string
	}{
		{"a server itself", http.Header{"Server": {"uvicorn"}}, ""},
		{"LiteLLM", http.Header{"X-Litellm-Version": {"1.106.2"}, "X-Litellm-Model-Name": {"hosted_vllm/tiny"}}, "litellm 1.106.2, before hosted_vllm/tiny"},
		{"LiteLLM, before no model", http.Header{"X-Litellm-Version": {"1.106.2"}}, "litellm 1.106.2"},
		{"Kong", http.Header{"Via": {"1.1 kong/3.9.0"}}, "kong/3.9.0"},
		{"Kong, without its name", http.Header{"X-Kong-Upstream-Latency": {"3"}}, "kong"},
		{"Envoy", http.Header{"Server": {"istio-envoy"}, "X-Envoy-Upstream-Service-Time": {"12"}}, "envoy"},
		{"another via", http.Header{"Via": {"1.1 google"}}, ""},
	} {
		must.Same(t, tt.name, tt.want, gatewayOf(tt.header))
	}
	// Of the first few answers, the longest model name is kept.
	h := &HTTP{}
	for _, name := range []string{"", "tiny", ""} {
		h.noteGateway(http.Header{"X-Litellm-Version": {"1.106.2"}, "X-Litellm-Model-Name": {name}})
	}
	must.Same(t, "it", "litellm 1.106.2, before tiny", h.Gateway())
}
