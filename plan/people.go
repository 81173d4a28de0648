package plan

import "time"

// People holds the settings of a load block with users.
type People struct {
	RampUp time.Duration `plan:"ramp_up"` // time in which users join, one after the other
	Warmup time.Duration // time between the ramp-up and the window; for OpenWarmupAuto see Settling
	Window time.Duration // length of the measured window
}
