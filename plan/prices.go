package plan

import (
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// PriceOf is what the server with that address costs; the zero Price where the
// plan does not say.
func (p *Plan) PriceOf(server string) metric.Price {
	if p.Prices == nil {
		return metric.Price{}
	}
	return metric.Price{Hour: p.Prices.PerHour[server], Electricity: p.Prices.Electricity}
}

// Unit is u, that of a price in the plan's currency: "USD/h".
func (p *Prices) Unit(u metric.Unit) metric.Unit {
	return metric.Unit(strings.Replace(string(u), "money", p.Currency, 1))
}
