package decode

import (
	"github.com/tokgate/tokgate/plan"
	"github.com/zclconf/go-cty/cty"
)

func (b *body) request() plan.Request {
	r := b.child("request")
	if r == nil {
		return plan.Request{}
	}
	var out plan.Request
	r.bind(&out)
	for _, attr := range sortedAttributes(r.attrs) {
		if r.spec.attr(attr.Name) != nil {
			continue
		}
		if owner := reservedFields[attr.Name]; owner != "" {
			b.d.errorf(attr.NameRange, sumConflict, "The request field %s is set by tokgate: %s.", attr.Name, owner)
			continue
		}
		if v, ok := b.d.eval(attr.Expr, r.scope); ok {
			if out.Extra == nil {
				out.Extra = map[string]cty.Value{}
			}
			out.Extra[attr.Name] = b.d.unmark(v)
		}
	}
	return out
}

// reservedFields of a request are part of the measurement.
var reservedFields = map[string]string{
	"messages":              "prompts are made from input_tokens",
	"prompt":                "prompts are made from input_tokens",
	"stream":                "every answer is streamed",
	"stream_options":        "usage is asked for",
	"max_tokens":            "use output_tokens",
	"max_completion_tokens": "use output_tokens",
	"min_tokens":            "use output_tokens",
	"ignore_eos":            "use output_tokens",
	"n":                     "one answer is measured for each request",
}
