package telemetry

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

// nvidiaFields lists the fields of the query in order, with the factors to base units. On GPUs
// since Ampere, the power is a mean over about one second. Some GPUs measure the power only part of
// the time.
var nvidiaFields = []struct {
	name string
	unit float64
	of   func(*card) *float64 // where a card stores the value; nil for index and UUID
}{
	{"index", 0, nil},
	{"uuid", 0, nil},
	{"power.draw", 1, func(c *card) *float64 { return &c.power }},
	{"utilization.gpu", 0.01, func(c *card) *float64 { return &c.busy }},
	{"memory.used", 1 << 20, func(c *card) *float64 { return &c.memory }},
	{"temperature.gpu", 1, func(c *card) *float64 { return &c.temperature }},
	{"clocks.sm", 1e6, func(c *card) *float64 { return &c.clock }},
}

// nvidiaHealth lists the query's health fields, under their newer and their older names. nvidia-smi
// rejects a query with an unknown field. tokgate then tries the next list; the last one is empty.
var nvidiaHealth = [][]string{
	{"clocks_event_reasons.active", eccField},
	{"clocks_throttle_reasons.active", eccField},
	nil,
}

const eccField = "ecc.errors.uncorrected.volatile.total"

// NvidiaSMI is an nvidia-smi that keeps running and prints a line for each GPU at every interval. A
// new nvidia-smi for each reading would take the driver's lock each time.
type NvidiaSMI struct {
	now   func() time.Duration
	every time.Duration
	want  int // number of GPUs to report; 0 means all GPUs
	ended chan struct{}

	mu     sync.Mutex
	cmd    *osexec.Cmd
	out    io.Closer
	closed bool
	cards  map[string]line // last report of each GPU, by the GPU's index
	failed string          // output of nvidia-smi that is not values, such as an error
	stderr bytes.Buffer
	err    error // error of the process
}

type line struct {
	card
	at time.Duration
}

// StartNvidiaSMI starts the nvidia-smi at path. The GPUs are given by index or UUID; nil means all.
// The function prepare may change the command before the start; nil changes nothing. Call Close at
// the end.
func StartNvidiaSMI(c clock.Clock, path string, gpus []string, every time.Duration, prepare func(*osexec.Cmd)) (*NvidiaSMI, error) {
	s := &NvidiaSMI{now: c.Now, every: every, want: len(gpus), ended: make(chan struct{}), cards: map[string]line{}}
	start := func(health []string) (io.Reader, error) {
		var names []string
		for _, f := range nvidiaFields {
			names = append(names, f.name)
		}
		args := []string{"--query-gpu=" + strings.Join(append(names, health...), ","), "--format=csv,noheader,nounits", "-lms", strconv.Itoa(int(every.Milliseconds()))}
		if len(gpus) > 0 {
			args = append(args, "-i", strings.Join(gpus, ","))
		}
		cmd := osexec.Command(path, args...)
		if prepare != nil {
			prepare(cmd)
		}
		return s.begin(cmd)
	}
	out, err := start(nvidiaHealth[0])
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		for _, health := range nvidiaHealth[1:] {
			if !s.follow(out) {
				return
			}
			if out, err = start(health); err != nil {
				return // the source was closed, or nvidia-smi ended
			}
		}
		s.follow(out)
	}()
	return s, nil
}

func (s *NvidiaSMI) begin(cmd *osexec.Cmd) (io.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.cmd, s.out, s.failed = cmd, out, ""
	s.stderr.Reset()
	cmd.Stderr = (*firstWords)(&s.stderr)
	cmd.WaitDelay = time.Second // child processes of nvidia-smi may hold its output open
	return out, cmd.Start()
}

// follow reads lines until the command has ended. unknown is true if this nvidia-smi lacks a field
// of the query.
func (s *NvidiaSMI) follow(out io.Reader) (unknown bool) {
	s.listen(out)
	err := s.cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return len(s.cards) == 0 && strings.Contains(s.failed+s.stderr.String(), "is not a valid field to query")
}

func (s *NvidiaSMI) listen(out io.Reader) {
	lines := bufio.NewReaderSize(out, 4096)
	for {
		text, long, err := lines.ReadLine()
		if err != nil {
			return
		}
		if long {
			continue // no line of values is this long
		}
		index, c, ok := nvidiaLine(string(text))
		s.mu.Lock()
		_, known := s.cards[index]
		switch {
		case ok && (known || len(s.cards) < maxGPUs):
			s.cards[index] = line{c, s.now()}
		case !ok && len(bytes.TrimSpace(text)) > 0:
			s.failed = string(text)
		}
		s.mu.Unlock()
	}
}

const maxGPUs = 64

// nvidiaLine reads one line of values, such as "0, GPU-6c4d…, 301.25, 98, 70123, 64, 1755". A line
// may end with two health fields: why the clocks are reduced, and the number of ECC errors
// ("0x0000000000000004, 0"). [N/A] means that the GPU does not report the value.
func nvidiaLine(line string) (index string, c card, ok bool) {
	fields := strings.Split(line, ",")
	if n := len(fields) - len(nvidiaFields); n != 0 && n != len(nvidiaHealth[0]) {
		return "", card{}, false
	}
	c = unknownCard()
	for i, text := range fields[len(nvidiaFields):] {
		text = strings.TrimSpace(text)
		switch v, err := strconv.ParseUint(text, 0, 64); {
		case untold(text):
		case err != nil:
			return "", card{}, false
		case i == 0:
			c.held(v)
		default:
			c.ecc = float64(v)
		}
	}
	for i, f := range nvidiaFields {
		text := strings.TrimSpace(fields[i])
		if f.of == nil {
			if f.name != "index" {
				continue
			}
			if n, err := strconv.Atoi(text); err != nil || n < 0 {
				return "", card{}, false
			}
			index = text
			continue
		}
		if untold(text) {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || v < 0 {
			return "", card{}, false
		}
		*f.of(&c) = v * f.unit
	}
	return index, c, true
}

// untold reports whether the field has no value, as in "[N/A]". For example, a GPU that shares the
// machine's memory reports no memory.
func untold(text string) bool { return strings.HasPrefix(text, "[") || text == "N/A" }

// ComputeProcesses asks the nvidia-smi at path which processes compute on some GPUs, and returns
// their pids on this machine. The GPUs are given by index or UUID; nil means all.
func ComputeProcesses(ctx context.Context, path string, gpus []string) ([]int, error) {
	args := []string{"--query-compute-apps=pid", "--format=csv,noheader,nounits"}
	if len(gpus) > 0 {
		args = append(args, "-i", strings.Join(gpus, ","))
	}
	out, err := output(ctx, path, args...)
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	var pids []int
	for text := range strings.Lines(string(out)) {
		text = strings.TrimSpace(text)
		pid, err := strconv.Atoi(text)
		switch {
		case text == "":
		case err != nil || pid <= 0:
			return nil, fmt.Errorf("nvidia-smi said: %.200s", text)
		default:
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Source returns the readings of nvidia-smi as a Source.
func (s *NvidiaSMI) Source() Source { return Direct(s.Read) }

// Read returns the last reading. It may be called from any goroutine.
func (s *NvidiaSMI) Read() (*Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return nil, fmt.Errorf("nvidia-smi ended: %s", s.words())
	default:
	}
	if len(s.cards) == 0 || len(s.cards) < s.want {
		if s.failed != "" {
			return nil, fmt.Errorf("nvidia-smi said: %.200s", s.failed)
		}
		return nil, errors.New("nvidia-smi has reported nothing yet")
	}
	cards := make([]card, 0, len(s.cards))
	for index, c := range s.cards {
		// One GPU may have stopped reporting while the others continue.
		if s.now()-c.at > 3*s.every+2*time.Second {
			return nil, fmt.Errorf("nvidia-smi no longer reports GPU %s", index)
		}
		cards = append(cards, c.card)
	}
	return combine("nvidia-smi", cards)
}

func (s *NvidiaSMI) words() string {
	for _, text := range []string{s.failed, s.stderr.String()} {
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			return fmt.Sprintf("%.200s", text)
		}
	}
	if s.err != nil {
		return s.err.Error()
	}
	return "exit status 0"
}

// Close ends the program and waits for it.
func (s *NvidiaSMI) Close() {
	s.mu.Lock()
	s.closed = true
	_ = s.cmd.Process.Kill() // an error means that nvidia-smi has ended already
	_ = s.out.Close()
	s.mu.Unlock()
	<-s.ended
}

// firstWords keeps the first 1000 bytes of a program's error output.
type firstWords bytes.Buffer

func (w *firstWords) Write(p []byte) (int, error) {
	b := (*bytes.Buffer)(w)
	if room := 1000 - b.Len(); room > 0 {
		b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func output(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := osexec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &capped{Buffer: &out}, (*firstWords)(&said)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if words := strings.Join(strings.Fields(said.String()), " "); words != "" {
			return nil, fmt.Errorf("%w: %.200s", err, words)
		}
		return nil, err
	}
	return out.Bytes(), nil
}

// capped is a buffer that accepts at most MaxPage bytes.
type capped struct{ *bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > MaxPage {
		return 0, errors.New("it printed too much")
	}
	return c.Buffer.Write(p)
}
