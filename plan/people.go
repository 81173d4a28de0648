package plan

import "time"

// People is what a load of users has that others have not.
type People struct {
	RampUp time.Duration `plan:"ramp_up"` // over which they come, one after the other
	Warmup time.Duration // after it, before the window; OpenWarmupAuto: the thinking of a mean conversation
	Window time.Duration // the window, which is measured
}
