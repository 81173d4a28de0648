package decode

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
)

// control reads server.name, base.server.name and baseline("FOLDER").
func (b *body) control(c *plan.Compare) plan.Control {
	out := plan.Control{Range: b.rangeOf("control")}
	attr := b.attrs["control"]
	if attr == nil {
		return out
	}
	if t, diags := hcl.AbsTraversalForExpr(attr.Expr); !diags.HasErrors() && t.RootName() == "base" {
		b.base(c, &out, t)
		return out
	}
	if call, diags := hcl.ExprCall(attr.Expr); !diags.HasErrors() && call.Name == "baseline" {
		var words []string
		for _, arg := range call.Arguments {
			v, ok := b.d.eval(arg, b.scope)
			if !ok {
				return out
			}
			text, ok := b.asText(arg.Range(), "baseline", b.d.unmark(v))
			if !ok {
				return out
			}
			words = append(words, text)
		}
		if len(words) < 1 || len(words) > 2 || words[0] == "" {
			b.d.errorf(out.Range, sumMissing, `baseline names the folder of a recorded run: baseline("perf/2026-11-19"), or baseline("perf/2026-11-19", "vllm") where the server has another address there.`)
			return out
		}
		out.Baseline = words[0]
		if !filepath.IsAbs(out.Baseline) {
			out.Baseline = filepath.Join(b.d.dir, filepath.FromSlash(out.Baseline))
		}
		if len(words) == 2 {
			out.BaselineServer = words[1]
		}
		return out
	}
	out.Server = b.one("control")
	return out
}
