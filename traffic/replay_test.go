package traffic_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

// four is a trace of four requests, sent at 0, 3, 6 and 9 s. The blocks of its prompts have 4
// tokens.
const four = `t,in,out,h
0,8,2,"[1,2]"
3,10,2,"[1,2,3]"
6,8,2,"[1,9]"
9,8,4,"[5,2]"
`

func fourRows(t *testing.T) *traffic.Trace {
	return trace(t, "a.csv", four, "", &traffic.Columns{Time: "t", Input: "in", Output: "out", Hashes: "h", Block: 4})
}

func TestStretch(t *testing.T) {
	for _, tt := range []struct {
		s          traffic.Stretch
		first, due int
		rate       float64
		err        string
	}{
		{s: traffic.Stretch{}, due: 4, rate: 4. / 9},
		{s: traffic.Stretch{From: 3 * time.Second, To: 9 * time.Second}, first: 1, due: 2, rate: 2. / 6},
		{s: traffic.Stretch{From: 4 * time.Second, To: 100 * time.Second}, first: 2, due: 2, rate: 2. / 96},
		{s: traffic.Stretch{From: time.Minute}, err: "no request was sent in that stretch: the trace lasts 9s"},
		{s: traffic.Stretch{From: 9 * time.Second}, err: "all its requests were sent at one time: that is a burst"},
	} {
		r, err := fourRows(t).Replay(tt.s)
		if err != nil || tt.err != "" {
			must.Hold(t, err != nil && err.Error() == tt.err, "%+v: %v, want %s", tt.s, err, tt.err)
			continue
		}
		must.Hold(t, r.First == tt.first && r.Due == tt.due && math.Abs(r.Rate()-tt.rate) <= 1e-9, "%+v: %d from %d at %v", tt.s, r.Due, r.First, r.Rate())
	}
}

// The requests were sent at 0, 3, 6 and 9 s. An interval is one second. The last request is at the
// end of the trace and belongs to the last interval.
func TestRates(t *testing.T) {
	for to, want := range map[time.Duration][]float64{
		0:                {1, 0, 0, 1, 0, 0, 1, 0, 1},
		12 * time.Second: {1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0},
	} {
		r := must.Get(fourRows(t).Replay(traffic.Stretch{To: to}))(t)
		rates, step := r.Rates()
		diff := cmp.Diff(want, rates)
		must.Hold(t, diff == "" && step == time.Second, "to %v: steps of %v: %s", to, step, diff)
	}
}

// Prompts are made of blocks of 4 tokens: [1,2], [1,2,3], [1,9] and [5,2]. They begin with 0, 8, 4
// and 0 tokens of an earlier prompt. If later prompts count too, the first prompt shares 8 tokens
// with the second.
func TestRepeats(t *testing.T) {
	r := must.Get(fourRows(t).Replay(traffic.Stretch{}))(t)
	for _, tt := range []struct {
		from, context int
		others        bool
		want          []int
	}{
		{0, 0, false, []int{0, 8, 4, 0}},
		{0, 0, true, []int{8, 8, 4, 0}},
		{1, 0, false, []int{0, 4, 0}},
		{0, 8, false, []int{0, 6, 4, 0}}, // 8 tokens leave room for prompts of 6, 6, 6 and 4 tokens
	} {
		must.Same(t, fmt.Sprintf("from %d, context %d, others %v", tt.from, tt.context, tt.others), tt.want, r.Repeats(tt.from, 4, tt.context, tt.others))
	}
	got, want := r.HitRate(0, 0), 12./34
	must.Hold(t, math.Abs(got-want) <= 1e-12, "%v, want %v", got, want)
}

// The second prompt repeats 320 tokens of its session: the 300 tokens of the first prompt, and 20
// tokens of the first answer.
func TestPartsOfSessions(t *testing.T) {
	tr := trace(t, "t.csv", "id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,prefix_len\n0,300,50,0,0,10,0\n0,100,10,5,1,0,320\n", "", nil)
	r := must.Get(tr.Replay(traffic.Stretch{}))(t)
	first, second := r.Parts(0), r.Parts(1)
	must.Hold(t, len(first) == 1 && len(second) == 3 && second[0] == first[0] && second[1].Tokens == 20 && second[2].Tokens == 100, "%v, then %v", first, second)
	must.Same(t, "", []int{0, 300}, r.Repeats(0, 2, 0, false))
}

// Fit cuts a request that is longer than the context. The answer keeps up to half of the context.
func TestFit(t *testing.T) {
	for _, tt := range []struct {
		input, output, context int
		wantIn, wantOut        int
		cut                    bool
	}{
		{100, 20, 0, 100, 20, false},
		{100, 20, 120, 100, 20, false},
		{100, 20, 119, 99, 20, true},
		{100, 90, 100, 50, 50, true},
		{10, 500, 100, 10, 90, true},
		{500, 10, 100, 90, 10, true},
	} {
		row := traffic.Recorded{Input: tt.input, Output: tt.output}
		in, out, cut := row.Fit(tt.context)
		must.Hold(t, in == tt.wantIn && out == tt.wantOut && cut == tt.cut, "%d + %d in %d: %d + %d, %v", tt.input, tt.output, tt.context, in, out, cut)
	}
}

// Rows whose times were rounded to 3 s are spread over 3 s. The mean delay is then 1.5 s. A row
// still waits for the row that it follows. The same seed gives the same times.
//
// The tolerance for the mean over 1,000 rows is 5 standard errors, 5 × 3/√12/√1000 s.
func TestSpread(t *testing.T) {
	tr := &traffic.Trace{}
	for i := range 1000 {
		tr.Rows = append(tr.Rows, traffic.Recorded{Line: i + 1, Input: 1, Output: 1, Parent: i - 1})
	}
	s := traffic.Stretch{Spread: 3 * time.Second, Seed: 4}
	r := must.Get(tr.Replay(s))(t)
	mean := 0.0
	for i, row := range r.Rows {
		mean += row.At.Seconds() / 1000
		must.Need(t, (i <= 0 || row.At >= r.Rows[i-1].At) && row.At <= 3*time.Second, "row %d at %v", i, row.At)
		if row.Line > 1 && r.Rows[row.Parent].Line != row.Line-1 {
			t.Fatalf("line %d follows line %d", row.Line, r.Rows[row.Parent].Line)
		}
	}
	must.Hold(t, math.Abs(mean-1.5) <= 5*3/math.Sqrt(12)/math.Sqrt(1000), "mean %v s", mean)
	again, _ := tr.Replay(s)
	must.Same(t, "", r.Rows, again.Rows)
}
