package plan

import "fmt"

// unknownText is what a string reads whose value is not known yet.
const unknownText = "(unknown)"

const (
	sumFlagName  = "Invalid flag name"
	sumFlagValue = "Invalid flag value"
)

// problem is why a flag is none.
type problem struct{ summary, detail string }

func problemf(summary, format string, args ...any) *problem {
	return &problem{summary, fmt.Sprintf(format, args...)}
}
