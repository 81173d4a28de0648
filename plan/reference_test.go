package plan

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/metric"
)

func TestReference(t *testing.T) { golden(t, "testdata/reference.md", Reference()) }

// Whatever the schema holds is in the reference, and every default in it is
// one that the decoder can evaluate.
func TestSchemaAndReferenceAgree(t *testing.T) {
	text := Reference()
	d := newDecoder(LoadOptions{Path: "test.hcl"})
	var walk func(b *Block, path string)
	walk = func(b *Block, path string) {
		if b.Doc == "" {
			t.Errorf("%s has no doc", path)
		}
		seen := map[string]bool{}
		for _, a := range b.Attrs {
			if a.Doc == "" || a.Type == "" {
				t.Errorf("%s.%s has no doc or type", path, a.Name)
			}
			if seen[a.Name] {
				t.Errorf("%s.%s is declared twice", path, a.Name)
			}
			seen[a.Name] = true
			if a.Required && (a.Default != "" || a.Computed != "") {
				t.Errorf("%s.%s is required and has a default", path, a.Name)
			}
			if a.Default != "" {
				d.constant(a.Default) // panics on a bad one
			}
			if _, isMetric := metric.Lookup(a.Name); isMetric && a.Later {
				continue
			}
			if !strings.Contains(text, a.Name+"`") {
				t.Errorf("%s.%s is not in the reference", path, a.Name)
			}
		}
		for _, c := range b.Blocks {
			if seen[c.Name] {
				t.Errorf("%s.%s is declared twice", path, c.Name)
			}
			seen[c.Name] = true
			if !c.Later {
				walk(c, path+"."+c.Name)
			}
		}
	}
	walk(Schema, "plan")
	for _, p := range presets {
		if !strings.Contains(text, "`"+p.name+"`") {
			t.Errorf("preset %s is not in the reference", p.name)
		}
	}
}

// Every attribute that is not marked later is one that the decoder reads: a
// plan that sets it to a list of the wrong kind gets a complaint.
func TestDecoderReadsEverySetting(t *testing.T) {
	var walk func(b *Block, wrap func(string) string)
	walk = func(b *Block, wrap func(string) string) {
		for _, a := range b.Attrs {
			if a.Later {
				continue
			}
			src := wrap(a.Name + " = [[{}]]\n")
			_, diags := LoadFile(LoadOptions{Path: "test.hcl", Source: []byte(src)})
			at, found := strings.Index(src, a.Name+" = [["), false
			for _, d := range diags {
				found = found || d.Subject != nil && d.Subject.Start.Byte >= at && d.Subject.Start.Byte < at+len(a.Name+" = [[{}]]")
			}
			if !found && !readsAnything[b.Name+"."+a.Name] {
				t.Errorf("%s.%s = [[{}]] is accepted: does the decoder read it?\n%s", b.Name, a.Name, src)
			}
		}
		for _, c := range b.Blocks {
			if c.Later {
				continue
			}
			walk(c, func(body string) string {
				labels := ""
				for range c.Labels {
					labels += ` "x"`
				}
				return wrap(c.Name + labels + " {\n" + body + "}\n")
			})
		}
	}
	walk(Schema, func(body string) string { return body })
}

// readsAnything are the settings for which [[{}]] is a good value.
var readsAnything = map[string]bool{"variable.default": true}
