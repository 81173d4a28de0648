package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/tokgate/tokgate/report/progress"
)

type terminal struct {
	isTTY bool
	width int // columns
	color bool
}

// begin checks and takes the flags of every command.
func (a *app) begin() (err error) {
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return usageError("use auto, always or never", "unknown --color %q", a.color)
	}
	a.actions, err = a.newActions()
	return err
}

func (a *app) terminal(w io.Writer) terminal {
	t := terminal{width: a.columns()}
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.isTTY = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			t.width = width
		}
	}
	t.color = a.color == "always" || a.color == "auto" && progress.ColorMode(a.getenv, t.isTTY)
	return t
}

func (a *app) columns() int {
	v, _ := a.getenv("COLUMNS")
	if n, err := strconv.Atoi(v); err == nil && n >= 20 {
		return n
	}
	return 120
}

func (a *app) getenv(name string) (string, bool) {
	for _, kv := range a.environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v, true
		}
	}
	return "", false
}

// complain prints an error, if there is one, and hints on what to do, each on one line. On a
// terminal it wraps long lines itself, because a terminal would break them inside words.
func (a *app) complain(err error, hints ...string) {
	say := func(lead, s string) { fmt.Fprintln(a.Err, lead+s) }
	if t := a.terminal(a.Err); t.isTTY {
		say = func(lead, s string) { para(a.Err, t.width, lead, s) }
	}
	if err != nil {
		say("tokgate: ", err.Error())
	}
	for _, hint := range hints {
		say("  hint: ", hint)
	}
}

type output struct {
	io.Writer
	err error // the first
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil // the reader closed the pipe and wants no more, which is no error
	}
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}
