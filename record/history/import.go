package history

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// MaxImport is the largest size of a file that Parse reads, in bytes.
const MaxImport = maxMonth

// Headers of a CSV with the series of another tool. The commit may be left out.
var foreign = []string{"date", "series", "value", "commit"}

// dates are the layouts of a date in a foreign CSV. Without a zone it is UTC.
var dates = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// Parse reads nights from the JSON or the CSV that Export wrote, or from a CSV with the columns date,
// series, value and perhaps commit, which another tool wrote. better says which values of such
// series are better. An error names the line.
func Parse(src []byte, better metric.Direction) (h metric.History, err error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(src), []byte("{")) {
		if err := json.Unmarshal(src, &h); err != nil {
			return metric.History{}, fmt.Errorf("this is not the JSON of `tokgate history export`: %w", err)
		}
		for i, n := range h.Nights {
			if n.Run == "" || n.Started.IsZero() {
				return metric.History{}, fmt.Errorf("night %d has no name or no time", i+1)
			}
		}
	} else if h.Nights, err = parseCSV(src, better); err != nil {
		return metric.History{}, err
	}
	if len(h.Nights) == 0 {
		return metric.History{}, errors.New("there are no nights in it")
	}
	arrange(&h)
	return h, nil
}

func parseCSV(src []byte, better metric.Direction) ([]metric.Night, error) {
	in := csv.NewReader(bytes.NewReader(src))
	in.TrimLeadingSpace = true
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("this is no CSV: %w", err)
	}
	for i, name := range head {
		head[i] = strings.ToLower(strings.TrimSpace(name))
	}
	var add func(row []string, line int) error
	var out []metric.Night
	switch {
	case slices.Equal(head, exported):
		add = ownRows(&out)
	case slices.Equal(head, foreign), slices.Equal(head, foreign[:3]):
		add = foreignRows(&out, better)
	default:
		return nil, fmt.Errorf("the first line must be %q, the same with %q, or that of `tokgate history export --format csv`; it is %.200q",
			strings.Join(foreign[:3], ","), foreign[3], strings.Join(head, ","))
	}
	for {
		row, err := in.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err // names the line
		}
		line, _ := in.FieldPos(0)
		if err := add(row, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// ownRows returns a function that adds a row of the export.
func ownRows(out *[]metric.Night) func(row []string, line int) error {
	index := map[string]int{}
	return func(row []string, _ int) error {
		for i, text := range row {
			if rest, ok := strings.CutPrefix(text, formula); ok && rest != "" && strings.ContainsAny(rest[:1], "=+@") {
				row[i] = rest
			}
		}
		at, ok := index[row[0]]
		if !ok {
			started, err := time.Parse(time.RFC3339, row[1])
			if err != nil || row[0] == "" {
				return fmt.Errorf("run %.100q started at %.100q, which is no night", row[0], row[1])
			}
			n := metric.Night{Run: row[0], Started: started}
			if j := (metric.Job{Commit: row[2], Ref: row[3], Runner: row[4], URL: row[5]}); j != (metric.Job{}) {
				n.Job = &j
			}
			at, index[row[0]] = len(*out), len(*out)
			*out = append(*out, n)
		}
		value, err := number(row[12])
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(row[13])
		if err != nil {
			return fmt.Errorf("n is %.100q, which is no whole number", row[13])
		}
		trend := metric.Trend{Server: row[6], Workload: row[7], Level: row[8], Metric: row[9], Stat: row[10], Asked: row[11]}
		(*out)[at].Figures = append((*out)[at].Figures, metric.Figure{Trend: trend, Value: value, N: n})
		return nil
	}
}

// foreignRows returns a function that adds a row of another tool's series. A night is a date and a
// commit. Nights of one date with several commits keep the order of the file.
func foreignRows(out *[]metric.Night, better metric.Direction) func(row []string, line int) error {
	type night struct {
		at     time.Time
		commit string
	}
	type figure struct {
		night  int
		series string
	}
	index, taken, lines := map[night]int{}, map[time.Time]bool{}, map[figure]int{}
	stat := metric.StatLowerIsBetter
	if better == metric.HigherIsBetter {
		stat = metric.StatHigherIsBetter
	}
	return func(row []string, line int) error {
		started, err := date(row[0])
		if err != nil {
			return err
		}
		value, err := number(row[2])
		if err != nil {
			return err
		}
		switch {
		case row[1] == "":
			return errors.New("the series has no name")
		case value <= 0:
			return fmt.Errorf("the value is %v: nights are compared by ratios, so values must be above 0; leave the line out if there is no value", value)
		}
		of := night{at: started}
		if len(row) > 3 {
			of.commit = row[3]
		}
		at, ok := index[of]
		if !ok {
			for taken[started] {
				started = started.Add(time.Second)
			}
			taken[started] = true
			n := metric.Night{Run: started.Format("20060102T150405Z") + "-import", Started: started}
			if of.commit != "" {
				n.Job = &metric.Job{Commit: of.commit}
			}
			at, index[of] = len(*out), len(*out)
			*out = append(*out, n)
		}
		if first, again := lines[figure{at, row[1]}]; again {
			return fmt.Errorf("%.100q has a value for this date already, in line %d: write the time of day too, or the commit", row[1], first)
		}
		lines[figure{at, row[1]}] = line
		trend := metric.Trend{Workload: row[1], Metric: metric.MetricForeign, Stat: stat}
		(*out)[at].Figures = append((*out)[at].Figures, metric.Figure{Trend: trend, Value: value})
		return nil
	}
}

func date(text string) (time.Time, error) {
	for _, layout := range dates {
		if t, err := time.Parse(layout, text); err == nil && !t.IsZero() {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%.100q is no date: write 2026-11-20 or 2026-11-20T03:00:00Z", text)
}

func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("the value is %.100q, which is no number; leave the line out if there is no value", text)
	}
	return v, nil
}

// Import adds the nights, the pins and the voids of h to the history in the folder dir, which it
// creates if necessary. It leaves out what is already there. It returns how many nights it added.
func Import(dir string, h metric.History) (added int, repaired []string, err error) {
	there, _, err := Read(dir)
	if err != nil {
		there = metric.History{} // the folder is made, or the error is met again
	}
	months := map[string][]line{}
	var order []string
	put := func(at time.Time, l line) {
		month := monthOf(at)
		if months[month] == nil {
			order = append(order, month)
		}
		l.Schema = schema
		months[month] = append(months[month], l)
	}
	runs := map[string]bool{}
	for _, n := range there.Nights {
		runs[n.Run] = true
	}
	for _, v := range there.Voids {
		runs[v.Run] = true
	}
	for i, n := range h.Nights {
		if !runs[n.Run] {
			added++
			put(n.Started, line{Night: &h.Nights[i]})
		}
	}
	for i, p := range h.Pins {
		if !slices.Contains(there.Pins, p) {
			put(p.At, line{Pin: &h.Pins[i]})
		}
	}
	for i, v := range h.Voids {
		if !slices.Contains(there.Voids, v) {
			put(v.At, line{Void: &h.Voids[i]})
		}
	}
	for _, month := range order {
		_, was, err := add(dir, month, months[month])
		if was != "" {
			repaired = append(repaired, was)
		}
		if err != nil {
			return 0, repaired, err
		}
	}
	return added, repaired, nil
}
