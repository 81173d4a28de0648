package prompt

import (
	"encoding/json"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Another process makes the prompt of a recipe from what the Maker learnt; and what is said of the prompt before
// is what is so of it.
func TestRecipeInAnotherProcess(t *testing.T) {
	for name, tokenizer := range map[string]tokenizer{"words": byWord, "pieces": byPiece} {
		here := calibrated(t, &fake{t: tokenizer, around: 9}, 7)
		there := throughJSON(t, here.Known()).Copy(here.Salt())
		key := Key{Seed: 3, Workload: "w", Level: "8", Round: 2, Phase: metric.Measured, Order: 5}
		shared := key
		shared.Shared = Prefix{Group: 2, Tokens: 100, More: 7}
		for _, r := range []Recipe{
			{Maker: here, Key: key, Tokens: 200}, {Maker: here, Key: shared, Tokens: 300},
			{Maker: here, Key: key, Parts: []metric.Piece{{Key: 1, Tokens: 150}, {Key: 2, Tokens: 60}}},
		} {
			want := must.Get(r.Make())(t)
			later := must.Get(r.Later())(t)
			must.Hold(t, later.Text == "" && later.Recipe != nil, "%s: the content of %+v was made at once", name, r)
			must.Same(t, name+": made of what came later", want, must.Get(later.Made())(t))
			var sent Recipe
			must.Do(t, json.Unmarshal(must.Get(json.Marshal(r))(t), &sent))
			sent.Maker = there
			must.Same(t, name+": made there", want, must.Get(sent.Make())(t))
		}
		_, err := Recipe{Maker: here, Key: key, Tokens: 1}.Later()
		must.Hold(t, err != nil, "%s: a prompt of one token was promised", name)
	}
}
