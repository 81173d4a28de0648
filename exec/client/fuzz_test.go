package client

import (
	"errors"
	"net/http"
	"testing"

	"github.com/tokgate/tokgate/engine"
)

// The client also sends requests outside of the load, such as for the list of models. Whatever the
// server answers, the client must read it or return an *Error of limited length.
func FuzzAnswers(f *testing.F) {
	var status int
	var body []byte
	base := serve(f, Config{Engine: engine.Of("vllm")}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	for _, seed := range []string{
		`{"object":"list","data":[{"id":"m","root":"/m","created":"yesterday","max_model_len":4096}]}`,
		`{"version":"0.19.1"}`, `{"tokens":[1,2,-3,4e9]}`, `{"error":{"message":"no","code":[1]}}`, `{"detail":[{"msg":"x"}]}`,
		"process_start_time_seconds 1.7e9\n", "<html><title>&#0;502</title>", "\xff\xfe{}", "",
	} {
		f.Add(200, []byte(seed))
		f.Add(503, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer int, content []byte) {
		status, body = 200+((answer-200)%400+400)%400, content
		if status == http.StatusNoContent || status == http.StatusNotModified || status/100 == 3 {
			status = http.StatusOK
		}
		ctx := t.Context()
		_, models := base.Models(ctx)
		_, version := base.Version(ctx)
		_, start := base.StartTime(ctx)
		_, ids := base.Tokenize(ctx, TokenizeRequest{Model: "m", API: "chat", Text: "hello"})
		for _, err := range []error{models, version, start, ids, base.Health(ctx)} {
			if err == nil || errors.Is(err, ErrNoTokenizer) {
				continue
			}
			if told, ok := errors.AsType[*Error](err); !ok || len(told.Message) > 4096 {
				t.Errorf("status %d: %d bytes, %T %.200q", status, len(err.Error()), err, err)
			}
		}
	})
}
