package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// evil is text from outside. Its markup and links must have no effect in a comment.
const evil = "x --><script>alert(1)</script> <!-- tokgate:other -->\n\n<!-- tokgate:other -->\n![a](https://evil.example/x.png) @everyone [b](javascript:x) <img src=//evil.example> | `c` | https://evil.example #1"

// A comment has a bounded size and a single marker, whatever text a run contains. It contains no
// markup but tokgate's own, and nothing that GitHub would load, link or mention.
func TestCommentHoldsForeignText(t *testing.T) {
	long := strings.Repeat(evil, 1000)
	for _, n := range []int{1, 3, 40} {
		for _, foreign := range []string{evil, long} {
			d := document()
			d.Plan.Name, d.Plan.Path, d.Tool, d.Folder, d.Why, d.Stopped, d.Outcome = foreign, foreign, foreign, foreign, foreign, foreign, Outcome(foreign)
			var verdicts []Verdict
			for range n {
				for _, v := range d.Verdicts {
					v.Name, v.Workload, v.Server, v.Message, v.Needs, v.Notes, v.File = foreign, foreign, foreign, foreign, foreign, []string{foreign, foreign}, foreign
					verdicts = append(verdicts, v)
				}
				d.Comparisons = append(d.Comparisons, Comparison{
					Name: foreign, Line: foreign, Outcome: Fail, Decisions: []Decision{{Answer: foreign}},
					Changes: []Change{{Workload: foreign, Level: foreign, Metric: foreign, Stat: foreign, Unit: foreign, Limit: numberOf(0.05), Outcome: Outcome(foreign), Direction: foreign}},
				})
			}
			d.Verdicts = verdicts
			for i := range d.Capacities {
				d.Capacities[i].Workload, d.Capacities[i].Server, d.Capacities[i].Kind = foreign, foreign, foreign
			}
			var b bytes.Buffer
			if err := Comment(&b, d); err != nil {
				t.Fatal(err)
			}
			out := b.String()
			if lines := strings.Count(out, "\n"); lines > CommentLines || len(out) > CommentBytes {
				t.Errorf("%d × %d bytes: %d lines, %d bytes", n, len(foreign), lines, len(out))
			}
			head, rest, _ := strings.Cut(out, "\n<!-- red -->\n")
			if !regexp.MustCompile(`^<!-- tokgate:[A-Za-z0-9._-]+ -->$`).MatchString(head) {
				t.Errorf("it begins with %q", head)
			}
			for _, own := range []string{"<br>", "<sub>", "</sub>", "<!-- red -->"} {
				rest = strings.ReplaceAll(rest, own, "")
			}
			rest = strings.ReplaceAll(rest, `\]`, "")
			for _, markup := range []string{"<", "@", "://", "](", "\n#1"} {
				if at := strings.Index(rest, markup); at >= 0 {
					t.Errorf("%d × %d bytes: %q in %q", n, len(foreign), markup, rest[max(0, at-30):min(len(rest), at+30)])
				}
			}
		}
	}
}

func TestMarker(t *testing.T) {
	got := map[string]string{}
	for _, name := range []string{"gate", "pull-request", "a b", "--><b>", "", "---", "größe", strings.Repeat("x", 100)} {
		got[name] = marker(name)
	}
	want := map[string]string{
		"gate": "gate", "pull-request": "pull-request", "a b": "a-b", "--><b>": "b", "": "plan", "---": "plan", "größe": "gr-e",
		strings.Repeat("x", 100): strings.Repeat("x", 60),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A comment on a comparison lists the most important changes first. It leaves out uncertain
// changes. The order is: the worst changes with a limit, capacities, for each workload the change
// that decides it, and other certain changes.
func TestCommentRanksChanges(t *testing.T) {
	limit := numberOf(0.05)
	c := Comparison{Changes: []Change{
		{Workload: "chat", Level: "8", Metric: "e2e", Outcome: Skipped},
		{Workload: "chat", Level: "8", Metric: "itl", Outcome: Skipped, Direction: "worse"},
		{Workload: "chat", Level: "8", Metric: "ttft", Outcome: Pass, Limit: limit},
		{Workload: "chat", Level: "8", Metric: "speed", Outcome: Pass, Limit: limit},
		{Workload: "chat", Level: "capacity", Metric: "capacity", Outcome: Skipped},
		{Workload: "rag", Level: "4", Metric: "ttft", Outcome: Inconclusive, Limit: limit},
		{Workload: "rag", Level: "4", Metric: "e2e", Outcome: Fail, Limit: limit},
	}}
	var got []string
	for _, x := range c.ranked() {
		got = append(got, x.Workload+" "+x.Metric)
	}
	want := []string{"rag e2e", "rag ttft", "chat capacity", "chat ttft", "chat itl"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommentNews(t *testing.T) {
	green := Document{Outcome: Pass}
	changed := Document{Outcome: Pass, Comparisons: []Comparison{{Decisions: []Decision{{Answer: "no difference"}, {Answer: "yes"}}}}}
	unchanged := Document{Outcome: Pass, Comparisons: []Comparison{{Decisions: []Decision{{Answer: "no difference"}, {Answer: "unknown"}}}}}
	for want, d := range map[string]*Document{"same": &green, "changed": &changed, "red": {Outcome: Pass, ExitCode: 4}} {
		if got := d.news(); got != want {
			t.Errorf("news is %s, want %s", got, want)
		}
	}
	if got := unchanged.news(); got != "same" {
		t.Errorf("news of no difference is %s", got)
	}
}
