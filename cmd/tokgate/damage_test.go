package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report"
)

var damage = flag.Float64("damage", 0.02, "the share of its 2,000 edits and 10,000 flipped bits that TestLongDamage does")

// evidence holds the files of a failed gate. For each file it has the commands that read it. It
// also has the results of these commands on the undamaged file.
type evidence struct {
	t        *testing.T
	n        *diskNight
	readers  map[string][]reader
	original map[string][]byte
}

type reader struct {
	args []string
	code int // exit code on the undamaged file
	says string
}

func newEvidence(t *testing.T) *evidence {
	n := newDiskNight(t, simServer(t).URL(), false)
	n.try(0)
	must.Do(t, os.Rename(n.path("results"), n.path("earlier")))
	n.try(0)
	worseNights(t, n)
	e := &evidence{t, n, map[string][]reader{
		"results/answers.jsonl": {
			{[]string{"judge", n.path("results"), n.path("gate.hcl")}, verdict.ExitFail, "FAIL"},
			{[]string{"compare", n.path("earlier"), n.path("results"), "--tolerate", "e2e=mean +1000%"}, 0, ""},
		},
		"results/samples.jsonl": {
			{[]string{"judge", n.path("results"), n.path("gate.hcl")}, verdict.ExitFail, "FAIL"},
			{[]string{"compare", n.path("earlier"), n.path("results"), "--tolerate", "e2e=mean +1000%"}, 0, ""},
			{[]string{"report", n.path("results"), "--csv", n.path("levels.csv")}, verdict.ExitPass, "FAIL"},
		},
		"results/results.json": {{[]string{"report", n.path("results"), "--html", n.path("r.html"), "--junit", n.path("r.xml"), "--markdown", n.path("r.md")}, verdict.ExitPass, "FAIL"}},
		"worse/1999-11.jsonl":  {{[]string{"history", "check", n.path("worse"), "--max-age", "0", "--html", n.path("h.html")}, verdict.ExitFail, "FAIL"}},
	}, map[string][]byte{}}
	for _, name := range e.files() {
		e.original[name] = []byte(read(t, n.path(name)))
		for i := range e.readers[name] {
			r := &e.readers[name][i]
			got := n.tokgate(r.args...)
			if r.says != "" && (got.code != r.code || !strings.Contains(got.out, r.says)) {
				t.Fatalf("%s: undamaged %d\n%s%s", r.args[0], got.code, got.out, got.err)
			}
			r.code = got.code
		}
	}
	return e
}

func (e *evidence) files() []string { return slices.Sorted(maps.Keys(e.readers)) }

// worseNights writes a history of nights in which the last three nights are worse than the nights
// before them.
func worseNights(t *testing.T, n *diskNight) {
	doc := must.Get(n.document(n.path("results/results.json")))(t)
	for i := range 18 {
		night := doc.Night()
		night.Run, night.Started = fmt.Sprintf("run-%02d", i), time.Date(1999, 11, 1+i, 3, 0, 0, 0, time.UTC)
		night.Figures = slices.Clone(night.Figures)
		for k := range night.Figures {
			night.Figures[k].Value *= 1 + 0.001*float64(i%3) + map[bool]float64{true: 1}[i >= 15]
		}
		_, _, err := history.Add(n.path("worse"), night)
		must.Need(t, err == nil, "%v", err)
	}
}

// TestLongDamage damages the files of a failed gate: it edits lines and fields, and flips single
// bits. Nothing may panic. No command may give a better result than on the undamaged file.
//
// An edit with recomputed checksums is a forgery. Only a checksum stored elsewhere could detect it,
// so for a forgery the test only checks for panics.
func TestLongDamage(t *testing.T) {
	inVirtualTime(func(t *testing.T) {
		e := newEvidence(t)
		rng := rand.New(rand.NewPCG(17, 2))
		said := map[string]int{}
		for i := range int(2000 * *damage) {
			name := e.files()[i%len(e.files())]
			edited, what := edit(rng, e.original[name])
			if unseen := name == "worse/1999-11.jsonl" && (what == "lines left out" || what == "cut"); unseen || bytes.Equal(edited, e.original[name]) {
				continue // without these lines the history is shorter, but still consistent
			}
			said["refused or as bad, edited: "+name] += e.try(name, what, edited, false)
			said["forged, and no panic: "+name] += e.try(name, what+", with its checks made anew", reseal(name, edited), true)
		}
		for i := range int(10_000 * *damage) {
			name := e.files()[i%len(e.files())]
			flipped := bytes.Clone(e.original[name])
			bit := rng.IntN(8 * len(flipped))
			flipped[bit/8] ^= 1 << (bit % 8)
			said["refused or as bad, a bit flipped: "+name] += e.try(name, fmt.Sprintf("bit %d of byte %d flipped", bit%8, bit/8), flipped, false)
		}
		for _, what := range slices.Sorted(maps.Keys(said)) {
			t.Logf("%6d %s", said[what], what)
		}
	})(t)
}

// try damages a file and runs all commands that read it. It returns 1, so that the caller can add
// up the calls.
func (e *evidence) try(name, what string, damaged []byte, forged bool) int {
	path := e.n.path(name)
	if err := os.WriteFile(path, damaged, 0o644); err != nil {
		e.t.Fatal(err)
	}
	for _, r := range e.readers[name] {
		got := e.n.tokgate(r.args...)
		worse := got.code == verdict.ExitError || got.code == r.code && strings.Contains(got.out, r.says)
		if !forged && !worse {
			e.t.Errorf("%s, %s: %s comes to %d, and to %d undamaged\n%s%s", name, what, r.args[0], got.code, r.code, got.out, got.err)
		}
		if got.code == verdict.ExitPlan {
			e.t.Errorf("%s, %s: %s says that the plan is wrong\n%s", name, what, r.args[0], got.err)
		}
	}
	if err := os.WriteFile(path, e.original[name], 0o644); err != nil {
		e.t.Fatal(err)
	}
	return 1
}

// edit changes one file at random, and describes the change. src is a file of JSON lines, or one
// JSON object.
func edit(rng *rand.Rand, src []byte) (edited []byte, what string) {
	lines := bytes.SplitAfter(src, []byte("\n"))
	if bytes.HasPrefix(src, []byte("{\n")) {
		lines = [][]byte{src}
	}
	lines = slices.Clone(lines)
	i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
	switch rng.IntN(9) {
	case 0:
		lines[i], lines[j] = lines[j], lines[i]
		return bytes.Join(lines, nil), "lines swapped"
	case 1:
		return bytes.Join(slices.Insert(lines, j, lines[i]), nil), "a line doubled"
	case 2:
		return bytes.Join(slices.Delete(lines, min(i, j), max(i, j)), nil), "lines left out"
	case 3:
		return src[:rng.IntN(len(src))], "cut"
	case 4:
		at := rng.IntN(len(lines[i]) + 1)
		lines[i] = slices.Concat(lines[i][:at], []byte(`{"x":`), lines[i][at:])
		return bytes.Join(lines, nil), "text put in"
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(lines[i]))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return src, "nothing"
	}
	what = change(rng, &value)
	raw, err := json.Marshal(value)
	if err != nil {
		return src, "nothing"
	}
	lines[i] = append(bytes.ReplaceAll(raw, []byte(`"\ufffdraw`), []byte("\"\xff")), '\n')
	return bytes.Join(lines, nil), what
}

// change changes a JSON value at one random place. It returns what it did.
func change(rng *rand.Rand, value *any) string {
	switch v := (*value).(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			break
		}
		k := keys[rng.IntN(len(keys))]
		switch rng.IntN(6) {
		case 0:
			delete(v, k)
			return k + " left out"
		case 1:
			v[strings.ToUpper(k)+"x"] = v[k]
			delete(v, k)
			return k + " renamed"
		case 2:
			other := keys[rng.IntN(len(keys))]
			v[k], v[other] = v[other], v[k]
			return k + " and " + other + " swapped"
		}
		x := v[k]
		what := change(rng, &x)
		v[k] = x
		return k + ": " + what
	case []any:
		if len(v) == 0 || rng.IntN(4) == 0 {
			*value = append(v, v...)
			return "a list doubled"
		}
		i := rng.IntN(len(v))
		return fmt.Sprintf("[%d]: %s", i, change(rng, &v[i]))
	}
	others := []any{nil, true, "", "-1", json.Number("-1"), json.Number("0"), json.Number("1e308"), json.Number("1e999"), json.Number("9223372036854775807"),
		json.Number("0.1"), []any{}, map[string]any{}, "\x00\u2028\u202e\x1b[31m", "\ufffdraw", strings.Repeat("x", 1<<18), deep(2000), "NaN", "../../x", "::error::x"}
	i := rng.IntN(len(others))
	*value = others[i]
	return fmt.Sprintf("another value (%d)", i)
}

func deep(n int) (v any) {
	for range n {
		v = []any{v}
	}
	return v
}

// reseal computes the checksums of a file again. It shares no code with the product: it follows the
// descriptions of the file formats.
func reseal(name string, src []byte) []byte {
	if strings.HasSuffix(name, ".json") {
		return report.Seal(src)
	}
	var sum [sha256.Size]byte
	var out bytes.Buffer
	for line := range bytes.Lines(src) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(line, &fields) != nil || len(fields) < 2 {
			out.Write(line)
			continue
		}
		if at := bytes.LastIndex(line, []byte(`,"check":"`)); at > 0 && bytes.HasSuffix(line, []byte("\"}\n")) {
			line = line[:at]
		} else {
			delete(fields, "check")
			line, _ = json.Marshal(fields)
			line = line[:len(line)-1]
		}
		if strings.HasPrefix(name, "worse/") {
			sum = [sha256.Size]byte{} // in a history, a checksum covers only its own line
		}
		sum = sha256.Sum256(append(sum[:], line...))
		fmt.Fprintf(&out, `%s,"check":"%s"}`+"\n", line, hex.EncodeToString(sum[:8]))
	}
	return out.Bytes()
}
