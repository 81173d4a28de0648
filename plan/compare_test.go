package plan

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
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
		if strings.Join(got, "|") != row.want {
			t.Errorf("%v, want %v", got, row.want)
		}
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
		if got := Allows(row.changed, row.key); got != row.want {
			t.Errorf("%q allows %q: %v", row.changed, row.key, got)
		}
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
		if got := Allows([]string{tt.changed}, tt.key); got != tt.want {
			t.Errorf("changed = [%q] allows %s: %v, want %v", tt.changed, tt.key, got, tt.want)
		}
	}
}

func TestDeclaredOfAContainer(t *testing.T) {
	s := &Server{Engine: "vllm", Container: &Container{
		Image: "a:v1", Env: map[string]string{"TOKEN": "secret"}, GPUs: &GPUs{IDs: []string{"0", "2"}}, Volumes: []string{"/a:/b"}, SharedMem: "16g",
	}}
	want := map[string]string{"engine": "vllm", "image": "a:v1", "env.TOKEN": "sha256:2bb80d53", "gpus": `["0", "2"]`, "volumes": "/a:/b", "shm_size": "16g"}
	if diff := gocmp.Diff(want, s.Declared()); diff != "" {
		t.Error(diff)
	}
}
