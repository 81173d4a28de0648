package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// What a server says of its answers is looked at once the load is over, by a sample
// of them: MLPerf's compliance tests do so too (TEST01 holds logged outputs against
// the accuracy run's, TEST04 looks for caches by sending one sample again and again).
const (
	keptAnswers = 12       // of a level
	keptBytes   = 32 << 10 // of the text of each; a longer one is not counted again
	recountTime = 10 * time.Second

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

// answers are those kept of a level, while its server runs.
type answers struct {
	kept          []keptAnswer
	counted       int // of them, those that the tokenizer was given
	before, found metric.Answers
}

// answersOf is what follows what was found of a level before, by an earlier start of
// its server.
func answersOf(l *metric.Level) *answers {
	if l.Answers == nil {
		return &answers{}
	}
	return &answers{before: *l.Answers, found: *l.Answers}
}

// keeps says whether the text of a request's answer is to be kept: which of them
// depends on the salt, which no server knows.
func (rd *round) keeps(order int) bool {
	if rd.target.Tokens == nil || len(rd.answers.kept)+len(rd.answers.before.Recounts) >= keptAnswers {
		return false
	}
	step := max(rd.Level.Requests/keptAnswers, 1)
	return (rd.out.Index*rd.out.Due+order)%step == int(rd.run.Salt%uint64(step))
}

// keep keeps the text of an answer that completed.
func (rd *round) keep(f *flight) {
	text, whole := f.answer.Said()
	if s := f.sample; s.Completed() && s.Usage != nil && s.Usage.Output > s.Usage.Hidden && text != "" {
		rd.answers.kept = append(rd.answers.kept, keptAnswer{rd.out.Index, f.turn.Order, s.Usage.Output - s.Usage.Hidden, f.row, text, whole})
	}
}
