package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// cost estimates the price of a run from the prices per hour, and says where the estimate comes
// from. It returns "" if the plan has no prices. Servers run one after the other. So the estimate
// charges each server for its own levels and starts, and divides all other time equally.
func (l *lastRun) cost(p *plan.Plan, start map[*plan.Server]startTime) string {
	if p.Prices == nil || len(p.Prices.PerHour) == 0 {
		return ""
	}
	money := func(v float64) string { return metric.Format(metric.Unit(p.Prices.Currency), v) }
	spent, most, unknown, taken := 0.0, 0.0, 0, time.Duration(0)
	for _, c := range exec.Cases(p) {
		price := p.Prices.PerHour[c.Server.Address()]
		most = max(most, price)
		d, ok := l.duration(c)
		if !ok {
			unknown++
		}
		taken += d
		spent += d.Hours() * price
	}
	for _, s := range p.Servers {
		spent += float64(exec.Starts(p, s)) * start[s].took.Hours() * p.Prices.PerHour[s.Address()]
	}
	perHour := money(most) + " an hour"
	if many := prices(p); many != "" {
		perHour = many
	}
	var said []string
	switch {
	case l == nil || taken == 0:
		said = append(said, perHour+", for a time that is not known before the first run")
	default:
		sum := 0.0
		for _, s := range p.Servers {
			sum += p.Prices.PerHour[s.Address()]
		}
		spent += l.rest / 3600 * sum / float64(max(len(p.Servers), 1))
		about := "about"
		if unknown > 0 {
			about = "more than"
		}
		said = append(said, fmt.Sprintf("%s %s, by the %s in %s, at %s", about, money(spent), l.kind, l.path, perHour))
	}
	if p.Gate.Budget > 0 {
		said = append(said, "at most "+money(p.Gate.Budget.Hours()*most)+" by the budget")
	}
	if p.Prices.Electricity > 0 {
		said = append(said, "electricity on top, by the power that is measured")
	}
	return strings.Join(said, " · ")
}

func prices(p *plan.Plan) string {
	var list []string
	same := true
	for _, s := range p.Servers {
		price := p.Prices.PerHour[s.Address()]
		same = same && price == p.Prices.PerHour[p.Servers[0].Address()]
		list = append(list, fmt.Sprintf("%s %s", s.Address(), metric.Format(metric.Unit(p.Prices.Currency), price)))
	}
	if same {
		return ""
	}
	return strings.Join(list, ", ") + " an hour"
}
