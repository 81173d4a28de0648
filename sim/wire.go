package sim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
)

var errorTypes = map[int]string{
	http.StatusBadRequest:          "BadRequestError",
	http.StatusUnauthorized:        "AuthenticationError",
	http.StatusNotFound:            "NotFoundError",
	http.StatusUnprocessableEntity: "UnprocessableEntityError",
	http.StatusTooManyRequests:     "RateLimitError",
	http.StatusServiceUnavailable:  "ServiceUnavailableError",
}

func errorType(status int) string {
	return cmp.Or(errorTypes[status], "InternalServerError")
}

// writeError answers with an error object of OpenAI's API. It writes the message unchanged, because
// a fault may put invalid UTF-8 into it.
func writeError(w http.ResponseWriter, status int, param, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(appendError(nil, status, param, message))
}

func appendError(b []byte, status int, param, message string) []byte {
	b = append(b, `{"error":{"message":`...)
	b = appendQuoted(b, message)
	b = append(b, `,"type":"`...)
	b = append(b, errorType(status)...)
	b = append(b, `","param":`...)
	if param == "" {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, param)
	}
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	return append(b, "}}"...)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: all types here can be encoded
	}
	w.Write(b)
}

// appendQuoted appends s as a JSON string. As some servers do, it keeps bytes that are not valid
// UTF-8. The package encoding/json would replace them.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c < 0x20:
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
