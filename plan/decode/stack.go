package decode

import "github.com/tokgate/tokgate/plan"

func finishStack(b *body, s *plan.Server) {
	x := s.Stack
	for name, words := range map[string][]string{"up": x.Up, "down": x.Down} {
		if len(words) > 0 && words[0] == "" {
			b.d.errorf(b.rangeOf(name), sumMissing, "%s names no program. Write one and its arguments: %s.", name, b.spec.attr(name).example())
		}
	}
	b.d.addSecret(x.APIKey)
	if b.given("dir") {
		x.Folder = b.text("dir")
	}
}
