package decode

import (
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// A value is a secret if its name ends like the name of a secret. Switches and numbers are
// exceptions.
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
	must.Need(t, !diags.HasErrors(), "%v", diags)
	want := []string{`aws "quoted" ${x}`, "hf_0123456789", "hf_abcdefghij", "sk-0123456789"}
	must.Hold(t, slices.Equal(p.Secrets, want), "secrets %q, want %q", p.Secrets, want)
	// A masked source must have the same length as the original.
	masked := string(p.Files["p.hcl"].Bytes)
	must.Hold(t, len(masked) == len(src) && strings.Count(masked, "\n") == strings.Count(src, "\n"), "%d bytes of %d", len(masked), len(src))
	for _, part := range []string{"0123456789\"", "abcdefghij", "aws"} {
		n := strings.Count(masked, part)
		must.Hold(t, n <= 0, "%q is still there: %s", part, masked)
	}
	for _, part := range []string{`"1234567890"`, `"false-as-ever"`, `"short"`} {
		must.Hold(t, strings.Contains(masked, part), "%q is not there: %s", part, masked)
	}
}

// The decoder cannot know the secrets of a plan that it cannot parse, but diagnostics quote lines of
// the plan. So it masks every value whose name suggests a secret, such as api_key.
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
		must.Need(t, diags.HasErrors(), "%s can be read", line)
		for _, f := range p.Files {
			masked := string(f.Bytes)
			must.Hold(t, len(masked) == len(src) && !strings.Contains(masked, "sp1ll"), "%s\nis kept as\n%s", src, masked)
		}
	}
}

// A message of HCL may quote part of a value, or a changed form of it. Masking would not find a
// secret there, so the whole message is replaced.
func TestSecretsInOthersWords(t *testing.T) {
	long := "sp1ll" + strings.Repeat("-sp1ll", 2*maxSnippet/6)
	for _, tt := range []struct{ name, secret, value, want string }{
		{"a part of it", "half-sp1ll,half-sp1ll", `csvdecode(env.SECRET)`, "env.SECRET has a value"},
		{"changed and in a message", "the-sp1ll", `jsondecode("[]")["${upper(env.SECRET)}!"]`, "env.SECRET has a value that is not valid here"},
		{"changed and read as a number", "the-sp1ll", `parseint(strrev(env.SECRET), 10)`, "env.SECRET has a value"},
		{"as a pattern", "the-(sp1ll", `regex("x${env.SECRET}", "x")`, "env.SECRET has a value"},
		{"of a variable", "the-sp1ll", `seconds(upper(var.secret))`, "var.secret has a value"},
		{"of a local value", "the-sp1ll", `seconds(local.shouted)`, "local.shouted has a value"},
		{"with bytes that Go quotes its own way", "the\x01-sp1ll", `seconds(env.SECRET)`, "env.SECRET has a value"},
		{"longer than a message", long, `seconds(env.SECRET)`, "env.SECRET has a value"},
		{"another mistake beside it", "the-sp1ll", `"${env.SECRET}${seconds("no")}"`, `"no" is not a valid duration`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := `
variable "secret" {
  type      = string
  sensitive = true
}
locals { shouted = upper(env.SECRET) }
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
  ready { timeout = ` + tt.value + ` }
}
`
			p, diags := File(Options{Path: "p.hcl", Source: []byte(src), Environ: []string{"SECRET=" + tt.secret, "TOKGATE_VAR_secret=" + tt.secret}, RequireEnv: true})
			var b strings.Builder
			if err := WriteDiagnostics(&b, p.Files, diags, 0, false); err != nil || !diags.HasErrors() {
				t.Fatal(err, b.String())
			}
			for _, d := range Diagnostics(p.Files, diags) {
				b.WriteString(d.Summary + d.Detail + d.Snippet)
			}
			said := b.String()
			i := strings.Index(strings.ToLower(said), "sp1ll")
			must.Hold(t, i < 0 && !strings.Contains(strings.ToLower(said), "ll1ps"), "the secret is in %q", said)
			must.Hold(t, strings.Contains(said, tt.want), "%q is not in %s", tt.want, said)
		})
	}
}

// Secrets are removed from a message before it is cut. Half a secret would not be recognised.
func TestSecretsAreNotCut(t *testing.T) {
	d := newDecoder(Options{Path: "p.hcl"})
	secret := strings.Repeat("sp1ll", maxSnippet/4)
	d.addSecret(secret)
	d.errorf(commandLine, sumWrongType, "%q is wrong", secret)
	diags := d.finish()
	must.Hold(t, !strings.Contains(diags[0].Detail, "sp1ll"), "%v", diags[0].Detail)
}

// If the keys of a map come from a secret, they are secrets too.
func TestSecretsAsNames(t *testing.T) {
	src := `
variable "login" {
  type      = object({ username = string, password = string })
  sensitive = true
}
server "s" {
  engine = "vllm"
  model  = "m"
  flags  = zipmap([upper(env.SECRET)], ["x"])
  process {
    env = merge({ LOGIN = var.login.password }, jsondecode(env.JSON))
  }
}
workload "w" {
  input_tokens  = 10
  output_tokens = 10
  load { concurrency = 1 }
  sla { ttft = "p95 < 1s" }
}
`
	p, diags := File(Options{Path: "p.hcl", Source: []byte(src), RequireEnv: true, Environ: []string{
		"SECRET=the-sp1ll", `JSON={"KEY-SP1LL": "1"}`, `TOKGATE_VAR_login={ username = "u-sp1ll", password = "p-sp1ll" }`,
	}})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	for _, want := range []string{"THE-SP1LL", "KEY-SP1LL", "p-sp1ll"} {
		must.Hold(t, slices.Contains(p.Secrets, want), "%q is no secret of %q", want, p.Secrets)
	}
	must.Hold(t, !slices.Contains(p.Secrets, "username"), "the name of an attribute is a secret, and no secret was made into it")
}
