package decode

import (
	"slices"
	"strings"

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
	// ToServer says that the texts of the block go to a server, or describe it. Only they may be
	// made of secrets.
	ToServer bool
	Series   bool     // whether thresholds on the series of telemetry may stand in it
	Not      []Clash  // what the block does not go with
	One      []string // attributes and blocks of which a plan sets exactly one
	Any      []string // attributes and blocks of which a plan sets at least one
}

// Attr describes one attribute, or one key of an attribute that is an object.
type Attr struct {
	Name     string
	Type     string // type in the words of the reference: "duration", "list of numbers"
	Required bool   // where With and Not allow the attribute
	// Default is the default value as HCL source. It is "" if the attribute has no default, or if
	// Computed describes the default.
	Default  string
	Computed string // text that describes the default if it is not a constant
	Doc      string
	Example  string // a value for messages, as HCL source; a list that has one must not be empty
	Bounds
	OneOf []string // the allowed words; any other word is replaced by the first of them
	Keys  []*Attr  // keys of an object
	Bare  string   // the key for which a value stands that is no object
	// With lists conditions of which one must hold where the plan sets the attribute. Else says what
	// to do instead where a condition holds that With does not list. See the method holds.
	With []string
	Else map[string]string
	Not  []Clash // what the attribute does not go with
}

// together says in words what the attribute goes with, in Markdown.
func (a *Attr) together() string {
	text := ""
	if len(a.With) > 0 {
		text += " Only with `" + strings.Join(a.With, "`, `") + "`."
	}
	for i, c := range a.Not {
		if i == 0 {
			text += " Not with"
		} else {
			text += " or"
		}
		text += " `" + c.With + "`"
	}
	if len(a.Not) > 0 {
		text += "."
	}
	return text
}

// Bounds are those of a number, a duration in nanoseconds, a share or a rate per second.
type Bounds struct {
	Min, Max     float64
	Above, Below bool // whether Min and Max themselves are not allowed
}

// Clash is a condition under which a plan may not set an attribute or block, and why.
type Clash struct{ With, Why string }

// conditional reports whether what else the plan sets decides whether it may set the attribute.
func (a *Attr) conditional() bool { return len(a.With)+len(a.Not) > 0 }

var texts = []string{"string", "path", "url", "string or list of strings", "list of strings", "list of urls",
	"map of strings", "map of headers", "map of parameters", "map of variables", "object", "list of objects"}

// Fields that the schema does not list are text too.
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

func (d *decoder) schema(b *Block) *hcl.BodySchema {
	if s := d.schemas[b]; s != nil {
		return s
	}
	s := &hcl.BodySchema{}
	for _, a := range b.Attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name, Required: a.Required && !a.conditional()})
	}
	if b.Series {
		for _, def := range d.out.Queried() { // servers are read before all that may name a series
			s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: def.Name})
		}
	}
	for _, c := range b.Blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: c.Name, LabelNames: c.Labels})
	}
	d.schemas[b] = s
	return s
}
