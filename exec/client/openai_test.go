package client

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

// typedEvent returns an event as the types of go-openai read it. These types know neither vLLM's
// name for reasoning nor the token counts in a chunk.
func typedEvent(t *testing.T, data []byte) Event {
	var chat openai.ChatCompletionStreamResponse
	var text openai.CompletionResponse
	err := json.Unmarshal(data, &text)
	must.Need(t, err == nil, "%s: %v", data, err)
	if err := json.Unmarshal(data, &chat); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	var e Event
	for i, c := range chat.Choices {
		e.Content = e.Content || c.Delta.Content != "" || text.Choices[i].Text != ""
		e.Reasoning = e.Reasoning || c.Delta.ReasoningContent != ""
		for _, call := range c.Delta.ToolCalls {
			e.ToolCall = e.ToolCall || call.Function.Name != "" || call.Function.Arguments != ""
		}
		if c.FinishReason != "" {
			e.Finish = string(c.FinishReason)
		}
	}
	if u := chat.Usage; u != nil && u.PromptTokens+u.CompletionTokens > 0 {
		e.Usage = &Usage{Input: u.PromptTokens, Output: u.CompletionTokens, Cached: -1}
		if u.PromptTokensDetails != nil {
			e.Usage.Cached = u.PromptTokensDetails.CachedTokens
		}
		if u.CompletionTokensDetails != nil {
			e.Usage.Reasoning = u.CompletionTokensDetails.ReasoningTokens
		}
	}
	return e
}

// The function walk reads every recorded chunk as the types of go-openai do.
func TestWalkReadsAsGoOpenAI(t *testing.T) {
	files, _ := filepath.Glob("testdata/streams/*.sse")
	compared := 0
	for _, file := range files {
		if api := apiOf(file); api != engine.Chat && api != engine.Completions {
			continue // go-openai does not read these events
		}
		raw := must.Get(os.ReadFile(file))(t)
		split := splitter{buf: raw, w: len(raw)}
		for {
			kind, data, err := split.next()
			if err != nil || kind == frameNone {
				break
			}
			var got Event
			var usage Usage
			if kind != frameData || walk(data, &got, &usage) != nil || got.Err != "" {
				continue // other tests cover [DONE], invalid JSON and errors
			}
			want := typedEvent(t, data)
			want.Tokens, want.Made, want.Reasoning = got.Tokens, got.Made, want.Reasoning || got.Reasoning
			must.Same(t, fmt.Sprintf("%s: %s (-want +got)", file, data), want, got, seen)
			compared++
		}
	}
	must.Hold(t, compared >= 40, "%d chunks were compared", compared)
}
