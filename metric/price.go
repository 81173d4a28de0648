package metric

// Price is the price of a server, in the plan's currency.
type Price struct {
	Hour        float64 // price of an hour of the server; 0: not priced
	Electricity float64 // price of a kilowatt-hour for the GPUs; 0: not priced
}

// PrefillSpeed returns how many input tokens the server prefills in a second. If the server counts
// these tokens and seconds, told is true. Otherwise the speed comes from the TTFT; see
// FirstTokenSpeed.
func (l *Level) PrefillSpeed(samples []*Sample) (v Value, told bool) {
	tokens, seconds := l.Added(PrefillTokens), l.Added(PrefillSeconds)
	if tokens.OK && seconds.OK && tokens.V > 0 && seconds.V > 0 {
		return Some(tokens.V / seconds.V), true
	}
	return l.FirstTokenSpeed(samples), false
}

// CacheHitRate returns the share of the prompt tokens that came from the server's cache. The
// numbers come from the usage of the answers. If no answer reports them, they come from the
// server's counters over the window, and told is true.
func (l *Level) CacheHitRate(samples []*Sample) (v Value, told bool) {
	if v = CacheHitRate(samples); v.OK {
		return v, false
	}
	if q, h := l.Added(CacheQueries), l.Added(CacheHits); q.OK && h.OK && q.V > 0 {
		return Some(h.V / q.V), true
	}
	return v, false
}

// ImpliedHitRate returns the share of prompt tokens that earlier requests sent too: what a cache finds that
// forgets nothing. It covers the completed samples that have usage. It has no value if none was sent before.
func ImpliedHitRate(samples []*Sample) Value {
	sent, input := 0.0, 0.0
	for _, s := range samples {
		if s.Completed() && s.Usage != nil {
			sent, input = sent+s.Shared*float64(s.Usage.Input), input+float64(s.Usage.Input)
		}
	}
	if sent == 0 {
		return Value{}
	}
	return Some(sent / input)
}

// accepted returns the metric accept_rate or accept_length. If the server has a gauge of that name,
// the value is the gauge's mean. Otherwise it comes from the server's counters.
func (l *Level) accepted(name string) Value {
	// Some servers with speculative decoding report a mean instead of counters. A mean of zero may
	// come from a server without speculative decoding.
	if g, why := l.Gauge(name); why == "" && g.Mean > 0 {
		return Some(g.Mean)
	}
	accepted := l.Added(AcceptedTokens)
	per := l.Added(DraftTokens)
	if name == "accept_length" {
		per = l.Added(Drafts)
	}
	def, _ := Lookup(name)
	switch {
	case !accepted.OK, !per.OK:
		return None(def.NoValue)
	case per.V <= 0:
		return None("the server drafted no tokens in the window")
	case name == "accept_length":
		return Some(1 + accepted.V/per.V)
	}
	return Some(accepted.V / per.V)
}

// AcceptRateAt returns the share of drafts in which a token was accepted, for each position of the
// token in the draft. The result is empty if the server does not report positions.
func (l *Level) AcceptRateAt() []float64 {
	drafts := l.Added(Drafts)
	if !drafts.OK || drafts.V <= 0 {
		return nil
	}
	var out []float64
	for {
		v := l.Added(AcceptedAt(len(out)))
		if !v.OK {
			return out
		}
		out = append(out, v.V/drafts.V)
	}
}

// energyPerToken returns the energy of the GPUs in the windows, divided by the number of output
// tokens in the windows.
func (l *Level) energyPerToken() Value {
	speed := RateOver("throughput", l.Windows(Steady), nil)
	if !speed.OK {
		return speed
	}
	if e, seconds := l.Added(Energy), l.Added(EnergySeconds); e.OK && seconds.OK && e.V > 0 && seconds.V > 0 {
		return Some(e.V / seconds.V / speed.V)
	}
	power, why := l.Gauge("power")
	if why != "" {
		return None(why)
	}
	return Some(power.Mean / speed.V)
}

// Cost returns the metric of prices with the given name. The cost of an hour uses the mean power of
// the level. The cost of a million output tokens also uses the throughput over the stretches, which
// are parts of the rounds' windows.
func (l *Level) Cost(name string, p Price, stretches []Stretch) Value {
	if !l.Alone() {
		return None("a part of a mix has no cost of its own, because all parts share the server")
	}
	if p.Hour == 0 && p.Electricity == 0 {
		return None("the plan has no prices for the server")
	}
	hour := p.Hour
	if p.Electricity > 0 {
		power, why := l.Gauge("power")
		if why != "" {
			return None("electricity has a price, but power has no value: " + why)
		}
		hour += power.Mean / 1000 * p.Electricity
	}
	switch name {
	case "cost_per_hour":
		return Some(hour)
	case "cost_per_million_tokens":
		speed := RateOver("throughput", stretches, nil)
		if !speed.OK {
			return speed
		}
		return Some(hour / (speed.V * 3600) * 1e6)
	}
	return None("it is no price")
}
