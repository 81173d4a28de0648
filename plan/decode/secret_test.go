package decode

import (
	"slices"
	"strings"
	"testing"
)

// A value is a secret by the name of what holds it, if the name ends so and the
// value is no switch or number.
func TestNamedSecrets(t *testing.T) {
	src := `
server "s" {
  engine = "vllm"
  model  = "m"
  args   = ["--api-key", "sk-0123456789", "--hf-token=hf_0123456789", "--max-num-batched-tokens", "1234567890", "--api-key", "--enable-x"]
  process {
    env = {
      HF_TOKEN               = "hf_abcdefghij"
      AWS_SECRET_ACCESS_KEY  = "aws \"quoted\" $${x}"
      PASSWORD               = "short"
      TOKENIZERS_PARALLELISM = "false-as-ever"
      VLLM_LOGGING_LEVEL     = "information"
    }
  }
}
workload "w" {
  input_tokens  = 10
  output_tokens = 10
  load { concurrency = 1 }
  sla { ttft = "p95 < 1s" }
}
`
	p, diags := File(Options{Path: "p.hcl", Source: []byte(src)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := []string{`aws "quoted" ${x}`, "hf_0123456789", "hf_abcdefghij", "sk-0123456789"}
	if !slices.Equal(p.Secrets, want) {
		t.Errorf("secrets %q, want %q", p.Secrets, want)
	}
	// What is kept of the source is as long as it was.
	masked := string(p.Files["p.hcl"].Bytes)
	if len(masked) != len(src) || strings.Count(masked, "\n") != strings.Count(src, "\n") {
		t.Errorf("%d bytes of %d", len(masked), len(src))
	}
	for _, part := range []string{"0123456789\"", "abcdefghij", "aws"} {
		if n := strings.Count(masked, part); n > 0 {
			t.Errorf("%q is still there: %s", part, masked)
		}
	}
	for _, part := range []string{`"1234567890"`, `"false-as-ever"`, `"short"`} {
		if !strings.Contains(masked, part) {
			t.Errorf("%q is not there: %s", part, masked)
		}
	}
}

// Of a file that cannot be read no value is known, and its line is shown.
func TestSecretsOfAnUnreadablePlan(t *testing.T) {
	for _, line := range []string{
		`api_key = "sp1ll-0123456789" }`,
		`private_key = "-sp1ll-0123456789" }`,
		`headers = { Authorization = "Bearer sp1ll-0123456789" } }`,
		`"headers": { "proxy-authorization": "Basic sp1ll0123456789" } }`,
		`command = ["vllm", "--api-key", "sp1ll-0123456789" "--x"]`,
		`command = ["vllm", "--enable-x", "--api-key" "sp1ll-0123456789"]`,
		`command = ["vllm", "--hf-token=sp1ll-0123456789" "--x"]`,
	} {
		src := "server \"s\" {\n  " + line + "\n}\n"
		p, diags := File(Options{Path: "p.hcl", Source: []byte(src)})
		if !diags.HasErrors() {
			t.Fatalf("%s can be read", line)
		}
		for _, f := range p.Files {
			if masked := string(f.Bytes); len(masked) != len(src) || strings.Contains(masked, "sp1ll") {
				t.Errorf("%s\nis kept as\n%s", src, masked)
			}
		}
	}
}
