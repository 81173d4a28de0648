package metric

// Terms are what the values of a level depend on besides its samples.
type Terms struct {
	Window Window
	Price  Price
	Good   func(*Sample) bool // nil without a good block
	One    *Level             // the level at concurrency 1; nil if there is none
}

// Stat returns a statistic of a metric over the rounds of the level. A percentile of a server's
// histogram is interpolated within its bucket.
func (l *Level) Stat(def Def, stat Stat, of Terms) Value {
	var v float64
	var ok bool
	switch {
	case def.Scope == PerReading:
		g, why := l.Gauge(def.Name)
		if why != "" {
			return None(why)
		}
		v, ok = g.Stat(stat)
	case def.Scope == Counted:
		h, why := l.Histogram(def.Name)
		if why != "" {
			return None(why)
		}
		if v, ok = h.Mean(); stat.Kind == Percentile {
			v, _, _, ok = h.Percentile(stat.P)
		}
	case def.Source == Prices:
		return l.Cost(def.Name, of.Price, l.Windows(of.Window))
	case def.Scope != PerLevel:
		d := Of(def, l.MeasuredSamples())
		v, ok = d.Stat(stat)
		ok = ok && len(d.Values) > 0
	case stat.Kind == Share:
		return l.GoodputShare(of.Good)
	default:
		return l.Value(def.Name, of.Window, of.Good, of.One)
	}
	if !ok {
		return None(def.NoValue)
	}
	return Some(v)
}
