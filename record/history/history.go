package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/record/disk"
)

// Schema is the version of the format of a history's lines. A new field does not need a new
// version. Lines of the version unchecked have no checksum.
const (
	schema    = "tokgate.history/1.1"
	unchecked = "tokgate.history/1"
)

type line struct {
	Schema string        `json:"schema"`
	Night  *metric.Night `json:"night,omitempty"`
	Pin    *metric.Pin   `json:"pin,omitempty"`
	Void   *metric.Void  `json:"void,omitempty"`
}

// Add adds a night to the history in the folder dir, which it creates if necessary. added is false
// if the history already has the night's run. repaired describes an incomplete line that Add
// removed; "" if there was none.
func Add(dir string, n metric.Night) (added bool, repaired string, err error) {
	if n.Run == "" || n.Started.IsZero() {
		return false, "", errors.New("could not add the night: its run has no name or no time")
	}
	count, repaired, err := add(dir, monthOf(n.Started), []line{{Schema: schema, Night: &n}})
	return count > 0, repaired, err
}

// AddPin adds a pin, which marks a run, to the history in dir. The history must have that run.
func AddPin(dir string, p metric.Pin) (repaired string, err error) {
	if _, err := having(dir, p.Run); err != nil {
		return "", err
	}
	_, repaired, err = add(dir, monthOf(p.At), []line{{Schema: schema, Pin: &p}})
	return repaired, err
}

// AddVoid takes a night out of the history in dir: its run no longer counts. The night's line stays.
func AddVoid(dir string, v metric.Void) (repaired string, err error) {
	h, err := having(dir, v.Run)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(h.Pins, func(p metric.Pin) bool { return p.Run == v.Run }) {
		return "", fmt.Errorf("run %s is pinned, so later nights are compared with it: pin another run before it is void", v.Run)
	}
	_, repaired, err = add(dir, monthOf(v.At), []line{{Schema: schema, Void: &v}})
	return repaired, err
}

// having reads the history in dir, which must have the run.
func having(dir, run string) (h metric.History, err error) {
	if h, _, err = Read(dir); err != nil {
		return h, err
	}
	if !slices.ContainsFunc(h.Nights, func(n metric.Night) bool { return n.Run == run }) {
		return h, fmt.Errorf("run %s is not in the history %s", run, dir)
	}
	return h, nil
}

func monthOf(at time.Time) string { return at.UTC().Format("2006-01") }

// add appends lines to the file of a month. It leaves out nights that the file has. It returns the
// number of lines that it added.
func add(dir, month string, lines []line) (added int, repaired string, err error) {
	if err := prepare(dir); err != nil {
		return 0, "", fmt.Errorf("could not make the history folder: %w", err)
	}
	name := month + ".jsonl"
	path := filepath.Join(dir, name)
	f, err := record.OpenIn(dir, name, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return 0, "", fmt.Errorf("could not open the history: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = fmt.Errorf("could not write to the history: %w", e)
		}
	}()
	if err := lock(f); err != nil {
		return 0, "", fmt.Errorf("could not lock %s: %w", path, err)
	}
	was, err := readAll(f)
	if err != nil {
		return 0, "", fmt.Errorf("could not read the history: %w", err)
	}
	if !ours(was) {
		return 0, "", fmt.Errorf("%s holds no line of a tokgate history: move it out of the way, or name another folder", path)
	}
	raw, added, err := sealed(path, was, lines)
	if err != nil || added == 0 {
		return 0, "", err
	}
	if whole := bytes.LastIndexByte(was, '\n') + 1; whole < len(was) {
		if json.Valid(was[whole:]) {
			raw = append([]byte("\n"), raw...)
		} else if err := f.Truncate(int64(whole)); err != nil {
			return 0, "", fmt.Errorf("could not repair the history: %w", err)
		} else {
			repaired = fmt.Sprintf("the last line of %s was cut short by an earlier writer; its %d bytes were removed", path, len(was)-whole)
		}
	}
	if _, err := f.Write(raw); err != nil {
		return 0, repaired, fmt.Errorf("could not write to the history: %w", err)
	}
	if err := f.Sync(); err != nil {
		return 0, repaired, fmt.Errorf("could not write to the history: %w", err)
	}
	return added, repaired, nil
}

// sealed returns the lines that a file does not have yet, as it will hold them, and their number.
func sealed(path string, was []byte, lines []line) (raw []byte, added int, err error) {
	var there metric.History
	parse(path, was, &there)
	runs := map[string]bool{}
	for _, n := range there.Nights {
		runs[n.Run] = true
	}
	for _, l := range lines {
		if l.Night != nil && runs[l.Night.Run] {
			continue
		}
		text, err := json.Marshal(l)
		if err != nil {
			return nil, 0, fmt.Errorf("could not add to the history: %w", err)
		}
		added, raw = added+1, append(append(raw, record.SealLine(text)...), '\n')
	}
	return raw, added, nil
}

// The file makes git keep the lines of both branches in a merge.
func prepare(dir string) error {
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, ".gitattributes")
	if _, err := disk.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return record.WriteFile(path, []byte("*.jsonl merge=union\n"))
}

// Read reads the history in the folder dir. problems lists the lines that do not count, with their
// places. A missing folder is an error; an empty folder is a history without nights.
func Read(dir string) (h metric.History, problems []string, err error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return h, nil, fmt.Errorf("could not read the history: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		src, err := readFile(dir, e.Name())
		if err != nil {
			return h, nil, fmt.Errorf("could not read the history: %w", err)
		}
		problems = append(problems, parse(path, src, &h)...)
	}
	arrange(&h)
	return h, problems, nil
}

// arrange orders a history by time. It removes nights that are void or that occur again.
func arrange(h *metric.History) {
	slices.SortStableFunc(h.Nights, func(a, b metric.Night) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Run, b.Run))
	})
	seen := map[string]bool{}
	for _, v := range h.Voids {
		seen[v.Run] = true
	}
	h.Nights = slices.DeleteFunc(h.Nights, func(n metric.Night) bool {
		again := seen[n.Run]
		seen[n.Run] = true
		return again
	})
	slices.SortStableFunc(h.Pins, func(a, b metric.Pin) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(h.Voids, func(a, b metric.Void) int { return a.At.Compare(b.At) })
}

// maxMonth is the largest size of one month's file, in bytes. It suffices for 100,000 nights with a
// dozen values each.
const maxMonth = 256 << 20

func readFile(dir, name string) ([]byte, error) {
	f, err := record.OpenIn(dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func readAll(f *disk.File) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(f, maxMonth+1))
	if err == nil && len(src) > maxMonth {
		err = fmt.Errorf("%s is larger than %d MiB", f.Name(), maxMonth>>20)
	}
	return src, err
}

// ours reports whether a file is a history, so that tokgate may change it. The file must be empty,
// or have a line of a history, or the beginning of such a line.
func ours(src []byte) bool {
	const head = `{"schema":"tokgate.history/`
	for raw := range bytes.Lines(src) {
		raw = bytes.TrimSpace(raw)
		if bytes.HasPrefix(raw, []byte(head)) || len(raw) > 0 && len(raw) == len(bytes.TrimSpace(src)) &&
			bytes.HasPrefix([]byte(head), raw) {
			return true
		}
	}
	return len(bytes.TrimSpace(src)) == 0
}

func parse(path string, src []byte, h *metric.History) (problems []string) {
	for i, raw := range bytes.Split(src, []byte("\n")) {
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		var l line
		err := json.Unmarshal(raw, &l)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s:%d is not a whole line and does not count", path, i+1))
		case l.Schema == schema && record.CheckLine(raw) != nil:
			problems = append(problems, fmt.Sprintf("%s:%d was changed after it was written and does not count", path, i+1))
		case l.Schema != schema && l.Schema != unchecked:
			problems = append(problems, fmt.Sprintf("%s:%d has schema %q, this version reads %q: it does not count", path, i+1, l.Schema, schema))
		case l.Night != nil && l.Night.Run != "" && !l.Night.Started.IsZero():
			l.Night.Figures = slices.DeleteFunc(l.Night.Figures, func(f metric.Figure) bool {
				return math.IsNaN(f.Value) ||
					math.IsInf(f.Value, 0)
			})
			h.Nights = append(h.Nights, *l.Night)
		case l.Pin != nil && l.Pin.Run != "":
			h.Pins = append(h.Pins, *l.Pin)
		case l.Void != nil && l.Void.Run != "":
			h.Voids = append(h.Voids, *l.Void)
		default:
			problems = append(problems, fmt.Sprintf("%s:%d is neither a night nor a pin and does not count", path, i+1))
		}
	}
	return problems
}
