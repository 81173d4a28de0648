package answers

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

var lessons = flag.String("lessons", "", "write items of recall into this `file`, for plans/real/taught.py")

// TestLessons writes the training data for `make tinymodel`. The items come from the code of the
// tasks, with a different seed. There are twenty times as many items as a run uses.
func TestLessons(t *testing.T) {
	if *lessons == "" {
		t.Skip("make tinymodel")
	}
	task, _ := FindTask("recall")
	f := must.Get(os.Create(*lessons))(t)
	defer f.Close()
	out := json.NewEncoder(f)
	for n := range 20_000 {
		i := task.Item(2, n)
		must.Do(t, out.Encode(map[string]any{"head": i.Head, "fact": i.Fact, "question": i.Question, "depth": i.Depth, "answer": i.Answer}))
	}
}
