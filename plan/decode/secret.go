package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/plan"
)

type mark string

// sensitive marks the value of a sensitive variable or of env.NAME. A value that is computed from a
// marked value is marked too.
const sensitive mark = "sensitive"

func hasMark(v cty.Value, m mark) bool {
	if !v.ContainsMarked() {
		return false
	}
	_, paths := v.UnmarkDeepWithPaths()
	for _, p := range paths {
		if _, ok := p.Marks[m]; ok {
			return true
		}
	}
	return false
}

// secretName matches names of environment variables and options that hold a secret: HF_TOKEN,
// WANDB_API_KEY, --api-key. It matches no plural such as --max-num-batched-tokens, which names a
// number.
var secretName = regexp.MustCompile(`(?i)(^|[_-])(api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|token|secret|password|passwd|passphrase|credentials?)$`)

// minNamed is the length, in bytes, of the shortest value that is a secret because of its name.
// Words such as "default" and "false" are shorter.
const minNamed = 8

func (d *decoder) addNamed(name, value string) {
	if len(value) >= minNamed && secretName.MatchString(name) {
		d.addSecret(value)
	}
}

// A secret may be a word ("--api-key", "sk-…") or a part of an option ("--api-key=sk-…").
func (d *decoder) addNamedWords(words []string) {
	for i, word := range words {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, ok := strings.Cut(word, "=")
		if ok {
			d.addNamed(name, value)
		} else if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			d.addNamed(name, words[i+1])
		}
	}
}

func (d *decoder) namedSecrets(s *plan.Server) {
	for _, f := range s.Flags {
		if v := f.Value; v != cty.NilVal && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			d.addNamed(f.Name, v.AsString())
		}
	}
	d.addNamedWords(s.Args)
	env := func(of map[string]string) {
		for name, value := range of {
			d.addNamed(name, value)
		}
	}
	if p := s.Process; p != nil {
		d.addNamedWords(p.Command)
		env(p.Env)
	}
	if c := s.Container; c != nil {
		d.addNamedWords(c.Command)
		d.addNamedWords(c.Options)
		env(c.Env)
	}
	if p := s.Pod; p != nil {
		d.addNamedWords(p.Command)
		env(p.Env)
	}
	if x := s.Stack; x != nil {
		d.addNamedWords(slices.Concat(x.Up, x.Down, x.Logs))
		env(x.Env)
	}
}

// mask removes the secrets from the diagnostics. It also removes them from the plan's files,
// because diagnostics and reports show lines of these files. In a file, a mask is as long as its
// secret, so that all positions stay valid. In a file that cannot be parsed, mask removes each text
// after a name that belongs to a secret.
func (d *decoder) mask() {
	words, place := d.masks()
	for _, diag := range d.diags {
		diag.Detail = words.Replace(diag.Detail)
	}
	for name, f := range d.out.Files {
		src := []byte(place.Replace(string(f.Bytes)))
		for line := range bytes.Lines(src) {
			maskLine(line)
		}
		d.out.Files[name] = &hcl.File{Body: f.Body, Bytes: src, Nav: f.Nav}
	}
}

func maskLine(line []byte) {
	lower := bytes.ToLower(line)
	if bytes.IndexByte(lower, '"') < 0 || !slices.ContainsFunc(secretParts, func(part []byte) bool { return bytes.Contains(lower, part) }) {
		return // skip the slow expressions below, because few lines name a secret
	}
	for _, literal := range literals {
		for _, at := range literal.FindAllSubmatchIndex(line, -1) {
			if name := line[at[2]:at[3]]; secretName.Match(name) || authorization.Match(name) {
				copy(line[at[4]:at[5]], bytes.Repeat([]byte("*"), at[5]-at[4]))
			}
		}
	}
}

// secretParts lists parts of names. Every name that secretName or authorization matches contains at
// least one part.
var secretParts = [][]byte{[]byte("key"), []byte("token"), []byte("secret"), []byte("passw"), []byte("passphrase"), []byte("credential"), []byte("authorization")}

// masks returns two replacers for the known secrets. The replacer words is for messages. The
// replacer place is for sources, and replaces each byte of a secret by a star.
func (d *decoder) masks() (words, place *strings.Replacer) {
	var forms []string
	for secret := range d.secrets {
		for _, form := range written(secret) {
			if len(form) >= minMasked {
				forms = append(forms, form)
			}
		}
	}
	// Sort longer forms first. Of two secrets that begin alike, the longer one must be masked as a
	// whole.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var inWords, inPlace []string
	for _, form := range slices.Compact(forms) {
		inWords = append(inWords, form, "(secret)")
		inPlace = append(inPlace, form, strings.Repeat("*", len(form)))
	}
	return strings.NewReplacer(inWords...), strings.NewReplacer(inPlace...)
}

// literals match quoted texts in HCL or JSON. The first expression matches a text after a name, and
// the second a text after an option of a command line. They match no text with an interpolation.
var literals = func() []*regexp.Regexp {
	const part = `(?:[^"\\$%\n]|\\.|[$%][^{"\n])`
	return []*regexp.Regexp{
		regexp.MustCompile(`([A-Za-z0-9_-]+)"?[ \t]*[=:][ \t]*"(` + part + `{8,})`),
		// A value must not begin with a dash, because a word with a dash is the next option.
		regexp.MustCompile(`"-+([A-Za-z0-9_-]+)(?:=|"[ \t]*,?[ \t]*")([^-"\\$%\n]` + part + `{7,})`),
	}
}()

var authorization = regexp.MustCompile(`(?i)^(proxy-)?authorization$`)

// minMasked is the length of the shortest secret that is masked, in bytes. A shorter secret also
// occurs inside ordinary words.
const minMasked = 4

// written lists the forms in which a source may contain the secret: as it is, quoted for HCL or
// JSON, and each long line of it.
func written(secret string) []string {
	out := []string{secret}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); line != secret && len(line) >= 16 {
			out = append(out, line)
		}
	}
	for _, text := range out {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(text) == nil {
			quoted := b.String()[1 : b.Len()-len("\"\n")]
			out = append(out, quoted, strings.NewReplacer("${", "$${", "%{", "%%{").Replace(quoted))
		}
	}
	return out
}

// A secret is a string from a sensitive variable or from the environment. A string that only
// contains a recorded secret is not recorded.
func (d *decoder) unmark(v cty.Value) cty.Value {
	if !v.ContainsMarked() {
		return v
	}
	out, paths := v.UnmarkDeepWithPaths()
	for _, p := range paths {
		if _, ok := p.Marks[sensitive]; !ok {
			continue
		}
		if part, err := p.Path.Apply(out); err == nil {
			d.addSecrets(part)
			d.addKeys(part)
		}
	}
	return out
}

// A part of another type was computed from a secret.
func secretsAreText(v cty.Value) bool {
	out, paths := v.UnmarkDeepWithPaths()
	text := true
	for _, p := range paths {
		part, err := p.Path.Apply(out)
		if err != nil {
			return false
		}
		_ = cty.Walk(part, func(_ cty.Path, e cty.Value) (bool, error) {
			text = text && (e.IsNull() || e.Type() != cty.Number && e.Type() != cty.Bool)
			return text, nil
		})
	}
	return text
}

// addKeys records the keys of a value that as a whole comes from a secret, such as
// zipmap([env.TOKEN], [1]).
func (d *decoder) addKeys(v cty.Value) {
	_ = cty.Walk(v, func(path cty.Path, _ cty.Value) (bool, error) {
		if len(path) == 0 {
			return true, nil
		}
		switch step := path[len(path)-1].(type) {
		case cty.GetAttrStep:
			d.addSecret(step.Name)
		case cty.IndexStep:
			if step.Key.Type() == cty.String {
				d.addSecret(step.Key.AsString())
			}
		}
		return true, nil
	})
}

// quoting removes secrets from the diagnostics of an expression. HCL may quote a secret changed or
// in parts, which a mask would not find. So quoting evaluates the expression again, with unknown
// values in place of the secrets. A diagnostic that appears again contains no secret. Of all
// others, quoting keeps only the summary.
func (d *decoder) quoting(expr hcl.Expression, ctx *hcl.EvalContext, diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) == 0 {
		return nil
	}
	blind := ctx.NewChild()
	blind.Variables = map[string]cty.Value{}
	var secrets []string
	for _, t := range expr.Variables() {
		if v, more := t.TraverseAbs(ctx); !more.HasErrors() && hasMark(v, sensitive) {
			secrets = append(secrets, strings.TrimSuffix(t.RootName()+"."+plan.StepName(t, 1), "."))
		}
		if root, more := t[:1].TraverseAbs(ctx); !more.HasErrors() {
			blind.Variables[t.RootName()] = unknown(root)
		}
	}
	if len(secrets) == 0 {
		return diags
	}
	_, harmless := expr.Value(blind)
	for _, diag := range diags {
		if slices.ContainsFunc(harmless, func(h *hcl.Diagnostic) bool { return h.Summary == diag.Summary && h.Detail == diag.Detail }) {
			continue
		}
		diag.Detail = fmt.Sprintf("%s has a value that is not valid here. It is a secret, so the reason is not shown: it may quote the value.", strings.Join(slices.Compact(secrets), " or "))
		diag.Expression, diag.EvalContext = nil, nil
	}
	return diags
}

func unknown(v cty.Value) cty.Value {
	out, err := cty.Transform(v, func(_ cty.Path, e cty.Value) (cty.Value, error) {
		if e.HasMark(sensitive) {
			return cty.UnknownVal(e.Type()).Mark(sensitive), nil
		}
		return e, nil
	})
	if err != nil {
		return cty.DynamicVal
	}
	return out
}

func (d *decoder) addSecrets(v cty.Value) { eachText(v, d.addSecret) }

func eachText(v cty.Value, use func(string)) {
	v, _ = v.UnmarkDeep()
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		if e.IsKnown() && !e.IsNull() && (e.Type() == cty.String || e.Type() == cty.Number) {
			if s, err := convert.Convert(e, cty.String); err == nil {
				use(s.AsString())
			}
		}
		return true, nil
	})
}

func (d *decoder) addSecret(s string) {
	if s == "" || s == unknownText {
		return
	}
	d.secrets[s] = true
}

// plainText writes a value with its types and structure, for the hash of the plan.
func plainText(v cty.Value) string {
	v, _ = v.UnmarkDeep()
	return v.GoString()
}
