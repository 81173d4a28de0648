package decode

import "time"

// maxLevel is the most requests in flight or in one burst.
const maxLevel = 1_000_000

const (
	maxCount   = 100_000_000 // of requests
	maxTokens  = 100_000_000 // of one prompt or answer
	maxInteger = 1 << 53     // exact in JSON everywhere
)

// maxGPUs bounds a number of GPUs: no machine has more.
const maxGPUs = 64

// maxDuration of anything in a plan: longer than any run and far from what
// overflows.
const maxDuration = 30 * 24 * time.Hour

// maxPrice bounds a price.
const maxPrice = 1e9

// minInterval keeps readings from being a load of their own.
const minInterval = 100 * time.Millisecond
