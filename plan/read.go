package plan

import "github.com/hashicorp/hcl/v2"

// Read is one place where a plan reads a variable of the environment: env.NAME.
type Read struct {
	Name  string
	Range hcl.Range
}
