package sim

import (
	"net/http"
	"strconv"
	"time"
)

func (s *Server) serveChat(w http.ResponseWriter, r *http.Request)        { s.serve(w, r, true) }
func (s *Server) serveCompletions(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request, chat bool) {
	fx, arrived := effectOf(r), time.Now()
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
	c := &chunker{server: s, w: w, fx: fx, order: o, id: s.answerID(r, number, chat), created: time.Now().Unix(),
		parts: parts{wake: make(chan struct{}, 1)}}
	if s.options.OnServed != nil {
		c.served = Served{ID: c.id, Arrived: arrived}
		defer func() { s.options.OnServed(c.served) }()
	}
	o.to, o.whole = &c.parts, !o.Stream
	s.enter(&o.Call)
	defer s.leave(&o.Call)
	s.write(c, r, &o.Call)
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

func (s *Server) write(c *chunker, r *http.Request, call *Call) {
	var batch []part
	for {
		var ok bool
		if batch, ok = s.take(r.Context(), &c.parts, batch[:0]); !ok {
			panic(http.ErrAbortHandler)
		}
		for i := range batch {
			p := &batch[i]
			switch {
			case p.kind == partEnd:
				c.over(call, p)
				return
			case call.whole: // all of it comes at the end
			case p.kind == partHead:
				c.begin()
			default:
				c.chunk(p)
			}
			if c.err != nil {
				return
			}
		}
		if c.fx.is("trickle") && s.silent(call) {
			for s.pause(r, ms(c.fx.of("trickle").DelayMS)) && c.err == nil {
				c.write([]byte(":"))
			}
			panic(http.ErrAbortHandler)
		}
	}
}

// silent reports whether the core sends nothing more of an answer, and does not end it either.
func (s *Server) silent(c *Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.silent && !c.whole
}

func (c *chunker) over(call *Call, p *part) {
	switch p.how {
	case Refused, Broken:
		panic(http.ErrAbortHandler)
	case Rejected:
		writeError(c.w, http.StatusInternalServerError, "", p.words)
	case NotStream:
		c.usage = Usage{Input: call.input, Cached: call.cached}
		c.object()
	}
}
