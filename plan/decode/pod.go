package decode

import (
	"cmp"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/tokgate/tokgate/plan"
)

func finishPod(b *body, s *plan.Server) {
	p := s.Pod
	checkCommand(b, s, p.Command)
	p.Inside = cmp.Or(p.Inside, insidePort(b, s))
	checkImage(b, p.Image)
	if b.isSet("namespace") && p.Namespace != unknownText && !namespaceWord.MatchString(p.Namespace) {
		b.d.errorf(b.rangeOf("namespace"), sumOutOfRange, "%q is not a namespace: its names have small letters, digits and dashes.", p.Namespace)
	}
	if b.given("template") {
		p.File = b.text("template")
		p.Template = readTemplate(b, p.File)
	}
}

var namespaceWord = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// readTemplate reads the file of a pod. Nothing of a file that is not one is quoted.
func readTemplate(b *body, name string) plan.Tree {
	if name == unknownText || name == "" {
		return nil
	}
	p, err := b.d.within(b.d.dir, name)
	if err != nil {
		b.d.errorf(b.rangeOf("template"), sumTemplate, "%s.", err)
		return nil
	}
	src, err := b.d.read(p)
	if err != nil {
		b.d.errorf(b.rangeOf("template"), sumTemplate, "%s.", readError(name, err))
		return nil
	}
	var tree plan.Tree
	if err := yaml.Unmarshal(src, &tree); err != nil || tree["kind"] != "Pod" {
		b.d.errorf(b.rangeOf("template"), sumTemplate, `%q is not a pod. Write one as for kubectl, with "kind: Pod" and a spec.`, name)
		return nil
	}
	spec, ok := tree["spec"].(plan.Tree)
	if !ok {
		b.d.errorf(b.rangeOf("template"), sumTemplate, "The pod in %q has no spec.", name)
		return nil
	}
	if spec["nodeName"] != nil {
		b.d.errorf(b.rangeOf("template"), sumTemplate, "The pod in %q sets nodeName, which goes past the scheduler: nobody then counts its GPUs. Use nodeSelector or affinity.", name)
	}
	return tree
}
