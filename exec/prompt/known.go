package prompt

import (
	"context"
	"slices"
)

// Known holds what a calibration learnt about how a server counts tokens. A later run checks it
// with two questions instead of calibrating again. A Known may come from a file, so its content is
// not trusted.
type Known struct {
	Exact     bool       `json:"exact"`
	Separator string     `json:"separator,omitempty"`
	Lead      Measured   `json:"lead,omitzero"`
	Pool      []Measured `json:"pool,omitempty"`
	IDs       []int      `json:"ids,omitempty"`
	Around    int        `json:"around,omitempty"` // tokens that the server adds to a prompt of ids
}

// Measured is a text and its cost in tokens.
type Measured struct {
	Text string `json:"text"`
	Cost int    `json:"cost"`
}

// Known returns what m learnt about the server's counts. It returns nil if m does not count by
// words.
func (m *Maker) Known() *Known {
	if m.perToken > 0 {
		return nil
	}
	k := &Known{Exact: m.exact, Separator: m.sep, Lead: Measured{m.lead.text, m.lead.cost}, IDs: m.ids, Around: m.added}
	for _, w := range m.pool {
		k.Pool = append(k.Pool, Measured{w.text, w.cost})
	}
	return k
}

// mostWords and mostIDs are the largest lengths of the lists in a Known. A calibration uses only a
// few hundred words, so a longer list must be wrong.
const (
	mostWords = 1 << 12
	mostIDs   = 1 << 20
)

// maker makes a Maker from k. It returns nil if k contains something impossible.
func (k *Known) maker(salt uint64) *Maker {
	m := &Maker{salt: salt, exact: k.Exact}
	if len(k.IDs) > 0 {
		ids := slices.Compact(slices.Sorted(slices.Values(k.IDs)))
		if len(ids) < 16 || len(ids) > mostIDs || ids[0] < 0 || k.Around < 0 || k.Around > mostIDs {
			return nil
		}
		m.ids, m.added = ids, k.Around
		return m
	}
	m.sep = k.Separator
	begin := remembered([]Measured{k.Lead}, mostIDs)
	if m.pool = remembered(k.Pool, longest); begin == nil || m.pool == nil {
		return nil
	}
	m.lead = begin[0]
	if m.settle(); !m.usable() {
		return nil
	}
	return m
}

// remembered returns the words of an earlier calibration. It returns nil if the list is too long,
// or if it has an impossible word. A word must cost at least one token. The argument most is the
// maximum cost.
func remembered(list []Measured, most int) (out []word) {
	if len(list) > mostWords {
		return nil
	}
	for _, w := range list {
		if w.Text == "" || len(w.Text) > 2*longest || w.Cost < 1 || w.Cost > most {
			return nil
		}
		out = append(out, word{w.Text, w.Cost})
	}
	return out
}

// recall makes a Maker from an earlier calibration. To check the counts, it sends two requests that
// each ask for one token. It returns nil if the server counts differently now.
func (o Options) recall(ctx context.Context) *Maker {
	if o.Known == nil {
		return nil
	}
	m := o.Known.maker(o.Salt)
	if m == nil || (m.ids != nil) != o.AsIDs {
		return nil
	}
	small, large := m.least()+16*max(m.costs, 1), m.least()+256*max(m.costs, 1)
	if off, err := m.usageError(ctx, o.Usage, small, large); err != nil || off != [2]int{} {
		return nil
	}
	return m
}
