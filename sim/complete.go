package sim

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/engine"
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request, api engine.API) {
	fx, arrived := effectOf(r), time.Now()
	if s.loading() {
		writeError(w, http.StatusServiceUnavailable, "", "The model is loading.")
		return
	}
	o, err := s.read(w, r, api, fx)
	if err != nil {
		answerError(w, err)
		return
	}
	number := s.ids.Add(1)
	c := &chunker{server: s, w: w, fx: fx, order: o, id: s.answerID(r, number, api), created: time.Now().Unix()}
	c.parts.wake = make(chan struct{}, 1)
	if s.options.OnServed != nil {
		c.served = Served{ID: c.id, Arrived: arrived}
		defer func() { s.options.OnServed(c.served) }()
	}
	o.to, o.whole, o.spoken = &c.parts, !o.Stream || api.Embeds(), false
	s.enter(&o.Call)
	defer s.leave(&o.Call)
	s.write(c, r, &o.Call)
}

var idPrefix = map[engine.API]string{
	engine.Chat: "chatcmpl-", engine.Completions: "cmpl-", engine.Responses: "resp-", engine.Messages: "msg-", engine.Embeddings: "embd-",
}

// answerID returns a prefix of the API, such as "chatcmpl-", and the id of the request. Without such an id, it draws
// one from number.
func (s *Server) answerID(r *http.Request, number uint64, api engine.API) string {
	own := r.Header.Get("X-Request-Id")
	if own == "" {
		draw := rng(uint64(s.options.Seed)<<32 ^ number)
		own = strconv.FormatUint(draw.next(), 16)
	}
	return idPrefix[api] + own
}

func (s *Server) write(c *chunker, r *http.Request, call *Call) {
	var batch []part
	for {
		var ok bool
		if batch, ok = s.take(r.Context(), &c.parts, batch); !ok {
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
	case Ended:
		if call.keys != nil {
			c.embeddings(call)
		}
	case NotStream:
		c.usage = Usage{Input: call.input, Cached: call.cached}
		c.object()
	}
}
