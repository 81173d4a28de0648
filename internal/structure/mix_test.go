package structure

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// mostMixed is the largest number of files that may know what only a mix has: its parts, their shares,
// and the part of a request. All others ask what every workload and every level can answer, such as
// Whole, Root, Own and All.
const mostMixed = 20

// ofAMix lists the fields that only a mix has, by the file that declares them.
var ofAMix = map[string][]string{
	"plan/plan.go":      {"Mix", "Of", "Share", "Type"},
	"metric/run.go":     {"Of", "Share", "Parts"},
	"metric/asked.go":   {"Mix"},
	"metric/sample.go":  {"Part"},
	"report/promise.go": {"Mix"},
}

func fewKnowAMix(t *testing.T, fset *token.FileSet, packages []pkg) {
	know := map[string]bool{"traffic/mix.go": true}
	for _, p := range packages {
		for ident, used := range p.info.Uses {
			field, ok := used.(*types.Var)
			if !ok || !field.IsField() || field.Pkg() == nil {
				continue
			}
			declared := filepath.Base(fset.Position(field.Pos()).Filename)
			if in := strings.TrimPrefix(field.Pkg().Path(), module) + "/" + declared; slices.Contains(ofAMix[in], field.Name()) {
				know[in], know[fmt.Sprintf("%s/%s", p.name, filepath.Base(fset.Position(ident.Pos()).Filename))] = true, true
			}
		}
	}
	must.Hold(t, len(know) <= mostMixed && len(know) > len(ofAMix), "%d files know a mix, at most %d: %s",
		len(know), mostMixed, strings.Join(slices.Sorted(maps.Keys(know)), " "))
}
