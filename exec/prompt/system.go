package prompt

import (
	"context"
	"encoding/json"
	"fmt"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/exec/client"
)

// System makes the system prompts of a workload. Tokens is what each of them adds to a prompt.
type System struct {
	Tokens int
	maker  *Maker
	key    Key
	text   string // "": made
	made   int    // tokens that Make counts of a made text, which has another place in the template
}

// NewSystem learns what a system prompt adds to a prompt, by the server's usage of a few requests for one
// token. It has the given text. If that is "", its text is made, so that it adds the given number of
// tokens.
func (m *Maker) NewSystem(ctx context.Context, usage Counter, workload, text string, tokens int) (*System, error) {
	s := &System{Tokens: tokens, maker: m, key: Key{Workload: workload, Phase: "system"}, text: text, made: tokens}
	usage = patient(usage, "a request")
	alone, err := usage(ctx, client.Prompt{Text: lead(m.sep)})
	if err != nil {
		return nil, err
	}
	added := 0
	for range 3 {
		p, err := s.Before(0, client.Prompt{Text: lead(m.sep)})
		if err == nil {
			added, err = usage(ctx, p)
		}
		if err != nil {
			return nil, fmt.Errorf("a system prompt cannot be sent: %w", err)
		}
		added -= alone
		if text != "" {
			s.Tokens = added
		}
		if added == s.Tokens {
			return s, nil
		}
		s.made += tokens - added
	}
	if off := added - tokens; !m.exact && max(off, -off) <= tokens/50 {
		return s, nil
	}
	return nil, fmt.Errorf("a system prompt of exactly %d tokens cannot be made: the server counts %d", tokens, added)
}

// Before returns the prompt p, which is one message of a user, behind the system prompt of a group.
func (s *System) Before(group int, p client.Prompt) (client.Prompt, error) {
	text := s.text
	if text == "" {
		var err error
		k := s.key
		k.Order = group
		if text, err = s.maker.makeText(s.maker.hash(k), k, s.made); err != nil {
			return p, err
		}
	}
	var err error
	p.Messages, err = json.Marshal([]openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: text}, {Role: openai.ChatMessageRoleUser, Content: p.Text},
	})
	return p, err
}

// Share returns which share of a prompt of so many tokens is the system prompt, with what the server puts
// behind it.
func (s *System) Share(tokens int) float64 {
	return min(1, float64(s.Tokens+s.maker.addedTokens())/float64(tokens))
}
