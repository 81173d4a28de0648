package traffic

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

var errMany = fmt.Errorf("it has more than %d rows", MaxRows)

// parseLines reads one object a line; empty lines are none.
func parseLines(b *bufio.Reader, in *input) (rows []Row, line int, err error) {
	s := bufio.NewScanner(b)
	s.Buffer(make([]byte, 0, 1<<16), MaxRow)
	line = in.lines
	for s.Scan() {
		line++
		in.row = 0
		raw := bytes.TrimSpace(s.Bytes())
		if len(raw) == 0 {
			continue
		}
		if len(rows) == MaxRows {
			return nil, line, errMany
		}
		row, err := readRow(raw, line)
		if err != nil {
			return nil, line, err
		}
		rows = append(rows, row)
	}
	switch err := s.Err(); {
	case err == bufio.ErrTooLong:
		return nil, line + 1, errLong
	case err != nil:
		return nil, line + 1, reason(err)
	}
	return rows, 0, nil
}

// counted counts the lines that were read of an array, up to an offset.
type counted struct {
	r     io.Reader
	ends  []int64 // offsets of line ends that were read and not passed
	at    int64
	lines int // that end before the last offset asked for
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			c.ends = append(c.ends, c.at+int64(i))
		}
	}
	c.at += int64(n)
	return n, err
}

// line is the line of an offset; they are asked for in order.
func (c *counted) line(offset int64) int {
	n, _ := slices.BinarySearch(c.ends, offset)
	c.lines += n
	c.ends = slices.Delete(c.ends, 0, n)
	return c.lines + 1
}

// parseArray reads a JSON array of objects.
func parseArray(b *bufio.Reader, in *input) (rows []Row, line int, err error) {
	c := &counted{r: b, lines: in.lines}
	d := json.NewDecoder(c)
	if _, err := d.Token(); err != nil {
		return nil, c.line(d.InputOffset()), arrayError(err)
	}
	for d.More() {
		in.row = 0
		if len(rows) == MaxRows {
			return nil, c.line(d.InputOffset()), errMany
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, c.line(d.InputOffset()), arrayError(err)
		}
		line := c.line(d.InputOffset() - int64(len(raw)))
		row, err := readRow(raw, line)
		if err != nil {
			return nil, line, err
		}
		rows = append(rows, row)
	}
	if _, err := d.Token(); err != nil {
		return nil, c.line(d.InputOffset()), arrayError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, c.line(d.InputOffset()), errors.New("there is more after the end of the array")
	}
	return rows, 0, nil
}

// arrayError words what ends the reading of an array.
func arrayError(err error) error {
	switch {
	case errors.Is(err, errLong):
		return errLong
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the array has no end")
	}
	return fmt.Errorf("it is no JSON: %w", reason(err))
}

// parseCSV reads a table with a header. column holds the prompts; columns of the
// names of a row's members are these.
func parseCSV(b *bufio.Reader, in *input, column string) (rows []Row, line int, err error) {
	r := csv.NewReader(b)
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return nil, 1, csvError(err)
	}
	header = slices.Clone(header)
	at := slices.Index(header, column)
	if at < 0 {
		return nil, 1, fmt.Errorf("it has no column %q; it has %s", column, short([]byte(strings.Join(header, ", "))))
	}
	length, answer := slices.Index(header, "max_tokens"), slices.Index(header, "answer")
	for {
		in.row = 0
		fields, err := r.Read()
		if err == io.EOF {
			return rows, 0, nil
		}
		if err != nil {
			return nil, badLine(err), csvError(err)
		}
		line, _ := r.FieldPos(0)
		if len(rows) == MaxRows {
			return nil, line, errMany
		}
		row := Row{Line: line, Prompt: strings.Clone(fields[at])}
		if strings.TrimSpace(row.Prompt) == "" {
			return nil, line, errors.New("its prompt is empty")
		}
		if length >= 0 && fields[length] != "" {
			if row.MaxTokens, err = strconv.Atoi(fields[length]); err != nil || row.MaxTokens < 1 || row.MaxTokens > maxTokens {
				return nil, line, fmt.Errorf("its max_tokens is %s, not a whole number from 1 to %d", short([]byte(fields[length])), maxTokens)
			}
		}
		if answer >= 0 && fields[answer] != "" {
			row.Answer, _ = json.Marshal(fields[answer]) // text always can be
		}
		rows = append(rows, row)
	}
}

// badLine is where a table could not be read; 0: it is not known.
func badLine(err error) int {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return bad.StartLine
	}
	return 0
}

// csvError words what is wrong with a line of a table.
func csvError(err error) error {
	switch bad, ok := errors.AsType[*csv.ParseError](err); {
	case errors.Is(err, errLong):
		return errLong
	case err == io.EOF:
		return errors.New("it has no header")
	case ok:
		return fmt.Errorf("it is no CSV: %w", bad.Err)
	}
	return reason(err)
}
