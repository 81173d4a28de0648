package metric

import (
	"fmt"
	"strconv"
	"strings"
)

// StatKind is the kind of statistic that a threshold bounds.
type StatKind int

const (
	// NoStat is the zero value. Metrics of a whole level have no statistic.
	NoStat StatKind = iota
	Mean
	Min
	Max
	Percentile
	// Every is the statistic that applies the limit to each single observation.
	Every
	// Rate is the statistic of success: completed / due. It estimates the rate of all requests to
	// the server, not only those of this run.
	Rate
	// Share is the statistic of goodput: good requests / due requests. It estimates the share for
	// all requests to the server, not only for those of this run.
	Share
	// Observed is the share of success or goodput among the requests of this run only. It is an
	// exact share, and makes no claim about other requests.
	Observed
	// Implied is the share of success that tokgate requires where a plan does not say how many
	// requests may fail. A pass needs only the share in this run. A fail must be certain for all
	// requests to the server. A plan cannot write it.
	Implied
)

// Stat is a statistic as a plan writes it: "mean", "p95", "every".
type Stat struct {
	Kind StatKind
	P    float64 // percentage of a Percentile, in [0.1, 99.9]; otherwise 0
}

// ParseStat reads a statistic. The empty string means no statistic. A percentile is "p" and a
// number from 0.1 to 99.9.
func ParseStat(s string) (Stat, error) {
	switch s {
	case "":
		return Stat{}, nil
	case "mean":
		return Stat{Kind: Mean}, nil
	case "min":
		return Stat{Kind: Min}, nil
	case "max":
		return Stat{Kind: Max}, nil
	case "every":
		return Stat{Kind: Every}, nil
	case "rate":
		return Stat{Kind: Rate}, nil
	case "share":
		return Stat{Kind: Share}, nil
	case "observed":
		return Stat{Kind: Observed}, nil
	}
	if rest, ok := strings.CutPrefix(s, "p"); ok {
		// ParseFloat alone would also accept "p1e1" and "p+5".
		if strings.Trim(rest, "0123456789.") == "" {
			if p, err := strconv.ParseFloat(rest, 64); err == nil {
				if p < 0.1 || p > 99.9 {
					return Stat{}, fmt.Errorf("percentile %s is outside p0.1 to p99.9", s)
				}
				return Stat{Kind: Percentile, P: p}, nil
			}
		}
	}
	return Stat{}, fmt.Errorf(`%q is not a statistic; use "mean", "min", "max", "every", or a percentile from "p0.1" to "p99.9"`, s)
}

// String returns the statistic as a plan writes it; "" without a statistic.
func (s Stat) String() string {
	switch s.Kind {
	case Mean:
		return "mean"
	case Min:
		return "min"
	case Max:
		return "max"
	case Percentile:
		return "p" + strconv.FormatFloat(s.P, 'f', -1, 64)
	case Every:
		return "every"
	case Rate:
		return "rate"
	case Share:
		return "share"
	case Observed:
		return "observed"
	case Implied:
		return "implied"
	}
	return ""
}

// MarshalText writes the statistic as String does.
func (s Stat) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Stat) UnmarshalText(b []byte) (err error) {
	if string(b) == (Stat{Kind: Implied}).String() {
		*s = Stat{Kind: Implied}
		return nil
	}
	*s, err = ParseStat(string(b))
	return err
}

// Exact reports whether a pass describes only the requests of this run.
func (s Stat) Exact() bool {
	return s.Kind == Min || s.Kind == Max || s.Kind == Every || s.Kind == Observed || s.Kind == Implied
}

// IsShare reports whether the statistic is a share of the requests.
func (s Stat) IsShare() bool {
	return s.Kind == Rate || s.Kind == Share || s.Kind == Observed || s.Kind == Implied
}

// UnitOf returns the unit of a statistic of the metric. A share of requests is a ratio. All other
// statistics have the metric's unit.
func (d Def) UnitOf(s Stat) Unit {
	if s.IsShare() {
		return Ratio
	}
	return d.Unit
}
