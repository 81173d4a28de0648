package decode

import "github.com/tokgate/tokgate/plan"

func readStack(b *body) *plan.Stack {
	x := b.child("stack")
	if x == nil {
		return nil
	}
	out := &plan.Stack{Range: x.rng, URL: address(x, "url"), Env: readEnvironment(x), Up: readProgram(x, "up"), Down: readProgram(x, "down")}
	x.bind(out)
	if x.given("dir") {
		out.Folder = x.text("dir")
	}
	return out
}

func readProgram(b *body, name string) []string {
	words := b.texts(name)
	if len(words) > 0 && words[0] == "" {
		b.d.errorf(b.rangeOf(name), sumMissing, "%s names no program. Write one and its arguments: %s.", name, b.spec.attr(name).example())
	}
	return words
}
