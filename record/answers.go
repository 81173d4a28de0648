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

// AnswersFile is the name of the answers that were kept, in a run folder: a header,
// then a line for each, in the order in which they ended.
const AnswersFile = "answers.jsonl"

var answersSchema = schema{name: "tokgate.answers/", major: 1, minor: 0}

const typeAnswer = "answer"

// answerLine is one line. Server, workload, level, round and order name the request;
// without the server they name its prompt, of which row is that of the data set.
type answerLine struct {
	Type     string `json:"type"`
	Schema   string `json:"schema,omitempty"`
	Server   string `json:"server,omitempty"`
	Workload string `json:"workload,omitempty"`
	Level    string `json:"level,omitempty"`
	Round    int    `json:"round,omitempty"`
	Order    int    `json:"order,omitempty"`
	Row      int    `json:"row,omitempty"`
	Tokens   int    `json:"tokens,omitempty"` // by the server's count; 0: not told
	metric.Said
}

// answerKey is which request of a run an answer belongs to.
type answerKey struct {
	server, workload, level string
	round, order            int
}

func answerKeyOf(s *metric.Sample) answerKey {
	return answerKey{s.Server, s.Workload, s.Level, s.Round, s.Order}
}

func answerLineOf(s *metric.Sample) answerLine {
	l := answerLine{Type: typeAnswer, Server: s.Server, Workload: s.Workload, Level: s.Level, Round: s.Round, Order: s.Order, Row: s.Row, Said: *s.Said}
	if s.Usage != nil {
		l.Tokens = s.Usage.Output
	}
	return l
}

// answer appends the answer of a request, in a file that begins with the first one.
func (w *Writer) answer(s *metric.Sample) error {
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
	return w.answers.add(answerLineOf(s))
}

// removeAnswers removes those of an earlier run, and nothing that tokgate did not write.
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

// attachAnswers reads the answers of a run that was read from dir into its samples. A
// run that came to its end must have all that it kept, as they were written.
func attachAnswers(dir string, run *metric.Run) (Problems, error) {
	ended := run.Stopped != StoppedUnknown
	if ended && run.Answers == "" {
		return nil, nil // there are none: what may lie there is not of this run
	}
	file, err := OpenIn(dir, AnswersFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) && !ended {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("could not read the answers of the run: %w", err)
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
	samples := map[answerKey]*metric.Sample{}
	for _, l := range run.Levels {
		for _, rounds := range [][]*metric.Round{l.Rounds, l.Voided} {
			for _, round := range rounds {
				for _, s := range round.MeasuredSamples() {
					samples[answerKeyOf(s)] = s
				}
			}
		}
	}
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
		said, at, err := readAnswer(n, raw, &sum)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			continue
		}
		s := samples[at]
		switch {
		case s != nil && s.Said != nil:
			return nil, fmt.Errorf("line %d: the answer of %v is there twice", n, s)
		case s != nil:
			said.AtLimit = s.Finish == "length"
			s.Said = said
		case ended:
			return nil, fmt.Errorf("line %d: an answer to a request that is not in the recording", n)
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

// readAnswer reads the n-th line, without its line feed; the first is the header.
func readAnswer(n int, raw []byte, sum *chain) (*metric.Said, answerKey, error) {
	if n == 1 {
		if _, err := answersSchema.parse(raw); err != nil {
			return nil, answerKey{}, err
		}
	}
	if err := sum.open(raw); err != nil {
		return nil, answerKey{}, err
	}
	var l answerLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, answerKey{}, err
	}
	if n > 1 && l.Type != typeAnswer {
		return nil, answerKey{}, fmt.Errorf("the type %q is unknown", l.Type)
	}
	return &l.Said, answerKey{l.Server, l.Workload, l.Level, l.Round, l.Order}, nil
}
