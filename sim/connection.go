package sim

import (
	"compress/gzip"
	"net/http"
	"strings"
)

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
