package client

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"github.com/tokgate/tokgate/metric"
)

// These patterns recognise an HTML page and extract its text. An LLM server does not answer with
// such a page, but a proxy may.
var (
	markup = regexp.MustCompile(`(?is)^\s*(<!doctype html|<html)`)
	title  = regexp.MustCompile(`(?is)<title[^>]*>([^<]*)</title>`)
	tag    = regexp.MustCompile(`(?s)<[^>]*>`)
)

// retryAfter returns how long the server asks the client to wait after a refusal. The header has
// seconds or a date, as in RFC 9110, section 10.2.3.
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if s, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(s, 0), int(metric.MaxRetryAfter/time.Second))) * time.Second
	}
	until, err := http.ParseTime(text)
	now, err2 := http.ParseTime(resp.Header.Get("Date")) // now, by the server's clock
	if err != nil || err2 != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), metric.MaxRetryAfter)
}

func refusal(code int, status, words string) *Error {
	if words = strings.TrimSpace(words); words == "" {
		words = status
	}
	if markup.MatchString(words) {
		said := tag.ReplaceAllString(words, " ")
		if m := title.FindStringSubmatch(words); m != nil && strings.TrimSpace(m[1]) != "" {
			said = m[1]
		}
		words = "an HTML page: " + cmp.Or(strings.Join(strings.Fields(html.UnescapeString(said)), " "), status)
	}
	return &Error{Kind: metric.FailStatus, Status: code, Message: bounded(words)}
}

// unreached returns the error of a request without an answer. The parameter conns is how many
// connections the client had opened.
func unreached(err error, conns int) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // leave out the method and the URL
	}
	words := err.Error()
	kind := metric.FailLocal
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		words = "this machine ran out of local ports, which is not the server's fault: " + words
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		words = "this machine ran out of file descriptors, which is not the server's fault (raise ulimit -n): " + words
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		words = "this machine ran out of socket memory, which is not the server's fault: " + words
	case untrusted(err):
		kind = metric.FailConnect
		words = "the server's certificate is not accepted: " + strings.TrimPrefix(words, "tls: failed to verify certificate: ")
	case conns > 0:
		kind = metric.FailConnect
		words = "the server closed the connection before it answered: " + words
	default:
		kind = metric.FailConnect
	}
	return &Error{Kind: kind, Message: bounded(words), Err: err}
}

func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

func refused(resp *http.Response) error {
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	refused := refusal(resp.StatusCode, resp.Status, errorMessage(raw))
	refused.RetryAfter = retryAfter(resp)
	return refused
}

// errorMessage returns the error message in the body of a refusal. It tries the error format of
// OpenAI first, then those of other servers. If none fits, it returns the whole body.
func errorMessage(raw []byte) string {
	var told openai.ErrorResponse
	if json.Unmarshal(raw, &told) == nil && told.Error != nil && told.Error.Message != "" {
		return told.Error.Message
	}
	var event Event
	var usage Usage
	if walk(raw, &event, &usage) == nil && event.Err != "" {
		return event.Err
	}
	return string(bytes.TrimSpace(raw))
}
