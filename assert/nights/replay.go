package nights

import "math"

// replay judges the lanes of a plan each morning, as if that night were the last. It returns for
// each lane whether it is red. A lane stays as it is on nights that do not measure it.
func replay(lanes []lane) [][]bool {
	columns := make([]column, len(lanes))
	for i, l := range lanes {
		columns[i] = l.column
	}
	out := make([][]bool, len(lanes))
	for k, watched := range watch(columns) {
		red := make([]bool, len(watched))
		began := 0
		for i, tonight := range watched {
			if math.IsNaN(columns[k].values[i]) {
				red[i] = i > 0 && red[i-1] && columns[k].lasts(began, i)
				continue
			}
			if !tonight.Changed && i >= columns[k].from {
				tonight.confirm(located(columns[k], watched[:i+1]), columns[k], watched[:i+1])
			}
			red[i], began = tonight.Changed && tonight.Worse, tonight.From
		}
		out[k] = red
	}
	return out
}
