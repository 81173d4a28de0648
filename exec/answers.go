package exec

import (
	"strings"
	"time"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// What a server says of its answers is looked at once the load is over, by a sample
// of them: MLPerf's compliance tests do so too (TEST01 holds logged outputs against
// the accuracy run's, TEST04 looks for caches by sending one sample again and again).
const (
	keptAnswers = 12       // of a level
	keptBytes   = 32 << 10 // of the text of each; a longer one is not counted again
	recountTime = 10 * time.Second

	// Every natural answer is looked at when it ends: so much of it is kept until then.
	lookedAtBytes = 256 << 10

	// So much of all answers of a run is kept in answers.jsonl; of what comes then only
	// the hash is.
	storedBytes = 64 << 20

	againTokens = 48 // asked of the prompt that is sent again, or as many as the plan asks
	againTimes  = 3  // it is sent
	againTime   = 10 * time.Second

	// An answer can be compared that has so many tokens and different words: tiny
	// models say the same few words to everybody.
	comparedTokens = 32
	comparedWords  = 8
)

// keptAnswer is an answer whose text was kept.
type keptAnswer struct {
	round, order, claimed int
	row                   int // of a data set; 0: of none
	text                  string
	whole                 bool // nothing of it was left out
}

// kept are the answers kept of a level, while its server runs.
type kept struct {
	texts         []keptAnswer
	counted       int // of them, those that the tokenizer was given
	before, found metric.Answers
}

// keptOf is what follows what was found of a level before, by an earlier start of
// its server.
func keptOf(l *metric.Level) *kept {
	if l.Answers == nil {
		return &kept{}
	}
	return &kept{before: *l.Answers, found: *l.Answers}
}

// keepsOf is how many bytes of an answer's text are kept until it has ended; 0: none.
func (rd *round) keepsOf(f *flight) int {
	switch {
	case f.turn.Phase != metric.Measured:
		return 0
	case f.lot.workload.Output.Natural:
		return lookedAtBytes
	case rd.keeps(f):
		return keptBytes
	}
	return 0
}

// heard looks at an answer that has ended, and lets go of its text unless it is to be
// kept. Secrets are taken out before, so that `judge` sees what was seen here.
func (rd *round) heard(f *flight) {
	said := f.answer.Said()
	f.answer = nil
	if w := f.lot.workload; w.Output.Natural {
		by := saidBy(said, f.sample, rd.secrets)
		found := w.Found(f.asked, by, f.row)
		f.sample.Answer, f.sample.Said = &found, rd.stored(w, by)
	}
	if rd.keeps(f) {
		rd.keep(f, said)
	}
}

// stored is what is recorded of an answer; nil: nothing is.
func (r *runner) stored(w *plan.Workload, s answers.Said) *metric.Said {
	store := r.Plan.Stores(w)
	if store == plan.StoreNone {
		return nil
	}
	size := len(s.Text) + len(s.Reasoning)
	for _, c := range s.Calls {
		size += len(c.Name) + len(c.Arguments)
	}
	if r.storedBytes += size; store == plan.StoreHash || r.storedBytes > storedBytes {
		s = s.Hashed()
	}
	return &s
}

// askedBy is what a request asks of its answer: the same as the whole level, unless its row has
// fields of its own.
func (a *asking) askedBy(r *client.Request) *answers.Ask {
	if !r.Natural || len(r.Prompt.Fields) == 0 {
		return a.asked
	}
	ask, err := a.workload.Ask(r.Prompt.Row)
	if err != nil && len(a.level.Notes) == 0 {
		a.level.Notes = append(a.level.Notes, unheld(err))
	}
	return ask
}

// unheld says that answers are not held to what was asked for.
func unheld(err error) string {
	return "the answers are not held to what was asked for: " + err.Error()
}

// saidBy is an answer as it is looked at, without secrets.
func saidBy(said client.Said, s *metric.Sample, secrets record.Redactor) answers.Said {
	clean := func(text string) string {
		if said.Cut { // perhaps within a secret
			text = text[:len(text)-secrets.Pending(text)]
		}
		return secrets.Text(text)
	}
	reasoning, _ := strings.CutSuffix(said.Whole, said.Visible)
	out := answers.Said{Text: clean(said.Visible), Reasoning: clean(reasoning), Cut: said.Cut, AtLimit: s.Finish == "length"}
	for _, c := range said.Calls {
		out.Calls = append(out.Calls, answers.Call{Name: clean(c.Name), Arguments: clean(c.Arguments)})
	}
	return out
}

// keeps reports whether the text of a request's answer is to be counted again: which of
// them depends on the salt, which no server knows.
func (rd *round) keeps(f *flight) bool {
	kept := f.lot.kept
	if rd.target.Tokens == nil || len(kept.texts)+len(kept.before.Recounts) >= keptAnswers {
		return false
	}
	step := max(f.lot.planned/keptAnswers, 1)
	return (rd.out.Index*f.lot.due+f.nth)%step == int(rd.run.Salt%uint64(step))
}

// keep keeps the text of an answer that completed.
func (rd *round) keep(f *flight, said client.Said) {
	text := said.String()
	if len(text) > keptBytes {
		text, said.Cut = text[:keptBytes], true
	}
	if s := f.sample; s.Completed() && s.Usage != nil && s.Usage.Output > s.Usage.Hidden && text != "" {
		whole := !said.Cut && len(said.Calls) == 0
		f.lot.kept.texts = append(f.lot.kept.texts, keptAnswer{rd.out.Index, f.nth, s.Usage.Output - s.Usage.Hidden, f.row, text, whole})
	}
}
