package decode

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Block describes one type of block of the language. The decoder, the
// suggestions, the reference documentation and the completion all read it.
type Block struct {
	Name   string
	Labels []string // names of the block's labels, in order
	Doc    string   // one or two sentences of documentation
	Attrs  []*Attr  // attributes, in the order of the reference documentation
	Blocks []*Block
	Repeat bool   // whether the block may occur more than once
	Free   string // meaning of attributes that Attrs does not list; "": there are none
	Later  bool   // the language reserves this block; it is not supported yet
	// ToServer says that the texts of the block go to a server, or describe it. Only they may be
	// made of secrets.
	ToServer bool
}

// Attr describes one attribute.
type Attr struct {
	Name     string
	Type     string // type in the words of the reference: "duration", "list of numbers"
	Required bool
	// Default is the default value as HCL source. It is "" if the attribute has no default, or if
	// Computed describes the default.
	Default  string
	Computed string // text that describes the default if it is not a constant
	Doc      string
	Later    bool
	// The method bind checks the value of an attribute by these fields. Min and Max bound a number
	// or a duration. OneOf lists the allowed words; any other word is replaced by the first of
	// them.
	Min, Max int64
	OneOf    []string
}

// texts lists the types of attributes that hold text.
var texts = []string{"string", "path", "string or list of strings", "list of strings", "map of strings", "object"}

// takesSecrets reports whether an attribute of the block may be made of a secret. Fields that the
// schema does not list are text too.
func (b *Block) takesSecrets(name string) bool {
	a := b.attr(name)
	return b.ToServer && (a == nil || slices.Contains(texts, a.Type))
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

// schema returns HCL's form of the schema of a block.
func (d *decoder) schema(b *Block) *hcl.BodySchema {
	if s := d.schemas[b]; s != nil {
		return s
	}
	s := &hcl.BodySchema{}
	for _, a := range b.Attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name, Required: a.Required})
	}
	for _, c := range b.Blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: c.Name, LabelNames: c.Labels})
	}
	d.schemas[b] = s
	return s
}
