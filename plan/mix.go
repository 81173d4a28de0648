package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Part returns a copy of base that is one part of the mix w. The part's share of the requests is in
// millionths. Loads and thresholds are not copied; ShareOut sets them later.
func (w *Workload) Part(base *Workload, share int) *Workload {
	part := *base
	part.Name, part.Key = w.Address()+"/"+base.Address(), ""
	part.Of, part.Share = w, share
	if base.Title != "" {
		part.Title = cmp.Or(w.Title, w.Address()) + ": " + base.Title
	}
	part.Servers = slices.Clone(w.Servers)
	part.Loads, part.SLAs, part.Capacity = nil, nil, nil
	part.Policy.OnInconclusive = w.Policy.OnInconclusive
	part.Cancel = cmp.Or(w.Cancel, base.Cancel)
	return &part
}

// PartName returns the name of a part within its mix, which is the address of its base workload; "" if
// the workload is no part.
func (w *Workload) PartName() string {
	if w.Of == nil {
		return ""
	}
	return metric.PartName(w.Of.Address(), w.Address())
}

// ByType reports whether the types of a trace's rows name the parts of the mix.
func (w *Workload) ByType() bool { return len(w.Mix) > 0 && w.Mix[0].Type != "" }

// PartOf returns the index in Mix of the part whose type is the type of the row. It returns -1
// if there is no such part.
func (w *Workload) PartOf(row *traffic.Recorded) int {
	return slices.IndexFunc(w.Mix, func(part *Workload) bool { return part.Type == row.Type })
}

// Shares returns the shares of a mix's parts, in their order.
func (w *Workload) Shares() traffic.Shares {
	var out traffic.Shares
	for _, part := range w.Mix {
		out = append(out, part.Share)
	}
	return out
}

// Blend writes each part of a mix with its share, such as "chat 70%"; nil if the workload is no mix.
func (w *Workload) Blend() (out []string) {
	for _, part := range w.Mix {
		out = append(out, part.PartName()+" "+metric.Format(metric.Ratio, part.share()))
	}
	return out
}

// AnswerLength returns the mean number of tokens of an answer. For a mix it is the mean over all
// parts. If answers may end by themselves, ok is false.
func (w *Workload) AnswerLength() (mean float64, ok bool) {
	if w.Mix == nil {
		return float64(w.Output.Mean), !w.Output.Natural
	}
	ok = true
	for _, part := range w.Mix {
		mean += part.share() * float64(part.Output.Mean)
		ok = ok && !part.Output.Natural
	}
	return mean, ok
}

// PromptLength is the mean number of tokens of a prompt. For a mix it is the mean over all parts.
// If prompts are rows of a data set with their own lengths, ok is false.
func (w *Workload) PromptLength() (mean float64, ok bool) {
	if w.Mix == nil {
		return float64(w.Input + w.Prompt.System.Tokens), w.Input > 0
	}
	for _, part := range w.Mix {
		if part.Input == 0 {
			return 0, false
		}
		mean += part.share() * float64(part.Input+part.Prompt.System.Tokens)
	}
	return mean, true
}

func (w *Workload) share() float64 {
	if w.Of == nil {
		return 1
	}
	return float64(w.Share) / traffic.Whole
}

// Own returns how many of the given number of requests of the mix belong to the part. For a
// workload that is not a part, it returns the number unchanged.
func (w *Workload) Own(requests int) int {
	if w.Of == nil {
		return requests
	}
	return requests * w.Share / traffic.Whole
}

// OfWhole returns how many requests the whole mix has if this part has the given number of
// requests. For a workload that is not a part, it returns the number unchanged.
func (w *Workload) OfWhole(requests int) int {
	if w.Of == nil {
		return requests
	}
	return ofWhole(requests, w.Share)
}

// OfWhole returns how many requests the whole mix has if a part of the given share has the given
// number of requests. A share of 0 means that there is no mix, so the number is returned unchanged.
func OfWhole(requests int, share float64) int {
	// Compute with whole millionths, so that 59 requests with a share of 5% give exactly 1,180.
	return ofWhole(requests, int(math.Round(share*traffic.Whole)))
}

func ofWhole(requests, share int) int {
	if share < 1 {
		return requests
	}
	return (requests*traffic.Whole + share - 1) / share
}

// AtOnce returns how many requests of the level are in flight, or are sent in one burst. For a part
// of a mix it returns the mean number, and at least 1.
func (l Level) AtOnce() int { return metric.AtOnce(l.N, l.Share) }

// Fraction is the level's share of the requests of its load, in (0, 1]. Only that of a part of a mix is
// less than 1.
func (l Level) Fraction() float64 { return cmp.Or(l.Share, 1) }

// Leaving returns how many clients leave for each request that stays.
func (w *Workload) Leaving() float64 {
	if w.Mix != nil {
		sum := 0.0
		for _, part := range w.Mix {
			sum += part.share() * part.Leaving()
		}
		return sum
	}
	if w.Cancel == nil {
		return 0
	}
	return w.Cancel.Share / (1 - w.Cancel.Share)
}

// LeavingShares returns the shares of a mix's parts in the clients that leave.
func (w *Workload) LeavingShares() traffic.Shares {
	out, left, last := make(traffic.Shares, len(w.Mix)), traffic.Whole, -1
	for i, part := range w.Mix {
		out[i] = int(traffic.Whole * part.share() * part.Leaving() / w.Leaving())
		if left -= out[i]; out[i] > 0 {
			last = i
		}
	}
	out[last] += left // of rounding down
	return out
}

// Owner returns the workload that a request of w belongs to: a part of the mix w, or w itself.
func (w *Workload) Owner(s *metric.Sample) *Workload {
	for _, part := range w.Mix {
		if part.PartName() == s.Part {
			return part
		}
	}
	return w
}

// join makes a copied workload part of the copies of its mix, and the mix consist of those of its
// parts.
func (w *Workload) join(copies map[*Workload]*Workload) {
	w.Of, w.Mix = copies[w.Of], slices.Clone(w.Mix)
	for i, part := range w.Mix {
		w.Mix[i] = copies[part]
	}
}

// Loaded returns the workloads that have a load of their own: all but the parts of mixes.
func (p *Plan) Loaded() []*Workload {
	return slices.DeleteFunc(slices.Clone(p.Workloads), func(w *Workload) bool { return w.Of != nil })
}

// Sent returns the workloads whose requests are sent: the parts of a mix, or the workload itself.
func (w *Workload) Sent() []*Workload {
	if w.Mix != nil {
		return w.Mix
	}
	return []*Workload{w}
}
