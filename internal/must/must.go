// Package must has the checks that most tests need: they end at an error that they are not about, and
// compare what they got with what they want. Only a failure calls Helper, which takes longer than what some
// benchmarks measure.
package must

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Get returns the value of a call: raw := must.Get(os.ReadFile(path))(t). An error ends the test.
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Hold reports what the words say unless ok is true.
func Hold(t testing.TB, ok bool, words string, args ...any) {
	if !ok {
		t.Helper()
		t.Errorf(words, args...)
	}
}

// Need ends the test with what the words say unless ok is true: the rest of the test needs it.
func Need(t testing.TB, ok bool, words string, args ...any) {
	if !ok {
		t.Helper()
		t.Fatalf(words, args...)
	}
}

// Same reports how got differs from want; the words say what they are.
func Same(t testing.TB, words string, want, got any, opts ...cmp.Option) {
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Helper()
		t.Errorf("%s:\n%s", words, diff)
	}
}
