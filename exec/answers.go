package exec

import (
	"strings"
	"time"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
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
func (rd *round) keepsOf(turn load.Turn) int {
	switch {
	case turn.Phase != metric.Measured:
		return 0
	case rd.Workload.Output.Natural:
		return lookedAtBytes
	case rd.keeps(turn.Order):
		return keptBytes
	}
	return 0
}

// heard looks at an answer that has ended, and lets go of its text unless it is to be
// kept. Secrets are taken out before, so that `judge` sees what was seen here.
func (rd *round) heard(f *flight) {
	said := f.answer.Said()
	f.answer = nil
	if rd.Workload.Output.Natural {
		by := saidBy(said, f.sample, rd.secrets)
		found := rd.Workload.Found(f.asked, by, f.row)
		f.sample.Answer, f.sample.Said = &found, rd.stored(rd.Workload, by)
	}
	if rd.keeps(f.turn.Order) {
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

// askedBy is what a request asks of its answer: as all of the level do, unless it is a
// row with fields of its own.
func (rd *round) askedBy(r *client.Request) *answers.Ask {
	if !r.Natural || len(r.Prompt.Fields) == 0 {
		return rd.asked
	}
	ask, err := rd.Workload.Ask(r.Prompt.Row)
	if err != nil && len(rd.level.Notes) == 0 {
		rd.level.Notes = append(rd.level.Notes, unheld(err))
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

// keeps says whether the text of a request's answer is to be counted again: which of
// them depends on the salt, which no server knows.
func (rd *round) keeps(order int) bool {
	if rd.target.Tokens == nil || len(rd.kept.texts)+len(rd.kept.before.Recounts) >= keptAnswers {
		return false
	}
	step := max(rd.Level.Requests/keptAnswers, 1)
	return (rd.out.Index*rd.out.Due+order)%step == int(rd.run.Salt%uint64(step))
}

// keep keeps the text of an answer that completed.
func (rd *round) keep(f *flight, said client.Said) {
	text := said.String()
	if len(text) > keptBytes {
		text, said.Cut = text[:keptBytes], true
	}
	if s := f.sample; s.Completed() && s.Usage != nil && s.Usage.Output > s.Usage.Hidden && text != "" {
		whole := !said.Cut && len(said.Calls) == 0
		rd.kept.texts = append(rd.kept.texts, keptAnswer{rd.out.Index, f.turn.Order, s.Usage.Output - s.Usage.Hidden, f.row, text, whole})
	}
}
