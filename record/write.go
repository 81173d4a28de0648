package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/disk"
)

// Writer appends to the recording while the run goes on. Before a call returns, it has written one
// line in a single write; a few calls write nothing. A Writer is not safe for concurrent use.
type Writer struct {
	sheet    // the file samples.jsonl, with the lines of the recording
	requests requestLine
	answers  *sheet // nil until the first answer is recorded
	err      error  // the first write error; after it the Writer writes nothing
}

// Create makes the run folder dir, with its parents, and begins a recording in it.
//
// A folder holds one run. So Create removes an earlier recording with its answers, and the files in
// dir that the parameter stale names. Nobody can then mistake a report of an earlier run for a
// report of this run.
//
// Create returns an error if another process is recording in dir. It also returns an error if a
// file has the name of the recording or of the answers, but was not written by tokgate.
func Create(dir string, stale ...string) (*Writer, error) {
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("could not make the results folder: %w", err)
	}
	file, err := OpenIn(dir, File, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("could not begin the recording: %w", err)
	}
	w := &Writer{sheet: sheet{file: file}, requests: requestLine{words: map[string]string{}}}
	if err := w.begin(dir, stale); err != nil {
		file.Close()
		return nil, err
	}
	return w, nil
}

func (w *Writer) begin(dir string, stale []string) error {
	path := w.file.Name()
	if err := lock(w.file); err != nil {
		return fmt.Errorf("another run is being recorded in %s: %w", dir, err)
	}
	info, err := w.file.Stat()
	if err != nil {
		return fmt.Errorf("could not begin the recording: %w", err)
	}
	if info.Size() > 0 {
		if _, err := samplesSchema.parse(firstLine(w.file)); err != nil {
			return fmt.Errorf("%s is in the way: %w; choose another results folder or remove it", path, err)
		}
	}
	if err := removeAnswers(dir); err != nil {
		return err
	}
	for _, name := range stale {
		if err := disk.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("could not remove a report of the earlier run: %w", err)
		}
	}
	if err := w.file.Truncate(0); err != nil {
		return fmt.Errorf("could not replace the earlier recording: %w", err)
	}
	if err := w.write(line{Type: typeHeader, Schema: Schema}); err != nil {
		// Remove an incomplete header. It would prevent the next run from recording in this folder.
		_ = w.file.Truncate(0)
		return err
	}
	return nil
}

func (w *Writer) write(l line) error {
	raw, err := json.Marshal(l)
	return w.put(raw, err)
}

func (w *Writer) put(raw []byte, err error) error {
	if w.err != nil {
		return w.err // the last line may be incomplete, and no reader could read a line after it
	}
	if err == nil {
		err = w.append(raw)
	}
	if err != nil {
		w.err = fmt.Errorf("could not write to the recording: %w", err)
	}
	return w.err
}

// Close ends the recording and syncs it to disk. It returns an error if another file has taken the
// recording's name.
func (w *Writer) Close() error {
	err := w.close()
	if w.answers != nil {
		if e := w.answers.close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return fmt.Errorf("could not finish the recording: %w", err)
	}
	return nil
}

// Observe records what happened. The samples of a round must be recorded before the round, and the
// rounds of a level before the level. Only a round may be missing whose pair on the other server has not
// ended.
func (w *Writer) Observe(e metric.Event) error {
	switch e := e.(type) {
	case metric.RunStarted:
		return w.write(line{Type: typeRun, Run: bare(e.Run)})
	case metric.ServerReady:
		return w.write(line{Type: typeServerReady, Server: e.Server})
	case metric.ServerDone:
		return w.write(line{Type: typeServerDone, Server: e.Server})
	case metric.LevelStarted:
		return w.write(line{Type: typeLevel, Level: hollow(e.Level), Due: e.Due})
	case metric.SampleDone:
		return w.sample(e.Sample)
	case metric.RoundDone:
		key := keyOf(e.Level)
		return w.write(line{Type: typeRoundDone, Of: &key, Round: e.Round})
	case metric.LevelDone:
		for _, l := range hollow(e.Level).Divided() {
			if err := w.write(line{Type: typeLevelDone, Level: l}); err != nil {
				return err
			}
		}
		return nil
	case metric.CapacityDone:
		return w.write(line{Type: typeCapacity, Capacity: e.Capacity})
	case metric.ComparisonDone:
		w.keepAnswers(func() error { return w.pairs(e.Comparison) })
		return w.write(line{Type: typeComparison, Comparison: e.Comparison})
	case metric.RunDone:
		return w.runDone(e.Run)
	}
	return nil
}

// sample records one request. If the run keeps the request's answer, it records the answer first.
func (w *Writer) sample(s *metric.Sample) error {
	if s.Said != nil {
		w.keepAnswers(func() error { return w.answer(answerLineOf(s)) })
	}
	return w.put(w.requests.encode(s))
}

func (w *Writer) keepAnswers(write func() error) {
	if w.err != nil {
		return
	}
	if err := write(); err != nil {
		w.err = fmt.Errorf("could not write to the answers: %w", err)
	}
}

// runDone records the end of the run, and syncs the recording to disk. It sets r.Answers and
// r.Recording. It returns an error if another file has taken the recording's name, because then the
// verdict would lack its evidence.
func (w *Writer) runDone(r *metric.Run) error {
	if w.answers != nil {
		if err := w.answers.keep(); err != nil {
			return fmt.Errorf("the answers are lost: %w", err)
		}
		r.Answers = w.answers.chain.String()
	}
	if err := w.write(line{Type: typeRunDone, Run: bare(r)}); err != nil {
		return err
	}
	if err := w.keep(); err != nil {
		return fmt.Errorf("the recording is lost: %w", err)
	}
	r.Recording = w.chain.String()
	return nil
}

// Continue records an earlier session of the same run, so that a reader finds both sessions as one
// run. It must follow RunStarted.
func (w *Writer) Continue(before *metric.Run) error {
	for _, s := range before.Servers {
		if err := w.Observe(metric.ServerReady{Server: s}); err != nil {
			return err
		}
	}
	for _, l := range before.Levels {
		if err := w.Observe(metric.LevelDone{Level: l}); err != nil {
			return err
		}
		rounds := slices.Concat(l.Voided, l.Rounds)
		slices.SortFunc(rounds, func(a, b *metric.Round) int { return a.Index - b.Index })
		for _, r := range rounds {
			for _, s := range r.All() {
				if err := w.Observe(metric.SampleDone{Sample: s}); err != nil {
					return err
				}
			}
			if err := w.Observe(metric.RoundDone{Level: l, Round: r}); err != nil {
				return err
			}
		}
	}
	return nil
}
