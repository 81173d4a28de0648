package plan_test

import (
	"fmt"

	"github.com/tokgate/tokgate/plan"
)

// Allows also reports true for facts that follow from an allowed setting.
func ExampleAllows() {
	changed := []string{"flags", "image"}
	for _, key := range []string{"flags.max-model-len", "version", "kernel"} {
		fmt.Println(key, plan.Allows(changed, key))
	}
	// Output:
	// flags.max-model-len true
	// version true
	// kernel false
}
