package decode

import "github.com/hashicorp/hcl/v2"

// Block describes one type of block of the language. The decoder, the
// suggestions, the reference documentation and the completion all read it.
type Block struct {
	Name   string
	Labels []string // names of the labels, in order
	Doc    string   // one or two sentences
	Attrs  []*Attr  // in the order in which the reference shows them
	Blocks []*Block
	Repeat bool   // may be written more than once
	Free   string // "": only Attrs are allowed; else what other attributes mean
	Later  bool   // part of the language, not supported yet
}

// Attr describes one attribute.
type Attr struct {
	Name     string
	Type     string // as the reference shows it: "duration", "list of numbers"
	Required bool
	// Default is the value that is filled in, as HCL source; "" when there is
	// none, or when Computed tells it.
	Default  string
	Computed string // how the default comes about when it is not a constant
	Doc      string
	Later    bool
	// What bind checks of a value: the least and the most of a number or of a
	// duration, or the words that may be written, of which the first stands in
	// for a wrong one.
	Min, Max int64
	OneOf    []string
}

func (b *Block) attr(name string) *Attr {
	for _, a := range b.Attrs {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (b *Block) block(name string) *Block {
	for _, c := range b.Blocks {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (b *Block) bodySchema() *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, a := range b.Attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name, Required: a.Required})
	}
	for _, c := range b.Blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: c.Name, LabelNames: c.Labels})
	}
	return s
}
