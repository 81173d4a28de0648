package decode

import "time"

// The most, or least, of what a plan may say.
const (
	maxCount   = 100_000_000 // of requests
	maxTokens  = 100_000_000 // of one prompt or answer
	maxInteger = 1 << 53     // exact in JSON everywhere
	maxLevel   = 1_000_000   // of requests in flight or in one burst
	maxGPUs    = 64          // no machine has more
	maxPrice   = 1e9
	maxPort    = 65535

	millisecond = int64(time.Millisecond)
	second      = int64(time.Second)
	hour        = int64(time.Hour)
	day         = 24 * hour
	// maxDuration of anything in a plan is longer than any run and far from what
	// overflows; minInterval keeps readings from being a load of their own.
	maxDuration = 30 * day
	minInterval = 100 * millisecond
)
