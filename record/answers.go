package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/disk"
)

// AnswersFile is the name of the file of answers in a run folder. The file has a header, and then
// one line for each answer, in the order in which the answers ended.
const AnswersFile = "answers.jsonl"

var answersSchema = schema{name: "tokgate.answers/", major: 1, minor: 0}

const typeAnswer = "answer"

// answerLine is one line of the file of answers. Server, Workload, Level, Round and Order identify
// the request. Workload, Level and Order identify its prompt. Row is the row of the prompt in the
// data set.
//
// In a comparison in which both servers answered the prompt, Comparison and Side replace Server and
// Round.
type answerLine struct {
	Type       string `json:"type"`
	Schema     string `json:"schema,omitempty"`
	Server     string `json:"server,omitempty"`
	Comparison string `json:"comparison,omitempty"`
	Side       string `json:"side,omitempty"` // one of sides

	Workload string `json:"workload,omitempty"`
	Level    string `json:"level,omitempty"`
	Round    int    `json:"round,omitempty"`
	Order    int    `json:"order,omitempty"`
	Row      int    `json:"row,omitempty"`
	Tokens   int    `json:"tokens,omitempty"` // by the server's count; 0 if not reported
	metric.Said
}

// sides lists who gave the answers that answersOf returns, in the same order. "again" is the
// control's second answer.
var sides = []string{"control", "candidate", "again"}

// An answer is nil if nobody asked for it.
func answersOf(p *metric.AnswerPair) []*metric.PairedAnswer {
	return []*metric.PairedAnswer{p.Control, p.Candidate, p.Again}
}

// answerKey identifies an answer: in a run by its request, and in a comparison by its prompt and by
// the side that gave it.
type answerKey struct {
	server, comparison, side, workload, level string
	round, order                              int
}

func (l *answerLine) key() answerKey {
	return answerKey{l.Server, l.Comparison, l.Side, l.Workload, l.Level, l.Round, l.Order}
}

func answerLineOf(s *metric.Sample) answerLine {
	l := answerLine{Type: typeAnswer, Server: s.Server, Workload: s.Workload, Level: s.Level, Round: s.Round,
		Order: s.Order, Row: s.Row, Said: *s.Said}
	if s.Usage != nil {
		l.Tokens = s.Usage.Output
	}
	return l
}

func pairLine(c *metric.Comparison, p *metric.AnswerPair, side int) answerLine {
	l := answerLine{Type: typeAnswer, Comparison: c.Name, Side: sides[side], Workload: p.Workload, Level: p.Level, Order: p.Order}
	if a := answersOf(p)[side]; a != nil {
		l.Tokens, l.Text = a.Tokens, a.Text
	}
	return l
}

// It leaves out answers without text.
func (w *Writer) pairs(c *metric.Comparison) error {
	if c.Answers == nil {
		return nil
	}
	for i := range c.Answers.Pairs {
		p := &c.Answers.Pairs[i]
		for side, a := range answersOf(p) {
			if a == nil || a.Text == "" {
				continue
			}
			if err := w.answer(pairLine(c, p, side)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) answer(l answerLine) error {
	if w.answers == nil {
		file, err := OpenIn(filepath.Dir(w.file.Name()), AnswersFile, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND)
		if err != nil {
			return err
		}
		w.answers = &sheet{file: file}
		if err := w.answers.add(answerLine{Type: typeHeader, Schema: answersSchema.String()}); err != nil {
			return err
		}
	}
	return w.answers.add(l)
}

// removeAnswers removes the file with the answers of an earlier run from dir. If tokgate did not
// write that file, it stays.
func removeAnswers(dir string) error {
	file, err := OpenIn(dir, AnswersFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("could not begin the recording: %w", err)
	}
	info, err := file.Stat()
	first := firstLine(file)
	file.Close()
	if err != nil {
		return fmt.Errorf("could not begin the recording: %w", err)
	}
	if _, err := answersSchema.parse(first); err != nil && info.Size() > 0 {
		return fmt.Errorf("%s is in the way: %w; choose another results folder or remove it", filepath.Join(dir, AnswersFile), err)
	}
	if err := disk.Remove(filepath.Join(dir, AnswersFile)); err != nil {
		return fmt.Errorf("could not remove the answers of the earlier run: %w", err)
	}
	return nil
}

// If the run ended normally, all recorded answers must be present and unchanged.
func attachAnswers(dir string, run *metric.Run) (Problems, error) {
	ended := run.Stopped != StoppedUnknown
	if ended && run.Answers == "" {
		return nil, nil // the run recorded no answers, so this file belongs to another run
	}
	file, err := OpenIn(dir, AnswersFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) && !ended {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("the run kept answers, and %s cannot be read: %w", filepath.Join(dir, AnswersFile), err)
	}
	defer file.Close()
	problems, err := readAnswers(file, run)
	if err != nil {
		return nil, fmt.Errorf("could not read %s: %w", filepath.Join(dir, AnswersFile), err)
	}
	return problems, nil
}

func readAnswers(r io.Reader, run *metric.Run) (problems Problems, err error) {
	ended := run.Stopped != StoppedUnknown
	places := placesOf(run)
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	in.Split(wholeLines)
	var sum chain
	for n := 1; in.Scan(); n++ {
		raw, whole := bytes.CutSuffix(in.Bytes(), []byte("\n"))
		if !whole {
			problems = append(problems, fmt.Sprintf("line %d of the answers is torn and was left out", n))
			break
		}
		l, err := readAnswer(n, raw, &sum)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			continue
		}
		put := places[l.key()]
		if put == nil && ended {
			return nil, fmt.Errorf("line %d: an answer to a request that is not in the recording, or one more", n)
		} else if put != nil {
			put(l)
			delete(places, l.key())
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if ended && sum.String() != run.Answers {
		return nil, errors.New("these are not the answers that the run kept: lines are missing, or it is another file")
	}
	return problems, nil
}

func placesOf(run *metric.Run) map[answerKey]func(*answerLine) {
	places := map[answerKey]func(*answerLine){}
	for _, l := range run.Levels {
		for _, rounds := range [][]*metric.Round{l.Rounds, l.Voided} {
			for _, round := range rounds {
				for _, s := range round.MeasuredSamples() {
					at := answerLine{Server: s.Server, Workload: s.Workload, Level: s.Level, Round: s.Round, Order: s.Order}
					places[at.key()] = func(l *answerLine) {
						said := l.Said
						said.AtLimit = s.Finish == "length"
						s.Said = &said
					}
				}
			}
		}
	}
	for _, c := range run.Comparisons {
		for i := 0; c.Answers != nil && i < len(c.Answers.Pairs); i++ {
			p := &c.Answers.Pairs[i]
			for side, a := range answersOf(p) {
				if a != nil {
					at := pairLine(c, p, side)
					places[at.key()] = func(l *answerLine) { a.Text = l.Text }
				}
			}
		}
	}
	return places
}

func readAnswer(n int, raw []byte, sum *chain) (*answerLine, error) {
	if n == 1 {
		if _, err := answersSchema.parse(raw); err != nil {
			return nil, err
		}
	}
	if err := sum.open(raw); err != nil {
		return nil, err
	}
	var l answerLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	if n > 1 && l.Type != typeAnswer {
		return nil, fmt.Errorf("the type %q is unknown", l.Type)
	}
	return &l, nil
}
