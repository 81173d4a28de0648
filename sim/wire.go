package sim

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

var errorTypes = map[int]string{
	http.StatusBadRequest:          "BadRequestError",
	http.StatusUnauthorized:        "AuthenticationError",
	http.StatusNotFound:            "NotFoundError",
	http.StatusUnprocessableEntity: "UnprocessableEntityError",
	http.StatusTooManyRequests:     "RateLimitError",
	http.StatusServiceUnavailable:  "ServiceUnavailableError",
}

func errorType(status int) string { return cmp.Or(errorTypes[status], "InternalServerError") }

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

type bytewise struct{ http.ResponseWriter }

func (w bytewise) Write(b []byte) (int, error) {
	flush := http.NewResponseController(w.ResponseWriter).Flush
	for i := range b {
		if _, err := w.ResponseWriter.Write(b[i : i+1]); err != nil {
			return i, err
		}
		if err := flush(); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// Unwrap returns the wrapped ResponseWriter, for http.ResponseController.
func (w bytewise) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// compress returns a writer that compresses the answer if the client accepts gzip. finish writes
// the end of the compressed answer.
func compress(w http.ResponseWriter, r *http.Request) (wrapped http.ResponseWriter, finish func()) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	return compressed{w, z}, func() { z.Close() }
}

type compressed struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (w compressed) Write(b []byte) (int, error) { return w.z.Write(b) }

// FlushError flushes the compressed answer, for http.ResponseController.
func (w compressed) FlushError() error {
	if err := w.z.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}
