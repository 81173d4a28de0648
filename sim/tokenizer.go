package sim

import (
	"encoding/json"
	"fmt"
)

// The tokenizer is simple. A token is either
//
//   - a piece: an optional space, then one to three ASCII letters, of which the first may be a
//     capital; or
//   - one byte.
//
// Text is cut from left to right, the longest piece first: "The tokenizer" becomes "The", " tok",
// "eni" and "zer". So an English word takes about one token for three letters, including its space.
// A digit, a punctuation mark or a line break takes one token. Any other character takes one token
// for each of its bytes. The tokens depend only on the text, and detokenizing them gives the text
// back.
//
// The ids 0 to 255 are bytes. Then there are four groups of pieces (plain, capital, space, and
// space with capital), each with 26 + 26² + 26³ ids. The last three ids are special tokens that no
// text contains.
const (
	letters1  = 26
	letters2  = letters1 * 26
	letters3  = letters2 * 26
	pieces    = letters1 + letters2 + letters3
	tokenSpec = 256 + 4*pieces

	tokenStart = tokenSpec     // begins a chat message
	tokenEnd   = tokenSpec + 1 // ends a chat message
	tokenBOS   = tokenSpec + 2

	// vocabularySize is the number of token ids. An id is in [0, vocabularySize).
	vocabularySize = tokenSpec + 3
)

var specials = [...]string{"<|im_start|>", "<|im_end|>", "<|bos|>"}

// Tokenize appends the tokens of text to ids.
func Tokenize(ids []int, text string) []int {
	for len(text) > 0 {
		id, size := nextToken(text)
		ids = append(ids, id)
		text = text[size:]
	}
	return ids
}

// The text must not be empty.
func nextToken(text string) (id, size int) {
	variant, i := 0, 0
	if text[0] == ' ' {
		variant, i = 2, 1
	}
	if i < len(text) && text[i] >= 'A' && text[i] <= 'Z' {
		variant++
	}
	value, n := 0, 0
	for ; n < 3 && i+n < len(text); n++ {
		c := text[i+n]
		if n == 0 && variant&1 == 1 {
			c += 'a' - 'A'
		}
		if c < 'a' || c > 'z' {
			break
		}
		value = value*26 + int(c-'a')
	}
	if n == 0 || n == 1 && i == 0 {
		return int(text[0]), 1
	}
	switch n {
	case 2:
		value += letters1
	case 3:
		value += letters1 + letters2
	}
	return 256 + variant*pieces + value, i + n
}

func detokenize(ids []int) (string, error) {
	var text []byte
	for i, id := range ids {
		switch {
		case id < 0 || id >= vocabularySize:
			return "", fmt.Errorf("token id %d at position %d is out of the vocabulary of %d", id, i, vocabularySize)
		case id < 256:
			text = append(text, byte(id))
		case id >= tokenSpec:
			text = append(text, specials[id-tokenSpec]...)
		default:
			text = appendPiece(text, id-256)
		}
	}
	return string(text), nil
}

func appendPiece(text []byte, piece int) []byte {
	variant, value := piece/pieces, piece%pieces
	n := 1
	switch {
	case value >= letters1+letters2:
		n, value = 3, value-letters1-letters2
	case value >= letters1:
		n, value = 2, value-letters1
	}
	if variant >= 2 {
		text = append(text, ' ')
	}
	var word [3]byte
	for i := n - 1; i >= 0; i-- {
		word[i] = 'a' + byte(value%26)
		value /= 26
	}
	if variant&1 == 1 {
		word[0] -= 'a' - 'A'
	}
	return append(text, word[:n]...)
}

type message struct {
	role, content string
}

// CountChat returns the number of tokens of a chat; see ChatTokens.
func CountChat(text string, messages json.RawMessage) (int, error) {
	ids, err := ChatTokens(text, messages)
	return len(ids), err
}

// ChatTokens returns the tokens of a chat, as the server makes them. messages is the JSON of its
// messages; nil means one user message with the given text. Parts that are not text have no tokens.
func ChatTokens(text string, messages json.RawMessage) ([]int, error) {
	if messages == nil {
		return tokenizeChat(nil, []message{{"user", text}}, true), nil
	}
	list, err := messagesOf(messages)
	return tokenizeChat(nil, list, true), err
}

// AfterAnswer returns the tokens that follow an answer, if a chat goes on with the given messages after it.
func AfterAnswer(messages json.RawMessage) ([]int, error) {
	list, err := messagesOf(messages)
	return tokenizeChat([]int{tokenEnd, '\n'}, list, true), err
}

func messagesOf(messages json.RawMessage) ([]message, error) {
	var told []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(messages, &told); err != nil {
		return nil, err
	}
	list := make([]message, len(told))
	for i, m := range told {
		list[i].role = m.Role
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &list[i].content) == nil || json.Unmarshal(m.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			list[i].content += p.Text
		}
	}
	return list, nil
}

// tokenizeChat applies the chat template and appends the tokens to ids. A message becomes start,
// role, line break, content, end and line break. If ask is true, the start of an assistant's
// message follows, which asks for an answer.
func tokenizeChat(ids []int, messages []message, ask bool) []int {
	for _, m := range messages {
		ids = append(ids, tokenStart)
		ids = Tokenize(ids, m.role)
		ids = append(ids, '\n')
		ids = Tokenize(ids, m.content)
		ids = append(ids, tokenEnd, '\n')
	}
	if ask {
		ids = append(ids, tokenStart)
		ids = Tokenize(ids, "assistant")
		ids = append(ids, '\n')
	}
	return ids
}
