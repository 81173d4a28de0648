package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/disk"
)

// Problems lists what was wrong with a recording that could still be read, one sentence for each
// problem. The sentences are in the order of the lines. It is empty if nothing was wrong.
type Problems []string

// StoppedUnknown is the value of Stopped if the recording lacks the end of the run or round.
const StoppedUnknown = "the recording ends here"

// Read reads the recording in the run folder dir, with the recorded answers, and rebuilds the run.
//
// A recording that ends too early is read up to its end, and Problems says so. An incomplete last
// line is left out. A round without an end has Complete = false. A run without an end has Stopped
// set.
//
// Read returns an error if a line cannot be read, was changed or is impossible, if answers are
// missing, or if the recording has another major version. Recordings of early versions have no
// checksums, so damage may stay hidden. Their Run.Recording is "".
func Read(dir string) (*metric.Run, Problems, error) {
	path := filepath.Join(dir, File)
	f, err := OpenIn(dir, File, os.O_RDONLY)
	if err != nil {
		return nil, nil, fmt.Errorf("could not read the recording: %w", err)
	}
	var kept *store
	if tooLong(f) {
		kept = &store{file: f}
	}
	run, problems, err := readAll(f, kept)
	if kept == nil || err != nil {
		f.Close()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("could not read %s: %w", path, err)
	}
	more, err := attachAnswers(dir, run)
	if err != nil {
		return nil, nil, err
	}
	return run, append(problems, more...), nil
}

type reader struct {
	run      *metric.Run
	minor    int    // minor version of the recording's schema
	kept     *store // reads the requests again, if the recording is long; nil if they stay in memory
	ended    bool
	servers  map[string]*metric.ServerRun
	levels   map[levelKey]*metric.Level
	rounds   map[*metric.Level]map[int]*openRound
	problems Problems
}

// openRound is a round whose samples are being read. The line of the round follows its samples.
type openRound struct {
	round    *metric.Round
	ended    bool
	seen     map[place]bool
	measured tally
	last     time.Duration // end of the round's last request so far
	stored   *stored       // where its requests lie; nil if the round itself has them
}

// tally counts the measured requests of a round. It keeps their first due time and their last end
// time.
type tally struct {
	n          int
	start, end time.Duration
}

func (t *tally) add(s *metric.Sample) {
	if s.Phase != metric.Measured {
		return
	}
	if t.n++; t.n == 1 || s.Scheduled < t.start {
		t.start = s.Scheduled
	}
	t.end = max(t.end, s.End)
}

type place struct {
	phase metric.Phase
	order int
}

// maxLine is the largest length of a line, in bytes. A request with a million tokens takes about 7
// MB.
const maxLine = 64 << 20

// longFile is the size of a recording, in bytes, from which the reader does not keep the requests
// in memory, but reads them again when they are needed. A recording of that size has 16,000 requests of 250 tokens.
const longFile = 32 << 20

// tooLong reports whether a recording is too long to keep its requests in memory. It returns false
// if answers were recorded, because every answer is examined again.
func tooLong(f *disk.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() < longFile {
		return false
	}
	_, err = disk.Lstat(filepath.Join(filepath.Dir(f.Name()), AnswersFile))
	return errors.Is(err, fs.ErrNotExist)
}

func readAll(r io.Reader, kept *store) (*metric.Run, Problems, error) {
	rd := &reader{
		kept:    kept,
		servers: map[string]*metric.ServerRun{},
		levels:  map[levelKey]*metric.Level{},
		rounds:  map[*metric.Level]map[int]*openRound{},
	}
	var ls lines
	if err := ls.read(r, func(n int, d *decoded) error {
		rd.minor = ls.minor
		return rd.take(n, d)
	}); err != nil {
		return nil, nil, err
	}
	if ls.torn > 0 {
		rd.problem("line %d is torn and was left out", ls.torn)
	}
	if rd.run == nil {
		return nil, nil, errors.New("there is no run in it")
	}
	if ls.minor >= chainMinor {
		rd.run.Recording = ls.chain.String()
	}
	rd.close()
	return rd.run, rd.problems, nil
}

// wholeLines splits the input after each line feed. A last line without a line feed is incomplete.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func (rd *reader) problem(format string, args ...any) {
	rd.problems = append(rd.problems, fmt.Sprintf(format, args...))
}

func (rd *reader) take(n int, l *decoded) error {
	if rd.run == nil && l.Type != typeRun {
		return fmt.Errorf("a %q line before the run's", l.Type)
	}
	if rd.ended {
		return fmt.Errorf("a %q line after the run's end", l.Type)
	}
	if l.hollow() {
		return fmt.Errorf("a %q line without what it is about", l.Type)
	}
	switch l.Type {
	case typeRun:
		if rd.run != nil {
			return errors.New("a second run begins")
		}
		rd.run = bare(l.Run)
	case typeServerReady, typeServerDone:
		rd.server(l.Server, l.Type == typeServerDone)
	case typeLevel, typeLevelDone:
		rd.level(hollow(l.Level))
	case typeSample:
		return rd.sample(l)
	case typeRoundDone:
		return rd.roundDone(*l.Of, l.Round)
	case typeCapacity:
		rd.run.Capacities = append(rd.run.Capacities, l.Capacity)
	case typeComparison:
		rd.run.Comparisons = append(rd.run.Comparisons, l.Comparison)
	case typeRunDone:
		rd.runDone(l.Run)
	default:
		// A recording of a later minor version may have new types of lines. Otherwise an unknown
		// type means damage.
		if rd.minor <= samplesSchema.minor {
			return fmt.Errorf("the type %q is unknown", l.Type)
		}
		rd.problem("line %d has the unknown type %q and was left out", n, l.Type)
	}
	return nil
}

// runDone takes the end of the run from the record r. Its servers, levels, capacities and
// comparisons come from earlier lines.
func (rd *reader) runDone(r *metric.Run) {
	before := rd.run
	rd.run = bare(r)
	rd.run.Servers, rd.run.Levels = before.Servers, before.Levels
	rd.run.Capacities, rd.run.Comparisons = before.Capacities, before.Comparisons
	rd.ended = true
}

// hollow reports whether the line lacks the JSON object of its type. For example, a line of type
// "run" must have a run.
func (l *line) hollow() bool {
	switch l.Type {
	case typeRun, typeRunDone:
		return l.Run == nil
	case typeServerReady, typeServerDone:
		return l.Server == nil
	case typeLevel, typeLevelDone:
		return l.Level == nil
	case typeSample:
		return l.Sample == nil
	case typeRoundDone:
		return l.Round == nil || l.Of == nil
	case typeCapacity:
		return l.Capacity == nil
	case typeComparison:
		return l.Comparison == nil
	}
	return false
}

func (rd *reader) sample(d *decoded) error {
	s := d.Sample
	level, ok := rd.levels[levelKey{s.Server, s.Workload, s.Level}]
	if !ok {
		return fmt.Errorf("a request of %v, a level that did not begin", s)
	}
	open := rd.round(level, s.Round)
	if open.ended && !(level.Batches && s.Phase == metric.Filler) { // fillers go on after the last batch
		return fmt.Errorf("a request of %v after the end of its round", s)
	}
	if at := (place{s.Phase, s.Order}); open.seen[at] {
		return fmt.Errorf("%v is there twice", s)
	} else {
		open.seen[at] = true
	}
	if err := possible(s); err != nil {
		return fmt.Errorf("%v is inconsistent: %w", s, err)
	}
	open.measured.add(s)
	open.last = max(open.last, s.End)
	if rd.kept == nil {
		open.round.Samples = append(open.round.Samples, s)
		return nil
	}
	if open.stored == nil {
		open.stored = &stored{store: rd.kept}
	}
	open.stored.add(d)
	return nil
}

func (rd *reader) roundDone(of levelKey, r *metric.Round) error {
	level, ok := rd.levels[of]
	if !ok {
		return fmt.Errorf("a round of %s/%s at %s, a level that did not begin", of.Server, of.Workload, of.Name)
	}
	open := rd.round(level, r.Index)
	if open.ended {
		return fmt.Errorf("round %d of %s/%s at %s ends twice", r.Index+1, of.Server, of.Workload, of.Name)
	}
	samples := open.round.Samples
	*open.round = *r
	open.round.Samples = samples
	open.end(level.Batches)
	if r.Void != "" {
		level.Rounds = slices.DeleteFunc(level.Rounds, func(x *metric.Round) bool { return x == open.round })
		level.Voided = append(level.Voided, open.round)
	}
	if err := possibleRound(open.round, open.measured); err != nil {
		return fmt.Errorf("round %d of %s/%s at %s is inconsistent: %w", r.Index+1, of.Server, of.Workload, of.Name, err)
	}
	return nil
}

func (o *openRound) end(batch bool) {
	if o.ended = true; !batch {
		o.seen = nil
	}
	if o.stored != nil {
		o.round.Stored = o.stored.all
	}
}

func (rd *reader) server(s *metric.ServerRun, done bool) {
	known, ok := rd.servers[s.Address]
	if !ok {
		known = new(metric.ServerRun)
		rd.servers[s.Address] = known
		rd.run.Servers = append(rd.run.Servers, known)
	}
	*known = *s
	known.Unended = !done
}

func (rd *reader) level(l *metric.Level) {
	known, ok := rd.levels[keyOf(l)]
	if !ok {
		known = new(metric.Level)
		rd.levels[keyOf(l)] = known
		rd.rounds[known] = map[int]*openRound{}
		rd.run.Levels = append(rd.run.Levels, known)
	}
	rounds, voided := known.Rounds, known.Voided
	*known = *l
	known.Rounds, known.Voided = rounds, voided
}

func (rd *reader) round(l *metric.Level, index int) *openRound {
	open, ok := rd.rounds[l][index]
	if !ok {
		open = &openRound{round: &metric.Round{Index: index, Health: metric.Health{CPU: -1}}, seen: map[place]bool{}}
		rd.rounds[l][index] = open
		at, _ := slices.BinarySearchFunc(l.Rounds, index, func(r *metric.Round, index int) int { return r.Index - index })
		l.Rounds = slices.Insert(l.Rounds, at, open.round)
	}
	return open
}

func (rd *reader) close() {
	last := rd.run.End
	for _, s := range rd.run.Servers {
		if s.Unended {
			rd.problem("the state of server %s at the end is not recorded", s.Address)
		}
	}
	for _, l := range rd.run.Levels {
		for _, r := range slices.Concat(l.Voided, l.Rounds) {
			open := rd.rounds[l][r.Index]
			last = max(last, open.last)
			if open.ended {
				continue
			}
			open.end(false)
			r.Complete, r.Stopped, r.Unended = false, StoppedUnknown, true
			r.Start, r.Due, r.End = open.measured.start, open.measured.n, open.measured.end
			rd.problem("round %d of %s/%s at %s has no end", r.Index+1, l.Server, l.Workload, l.Name)
		}
	}
	rd.run.Hang()
	if !rd.ended {
		rd.run.End, rd.run.Stopped = last, StoppedUnknown
		for _, s := range rd.run.Servers {
			s.Unended = true // the cut-off end may have held an error of the server
		}
		rd.problem("the run has no end: its process was killed, or still runs")
	}
}

// firstLine returns the first line of a file, which may be anything. It reads at most 4096 bytes,
// the largest length of a header.
func firstLine(r io.Reader) []byte {
	line, _ := bufio.NewReader(io.LimitReader(r, 4096)).ReadBytes('\n')
	return line
}
