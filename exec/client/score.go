package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// ErrNoScores means that the server does not report how likely a given text is.
var ErrNoScores = errors.New("the server does not report how likely a given text is")

// Scorer is a server that can score an answer of another server. The score is how likely the model
// of the Scorer finds the answer.
type Scorer interface {
	// Score asks how likely the server's model finds the text said as an answer to the request r.
	// It calls done, from any goroutine, with the log-probability of each token. The text salt
	// makes the request unique, so that no cache answers it.
	Score(ctx context.Context, r *Request, said, salt string, done func([]float64, error))
}

// Score implements Scorer. The server's own tokenizer turns the prompt and the answer into tokens,
// and all of them are sent as one prompt. The engine reports a log-probability for each token of
// the answer.
func (h *HTTP) Score(ctx context.Context, r *Request, said, salt string, done func([]float64, error)) {
	go func() {
		if r.Timeout > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, r.Timeout)
			defer stop()
		}
		done(h.score(ctx, r, said, salt))
	}()
}

func (h *HTTP) score(ctx context.Context, r *Request, said, salt string) ([]float64, error) {
	forms := h.config.Engine.ScoreForms()
	if len(forms) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoScores, h.config.Engine.Without["Scores"])
	}
	if form := h.scores.Load(); form != nil {
		forms = []engine.Scores{*form}
	}
	ids := r.Prompt.IDs
	if len(ids) == 0 {
		ask := TokenizeRequest{Model: r.Model, API: r.API, Text: r.Prompt.Text, Messages: r.Prompt.Messages, Extra: r.Further()}
		tokens, err := h.Tokenize(ctx, ask)
		if err == nil {
			ids, err = tokens.IDs()
		}
		if err != nil {
			return nil, noScores(err)
		}
	}
	tokens, err := h.Tokenize(ctx, TokenizeRequest{Model: r.Model, Text: said})
	if err != nil {
		return nil, noScores(err)
	}
	behind, err := tokens.IDs()
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	all := append(append(make([]int, 0, len(ids)+len(behind)), ids...), behind...)
	var values []*float64
	for i := range forms {
		values, err = h.valuesBy(ctx, &forms[i], r.Model, all, salt)
		if err == nil {
			h.scores.Store(&forms[i])
			break
		}
		if len(forms) > 1 && misunderstood(err) {
			err = fmt.Errorf("%w: %w", ErrNoScores, err)
		}
		if !errors.Is(err, ErrNoScores) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(behind))
	for i, v := range values[len(ids):] {
		if v == nil {
			return nil, &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf("it reported no value for token %d of an answer", i)}
		}
		out[i] = *v
	}
	return out, nil
}

// valuesBy asks the server for the log-probabilities of all tokens. The parameter scores describes
// the form of the request.
func (h *HTTP) valuesBy(ctx context.Context, scores *engine.Scores, model string, all []int, salt string) ([]*float64, error) {
	body := map[string]any{"model": model, scores.Prompt: all}
	maps.Copy(body, scores.Fields)
	if _, ok := body["cache_salt"]; ok {
		body["cache_salt"] = salt
	}
	var raw json.RawMessage
	// The server returns each log-probability together with its token, in less than scoreBytes.
	if err := h.askPatiently(ctx, h.root+scores.Path, body, &raw, int64(scoreBytes*len(all))+maxAnswer); err != nil {
		return nil, err
	}
	values, err := logprobsAt(raw, scores.Values)
	switch {
	case err != nil:
		return nil, err
	case len(values) < len(all):
		return nil, fmt.Errorf("%w: it reported %d values for %d tokens", ErrNoScores, len(values), len(all))
	}
	return values[:len(all)], nil
}

// misunderstood reports whether a server refused a request because of its form.
func misunderstood(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooManyRequests
}

const (
	scoreBytes   = 256
	scorePatient = 10 * time.Minute // time limit of a request for scores
)

// noScores turns ErrNoTokenizer into ErrNoScores, because scores need the tokens of the text.
func noScores(err error) error {
	if errors.Is(err, ErrNoTokenizer) {
		return fmt.Errorf("%w: %w", ErrNoScores, err)
	}
	return err
}

// logprobsAt returns the log-probabilities of tokens from the JSON at a path such as
// choices[0].prompt_logprobs. The value of a token is a number, a list that begins with a number,
// or an object with a member logprob. The result is nil for a token without a number.
func logprobsAt(raw json.RawMessage, path string) ([]*float64, error) {
	for _, part := range strings.Split(path, ".") {
		name, index, several := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil || object[name] == nil {
			return nil, fmt.Errorf("%w: its answer has no %s", ErrNoScores, path)
		}
		if raw = object[name]; !several {
			continue
		}
		var list []json.RawMessage
		i, _ := strconv.Atoi(index)
		if err := json.Unmarshal(raw, &list); err != nil || i >= len(list) {
			return nil, fmt.Errorf("%w: its answer has no %s", ErrNoScores, path)
		}
		raw = list[i]
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, fmt.Errorf("%w: its answer has no list at %s", ErrNoScores, path)
	}
	out := make([]*float64, len(list))
	for i, raw := range list {
		v, err := logprob(raw)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func logprob(raw json.RawMessage) (*float64, error) {
	var number *float64
	if json.Unmarshal(raw, &number) == nil {
		return number, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && json.Unmarshal(list[0], &number) == nil {
		return number, nil
	}
	var tokens map[string]struct {
		Logprob *float64 `json:"logprob"`
	}
	if json.Unmarshal(raw, &tokens) == nil && len(tokens) == 1 {
		for _, t := range tokens {
			return t.Logprob, nil
		}
	}
	return nil, &Error{Kind: metric.FailProtocol, Message: bounded("this is no token's log-probability: " + string(raw))}
}
