package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tokgate/tokgate/engine"
)

// fields is a JSON object whose members keep their order, so that equal
// requests are equal bytes.
type fields struct {
	names  []string
	values [][]byte
}

// set puts a member in, at its old place when there is one. A nil value
// removes it.
func (f *fields) set(name string, value []byte) {
	i := slices.Index(f.names, name)
	switch {
	case value == nil && i >= 0:
		f.names = slices.Delete(f.names, i, i+1)
		f.values = slices.Delete(f.values, i, i+1)
	case value == nil:
	case i >= 0:
		f.values[i] = value
	default:
		f.names, f.values = append(f.names, name), append(f.values, value)
	}
}

func (f *fields) json() []byte {
	size := 2
	for i := range f.names {
		size += len(f.names[i]) + len(f.values[i]) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i := range f.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, f.names[i]), ':')
		b = append(b, f.values[i]...)
	}
	return append(b, '}')
}

// Body is the JSON that an engine is sent for r, its members in a fixed order.
// It fails for what the engine cannot be sent.
func (r *Request) Body(d engine.Dialect) ([]byte, error) { return r.body(d) }

// body builds the request's JSON. The order of members is fixed; r.Extra comes
// last, by name, and wins: a null in it takes the member out.
func (r *Request) body(d engine.Dialect) ([]byte, error) {
	var f fields
	f.set("model", appendString(nil, r.Model))
	switch {
	case r.API == "chat":
		if len(r.Prompt.IDs) > 0 {
			return nil, fmt.Errorf("a chat request takes text, not token ids")
		}
		f.set("messages", messages(r.Prompt.Text))
	case len(r.Prompt.IDs) > 0:
		if !d.PromptIDs {
			return nil, fmt.Errorf("the engine takes no prompt of token ids")
		}
		ids := []byte{'['}
		for i, id := range r.Prompt.IDs {
			if i > 0 {
				ids = append(ids, ',')
			}
			ids = strconv.AppendInt(ids, int64(id), 10)
		}
		f.set("prompt", append(ids, ']'))
	default:
		f.set("prompt", appendString(make([]byte, 0, len(r.Prompt.Text)+2), r.Prompt.Text))
	}
	if r.Output > 0 {
		n := strconv.AppendInt(nil, int64(r.Output), 10)
		if r.API == "chat" {
			f.set("max_completion_tokens", n)
		}
		if r.API != "chat" || d.BothLimits {
			f.set("max_tokens", n)
		}
		if !r.Natural && d.MinTokens {
			f.set("min_tokens", n)
		}
	}
	if !r.Natural && d.IgnoreEOS {
		f.set("ignore_eos", []byte("true"))
	}
	if r.Temperature != nil { // 0 too: left out, the server's default would rule
		f.set("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
	if len(r.Stop) > 0 {
		raw, err := json.Marshal(r.Stop)
		if err != nil {
			return nil, err
		}
		f.set("stop", raw)
	}
	f.set("stream", []byte("true"))
	if d.ContinuousUsage {
		f.set("stream_options", []byte(`{"include_usage":true,"continuous_usage_stats":true}`))
	} else {
		f.set("stream_options", []byte(`{"include_usage":true}`))
	}
	if d.Timings {
		f.set("timings_per_token", []byte("true"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		v := r.Extra[name]
		if v == nil {
			f.set(name, nil)
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("request field %q: %w", name, err)
		}
		f.set(name, raw)
	}
	return f.json(), nil
}

// messages is one user message holding text.
func messages(text string) []byte {
	b := append(make([]byte, 0, len(text)+40), `[{"role":"user","content":`...)
	return append(appendString(b, text), `}]`...)
}

// appendString appends s as a JSON string. Prompts are long and plain: runs of
// plain bytes are copied whole, the rest is left to encoding/json's rules.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= utf8.RuneSelf:
			b = append(b, `\ufffd`...)
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
