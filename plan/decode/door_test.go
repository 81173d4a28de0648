package decode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// Every attribute and function that reads a file goes through the same door. The door opens to the
// repository and to the folders that the operator gives, and never to a .git.
func TestDoor(t *testing.T) {
	const secret = "AKIAQ7XSECRET"
	top := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(top, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Skip(err)
		}
	}
	certificate := must.Get(os.ReadFile("testdata/ok/certs/ca.pem"))(t)
	put("repo/.git/config", secret)
	put("data/.git/config", secret)
	put("repo/plans/inside.txt", secret)
	put("repo/plans/inside.jsonl", `{"prompt":"a"}`)
	put("data/rows.jsonl", `{"prompt":"a"}`)
	put("data/private.txt", secret)
	put("data/trace.jsonl", `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]}`)
	put("data/ca.pem", "# an authority\n"+string(certificate))
	put("data/key.pem", string(certificate)+"-----BEGIN PRIVATE KEY-----\n"+secret+"\n-----END PRIVATE KEY-----\n")
	profile := put("data/p.json", `{"base":"default"}`)
	data := filepath.Dir(profile)
	must.Do(t, os.MkdirAll(filepath.Join(top, "repo/fifo"), 0o755))
	link(filepath.Join(top, "data/rows.jsonl"), "repo/plans/out.jsonl")
	link("inside.jsonl", "repo/plans/in.jsonl")
	link("../.git", "repo/plans/git")

	const opened, closed = "", "lies outside the repository"
	ways := map[string]string{ // %q is the path
		"dataset": `workload "w" {
  output_tokens = 8
  prompt { dataset = PATH }
  load { concurrency = [1] }
  sla { success = "every" }
}`,
		"trace": `workload "w" {
  load { trace = PATH }
  sla { success = "every" }
}`,
		"ca_file": `server "t" {
  endpoint {
    url     = "https://127.0.0.1:1"
    ca_file = PATH
  }
}`,
		"profile": `server "t" {
  simulator { profile = PATH }
}`,
		"file":    `locals { x = file(PATH) }`,
		"logo":    `report { logo = PATH }`,
		"history": `history { folder = PATH }`,
	}
	for _, tt := range []struct {
		way, path string
		files     string // "" or the folder that the operator gives
		want      string // part of the error
	}{
		{"dataset", "inside.jsonl", "", opened},
		{"dataset", "in.jsonl", "", opened},
		{"dataset", data + "/rows.jsonl", "", "--files " + realPath(data)},
		{"dataset", data + "/rows.jsonl", data, opened},
		{"dataset", "../../data/rows.jsonl", "", closed},
		{"dataset", "../../data/rows.jsonl", data, opened},
		{"dataset", "out.jsonl", "", closed},
		{"dataset", "out.jsonl", data, opened},
		{"dataset", data + "/rows.jsonl", data + "/rows.jsonl/x", closed},
		{"dataset", data + "/private.txt", data, "it is not valid JSON"},
		{"dataset", "../.git/config", data, "git may store tokens"},
		{"dataset", "git/config", data, "git may store tokens"},
		{"dataset", data + "/.git/config", data, "git may store tokens"},
		{"dataset", "../fifo", "", "it is not a regular file"},
		{"dataset", "/dev/zero", "/dev", "it is not a regular file"},
		{"trace", "/proc/self/environ", "", closed},
		{"trace", data + "/trace.jsonl", "", closed},
		{"trace", data + "/trace.jsonl", data, opened},
		{"trace", "../.git/config", data, "git may store tokens"},
		{"ca_file", data + "/ca.pem", "", opened}, // nothing but certificates
		{"ca_file", data + "/key.pem", "", "only certificates"},
		{"ca_file", data + "/private.txt", "", "only certificates"},
		{"ca_file", data + "/private.txt", data, "contains no certificate"},
		{"ca_file", "../.git/config", "", "git may store tokens"},
		{"profile", profile, "", closed},
		{"profile", profile, data, opened},
		{"profile", "../.git/config.json", "", "git may store tokens"},
		{"file", data + "/rows.jsonl", "", closed},
		{"file", data + "/rows.jsonl", data, opened},
		{"file", "git/config", "", "git may store tokens"},
		{"logo", data + "/private.txt", "", closed},
		{"logo", data + "/private.txt", data, "is not a PNG or JPEG picture"},
		{"history", data, "", closed},
	} {
		base := "server \"s\" {\n  endpoint { url = \"http://127.0.0.1:1\" }\n}\nworkload \"base\" {\n  server = server.s\n  input_tokens = 8\n  output_tokens = 8\n  load { concurrency = [1] }\n  sla { success = \"every\" }\n}\n"
		quoted := `"` + filepath.ToSlash(tt.path) + `"`
		opts := Options{
			Path:   filepath.Join(top, "repo/plans/p.hcl"),
			Source: []byte(base + strings.ReplaceAll(ways[tt.way], "PATH", quoted) + "\n"),
		}
		if tt.files != "" {
			opts.Files = []string{tt.files}
		}
		_, diags := File(opts)
		said := ""
		for _, d := range diags.Errs() {
			said += d.Error() + "\n"
		}
		switch {
		case strings.Contains(said, secret):
			t.Errorf("%s = %s quotes the file:\n%s", tt.way, tt.path, said)
		case tt.want == opened && (strings.Contains(said, closed) || strings.Contains(said, "git may store")):
			t.Errorf("%s = %s with --files %q is closed:\n%s", tt.way, tt.path, tt.files, said)
		case !strings.Contains(said, tt.want):
			t.Errorf("%s = %s with --files %q: want %q, got:\n%s", tt.way, tt.path, tt.files, tt.want, said)
		}
	}
}
