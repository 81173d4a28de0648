package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits on the size of a recording and of one of its lines, in bytes.
const (
	maxRecording = 16 << 30
	maxLine      = 64 << 20
)

// key names a level of a run.
type key struct{ Server, Workload, Name string }

func (k key) String() string { return k.Workload + " at " + k.Name + " on " + k.Server }

// level is one level of the recording.
type level struct {
	Kind    string // kind of load: closed, burst, users or rate
	N       int
	Skipped string
	Speedup float64 // of a trace; else 0
	pause   int64   // think time in nanoseconds between an answer and the next request of the same slot
	rounds  map[int]*round
	void    int // number of void rounds, which were disturbed and measured again
	// Batches is set if the rounds are batches of one window of a closed loop. Of such a level only
	// the first judged requests count; 0 means all.
	Batches bool
	judged  int
	voided  []*round // batches that do not count, but were part of the load
	// Of is the name of the mix if the level is a part of a mix, otherwise "". The field mix is the
	// level of that mix.
	Of  string
	mix *level
}

// round is one round with its requests.
type round struct {
	Index       int    `json:"index"`
	Due         int    `json:"due"`
	Time        int64  `json:"time_ns"` // at a rate, only conversations have one
	Start       int64  `json:"start_ns"`
	End         int64  `json:"end_ns"`
	WindowStart int64  `json:"window_start_ns"`
	WindowEnd   int64  `json:"window_end_ns"`
	Complete    bool   `json:"complete"`
	Void        string `json:"void"`
	samples     []sample
	ended       bool // whether the recording contains the last line of the round
}

// sample is one request. Times are nanoseconds from the start of the run; 0 means
// that the event did not happen.
type sample struct {
	Server      string  `json:"server"`
	Workload    string  `json:"workload"`
	Part        string  `json:"part"` // of a mix
	Level       string  `json:"level"`
	Round       int     `json:"round"`
	Slot        int     `json:"slot"`
	Phase       string  `json:"phase"`
	Scheduled   int64   `json:"scheduled_ns"`
	FromDue     bool    `json:"from_due"` // the request's clock starts when it was due, not when it was sent
	Sent        int64   `json:"sent_ns"`
	First       int64   `json:"first_ns"`
	FirstAnswer int64   `json:"first_answer_ns"`
	Last        int64   `json:"last_ns"`
	End         int64   `json:"end_ns"`
	Gaps        []int64 `json:"gaps_us"`
	Chunks      int     `json:"chunks"`
	FirstTokens int     `json:"first_tokens"`
	Embeddings  int     `json:"embeddings"` // which came whole
	Reconnects  int     `json:"reconnects"`
	RetryAfter  int64   `json:"retry_after_ns"`
	Usage       *struct {
		Input  int `json:"input"`
		Output int `json:"output"`
		Cached int `json:"cached"`
		Hidden int `json:"hidden"`
	} `json:"usage"`
	Failure *struct {
		Kind string `json:"kind"`
	} `json:"failure"`
}

// begin returns the time from which the request's latencies count: when it was due, or else when it
// was sent.
func (s *sample) begin() int64 {
	if s.FromDue {
		return s.Scheduled
	}
	return s.Sent
}

func (s *sample) completed() bool { return s.Failure == nil }
func (s *sample) canceled() bool  { return s.Failure != nil && s.Failure.Kind == "canceled" }
func (s *sample) measured() bool  { return s.Phase == "measured" }

// recording is a run as read from its samples.
type recording struct {
	levels map[key]*level
	order  []key
	sum    [sha256.Size]byte // hash over all lines, which identifies the recording
	plain  bool              // the lines have no checks, because an old version of tokgate wrote them
	ended  bool
}

// readRecording reads samples.jsonl. A line that is not JSON is an error. Only the last line may be
// incomplete, because a run may have been killed while it wrote the line.
func readRecording(r io.Reader) (*recording, error) {
	rec := &recording{levels: map[key]*level{}}
	lines := bufio.NewScanner(io.LimitReader(r, maxRecording))
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	var bad error
	for lines.Scan() {
		if bad != nil {
			return nil, bad
		}
		n++
		if err := rec.line(lines.Bytes()); err != nil {
			bad = fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 && bad != nil {
			return nil, bad
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if n == 0 {
		return nil, errors.New("it is empty")
	}
	rec.divide()
	return rec, nil
}

// divide gives each part of a mix its requests. The recording has all requests of a mix together.
func (rec *recording) divide() {
	for k, l := range rec.levels {
		mix := rec.levels[key{k.Server, l.Of, k.Name}]
		if l.Of == "" || mix == nil || mix.Of != "" {
			continue
		}
		l.mix, l.void = mix, mix.void
		for _, r := range mix.inOrder() {
			i := r.Index
			if own, ok := r.part(strings.TrimPrefix(k.Workload, l.Of+"/")); ok {
				l.rounds[i] = own
			}
		}
	}
}

// part returns a copy of the round that has only the requests of one part of the mix. ok is false
// if none of these requests was measured.
func (r *round) part(name string) (out *round, ok bool) {
	own := *r
	own.samples, own.Due, own.Start, own.End = nil, 0, r.End, r.Start
	for _, s := range r.samples {
		if s.Part != name {
			continue
		}
		if own.samples = append(own.samples, s); s.measured() {
			own.Due++
			own.Start, own.End = min(own.Start, s.Scheduled), max(own.End, s.End)
		}
	}
	return &own, own.Due > 0
}

func (rec *recording) line(raw []byte) error {
	var l struct {
		Type   string `json:"type"`
		Schema string `json:"schema"`
		Check  string `json:"check"`
		Level  *struct {
			Server   string  `json:"server"`
			Workload string  `json:"workload"`
			Name     string  `json:"name"`
			Kind     string  `json:"kind"`
			N        int     `json:"n"`
			Skipped  string  `json:"skipped"`
			Speedup  float64 `json:"speedup"`
			Of       string  `json:"of"`
			Batches  bool    `json:"batches"`
			Looks    []struct {
				Requests int `json:"requests"`
			} `json:"looks"`
			Asked struct {
				Pause int64 `json:"pause_ns"`
			} `json:"asked"`
		} `json:"level"`
		Of *struct {
			Server   string `json:"server"`
			Workload string `json:"workload"`
			Name     string `json:"name"`
		} `json:"of"`
		Round  *round  `json:"round"`
		Sample *sample `json:"sample"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(raw), &l); err != nil {
		return errors.New("it is not valid JSON")
	}
	switch l.Type {
	case "header":
		if !strings.HasPrefix(l.Schema, "tokgate.samples/1.") {
			return fmt.Errorf("the schema is %q", l.Schema)
		}
	case "level", "level_done":
		if l.Level != nil {
			at := rec.at(key{l.Level.Server, l.Level.Workload, l.Level.Name})
			at.Kind, at.N, at.Skipped, at.Speedup, at.pause, at.Of = l.Level.Kind, l.Level.N, l.Level.Skipped, l.Level.Speedup, l.Level.Asked.Pause, l.Level.Of
			if at.Batches = l.Level.Batches; at.Batches && len(l.Level.Looks) > 0 {
				at.judged = l.Level.Looks[len(l.Level.Looks)-1].Requests
			}
		}
	case "sample":
		if s := l.Sample; s != nil {
			r := rec.at(key{s.Server, s.Workload, s.Level}).at(s.Round)
			r.samples = append(r.samples, *s)
		}
	case "round_done":
		if l.Of != nil && l.Round != nil {
			rec.at(key{l.Of.Server, l.Of.Workload, l.Of.Name}).done(l.Round)
		}
	case "run_done":
		rec.ended = true
	}
	return rec.chain(raw, l.Check)
}

// chain adds a line to the hash of the recording: the new hash covers the old hash and the line
// without its check. A check is the beginning of the new hash. If the check in the line is
// different, chain returns an error.
func (rec *recording) chain(raw []byte, check string) error {
	at := bytes.LastIndex(raw, []byte(`,"check":"`)) // the check is the line's last member
	if at < 0 {
		rec.plain = true
		return nil
	}
	rec.sum = sha256.Sum256(append(rec.sum[:], raw[:at]...))
	if !strings.HasPrefix(hex.EncodeToString(rec.sum[:]), check) || check == "" {
		return errors.New("its checksum does not match: it was changed, or a line before it is missing")
	}
	return nil
}

func (rec *recording) at(k key) *level {
	if rec.levels[k] == nil {
		rec.levels[k] = &level{rounds: map[int]*round{}}
		rec.order = append(rec.order, k)
	}
	return rec.levels[k]
}

func (l *level) at(index int) *round {
	if l.rounds[index] == nil {
		l.rounds[index] = &round{Index: index}
	}
	return l.rounds[index]
}

// done reads the line that ends a round.
func (l *level) done(r *round) {
	if r.Void != "" {
		l.void++
		r.samples = l.at(r.Index).samples
		l.voided = append(l.voided, r)
		delete(l.rounds, r.Index)
		return
	}
	r.samples, r.ended = l.at(r.Index).samples, true
	l.rounds[r.Index] = r
}
