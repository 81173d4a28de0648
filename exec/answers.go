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

// After the load, tokgate checks some of a level's answers against what the server reported.
// MLPerf's tests TEST01 (logged outputs) and TEST04 (caches) have similar aims.
const (
	keptAnswers = 12       // of a level
	keptBytes   = 32 << 10 // largest text to keep of an answer, in bytes; a longer text is not counted
	recountTime = 10 * time.Second

	// lookedAtBytes is the largest part of a natural answer that tokgate keeps to examine it, in
	// bytes.
	lookedAtBytes = 256 << 10

	// storedBytes is the largest size of all texts in answers.jsonl. Beyond it, only the hashes of
	// answers are stored.
	storedBytes = 64 << 20

	againTokens = 48 // largest number of tokens of an answer to the repeated prompt
	againTimes  = 3  // it is sent
	againTime   = 10 * time.Second

	// Answers are compared with each other only if they have at least comparedTokens tokens, and
	// comparedWords different words. Shorter and simpler answers may be equal by chance.
	comparedTokens = 32
	comparedWords  = 8
)

type keptAnswer struct {
	round, order, claimed int
	row                   int // number of the answer's row in the data set; 0 if there is none
	text                  string
	whole                 bool // the text is complete
}

// kept holds the answers of a level, for as long as the level's server runs.
type kept struct {
	texts         []keptAnswer
	counted       int // number of texts that the tokenizer has counted
	before, found metric.Answers
}

// keptOf returns what is known about the kept answers of a level. It begins with the results from
// earlier starts of the server.
func keptOf(l *metric.Level) *kept {
	if l.Answers == nil {
		return &kept{}
	}
	return &kept{before: *l.Answers, found: *l.Answers}
}

// keepsOf returns how many bytes of an answer's text the client keeps until the answer ends; 0
// means none.
func (rd *round) keepsOf(f *flight) int {
	switch {
	case f.turn.Phase != metric.Measured:
		return 0
	case f.lot.workload.Output.Natural, rd.picked.has(f):
		return lookedAtBytes
	case rd.keeps(f):
		return keptBytes
	}
	return 0
}

// heard examines a finished answer, and drops its text unless the plan records it. Secrets are
// removed first, so `tokgate judge` never sees them either.
func (rd *round) heard(f *flight) {
	said := f.answer.Said()
	f.answer = nil
	if w := f.lot.workload; w.Output.Natural {
		by := saidBy(said, f.sample, rd.secrets)
		found := w.Found(f.asked, by, f.sample.Row)
		f.sample.Answer, f.sample.Said = &found, rd.stored(w, by)
	}
	if rd.keeps(f) {
		rd.keep(f, said)
	}
	if rd.picked.has(f) {
		rd.picked.heard(f, said)
	}
}

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

// askedBy returns the form that the plan requires of a request's answer. A request has a form of
// its own only if its row of the data set has fields of its own.
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

// unheld returns a note that the answers could not be checked against what the plan requires of
// them.
func unheld(err error) string {
	return "the answers are not compared with what was asked for: " + err.Error()
}

// saidBy returns an answer for examination, with its secrets removed.
func saidBy(said client.Said, s *metric.Sample, secrets record.Redactor) answers.Said {
	clean := func(text string) string {
		if said.Cut { // the end of a cut text may be the beginning of a secret
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

// keeps reports whether to keep the text of an answer, to count its tokens again later. The choice
// depends on the salt of the run, so a server cannot know it.
func (rd *round) keeps(f *flight) bool {
	kept := f.lot.kept
	if rd.target.Tokens == nil || f.lot.workload.API.Embeds() || len(kept.texts)+len(kept.before.Recounts) >= keptAnswers {
		return false
	}
	step := max(f.lot.planned/keptAnswers, 1)
	return (rd.out.Index*f.lot.due+f.nth)%step == int(rd.run.Salt%uint64(step))
}

func (rd *round) keep(f *flight, said client.Said) {
	text := said.String()
	if len(text) > keptBytes {
		text, said.Cut = text[:keptBytes], true
	}
	if s := f.sample; s.Completed() && s.Usage != nil && s.Usage.Output > s.Usage.Hidden && text != "" {
		whole := !said.Cut && len(said.Calls) == 0
		claimed := s.Usage.Output - s.Usage.Hidden
		f.lot.kept.texts = append(f.lot.kept.texts, keptAnswer{rd.out.Index, f.nth, claimed, f.sample.Row, text, whole})
	}
}
