package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// untold finds thresholds on metrics that a server will not report. It finds them before the load,
// because without a value they would become errors only after it.
func untold(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, w := range p.Workloads {
		for _, sla := range w.SLAs {
			for _, t := range sla.Thresholds {
				for _, s := range w.Servers {
					why := untoldBy(p, s, t.Metric)
					if why == "" {
						continue
					}
					severity := hcl.DiagError
					if sla.Severity == plan.SeverityWarn {
						severity = hcl.DiagWarning
					}
					rng := t.Range
					diags = append(diags, &hcl.Diagnostic{
						Severity: severity,
						Summary:  "Threshold can never be judged",
						Detail:   fmt.Sprintf("%s of %s will have no value: %s.", t.Metric.Name, s.Address(), why),
						Subject:  &rng,
					})
					break // one diagnostic for each threshold is enough, so skip the other servers
				}
			}
		}
	}
	return diags
}

// untoldBy explains why a server will not report a metric. It returns "" if the server may report
// it.
func untoldBy(p *plan.Plan, s *plan.Server, m metric.Def) string {
	switch t := s.Telemetry; m.Source {
	case metric.Server:
		switch {
		case t.Off:
			return telemetryOff
		case t.URL == "" && (starts(s) || s.Endpoint != nil) && !telemetry.Tells(s.Engine, m.Name):
			return fmt.Sprintf("engine %q does not report it; the metrics of each engine are in docs/engines.md", s.Engine)
		}
	case metric.GPU:
		return untoldByGPUs(s)
	case metric.Prices:
		price := p.PriceOf(s.Address())
		if price == (metric.Price{}) {
			return "prices says nothing of it"
		}
		if why := untoldByGPUs(s); price.Electricity > 0 && why != "" {
			return "electricity has a price, but the power is not known: " + why
		}
	}
	return ""
}

const telemetryOff = "telemetry is off there"

// starts reports whether tokgate starts the server.
func starts(s *plan.Server) bool { return s.Process != nil || s.Container != nil }

// untoldByGPUs explains why a server will have no GPU telemetry; "" if telemetry is possible.
func untoldByGPUs(s *plan.Server) string {
	t := s.Telemetry
	switch {
	case t.Off:
		return telemetryOff
	case t.DCGM != "" || len(t.GPUs) > 0:
		return ""
	case !starts(s) && s.Endpoint == nil:
		return "the built-in server has no GPU"
	case !starts(s):
		return "tokgate does not start this server, so it does not know its GPUs: list them in telemetry { gpus = [0] }, or set dcgm_url"
	}
	if g := s.GPUs(); t.GPUs != nil || g != nil && !g.All && g.Count == 0 && len(g.IDs) == 0 {
		return "it has no GPU"
	}
	return ""
}
