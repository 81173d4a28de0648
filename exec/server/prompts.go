package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// question is the time limit for one request while prompts are calibrated.
const question = 2 * time.Minute

// It learns how to make prompts of the right length, or reuses what it learnt for a workload with
// the same settings.
func (r *reached) prompts(
	ctx context.Context, w *plan.Workload, salt uint64, model client.Model, found metric.Fingerprint, makers map[string]*prompt.Maker,
) (exec.Prompts, error) {
	if err := fits(w, model.Context, w.Prompt.System.Tokens); err != nil {
		return nil, err
	}
	t := prompt.Target{HTTP: r.api, API: w.API, Model: w.Request.Model, Timeout: question}
	if t.Model == "" {
		t.Model = model.ID
	}
	extra, err := w.Fields()
	if err != nil {
		return nil, err
	}
	t.Extra, t.Headers = extra, w.Request.Headers
	filled := w.Prompt.Task != "" && w.Input > 0
	if w.Prompt.Dataset != nil && !filled {
		return r.fitting(ctx, w, t.Options(salt), model.Context)
	}
	key, err := json.Marshal([]any{t.API, t.Model, extra, t.Headers, salt})
	if err != nil {
		return nil, err
	}
	m, ok := makers[string(key)]
	if !ok {
		if m, err = r.learn(ctx, t, salt, found); err != nil {
			return nil, err
		}
		makers[string(key)] = m
	}
	if filled {
		return r.tasks(ctx, w, m, t.Options(salt))
	}
	out := workloadPrompts{Maker: m, workload: w, salt: salt, later: r.Workers && !w.Prompt.Turns.Several() && w.Prompt.System.Groups == 0}
	if s := w.Prompt.System; s.Groups > 0 {
		out.system, err = clock.Await(ctx, r.Clock, func(ctx context.Context) (*prompt.System, error) {
			return m.NewSystem(ctx, t.Options(salt).Usage, w.Address(), s.Text, s.Tokens)
		})
		if err == nil {
			err = fits(w, model.Context, out.system.Tokens)
		}
	}
	return out, err
}

// If an earlier run has already learnt it, learn only checks the result.
func (r *reached) learn(ctx context.Context, t prompt.Target, salt uint64, found metric.Fingerprint) (*prompt.Maker, error) {
	r.state(fmt.Sprintf("learning how %s counts tokens", r.url))
	key := r.countsKey(t, found)
	o := t.Options(salt)
	if o.Known = new(prompt.Known); !r.State.Recall(lease.Counts, key, o.Known) {
		o.Known = nil
	}
	made, err := clock.Await(ctx, r.Clock, func(ctx context.Context) (*prompt.Maker, error) {
		if t.API == plan.Completions && r.config.Engine.Dialect.PromptIDs {
			// Prompts of token ids always have the exact length. Text is sent instead if the server
			// accepts no ids, or has no tokenizer from which tokgate could learn them.
			withIDs := o
			withIDs.AsIDs = true
			if made, err := prompt.Calibrate(ctx, withIDs); err == nil {
				return made, nil
			}
		}
		return prompt.Calibrate(ctx, o)
	})
	if err == nil && made.Known() != nil {
		r.State.Remember(lease.Counts, key, made.Known())
	}
	return made, err
}

// countsKey returns the key under which tokgate stores how a server counts tokens. Servers with the
// same engine, version, model and request fields have the same key. Before a stored result is used,
// two requests check it.
func (r *reached) countsKey(t prompt.Target, found metric.Fingerprint) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n%s\n%s\n%v\n", r.config.Engine.Name, []string{found["version"], found["model"], found["revision"]}, t.API, t.Model, t.Extra)
	return "counts-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// A prompt has the length input_tokens if the plan sets it, or else its own length.
func (r *reached) fitting(ctx context.Context, w *plan.Workload, o prompt.Options, window int) (exec.Prompts, error) {
	if known, ok := r.datasets.rows[w]; ok {
		return known, nil
	}
	rows := r.datasets.begin(w)
	doing, do := "counting the tokens of the longest rows of ", func(ctx context.Context) error { return rowsFit(ctx, w, o, window) }
	if w.Input > 0 {
		doing = fmt.Sprintf("making prompts of %d tokens of ", w.Input)
		do = func(ctx context.Context) error {
			if err := answersFit(w, window); err != nil {
				return err
			}
			return rows.rows.Fit(ctx, o, w.Input, w.Rows())
		}
	}
	r.state(doing + w.Prompt.Name)
	_, err := clock.Await(ctx, r.Clock, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	if err != nil {
		return nil, err
	}
	r.datasets.rows[w] = rows
	return rows, nil
}

// The error names the first such row. window is the context in tokens; 0 means unknown.
func answersFit(w *plan.Workload, window int) error {
	for _, row := range w.Prompt.Dataset.Rows {
		if window > 0 && w.Input+row.MaxTokens > window {
			return fmt.Errorf("%s:%d: %d input tokens and %d of the answer do not fit the server's context of %d", w.Prompt.Dataset.Path, row.Line, w.Input, row.MaxTokens, window)
		}
	}
	return nil
}

// The error names the first such row. window is the context in tokens; 0 means unknown.
func rowsFit(ctx context.Context, w *plan.Workload, o prompt.Options, window int) error {
	if window == 0 {
		return nil
	}
	answer := func(row *traffic.Row) int {
		n := cmp.Or(row.MaxTokens, w.Output.Max())
		if w.Prompt.Replies == plan.Own {
			n *= max(len(row.Turns), 1)
		}
		return n
	}
	row, tokens, err := prompt.TooLong(ctx, o, w.Prompt.Dataset, func(row *traffic.Row) int { return window - answer(row) })
	if row == nil {
		return err
	}
	return fmt.Errorf("%s:%d: %d tokens of its prompt and up to %d of the answer do not fit the server's context of %d",
		w.Prompt.Dataset.Path, row.Line, tokens, answer(row), window)
}

func (p workloadPrompts) Next(id exec.PromptID, sent client.Prompt, said exec.Reply) (client.Prompt, error) {
	made, err := p.Make(prompt.Key{
		Seed: id.Seed, Workload: p.workload.Address(), Level: id.Level, Round: id.Round, Phase: id.Phase, Order: id.Order,
	}, p.workload.Input)
	if err != nil {
		return client.Prompt{}, err
	}
	var list []openai.ChatCompletionMessage
	if sent.Messages == nil {
		list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: sent.Text})
	} else if err := json.Unmarshal(sent.Messages, &list); err != nil {
		return client.Prompt{}, err
	}
	list = append(list,
		openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: said.Text},
		openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: made.Text})
	out := grown(p.workload, sent, said)
	out.Messages, err = json.Marshal(list)
	return out, err
}

// grown returns the lengths of the next prompt of a conversation, without its text. This prompt
// repeats the prompt sent before and the answer.
func grown(w *plan.Workload, sent client.Prompt, said exec.Reply) client.Prompt {
	return client.Prompt{Tokens: cmp.Or(sent.Tokens, w.Input) + said.Output + w.Input, Before: before(said, true)}
}

// fits returns an error if the longest request of the workload w is longer than the context.
// context is in tokens; 0 means unknown. system is the number of tokens of the system prompt.
func fits(w *plan.Workload, context, system int) error {
	if long := w.TooLong(context); long != "" {
		return errors.New(long)
	}
	if context == 0 || w.Longest()-w.Prompt.System.Tokens+system <= context {
		return nil
	}
	before, each := "", ""
	if system > 0 {
		before = fmt.Sprintf("%d tokens of system prompt, ", system)
	}
	if turns := w.Prompt.Turns.Max; turns > 1 {
		each = fmt.Sprintf(" in each of up to %d turns", turns)
	}
	return fmt.Errorf("%s%d input and up to %d output tokens%s do not fit the server's context of %d", before, w.Input, w.Output.Max(), each, context)
}

type workloadPrompts struct {
	*prompt.Maker
	workload *plan.Workload
	salt     uint64
	system   *prompt.System // nil: none
	later    bool           // the process that sends a prompt makes it
}

func (p workloadPrompts) of(r prompt.Recipe) (client.Prompt, error) {
	if r.Maker = p.Maker; p.later {
		return r.Later()
	}
	return r.Make()
}

func (p workloadPrompts) Prompt(id exec.PromptID) (client.Prompt, error) {
	if r := id.Recorded; r != nil && r.Text != nil {
		return prompt.Of(r.Text), nil
	} else if r != nil {
		key := prompt.Key{Seed: id.Seed, Workload: p.workload.Root().Address(), Level: id.Level, Round: id.Round}
		return p.of(prompt.Recipe{Key: key, Parts: r.Parts})
	}
	made, err := p.of(prompt.Recipe{Key: prompt.Key{
		Seed: id.Seed, Workload: p.workload.Address(), Level: id.Level, Round: id.Round, Phase: id.Phase, Order: id.Order,
		Shared: prefixOf(p.workload, p.salt, id),
	}, Tokens: p.workload.Input + id.Longer})
	if id.Longer > 0 {
		made.Tokens = p.workload.Input + id.Longer
	}
	if p.system == nil || err != nil {
		return made, err
	}
	made.Tokens = p.system.Tokens + p.workload.Input + id.Longer
	made.Shared = p.system.Share(made.Tokens)
	return p.system.Before(systemOf(p.workload, p.salt, id), made)
}

// systemOf returns which of the workload's system prompts a conversation begins with.
func systemOf(w *plan.Workload, salt uint64, id exec.PromptID) int {
	if id.Phase == exec.Warm {
		return id.Order
	}
	return int(hashOf("%x %s %s %d %d %s %d", salt, w.Address(), id.Level, id.Seed, id.Round, id.Phase, id.Order) % uint64(w.Prompt.System.Groups))
}

// prefixOf returns the prefix that a prompt of the workload w shares with other prompts. The zero
// Prefix means no shared prefix.
func prefixOf(w *plan.Workload, salt uint64, id exec.PromptID) prompt.Prefix {
	s := w.Prompt.Shared
	switch {
	case s.Groups == 0:
		return prompt.Prefix{}
	case id.Phase == exec.Warm:
		return prompt.Prefix{Group: id.Order, Tokens: s.Tokens, More: s.More}
	}
	round := hashOf("%x %s %s %d %d %s", salt, w.Address(), id.Level, id.Seed, id.Round, id.Phase)
	group, tokens := s.Of(hashOf("%x %d", round, id.Order), round, id.Order)
	return prompt.Prefix{Group: group, Tokens: s.Tokens, More: tokens - s.Tokens}
}

func hashOf(format string, args ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	x := h.Sum64()
	// Mix the bits, as in the last step of SplitMix64. Without this, the low bits of the FNV hash
	// depend too much on the last byte.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
