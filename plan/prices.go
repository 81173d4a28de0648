package plan

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/metric"
)

// PriceOf returns the price of the server with the given address; zero if the plan sets none.
func (p *Plan) PriceOf(server string) metric.Price {
	if p.Prices == nil {
		return metric.Price{}
	}
	return metric.Price{Hour: p.Prices.PerHour[server], Electricity: p.Prices.Electricity}
}

// Unit returns a unit of price in the plan's currency, such as "USD/h".
func (p *Prices) Unit(u metric.Unit) metric.Unit {
	return metric.Unit(strings.Replace(string(u), "money", p.Currency, 1))
}

// Prices holds the prices of servers.
type Prices struct {
	Currency    string             `plan:"currency"` // such as USD
	PerHour     map[string]float64 // price of one hour of a server; the key is the server's address
	Electricity float64            `plan:"electricity"` // price of a kilowatt-hour; 0 means that electricity is not priced
	Range       hcl.Range
}
