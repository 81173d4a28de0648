package decode

import (
	"github.com/tokgate/tokgate/plan"
)

// telemetry reads how a server is watched.
func (b *body) telemetry() plan.Telemetry {
	t := b.child("telemetry")
	if t == nil {
		t = b.absent("telemetry")
	}
	out := plan.Telemetry{Off: !t.boolean("enabled"), URL: t.address("metrics_url"), DCGM: t.address("dcgm_url")}
	if len(b.blocks["telemetry"]) > 0 {
		out.Range = t.rng
	}
	t.bind(&out)
	if t.given("gpus") && len(out.GPUs) == 0 {
		out.GPUs = []string{} // none, and that is meant
	}
	return out
}
