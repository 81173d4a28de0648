package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/metric"
)

// Answer is a Stream that fills in a Sample. It knows only events and times, but no HTTP, SSE or
// JSON. So the same rules apply over a socket and in virtual time.
//
//   - The first token is the first event with content, reasoning or a tool call. A delta that is
//     empty or has only a role does not count.
//   - Usage is the last usage that counted something. Usage may count reasoning tokens although no
//     reasoning was sent. Then the server made these tokens before the first chunk.
//   - An answer is complete if it had a token and a finish_reason, and the stream then ended. Some
//     servers never send [DONE]. An answer without a token is empty. An answer without a
//     finish_reason is truncated.
//   - Embeddings are complete when they are there. They have no chunk and no finish_reason.
//   - An answer without usage can be complete. Its Sample.Usage is nil, and the verdicts decide
//     what that means.
//
// After End, Reset makes an Answer ready for the next request.
type Answer struct {
	sample   *metric.Sample
	done     func(*metric.Sample)
	usage    metric.Usage
	reported int // number of tokens that events reported, until the end of the first chunk
	reasoned int // number of reasoning tokens, from the usage
	keep     int // most bytes of text that may still be recorded
	kept     kept
	reply    reply
	received *Received // nil unless another process received the answer
	aloud    bool      // some reasoning was sent
	ended    bool      // End was called
	closed   bool      // [DONE] was read
}

// NewAnswer returns an Answer that fills in the sample s. When the answer ends, it calls the
// function done, which may be nil. The caller must have set the identity, InputAsked and
// OutputAsked of s.
func NewAnswer(s *metric.Sample, done func(*metric.Sample)) *Answer {
	a := new(Answer)
	a.Reset(s, done)
	return a
}

// Reset prepares the Answer for another request.
func (a *Answer) Reset(s *metric.Sample, done func(*metric.Sample)) {
	*a = Answer{sample: s, done: done}
}

// Keep makes the Answer record up to n bytes of the answer's text. Call it before the request is
// sent.
func (a *Answer) Keep(n int) { a.keep, a.kept.on = n, true }

// Said returns the recorded part of the answer.
func (a *Answer) Said() Said {
	if a.received != nil {
		return a.received.Said
	}
	return a.kept.said()
}

// reply is the part of an answer's content that is kept.
type reply struct {
	most int // bytes; 0: none
	text []byte
	cut  bool
}

// KeepReply makes the Answer record up to n bytes of the answer's content. Call it before the
// request is sent.
func (a *Answer) KeepReply(n int) { a.reply.most = n }

// Reply returns the recorded content of the answer, without reasoning. whole reports whether that
// is all of the content.
func (a *Answer) Reply() (text string, whole bool) {
	if a.received != nil {
		return a.received.Reply, a.received.Whole
	}
	return unquote(a.reply.text), !a.reply.cut
}

// Received is what another process received of an answer, in its place.
type Received struct {
	Sample *metric.Sample `json:"-"`
	Said   Said           `json:"said,omitzero"`
	Reply  string         `json:"reply,omitempty"`
	Whole  bool           `json:"whole,omitempty"` // Reply is all of the answer's content
}

// Keeps returns how many bytes of the answer's text and of its content the Answer records.
func (a *Answer) Keeps() (text, reply int) { return a.keep, a.reply.most }

// Fill ends the answer with what another process received. Nothing else may have been called but
// the methods that say what to record.
func (a *Answer) Fill(r *Received) {
	if a.ended {
		return
	}
	a.ended, a.received = true, r
	front := a.sample.Front
	*a.sample = *r.Sample
	a.sample.Front = cmp.Or(a.sample.Front, front)
	if a.done != nil {
		a.done(a.sample)
	}
}

// Sample returns the sample that the Answer fills in. The sample is complete after End.
func (a *Answer) Sample() *metric.Sample { return a.sample }

// Sent records when the first byte was written.
func (a *Answer) Sent(at time.Duration) { a.sample.Sent = at }

// Reconnect counts one reconnect because of a dead kept-alive connection.
func (a *Answer) Reconnect() { a.sample.Reconnects++ }

// Headers records when the answer's status line came, and its status.
func (a *Answer) Headers(at time.Duration, status int) {
	a.sample.Headers, a.sample.Status = at, status
}

// maxGaps limits the memory that the first chunk reserves for gaps. A longer answer gets more
// memory as needed.
const maxGaps = 8192

// Event records one event. Events after an error event or [DONE] are ignored.
func (a *Answer) Event(at time.Duration, e *Event) {
	s := a.sample
	if a.closed || a.ended || s.Failure != nil {
		return
	}
	if e.Err != "" {
		s.Failure = &metric.Failure{Kind: metric.FailStream, Message: e.Err}
		return
	}
	if e.Several {
		s.Failure = &metric.Failure{Kind: metric.FailProtocol, Message: "the server sent several choices, but the request asked for one"}
		return
	}
	if e.Usage != nil && (e.Usage.Input > 0 || e.Usage.Output > 0) {
		before := a.usage
		a.usage = metric.Usage{Input: e.Usage.Input, Output: e.Usage.Output, Cached: e.Usage.Cached}
		if e.Usage.Input == 0 { // Messages may report the input tokens only with the beginning of an answer
			a.usage.Input, a.usage.Cached = before.Input, before.Cached
		}
		a.reasoned = min(e.Usage.Reasoning, e.Usage.Output)
		s.Usage = &a.usage
	}
	if s.Chunks == 0 {
		a.reported += e.Tokens
	}
	if e.Content || e.Reasoning || e.ToolCall {
		a.chunk(at, e)
	}
	if e.Finish != "" {
		s.Finish = e.Finish
	}
	if e.Vectors > 0 {
		a.embedded(at, e)
	}
	a.closed = e.Done || e.Vectors > 0
}

// embedded records the embeddings, which come all at once.
func (a *Answer) embedded(at time.Duration, e *Event) {
	s := a.sample
	s.First, s.FirstAnswer, s.Last, s.Vectors = at, at, at, e.Vectors
	if !a.kept.on || e.Embedded == nil {
		return
	}
	var err error
	if a.kept.vectors, err = e.Embedded(); err != nil {
		s.Failure = &metric.Failure{Kind: metric.FailProtocol, Message: bounded("an embedding cannot be read: " + err.Error())}
	}
}

// vectorsOf returns the embeddings in an answer, in the order of the inputs.
func vectorsOf(whole []byte) ([][]float32, error) {
	var answer openai.EmbeddingResponse
	if json.Unmarshal(whole, &answer) != nil {
		var coded openai.EmbeddingResponseBase64
		if err := json.Unmarshal(whole, &coded); err != nil {
			return nil, err
		}
		var err error
		if answer, err = coded.ToEmbeddingResponse(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(answer.Data, func(a, b openai.Embedding) int { return cmp.Compare(a.Index, b.Index) })
	out := make([][]float32, len(answer.Data))
	for i, d := range answer.Data {
		out[i] = d.Embedding
	}
	return out, nil
}

func (a *Answer) chunk(at time.Duration, e *Event) {
	s := a.sample
	a.aloud = a.aloud || e.Reasoning
	s.Chunks++
	s.Text += e.Text
	if a.kept.on {
		a.keep = a.kept.add(e, a.keep)
	}
	if a.reply.most > 0 && e.Content {
		room := min(len(e.Raw), max(a.reply.most-len(a.reply.text), 0))
		a.reply.text = append(a.reply.text, e.Raw[:room]...)
		a.reply.cut = a.reply.cut || room < len(e.Raw)
	}
	if s.Chunks == 1 {
		s.First = at
		// FirstTokens includes tokens that the server made before the first chunk, but held back.
		// The counts in events and in continuous usage include them too.
		s.FirstTokens = a.reported
		if s.FirstTokens == 0 {
			s.FirstTokens = e.Made
		}
		if s.FirstTokens == 0 && e.Usage != nil {
			s.FirstTokens = e.Usage.Output
		}
		if n := min(s.OutputAsked, maxGaps) - 1; n > cap(s.Gaps) {
			s.Gaps = make(metric.Gaps, 0, n)
		}
	} else {
		s.Gaps.Add(at - s.Last)
	}
	s.Last = at
	if s.FirstAnswer == 0 && (e.Content || e.ToolCall) {
		s.FirstAnswer = at
	}
}

// End ends the answer and decides the outcome of the request.
func (a *Answer) End(at time.Duration, err error) {
	if a.ended {
		return
	}
	a.ended = true
	s := a.sample
	s.End = at
	if s.Usage != nil {
		u := a.usage
		if !a.aloud && a.reasoned > 0 {
			u.Hidden = a.reasoned
			s.FirstTokens = max(s.FirstTokens, u.Hidden)
		}
		s.Usage = &u // copy the usage, because the next request may overwrite a.usage
	}
	if s.Failure == nil {
		s.Failure = a.failure(err)
	}
	if a.done != nil {
		a.done(s)
	}
}

func (a *Answer) failure(err error) *metric.Failure {
	s := a.sample
	if err != nil && !a.closed { // an error after [DONE] does not count: the answer is complete
		kind := metric.FailTruncated
		if s.Status == 0 {
			kind = metric.FailConnect
		}
		message := err.Error()
		if e, ok := errors.AsType[*Error](err); ok {
			// The sample already has the HTTP status of the answer.
			kind, message, s.RetryAfter = e.Kind, e.Message, e.RetryAfter
		} else if errors.Is(err, context.DeadlineExceeded) {
			kind = metric.FailTimeout
		} else if errors.Is(err, context.Canceled) {
			kind = metric.FailCanceled
		}
		return &metric.Failure{Kind: kind, Message: bounded(message)}
	}
	switch {
	case s.Finish == "abort" || s.Finish == "error":
		return &metric.Failure{Kind: metric.FailStream, Message: fmt.Sprintf("the server ended the answer with finish_reason %q", s.Finish)}
	case s.Vectors > 0:
		return nil
	case s.Chunks == 0:
		return &metric.Failure{Kind: metric.FailEmpty, Message: "the stream ended without a token"}
	case s.Finish == "":
		return &metric.Failure{Kind: metric.FailTruncated, Message: fmt.Sprintf("the stream ended after %d chunks without a finish_reason", s.Chunks)}
	}
	return nil
}

// bounded cuts a message of the server or the network to maxMessage bytes.
func bounded(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	const mark = " …"
	n := maxMessage - len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
