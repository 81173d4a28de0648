package nights

import (
	"bytes"
	"testing"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record/history"
)

// The golden file shows the report of each morning after a night of an invented history. One night
// is bad by itself, and one regression lasts.
func TestMornings(t *testing.T) {
	var b bytes.Buffer
	h := history.Demo()
	must.Do(t, Mornings(&b, h, judged.Replay(h, judged.Options{Ignore: 0.01}, 0)))
	golden(t, "mornings.txt", b.Bytes())
}
