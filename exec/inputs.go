package exec

import (
	"cmp"

	"github.com/tokgate/tokgate/exec/client"
)

// batched makes prompts of several inputs, each a prompt of its own, for requests for embeddings.
type batched struct {
	Prompts
	inputs int // of a request, above 1
	tokens int // of an input that does not say how many it has
}

// Prompt implements Prompts.
func (b batched) Prompt(id PromptID) (out client.Prompt, err error) {
	id.First, id.Order = id.First*b.inputs, id.Order*b.inputs
	for i := range b.inputs {
		p, err := b.Prompts.Prompt(id)
		if err == nil {
			p, err = p.Made()
		}
		if err != nil {
			return client.Prompt{}, err
		}
		tokens := out.Tokens + cmp.Or(p.Tokens, b.tokens)
		if i == 0 {
			out = p
		} else {
			out.More = append(out.More, p.Text)
		}
		out.Tokens = tokens
		id.Order++
	}
	out.Row, out.Parts, out.Shared = 0, nil, 0
	return out, nil
}
