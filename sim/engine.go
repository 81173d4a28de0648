package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Job is one request as the engine sees it.
type Job struct {
	ID     uint64 // chosen by the caller; unique among the unfinished jobs
	Input  int    // prompt tokens, at least 1
	Output int    // tokens that the engine makes for the job, at least 1
	// Prefix identifies the leading blocks of prompt and answer by hashes, for a prefix cache. Each
	// hash covers all tokens up to the end of its block. The cache looks up the prompt's blocks,
	// and stores them after the prefill. When the job ends, it also stores the full blocks of the
	// answer without its last token.
	Prefix []uint64
}

// Emission holds the tokens of one job that became visible in one step.
type Emission struct {
	ID     uint64
	At     time.Duration // end of the step
	Tokens int           // number of new tokens, at least 1
	Total  int           // tokens of the job so far, including the new tokens
	Last   bool          // the job is finished
	// Times points to the times of the job that the engine already knows, even later ones than At.
	// It is valid until the next call of Advance.
	Times *Times
}

// Times holds the times of a job on the engine's clock. A time is -1 until it is known.
type Times struct {
	Submitted time.Duration // Submit's
	Queued    time.Duration // time at which the front end passed the job to the engine's queue
	Scheduled time.Duration // start of the step that first prefills the job
	Prefilled time.Duration // end of the step with the last prompt chunk, which makes the first token
	First     time.Duration // first emission; later than Prefilled if tokens are held back
	Finished  time.Duration // last emission
	Cached    int           // prompt tokens found in the prefix cache
}

// State holds the engine's current state, and totals since its start.
type State struct {
	Running int     // sequences that were admitted and have not finished
	Waiting int     // sequences in the queue, not admitted yet
	KV      float64 // reserved share of the KV cache, in [0, 1]; 0 if it has no limit

	Steps           int
	Busy            time.Duration // time spent in steps
	Prefilling      time.Duration // time spent in steps that prefill; part of Busy
	PromptTokens    int           // prompt tokens that were prefilled or found in the cache
	OutputTokens    int
	CacheQueries    int // prompt tokens that were looked up in the prefix cache, found or not
	CacheHits       int // prompt tokens found in the prefix cache
	CacheEvicted    int // tokens that were evicted from the prefix cache
	Drafts          int // speculative steps, counted for each sequence
	DraftTokens     int
	AcceptedTokens  int
	AcceptedAt      []int // by draft position
	PeakKV          int   // most tokens ever reserved
	PeakBatchTokens int   // largest number of tokens in one step so far
}

// Engine simulates an inference engine with continuous batching, step by step. It has no clock and
// no goroutine, and all its randomness comes from the seed. Submit gives it jobs, and Advance
// returns what has happened up to a time. It is not safe for concurrent use.
//
// A step is planned when it starts, from the queue at that time, and runs to its end. Sequences are
// admitted in order of arrival. Each sequence reserves a number of tokens of the KV budget until it
// leaves: input + output + kv_per_seq_tokens. So no sequence is ever preempted.
type Engine struct {
	profile Profile
	cost    cost
	accept  []float64 // chance that a draft token is accepted if the one before it is, by position
	hold    int       // number of tokens that must be made before the client sees them
	maxSeqs int

	began time.Duration // start of the server, from which a drift counts; 0 on the engine's own clock
	clock time.Duration // end of the last finished step
	step
	front time.Duration // time at which the serial front end is free for the next request
	queue []*sequence   // waiting for admission, in the order of submission, which the front end keeps
	jobs  map[uint64]*sequence
	admitted

	out   []Emission
	left  []*sequence // finished in the last Advance; their Times may still be read
	spare []*sequence // may be used again

	cache *prefixCache
	noise *noise
	seeds rng
	state State
}

// admitted is the sequences in the engine, and what they hold.
type admitted struct {
	prefill  []*sequence
	decode   []*sequence
	kv       int // tokens reserved
	resident int // KV cache tokens in use by the decoding sequences
	leaked   int // slots that are never freed
	dropped  int // number of cancelled sequences that the lists prefill and decode still contain
}

// step is the step that the engine takes.
type step struct {
	stepping bool // one is running, until stepEnd
	stepEnd  time.Duration
	decodes  bool // it decodes
	decoded  int  // number of decoding steps so far; counted only if the profile has stalls
}

type sequence struct {
	Job
	Times
	need      int     // KV reservation
	prefilled int     // prompt tokens done
	made      int     // output tokens made
	shown     int     // output tokens emitted
	first     float64 // chance that the first draft token of the sequence is accepted
	rng       rng
	cancelled bool
}

// NewEngine returns an idle engine whose clock is at zero. The profile p must be valid.
func NewEngine(p *Profile, seed int64) *Engine {
	e := &Engine{
		profile: *p,
		hold:    max(1, p.FirstVisibleToken),
		maxSeqs: p.Limits.MaxSeqs,
		jobs:    make(map[uint64]*sequence),
		seeds:   rng(seed),
	}
	if p.Policy == Mixed {
		// Each running sequence needs at least one token of a step's token budget. So the budget
		// limits the number of sequences.
		if fit := p.Limits.MaxBatchedTokens / p.verify(); e.maxSeqs == 0 || e.maxSeqs > fit {
			e.maxSeqs = fit
		}
	}
	if s := p.Speculation; s != nil {
		before := 1.0
		for _, a := range s.Accept {
			conditional := 0.0
			if before > 0 {
				conditional = a / before
			}
			e.accept = append(e.accept, conditional)
			before = a
		}
		e.state.AcceptedAt = make([]int, len(s.Accept))
	}
	if p.PrefixCache != nil {
		e.cache = newPrefixCache(p.PrefixCache.CapacityTokens / p.PrefixCache.BlockTokens)
	}
	e.noise = newNoise(p.Noise, seed)
	e.cost = newCost(p, e.noise.start)
	return e
}

// Submit gives the engine a job at the given time. The time must not be earlier than in the last
// Submit. Submit all jobs of one time before Advance, because a step takes only the jobs that wait
// when it starts.
func (e *Engine) Submit(at time.Duration, j Job) error {
	switch {
	case j.Input < 1:
		return errors.New("a job needs at least one prompt token")
	case j.Output < 1:
		return errors.New("a job needs at least one output token")
	case j.Input+j.Output > e.profile.MaxModelLen:
		return fmt.Errorf("%d prompt and %d output tokens exceed the context of %d tokens", j.Input, j.Output, e.profile.MaxModelLen)
	case e.jobs[j.ID] != nil:
		return fmt.Errorf("job %d is in flight already", j.ID)
	}
	var s *sequence
	if n := len(e.spare); n > 0 {
		s, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		s = new(sequence)
	}
	*s = sequence{Job: j, Times: Times{Submitted: at, Scheduled: -1, Prefilled: -1, First: -1, Finished: -1}}
	s.Queued = at + ms(e.profile.OverheadMS)
	if perToken := e.profile.FrontUSPerToken * float64(j.Input); perToken > 0 || e.profile.FrontMSPerRequest > 0 {
		s.Queued = max(s.Queued, e.front) + ms(e.profile.FrontMSPerRequest+perToken/1000)
		e.front = s.Queued
	}
	s.need = j.Input + j.Output + e.profile.Limits.KVPerSeqTokens
	s.rng = rng(e.seeds.next())
	s.first = e.ownAcceptance(s)
	e.jobs[j.ID] = s
	e.queue = append(e.queue, s)
	return nil
}

// ownAcceptance draws the chance that a sequence's first draft token is accepted. It varies between
// sequences, so that their mean numbers of tokens per step differ. These means have a triangular
// distribution within ±Spread of the overall mean.
func (e *Engine) ownAcceptance(s *sequence) float64 {
	spec := e.profile.Speculation
	if spec == nil {
		return 0
	}
	mean := 0.0
	for _, a := range spec.Accept {
		mean += a
	}
	if mean == 0 || spec.Spread == 0 {
		return e.accept[0]
	}
	own := (1 + mean) * (1 + spec.Spread*(s.rng.float()+s.rng.float()-1))
	return min(1, max(0, e.accept[0]*(own-1)/mean))
}

// Cancel removes a job, which then emits nothing more. It reports whether the job was in flight.
// Before Cancel, call Advance up to the time of the cancellation.
//
// A waiting job leaves at once. A running job leaves at the end of the current step.
func (e *Engine) Cancel(id uint64) bool {
	s := e.jobs[id]
	if s == nil {
		return false
	}
	delete(e.jobs, id)
	if s.Scheduled < 0 {
		e.queue = slices.DeleteFunc(e.queue, func(x *sequence) bool { return x == s })
		return true
	}
	s.cancelled = true
	e.dropped++
	return true
}

// Leak loses a slot, and tokens of the KV budget, for ever.
func (e *Engine) Leak(slot bool, tokens int) {
	if slot {
		e.leaked++
	}
	e.kv += tokens
}

// Advance lets the engine work until now. It returns the emissions since the last call, in order.
// The slice is valid until the next call.
//
// The result next is the time of the next event. A call after that time still returns the event's
// emissions. If busy is false, the engine is idle until the next Submit, and next has no meaning.
func (e *Engine) Advance(now time.Duration) (emitted []Emission, next time.Duration, busy bool) {
	e.spare, e.left, e.out = append(e.spare, e.left...), e.left[:0], e.out[:0]
	for {
		if !e.stepping {
			start := e.clock
			if len(e.prefill)+len(e.decode) == 0 {
				if len(e.queue) == 0 {
					return e.out, 0, false
				}
				start = max(start, e.queue[0].Queued)
			}
			if start > now {
				return e.out, start, true
			}
			e.plan(start)
		}
		if e.stepEnd > now {
			return e.out, e.stepEnd, true
		}
		e.finishStep()
	}
}

// State returns the engine's state at the time of the last Advance, which must be now.
func (e *Engine) State(now time.Duration) State {
	s := e.state
	s.AcceptedAt = slices.Clone(s.AcceptedAt)
	s.Running = len(e.prefill) + len(e.decode) + e.leaked
	for s.Waiting < len(e.queue) && e.queue[s.Waiting].Queued <= now {
		s.Waiting++
	}
	if e.profile.Limits.KVTokens > 0 {
		s.KV = float64(e.kv) / float64(e.profile.Limits.KVTokens)
	}
	return s
}

// resetPrefixCache forgets all cached prompts.
func (e *Engine) resetPrefixCache() {
	if e.cache != nil {
		e.cache.reset()
	}
}

// plan plans and starts a step. It decides which sequences decode, how many tokens of each prompt
// are prefilled, and when the step ends.
func (e *Engine) plan(start time.Duration) {
	budget := e.profile.Limits.MaxBatchedTokens
	e.decodes = len(e.decode) > 0
	if e.profile.Policy == Mixed {
		budget -= len(e.decode) * e.profile.verify()
	} else if len(e.prefill) > 0 || e.admissible(start) {
		e.decodes = false
	} else {
		budget = 0
	}

	prompts, left := 0.0, budget
	for _, s := range e.prefill {
		prompts += e.chunk(s, &left)
	}
	for left > 0 && e.admissible(start) {
		prompts += e.chunk(e.admit(start), &left)
	}

	took, spent := e.cost.base, budget-left
	if e.decodes {
		took = e.cost.decode(len(e.decode), e.resident, e.longest())
		spent += len(e.decode) * e.profile.verify()
	}
	prefills := left < budget
	if prefills {
		took += prompts + e.cost.chunk
	}
	length := max(time.Nanosecond, ms(took*e.noise.step(start)*e.profile.Drift.factor(start-e.began)+e.stall()))
	e.stepping, e.stepEnd = true, start+length
	e.state.Steps++
	e.state.Busy += length
	if prefills {
		e.state.Prefilling += length
	}
	e.state.PeakKV = max(e.state.PeakKV, e.kv)
	e.state.PeakBatchTokens = max(e.state.PeakBatchTokens, spent)
}

func (e *Engine) stall() float64 {
	s := e.profile.Stalls
	if s == nil || !e.decodes {
		return 0
	}
	if e.decoded++; e.decoded%s.EverySteps != 0 {
		return 0
	}
	return s.MS
}

// admissible reports whether the first job in the queue may start now. Later jobs never overtake
// it, because small requests could otherwise delay a large one without end.
func (e *Engine) admissible(now time.Duration) bool {
	if len(e.queue) == 0 || e.queue[0].Queued > now {
		return false
	}
	if e.maxSeqs > 0 && len(e.prefill)+len(e.decode)+e.leaked >= e.maxSeqs {
		return false
	}
	limit := e.profile.Limits.KVTokens
	return limit == 0 || e.kv+e.queue[0].need <= limit
}

func (e *Engine) admit(now time.Duration) *sequence {
	s := e.queue[0]
	e.queue = slices.Delete(e.queue, 0, 1)
	s.Scheduled = now
	e.kv += s.need
	e.state.PromptTokens += s.Input
	if e.cache != nil {
		// The engine always computes the last prompt token, because this yields the answer's first
		// token.
		s.Cached = min(e.cache.match(e.blocks(s, s.Input))*e.profile.PrefixCache.BlockTokens, s.Input-1)
		s.prefilled = s.Cached
		e.state.CacheQueries += s.Input
		e.state.CacheHits += s.Cached
	}
	e.prefill = append(e.prefill, s)
	return s
}

// chunk prefills a prompt as far as the token budget allows. It reduces the budget, and returns the
// cost in ms.
func (e *Engine) chunk(s *sequence, budget *int) float64 {
	n := min(s.Input-s.prefilled, *budget)
	if n <= 0 {
		return 0
	}
	took := e.cost.prefill(s.prefilled, n)
	s.prefilled += n
	*budget -= n
	return took
}

// longest returns the number of context tokens of the longest decoding sequence. It returns 0 if
// the profile sets no cost for this length.
func (e *Engine) longest() int {
	most := 0
	if e.cost.longest > 0 {
		for _, s := range e.decode {
			most = max(most, s.Input+s.made)
		}
	}
	return most
}

func (e *Engine) finishStep() {
	e.stepping, e.clock = false, e.stepEnd
	if e.dropped > 0 {
		e.prefill = e.sweep(e.prefill, false)
		e.decode = e.sweep(e.decode, true)
		e.dropped = 0
	}
	if e.decodes {
		stay := e.decode[:0]
		for _, s := range e.decode {
			n := min(1+e.accepted(s), s.Output-s.made)
			e.resident += n
			if e.emit(s, n) {
				e.resident -= s.Input + s.made
			} else {
				stay = append(stay, s)
			}
		}
		e.decode = stay
	}
	stay := e.prefill[:0]
	for _, s := range e.prefill {
		if s.prefilled < s.Input {
			stay = append(stay, s)
			continue
		}
		s.Prefilled = e.clock
		if e.cache != nil {
			e.keep(s, s.Input)
		}
		if !e.emit(s, 1) {
			e.decode = append(e.decode, s)
			e.resident += s.Input + s.made
		}
	}
	e.prefill = stay
}

func (e *Engine) emit(s *sequence, n int) bool {
	s.made += n
	e.state.OutputTokens += n
	last := s.made == s.Output
	if s.made < e.hold && !last {
		return false
	}
	if s.First < 0 {
		s.First = e.clock
	}
	if last {
		s.Finished = e.clock
		if e.cache != nil {
			e.keep(s, s.Input+s.made-1)
		}
		e.kv -= s.need
		e.left = append(e.left, s)
		delete(e.jobs, s.ID)
	}
	e.out = append(e.out, Emission{})
	m := &e.out[len(e.out)-1] // set in place, because to copy it would take half of an engine's time
	m.ID, m.At, m.Tokens, m.Total, m.Last, m.Times = s.ID, e.clock, s.made-s.shown, s.made, last, &s.Times
	s.shown = s.made
	return last
}

func (e *Engine) accepted(s *sequence) int {
	if len(e.accept) == 0 {
		return 0
	}
	e.state.Drafts++
	e.state.DraftTokens += len(e.accept)
	n, chance := 0, s.first
	for n < len(e.accept) {
		if n > 0 {
			chance = e.accept[n]
		}
		if s.rng.float() >= chance {
			break
		}
		e.state.AcceptedAt[n]++
		n++
	}
	e.state.AcceptedTokens += n
	return n
}

func (e *Engine) sweep(list []*sequence, decoding bool) []*sequence {
	stay := list[:0]
	for _, s := range list {
		if !s.cancelled {
			stay = append(stay, s)
			continue
		}
		if decoding {
			e.resident -= s.Input + s.made
		}
		e.kv -= s.need
	}
	return stay
}
