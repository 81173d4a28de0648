package sim

import (
	"bytes"
	"cmp"
	"net/http"
)

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if s.loading() {
		writeError(w, http.StatusServiceUnavailable, "", "The model is loading.")
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) serveVersion(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]string{"version": Version})
}

func (s *Server) serveModels(w http.ResponseWriter, r *http.Request) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		Root        string `json:"root"`
		Parent      any    `json:"parent"`
		MaxModelLen int    `json:"max_model_len"`
	}
	id := cmp.Or(effectOf(r).of("hostile-model").Text, s.model)
	writeJSON(w, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{{id, "model", s.origin.Unix(), "tokgate", id, nil, s.profile.MaxModelLen}}})
}

// serveTokenize answers as vLLM does. The request has a prompt or a chat. The answer has the ids of
// the tokens, and their number.
func (s *Server) serveTokenize(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Prompt   *string       `json:"prompt"`
		Messages []wireMessage `json:"messages"`
		Ask      *bool         `json:"add_generation_prompt"`
	}
	if _, err := readJSON(w, r, &in); err != nil {
		answerError(w, err)
		return
	}
	ids := []int{} // never null
	if in.Prompt != nil {
		ids = Tokenize(ids, *in.Prompt)
	} else {
		var err error
		if ids, err = chatTokens(in.Messages, in.Ask == nil || *in.Ask); err != nil {
			answerError(w, err)
			return
		}
	}
	writeJSON(w, struct {
		Count       int   `json:"count"`
		MaxModelLen int   `json:"max_model_len"`
		Tokens      []int `json:"tokens"`
	}{len(ids), s.profile.MaxModelLen, ids})
}

func (s *Server) serveDetokenize(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tokens []int `json:"tokens"`
	}
	if _, err := readJSON(w, r, &in); err != nil {
		answerError(w, err)
		return
	}
	text, err := detokenize(in.Tokens)
	if err != nil {
		answerError(w, err)
		return
	}
	writeJSON(w, map[string]string{"prompt": text})
}

func (s *Server) serveReset(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.core.ResetPrefixCache()
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}

func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	page := bytes.Clone(s.core.metrics.page(s.model, s.core.State(s.now())))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(page)
}
