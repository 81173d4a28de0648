package report

// The fixtures of this package, for the tests of its renderers, which import this package.
var (
	Rich, Passing, Mixed, Compared, Answered, EmptyDocument, Big = document, passing, mixed, compared, answered, emptyDocument, big
	Fixture, Golden                                              = fixture, golden
)

const (
	Hostile = hostile
	Secret  = secret
)
