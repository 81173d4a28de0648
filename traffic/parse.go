package traffic

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

var errMany = fmt.Errorf("it has more than %d rows; cut it, such as by head", maxRows)

// The argument raw is valid only during the call; line is the line at which the row begins.
type visit func(raw []byte, line int) error

func eachLine(b *bufio.Reader, in *input, row visit) (line int, err error) {
	s := bufio.NewScanner(b)
	s.Buffer(make([]byte, 0, 1<<16), MaxRow)
	line = in.lines
	for rows := 0; s.Scan(); {
		line++
		in.row, in.done = 0, in.done+int64(len(s.Bytes()))+1
		raw := bytes.TrimSpace(s.Bytes())
		if len(raw) == 0 {
			continue
		}
		if rows++; rows > maxRows {
			return line, errMany
		}
		if err := row(raw, line); err != nil {
			return line, err
		}
	}
	switch err := s.Err(); {
	case err == bufio.ErrTooLong:
		return line + 1, errLong
	case err != nil:
		return line + 1, reason(err)
	}
	return 0, nil
}

type counted struct {
	r     io.Reader
	ends  []int64 // offsets of line ends that are not in the number lines yet
	at    int64
	lines int // number of line ends before the last offset that was asked for
}

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

func (c *counted) line(offset int64) int {
	n, _ := slices.BinarySearch(c.ends, offset)
	c.lines += n
	c.ends = slices.Delete(c.ends, 0, n)
	return c.lines + 1
}

func eachElement(b *bufio.Reader, in *input, row visit) (line int, err error) {
	c := &counted{r: b, lines: in.lines}
	d := json.NewDecoder(c)
	if _, err := d.Token(); err != nil {
		return c.line(d.InputOffset()), arrayError(err)
	}
	for rows := 0; d.More(); {
		in.row = 0
		if rows++; rows > maxRows {
			return c.line(d.InputOffset()), errMany
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return c.line(d.InputOffset()), arrayError(err)
		}
		in.done = d.InputOffset()
		line := c.line(in.done - int64(len(raw)))
		if err := row(raw, line); err != nil {
			return line, err
		}
	}
	if _, err := d.Token(); err != nil {
		return c.line(d.InputOffset()), arrayError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return c.line(d.InputOffset()), errors.New("there is more after the end of the array")
	}
	return 0, nil
}

func arrayError(err error) error {
	switch {
	case errors.Is(err, errLong):
		return errLong
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the array has no end")
	}
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		return bad.Err
	}
	return notJSON(err)
}

// parseCSV reads a table with a header. The column with the given name has the prompts. The columns
// max_tokens and answer are read if the table has them. If an error occurs, the result line is its
// line number.
func parseCSV(b *bufio.Reader, in *input, column string) (rows []Row, line int, err error) {
	at, length, answer := 0, 0, 0
	line, err = eachRecord(b, in, func(header []string) error {
		at, length, answer = slices.Index(header, column), slices.Index(header, "max_tokens"), slices.Index(header, "answer")
		if at < 0 {
			return fmt.Errorf("none of its %d columns is %q", len(header), column)
		}
		return nil
	}, func(fields []string, line int) (err error) {
		row := Row{Line: line, Prompt: strings.Clone(fields[at])}
		if strings.TrimSpace(row.Prompt) == "" {
			return errors.New("its prompt is empty")
		}
		if length >= 0 && fields[length] != "" {
			if row.MaxTokens, err = strconv.Atoi(fields[length]); err != nil || row.MaxTokens < 1 || row.MaxTokens > maxTokens {
				return fmt.Errorf("its max_tokens is %s, but not a whole number from 1 to %d", kindOf([]byte(fields[length])), maxTokens)
			}
		}
		if answer >= 0 && fields[answer] != "" {
			row.Answer, _ = json.Marshal(fields[answer]) // encoding a string cannot fail
		}
		rows = append(rows, row)
		return nil
	})
	return rows, line, err
}

func eachRecord(b *bufio.Reader, in *input, head func([]string) error, row func(fields []string, line int) error) (line int, err error) {
	r := csv.NewReader(b)
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return 1, csvError(err)
	}
	if err := head(header); err != nil {
		return 1, err
	}
	for rows := 0; ; {
		in.row = 0
		fields, err := r.Read()
		if err == io.EOF {
			return 0, nil
		}
		if err != nil {
			return badLine(err), csvError(err)
		}
		line, _ := r.FieldPos(0)
		in.done = r.InputOffset()
		if rows++; rows > maxRows {
			return line, errMany
		}
		if err := row(fields, line); err != nil {
			return line, err
		}
	}
}

func badLine(err error) int {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return bad.StartLine
	}
	return 0
}

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
