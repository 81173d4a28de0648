package plan

import "github.com/hashicorp/hcl/v2"

// Read is a place where a plan reads an environment variable: env.NAME.
type Read struct {
	Name  string
	Range hcl.Range
}
