package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

// Servers that are compared take turns. If two comparisons share a server, the servers of both take
// turns.
func TestGroups(t *testing.T) {
	s := func(name string) *Server { return &Server{Name: name} }
	a, b, c, d, e := s("a"), s("b"), s("c"), s("d"), s("e")
	compare := func(control, candidate *Server) *Compare {
		return &Compare{Name: candidate.Name, Control: Control{Server: control}, Candidate: candidate}
	}
	for _, row := range []struct {
		compares []*Compare
		want     string
	}{
		{[]*Compare{compare(a, b)}, "a b"},
		{[]*Compare{compare(a, b), compare(a, c)}, "a b c"},
		{[]*Compare{compare(a, b), compare(c, d)}, "a b|c d"},
		{[]*Compare{compare(a, b), compare(c, d), compare(b, c)}, "c d a b"},
		{[]*Compare{compare(a, b), {Name: "x", Candidate: c, Skip: "nothing changed"}}, "a b"},
		{[]*Compare{compare(a, b), compare(c, d), compare(e, a)}, "c d|a b e"},
	} {
		var got []string
		for _, g := range Groups(&Plan{Compares: row.compares}) {
			var names []string
			for _, s := range g.Servers {
				names = append(names, s.Name)
			}
			got = append(got, strings.Join(names, " "))
		}
		must.Hold(t, strings.Join(got, "|") == row.want, "%v, want %v", got, row.want)
	}
}

// Rounds are alike if each sends the same lengths at the same times.
func TestAlike(t *testing.T) {
	closed := func() *Workload { return &Workload{Output: Output{Mean: 100, Jitter: 0.1}, Loads: []*Load{{}}} }
	a, b := &Server{Name: "a"}, &Server{Name: "b"}
	for _, row := range []struct {
		name  string
		alter func(w *Workload)
		want  bool
	}{
		{"generated lengths in closed loops", func(*Workload) {}, true},
		{"the model ends its answers", func(w *Workload) { w.Output.Natural = true }, false},
		{"a data set", func(w *Workload) { w.Prompt.Dataset = &traffic.Dataset{} }, false},
		{"conversations", func(w *Workload) { w.Prompt.Turns = traffic.Turns{Mean: 2, Max: 3} }, false},
		{"a rate or a trace", func(w *Workload) { w.Loads = append(w.Loads, &Load{Open: &Open{}}) }, false},
		{"users", func(w *Workload) { w.Loads[0].People = &People{} }, false},
		{"a mix", func(w *Workload) { w.Mix = []*Workload{closed()} }, false},
		{"a part of a mix", func(w *Workload) { w.Of = closed() }, false},
	} {
		w, other := closed(), closed()
		row.alter(w)
		w.Servers, other.Servers = []*Server{a, b}, []*Server{a, b}
		c := &Compare{Control: Control{Server: a}, Candidate: b}
		must.Same(t, row.name, row.want, c.Alike(&Plan{Workloads: []*Workload{other, w}}))
		w.Servers = []*Server{b} // not compared
		must.Hold(t, c.Alike(&Plan{Workloads: []*Workload{other, w}}), "%s: decides although the workload is not compared", row.name)
	}
}

func TestAllows(t *testing.T) {
	for _, row := range []struct {
		changed []string
		key     string
		want    bool
	}{
		{[]string{"flags"}, "flags.dtype", true},
		{[]string{"flags.dtype"}, "flags.dtype", true},
		{[]string{"flags.dtype"}, "flags.dtype2", false},
		{[]string{"flag"}, "flags.dtype", false},
		{nil, "version", false},
	} {
		must.Same(t, fmt.Sprintf("%q allows %q", row.changed, row.key), row.want, Allows(row.changed, row.key))
	}
}

// If a plan allows a difference, it also allows the differences that follow from it.
func TestAllowsWhatFollows(t *testing.T) {
	for _, tt := range []struct {
		changed, key string
		want         bool
	}{
		{"flags", "flags.max-num-seqs", true},
		{"flags.max-num-seqs", "flags.max-num-seqs", true},
		{"flags.max-num-seqs", "flags.max-model-len", false},
		{"flags.max-num-seqs", "flags", true}, // this fact is one line with all flags
		{"flags.max-num-seqs", "admission_cap", true},
		{"image", "version", true},
		{"image", "image_digest", true},
		{"flags", "image_digest", false}, // a change of flags does not explain a different image
		{"image", "gpu", false},
		{"gpus", "gpu", true},
		{"image", "kernel", false},
	} {
		must.Same(t, fmt.Sprintf("changed = [%q] allows %s", tt.changed, tt.key), tt.want, Allows([]string{tt.changed}, tt.key))
	}
}

func TestDeclaredOfAContainer(t *testing.T) {
	s := &Server{Engine: "vllm", Container: &Container{
		Image: "a:v1", Env: map[string]string{"TOKEN": "secret"}, GPUs: &GPUs{IDs: []string{"0", "2"}}, Volumes: []string{"/a:/b"}, SharedMem: "16g",
	}}
	want := map[string]string{"engine": "vllm", "image": "a:v1", "env.TOKEN": "sha256:2bb80d53", "gpus": `["0", "2"]`, "volumes": "/a:/b", "shm_size": "16g"}
	must.Same(t, "", want, s.Declared())
}
