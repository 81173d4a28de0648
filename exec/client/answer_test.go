package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

const ms = time.Millisecond

// step is one call of a method of Stream.
type step struct {
	at time.Duration
	e  Event
}

func content(at time.Duration) step   { return step{at, Event{Content: true}} }
func reasoning(at time.Duration) step { return step{at, Event{Reasoning: true}} }

func TestAnswer(t *testing.T) {
	usage := &Usage{Input: 10, Output: 4, Cached: -1}
	end := step{500 * ms, Event{Finish: "length"}}
	counted := step{510 * ms, Event{Usage: usage}}
	done := step{520 * ms, Event{Done: true}}
	type want struct {
		First, FirstAnswer, Last time.Duration
		Gaps                     metric.Gaps
		Chunks, FirstTokens      int
		Usage                    *metric.Usage
		Finish                   string
		Kind                     metric.FailureKind
		Message                  string
	}
	told := &metric.Usage{Input: 10, Output: 4, Cached: -1}
	for _, tt := range []struct {
		name  string
		steps []step
		err   error
		want  want
	}{
		{
			name:  "plain",
			steps: []step{content(100 * ms), content(120 * ms), content(150 * ms), end, counted, done},
			want:  want{First: 100 * ms, FirstAnswer: 100 * ms, Last: 150 * ms, Gaps: metric.Gaps{20000, 30000}, Chunks: 3, Usage: told, Finish: "length"},
		}, {
			// Load tools disagree on the TTFT of this stream. The role comes at 0.1 s, reasoning
			// from 1 s, and visible text after that.
			name:  "role first, then reasoning, then content",
			steps: []step{{100 * ms, Event{}}, reasoning(1000 * ms), reasoning(1060 * ms), content(1120 * ms), end, counted, done},
			want:  want{First: 1000 * ms, FirstAnswer: 1120 * ms, Last: 1120 * ms, Gaps: metric.Gaps{60000, 60000}, Chunks: 3, Usage: told, Finish: "length"},
		}, {
			name:  "a tool call is an answer",
			steps: []step{reasoning(5 * ms), {9 * ms, Event{ToolCall: true}}, {10 * ms, Event{Finish: "tool_calls", Usage: usage}}},
			want:  want{First: 5 * ms, FirstAnswer: 9 * ms, Last: 9 * ms, Gaps: metric.Gaps{4000}, Chunks: 2, Usage: told, Finish: "tool_calls"},
		}, {
			name:  "no [DONE], usage with the finish",
			steps: []step{content(7 * ms), {9 * ms, Event{Finish: "stop", Usage: usage}}},
			want:  want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Usage: told, Finish: "stop"},
		}, {
			name: "continuous usage: the first chunk's is k1, the last one counts, zeros do not",
			steps: []step{
				{1 * ms, Event{Usage: &Usage{Input: 10, Cached: 8}}},
				{2 * ms, Event{Content: true, Usage: &Usage{Input: 10, Output: 3, Cached: -1}}},
				{3 * ms, Event{Content: true, Usage: &Usage{Input: 10, Output: 4, Cached: -1}}},
				{4 * ms, Event{Finish: "length", Usage: &Usage{}}},
			},
			want: want{First: 2 * ms, FirstAnswer: 2 * ms, Last: 3 * ms, Gaps: metric.Gaps{1000}, Chunks: 2, FirstTokens: 3, Usage: told, Finish: "length"},
		}, {
			// The server held back half a character, so the first event has a token but no text.
			// The first chunk with text counts this token and its own two.
			name: "token ids",
			steps: []step{
				{1 * ms, Event{Tokens: 1}},
				{2 * ms, Event{Content: true, Tokens: 2}},
				{3 * ms, Event{Content: true, Tokens: 1}},
				{4 * ms, Event{Finish: "length", Usage: usage}},
			},
			want: want{First: 2 * ms, FirstAnswer: 2 * ms, Last: 3 * ms, Gaps: metric.Gaps{1000}, Chunks: 2, FirstTokens: 3, Usage: told, Finish: "length"},
		}, {
			// The first chunk with text comes after three tokens, because the server held back half
			// a character.
			name: "tokens made so far",
			steps: []step{
				{2 * ms, Event{Content: true, Made: 3}},
				{3 * ms, Event{Content: true, Made: 4}},
				{4 * ms, Event{Finish: "length", Usage: usage}},
			},
			want: want{First: 2 * ms, FirstAnswer: 2 * ms, Last: 3 * ms, Gaps: metric.Gaps{1000}, Chunks: 2, FirstTokens: 3, Usage: told, Finish: "length"},
		}, {
			// Three of the four tokens are reasoning without text, so they came before the first
			// chunk.
			name: "reasoning that is told and not sent",
			steps: []step{
				content(7 * ms),
				{9 * ms, Event{Finish: "stop", Usage: &Usage{Input: 10, Output: 4, Cached: -1, Reasoning: 3}}},
			},
			want: want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, FirstTokens: 3, Finish: "stop",
				Usage: &metric.Usage{Input: 10, Output: 4, Cached: -1, Hidden: 3}},
		}, {
			name: "reasoning that is told and sent",
			steps: []step{
				reasoning(5 * ms), content(7 * ms),
				{9 * ms, Event{Finish: "stop", Usage: &Usage{Input: 10, Output: 4, Cached: -1, Reasoning: 3}}},
			},
			want: want{First: 5 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Gaps: metric.Gaps{2000}, Chunks: 2, Usage: told, Finish: "stop"},
		}, {
			name:  "no usage is complete, and no number is made up",
			steps: []step{content(7 * ms), end, done},
			want:  want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Finish: "length"},
		}, {
			name:  "no finish_reason, although [DONE]",
			steps: []step{content(7 * ms), counted, done},
			want: want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Usage: told,
				Kind: metric.FailTruncated, Message: "the stream ended after 1 chunks without a finish_reason"},
		}, {
			name:  "no token",
			steps: []step{{7 * ms, Event{}}, end, counted, done},
			want:  want{Usage: told, Finish: "length", Kind: metric.FailEmpty, Message: "the stream ended without a token"},
		}, {
			name: "nothing",
			want: want{Kind: metric.FailEmpty, Message: "the stream ended without a token"},
		}, {
			name:  "an error event; what follows does not count",
			steps: []step{content(7 * ms), {8 * ms, Event{Err: "out of memory"}}, content(9 * ms), end, counted, done},
			want:  want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Kind: metric.FailStream, Message: "out of memory"},
		}, {
			name:  "aborted by the server",
			steps: []step{content(7 * ms), {8 * ms, Event{Finish: "abort", Usage: usage}}, done},
			want: want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Usage: told, Finish: "abort",
				Kind: metric.FailStream, Message: `the server ended the answer with finish_reason "abort"`},
		}, {
			name:  "broken after [DONE] is complete",
			steps: []step{content(7 * ms), end, counted, done},
			err:   errors.New("connection reset"),
			want:  want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Usage: told, Finish: "length"},
		}, {
			name:  "broken after the finish, without [DONE]",
			steps: []step{content(7 * ms), end, counted},
			err:   errors.New("connection reset"),
			want: want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1, Usage: told, Finish: "length",
				Kind: metric.FailTruncated, Message: "connection reset"},
		}, {
			name:  "time-out",
			steps: []step{content(7 * ms)},
			err:   &Error{Kind: metric.FailTimeout, Message: "no end within 2s"},
			want: want{First: 7 * ms, FirstAnswer: 7 * ms, Last: 7 * ms, Chunks: 1,
				Kind: metric.FailTimeout, Message: "no end within 2s"},
		}, {
			name: "canceled",
			err:  context.Canceled,
			want: want{Kind: metric.FailCanceled, Message: "context canceled"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &metric.Sample{OutputAsked: 4}
			ends := 0
			a := NewAnswer(s, func(*metric.Sample) { ends++ })
			a.Sent(1 * ms)
			a.Headers(2*ms, 200)
			for _, st := range tt.steps {
				a.Event(st.at, &st.e)
			}
			a.End(600*ms, tt.err)
			a.End(700*ms, errors.New("again"))
			a.Event(800*ms, &Event{Content: true})
			got := want{First: s.First, FirstAnswer: s.FirstAnswer, Last: s.Last, Gaps: s.Gaps,
				Chunks: s.Chunks, FirstTokens: s.FirstTokens, Usage: s.Usage, Finish: s.Finish}
			if s.Failure != nil {
				got.Kind, got.Message = s.Failure.Kind, s.Failure.Message
			}
			if len(got.Gaps) == 0 {
				got.Gaps = nil
			}
			must.Same(t, "sample (-want +got)", tt.want, got)
			if s.Sent != 1*ms || s.Headers != 2*ms || s.Status != 200 || s.End != 600*ms || ends != 1 {
				t.Errorf("sent %v, headers %v, status %d, end %v, done called %d times", s.Sent, s.Headers, s.Status, s.End, ends)
			}
		})
	}
}

// An error of another type than *Error, before the answer began, means that no connection was made.
func TestAnswerConnect(t *testing.T) {
	s := new(metric.Sample)
	NewAnswer(s, nil).End(1, errors.New("refused"))
	must.Same(t, "", &metric.Failure{Kind: metric.FailConnect, Message: "refused"}, s.Failure)
}

// An Answer that is reused keeps nothing of its previous request, and does not change the previous
// sample.
func TestAnswerReset(t *testing.T) {
	first, second := new(metric.Sample), new(metric.Sample)
	a := NewAnswer(first, nil)
	a.Event(1, &Event{Content: true, Finish: "stop", Usage: &Usage{Input: 1, Output: 1}})
	a.End(2, nil)
	a.Reset(second, nil)
	a.Event(3, &Event{Content: true, Finish: "stop", Usage: &Usage{Input: 9, Output: 9}})
	a.End(4, nil)
	must.Hold(t, first.Usage.Input == 1 && second.Usage.Input == 9 && second.Chunks == 1 && second.First == 3, "first %+v, second %+v", first.Usage, second)
}

// An Answer handles events without allocating, once the memory for gaps is reserved.
func TestAnswerAllocations(t *testing.T) {
	s := &metric.Sample{OutputAsked: 2000}
	a := NewAnswer(s, nil)
	e := Event{Content: true, Usage: &Usage{Input: 1, Output: 1}}
	a.Event(1, &e)
	at := time.Duration(1)
	n := testing.AllocsPerRun(1000, func() { at += ms; a.Event(at, &e) })
	must.Hold(t, n == 0, "%v allocations an event, want 0", n)
}

func TestBounded(t *testing.T) {
	long := make([]byte, 3*maxMessage)
	for i := range long {
		long[i] = "é"[i%2]
	}
	got := bounded(string(long))
	// " …" takes four of the 2000 bytes, so 1996 bytes of text are left. Each character here has
	// two bytes, so the cut is between two characters.
	if len(got) != maxMessage || got[:1996] != string(long[:1996]) || got[1996:] != " …" {
		t.Errorf("bounded: %d bytes, ends in %q", len(got), got[len(got)-6:])
	}
	must.Hold(t, bounded("short") == "short", "a short message changed")
}

// An Answer keeps each part of its text as a whole, or marks it as cut.
func TestAnswerKeeps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		keep   int
		events []string
		want   Said
	}{
		{"nothing", 0, []string{`{"choices":[{"delta":{"content":"a"}}]}`}, Said{Cut: true}},
		{"content", 100, []string{`{"choices":[{"delta":{"content":"a\n\""}}]}`, `{"choices":[{"delta":{"content":" b"}}]}`}, Said{Whole: "a\n\" b", Visible: "a\n\" b"}},
		{"reasoning and content in one", 100, []string{`{"choices":[{"delta":{"reasoning":"a","content":"b"}}]}`, `{"choices":[{"delta":{"content":"c"}}]}`}, Said{Whole: "abc", Visible: "bc"}},
		{"half a character in each", 100, []string{`{"choices":[{"text":"\ud83d"}]}`, `{"choices":[{"text":"\ude00"}]}`}, Said{Whole: "😀", Visible: "😀"}},
		{"more than is kept", 3, []string{`{"choices":[{"text":"ab"}]}`, `{"choices":[{"text":"cd"}]}`}, Said{Whole: "abc", Visible: "abc", Cut: true}},
		{"cut in an escape", 4, []string{`{"choices":[{"text":"a\u00e9"}]}`}, Said{Whole: "a", Visible: "a", Cut: true}},
		{"cut in a character", 2, []string{`{"choices":[{"text":"aé"}]}`}, Said{Whole: "a", Visible: "a", Cut: true}},
		{"a call", 100, []string{`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`}, Said{Calls: []Call{{"f", "{}"}}}},
		{"two calls in parts", 100, []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}},{"index":1,"function":{"name":"g"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"[1"},"index":1}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"]"}},{"index":0,"function":{"arguments":"{}"}}]}}]}`,
		}, Said{Calls: []Call{{"f", "{}"}, {"g", "[1]"}}}},
		{"a call of the old kind", 100, []string{`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{"}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"}"}}}]}`}, Said{Calls: []Call{{"f", "{}"}}}},
	} {
		a := NewAnswer(&metric.Sample{}, nil)
		a.Keep(tt.keep)
		var e Event
		for i, src := range tt.events {
			data := []byte(src)
			var u Usage
			must.Do(t, walk(data, &e, &u))
			a.Event(time.Duration(i+1), &e)
			clear(data) // overwrite the bytes, as a reader may: the Answer must have kept a copy
		}
		must.Same(t, tt.name+" (-want +got)", tt.want, a.Said())
	}
}
