package suggest

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestNearest(t *testing.T) {
	names := []string{"concurrency", "burst", "bursts", "seeds", "ttft", "p95", "max-model-len"}
	for _, row := range []struct{ given, want string }{
		{"concurency", "concurrency"},      // one letter missing
		{"concurrancy", "concurrency"},     // one replaced
		{"cnocurrency", "concurrency"},     // two swapped letters are one edit
		{"cnocurrancy", "concurrency"},     // two edits are allowed in a long word
		{"cnocurrancie", ""},               // four
		{"brusts", "bursts"},               // swapped
		{"sead", ""},                       // two edits in a short word: too many
		{"seed", "seeds"},                  // one
		{"tfft", "ttft"},                   // one replaced
		{"TTFT", "ttft"},                   // case does not count
		{"max_model_len", "max-model-len"}, // - and _ count as the same letter
		{"", ""},
		{"ü", ""},
	} {
		must.Same(t, fmt.Sprintf("Nearest(%q)", row.given), row.want, Nearest(row.given, names))
	}
}
