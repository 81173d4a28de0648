package prompt

import (
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// Recipe says how a Maker makes a prompt: of the pieces, or of the number of tokens if there are
// none. Equal Makers in two processes make equal prompts of equal recipes.
type Recipe struct {
	Maker  *Maker         `json:"-"`
	Key    Key            `json:"key"`
	Tokens int            `json:"tokens,omitempty"`
	Parts  []metric.Piece `json:"parts,omitempty"`
}

// Make implements client.Recipe.
func (r Recipe) Make() (client.Prompt, error) {
	if r.Parts != nil {
		return r.Maker.MakeParts(r.Key, r.Parts)
	}
	return r.Maker.Make(r.Key, r.Tokens)
}

// Copy returns a Maker that makes the same prompts as the one of the given salt from which k comes. It
// returns nil if k contains something impossible.
func (k *Known) Copy(salt uint64) *Maker { return k.maker(salt) }

// Salt returns the salt of the Maker's prompts.
func (m *Maker) Salt() uint64 { return m.salt }

// Later returns the prompt without its content, which the process that sends it makes. If no other
// process could, because the Maker does not count by words, Later makes the content.
func (r Recipe) Later() (client.Prompt, error) {
	m := r.Maker
	switch {
	case m.perToken > 0 || r.Parts != nil && len(r.Parts) == 0:
		return r.Make()
	case r.Parts != nil:
		p := m.outline(r.Parts)
		p.Recipe = r
		return p, nil
	case r.Tokens <= m.least() || m.ids == nil && !m.makes(r.Tokens-m.lead.cost):
		return r.Make() // which says why it cannot be made, if so
	}
	return client.Prompt{Shared: m.shared(r.Key, r.Tokens), Recipe: r}, nil
}
