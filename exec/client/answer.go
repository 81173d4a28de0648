package client

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tokgate/tokgate/metric"
)

// Answer is a Stream that fills in a Sample. It knows only events and times, not HTTP, SSE or JSON,
// so that the same rules apply over a socket and in virtual time.
//
//   - The first token is the first event with content, reasoning or a tool call. A delta with only
//     a role does not count, and an empty delta does not count.
//   - Usage is the last usage that counted something. If Usage counts tokens of reasoning and no
//     text of reasoning was sent, the server made these tokens before the first chunk.
//   - An answer is complete if it had a token and a finish_reason, and the stream then ended by
//     itself or said [DONE]. Some servers never send [DONE]. An answer without a token is empty,
//     and an answer without a finish_reason is truncated.
//   - An answer without usage can be complete; its Sample.Usage is nil. The verdicts decide what a
//     missing count means.
//
// After End, Reset makes an Answer ready for the next request.
type Answer struct {
	sample   *metric.Sample
	done     func(*metric.Sample)
	usage    metric.Usage
	told     int  // tokens that events reported, up to and including the first chunk
	reasoned int  // tokens of reasoning, from usage
	aloud    bool // some reasoning was sent
	keep     int  // number of further bytes of text that may be kept
	kept     kept
	reply    reply
	ended    bool // End was called
	closed   bool // [DONE] was read
}

// NewAnswer returns an Answer that fills in the sample s. End calls the function done if it is not
// nil. The caller has set the identity, InputAsked and OutputAsked of s.
func NewAnswer(s *metric.Sample, done func(*metric.Sample)) *Answer {
	a := new(Answer)
	a.Reset(s, done)
	return a
}

// Reset prepares the Answer for another request.
func (a *Answer) Reset(s *metric.Sample, done func(*metric.Sample)) {
	*a = Answer{sample: s, done: done}
}

// Keep makes the Answer keep up to n bytes of the answer's text. It is called before the
// request is sent.
func (a *Answer) Keep(n int) { a.keep, a.kept.on = n, true }

// Said returns what was kept of the answer.
func (a *Answer) Said() Said { return a.kept.said() }

// reply is the part of an answer's content that is kept.
type reply struct {
	most int // bytes; 0: none
	text []byte
	cut  bool
}

// KeepReply makes the Answer keep up to n bytes of the content of the answer. The caller calls it
// before it sends the request.
func (a *Answer) KeepReply(n int) { a.reply.most = n }

// Reply returns the content that was kept, without reasoning. whole is true if nothing of the
// content was left out.
func (a *Answer) Reply() (text string, whole bool) { return unquote(a.reply.text), !a.reply.cut }

// Sample returns the sample that the Answer fills in. The sample is complete after End.
func (a *Answer) Sample() *metric.Sample { return a.sample }

// Sent records when the first byte was written.
func (a *Answer) Sent(at time.Duration) { a.sample.Sent = at }

// Reconnect counts one reconnect after a dead kept-alive connection.
func (a *Answer) Reconnect() { a.sample.Reconnects++ }

// Headers records the answer's head.
func (a *Answer) Headers(at time.Duration, status int) {
	a.sample.Headers, a.sample.Status = at, status
}

// maxGaps limits the memory that is reserved for gaps at the first chunk. For a longer answer the
// memory grows as needed.
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
		s.Failure = &metric.Failure{Kind: metric.FailProtocol, Message: "the server sent several choices, and one was asked for"}
		return
	}
	if e.Usage != nil && (e.Usage.Input > 0 || e.Usage.Output > 0) {
		a.usage = metric.Usage{Input: e.Usage.Input, Output: e.Usage.Output, Cached: e.Usage.Cached}
		a.reasoned = min(e.Usage.Reasoning, e.Usage.Output)
		s.Usage = &a.usage
	}
	if s.Chunks == 0 {
		a.told += e.Tokens
	}
	if e.Content || e.Reasoning || e.ToolCall {
		a.chunk(at, e)
	}
	if e.Finish != "" {
		s.Finish = e.Finish
	}
	a.closed = e.Done
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
		// Some events count their own tokens, and continuous usage counts all tokens so far. Both
		// include tokens whose text was held back. That is right, because the server made those
		// tokens before the first chunk.
		s.FirstTokens = a.told
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

// End decides the outcome of the request.
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
		s.Usage = &u // copy the usage, because the Answer may be used again
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
	if err != nil && !a.closed { // after [DONE] the answer is complete
		kind := metric.FailTruncated
		if s.Status == 0 {
			kind = metric.FailConnect
		}
		message := err.Error()
		if e, ok := errors.AsType[*Error](err); ok {
			// The sample has the status itself.
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
	case s.Chunks == 0:
		return &metric.Failure{Kind: metric.FailEmpty, Message: "the stream ended without a token"}
	case s.Finish == "":
		return &metric.Failure{Kind: metric.FailTruncated, Message: fmt.Sprintf("the stream ended after %d chunks without a finish_reason", s.Chunks)}
	}
	return nil
}

// bounded cuts a foreign message to MaxMessage bytes.
func bounded(s string) string {
	if len(s) <= MaxMessage {
		return s
	}
	const mark = " …"
	n := MaxMessage - len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
