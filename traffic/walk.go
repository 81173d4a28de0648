package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func value(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

func elements(b []byte, visit func(e []byte) error) error {
	for i := space(b, 1); i < len(b) && b[i] != ']'; {
		end := value(b, i)
		if err := visit(b[i:end]); err != nil {
			return err
		}
		if i = space(b, end); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return nil
}

func members(b []byte, visit func(name, v []byte)) {
	for i := space(b, 1); i < len(b) && b[i] != '}'; {
		end := value(b, i)
		name := b[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var plain string
			_ = json.Unmarshal(b[i:end], &plain)
			name = []byte(plain)
		}
		i = space(b, space(b, end)+1)
		end = value(b, i)
		visit(name, b[i:end])
		if i = space(b, end); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
}

// checkMessages returns an error if the messages are not a chat: a list of objects with a role.
// Only the server checks their content.
func checkMessages(raw []byte) error {
	if raw[0] != '[' {
		return errors.New("its messages are no list")
	}
	n := 0
	err := elements(raw, func(m []byte) error {
		n++
		if m[0] != '{' {
			return errors.New("its messages are not a list of objects with a role")
		}
		role, content := []byte(`""`), []byte("null")
		members(m, func(name, v []byte) {
			switch string(name) {
			case "role":
				role = v
			case "content":
				content = v
			}
		})
		switch {
		case role[0] != '"' || len(role) == 2:
			return fmt.Errorf("message %d has no role", n)
		case content[0] != '"' && content[0] != '[' && content[0] != 'n':
			return fmt.Errorf("the content of message %d is neither text nor a list of parts", n)
		}
		return nil
	})
	if err == nil && n == 0 {
		err = errors.New("it has no message")
	}
	return err
}
