package sim

import (
	"net/http"
	"strconv"
)

func (s *Server) serveChat(w http.ResponseWriter, r *http.Request)        { s.serve(w, r, true) }
func (s *Server) serveCompletions(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request, chat bool) {
	fx, arrived := effectOf(r), s.clock.Now()
	if s.loading() {
		writeError(w, http.StatusServiceUnavailable, "", "The model is loading.")
		return
	}
	o, err := s.read(w, r, chat, fx)
	if err != nil {
		answerError(w, err)
		return
	}
	number := s.ids.Add(1)
	c := &chunker{server: s, w: w, fx: fx, order: o, id: s.answerID(r, number, chat), created: s.clock.Now().Unix()}
	if s.options.OnServed != nil {
		c.served = Served{ID: c.id, Arrived: arrived}
		defer func() { s.options.OnServed(c.served) }()
	}
	streamed := o.Stream && !fx.notSSE
	if streamed {
		c.begin()
		if fx.empty {
			return
		}
		if fx.earlyRole {
			c.role()
		}
		if fx.late > 0 && !s.pause(r, fx.late) {
			return
		}
	}
	if streamed && fx.replay && s.known(o) {
		c.replay()
		return
	}
	job := Job{ID: number, Input: o.input, Output: o.output}
	if s.profile.PrefixCache != nil {
		said := o.text.append(nil, 0, o.output)
		job.Prefix = prefixHashes(Tokenize(o.tokens, string(said)), s.profile.PrefixCache.BlockTokens)
	}
	finish := o.finish
	if finish == "tool_calls" {
		finish = "stop" // the engine's metrics know no tool calls, so they count "stop"
	}
	run, err := s.submit(job, finish)
	if err != nil {
		if !streamed {
			answerError(w, err)
		}
		return
	}
	defer s.release(run)
	if streamed {
		s.stream(c, r, run)
	} else {
		s.whole(c, r, run)
	}
}

// known reports whether the server has received the prompt before. From then on, the prompt is
// known.
func (s *Server) known(o *order) bool {
	_, known := s.answered.LoadOrStore(o.text.seed, true)
	return known
}

// answerID returns "chatcmpl-" or "cmpl-" and the id of the request. Without such an id, it draws
// one from number.
func (s *Server) answerID(r *http.Request, number uint64, chat bool) string {
	own := r.Header.Get("X-Request-Id")
	if own == "" {
		draw := rng(uint64(s.options.Seed)<<32 ^ number)
		own = strconv.FormatUint(draw.next(), 16)
	}
	if chat {
		return "chatcmpl-" + own
	}
	return "cmpl-" + own
}

func (s *Server) stream(c *chunker, r *http.Request, run *run) {
	fx := c.fx
	var batch []Emission
	sent := 0
	for {
		var ok bool
		if batch, ok = s.take(r.Context(), run, batch[:0]); !ok {
			return
		}
		for i := range batch {
			e := &batch[i]
			to, breaks := fx.visible(sent, e.Total, e.Last)
			if to > sent {
				if sent == 0 {
					c.cached(run)
					c.role()
				}
				c.tokens(sent, to)
				sent = to
			}
			if c.err != nil {
				return
			}
			if breaks {
				s.breakOff(c, r)
				return
			}
			if e.Last {
				c.end()
				return
			}
		}
	}
}

func (s *Server) breakOff(c *chunker, r *http.Request) {
	fx := c.fx
	switch {
	case fx.errorEvent, fx.errorLegacy:
		c.failure()
	case fx.cut:
		panic(http.ErrAbortHandler)
	case fx.hold:
		s.pause(r, -1)
		panic(http.ErrAbortHandler)
	case fx.trickle > 0:
		for s.pause(r, fx.trickle) && c.err == nil {
			c.write([]byte(":"))
		}
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) whole(c *chunker, r *http.Request, run *run) {
	var batch []Emission
	for {
		var ok bool
		if batch, ok = s.take(r.Context(), run, batch[:0]); !ok {
			return
		}
		if n := len(batch); n > 0 && batch[n-1].Last {
			break
		}
	}
	if c.fx.breaks() && !c.fx.noFinish {
		if c.fx.errorEvent || c.fx.errorLegacy {
			writeError(c.w, http.StatusInternalServerError, "", c.fx.message)
			return
		}
		if c.fx.hold || c.fx.trickle > 0 {
			s.pause(r, -1)
		}
		panic(http.ErrAbortHandler)
	}
	c.cached(run)
	c.object()
}
