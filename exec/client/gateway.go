package client

import (
	"net/http"
	"strings"
)

// gatewaysLooked is the number of answers that are searched for a gateway's name. A few are enough,
// because a gateway adds its headers to every answer.
const gatewaysLooked = 16

// Gateway returns the name of the gateway in front of the server, such as "litellm 1.106.2, before
// hosted_vllm/tiny". The name comes from the headers of answers; "" if they name none.
func (h *HTTP) Gateway() string {
	if name := h.gateway.Load(); name != nil {
		return *name
	}
	return ""
}

// noteGateway looks for the name of a gateway in the headers of an answer, and keeps the most
// detailed name.
func (h *HTTP) noteGateway(header http.Header) {
	if h.looked.Add(1) > gatewaysLooked {
		return
	}
	if name := gatewayOf(header); len(name) > len(h.Gateway()) {
		h.gateway.Store(&name)
	}
}

// gatewayOf recognizes gateways by the headers that they are documented to add. These are
// X-Litellm-… of LiteLLM, Via and X-Kong-… of Kong, X-Envoy-… of Envoy and gateways built on it,
// such as Istio, and Cf-Ray of Cloudflare.
func gatewayOf(header http.Header) string {
	if version := header.Get("X-Litellm-Version"); version != "" {
		name := "litellm " + version
		if behind := header.Get("X-Litellm-Model-Name"); behind != "" {
			name += ", before " + behind
		}
		return bounded(name)
	}
	for _, via := range header.Values("Via") {
		for _, word := range strings.Fields(via) {
			if strings.HasPrefix(word, "kong/") {
				return bounded(word)
			}
		}
	}
	for _, of := range []struct{ header, name string }{
		{"X-Kong-Upstream-Latency", "kong"}, {"X-Envoy-Upstream-Service-Time", "envoy"}, {"Cf-Ray", "cloudflare"},
	} {
		if header.Get(of.header) != "" {
			return of.name
		}
	}
	return ""
}
