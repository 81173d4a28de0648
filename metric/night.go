package metric

import "time"

// Night is one nightly run of a control plan, as a history keeps it. It holds the servers and the
// figures of the run.
type Night struct {
	Run       string    `json:"run"`  // ID of the run; the runs of a history have different IDs
	Tool      string    `json:"tool"` // tokgate's version
	Plan      string    `json:"plan"` // name of the plan
	Started   time.Time `json:"started"`
	Simulated bool      `json:"simulated,omitempty"`
	// Job is the CI job of the run; nil if not known.
	Job *Job `json:"job,omitempty"`
	// Servers holds the fingerprints by address.
	Servers map[string]Fingerprint `json:"servers"`
	Figures []Figure               `json:"figures"`
	// Starts holds, for each server that the run started, its last start.
	Starts []NightStart `json:"starts,omitempty"`
}

// NightStart records which program and model a server ran in a nightly run, and how long the server
// took to become ready.
type NightStart struct {
	Server  string  `json:"server"`
	Program string  `json:"program"`         // image or command
	Model   string  `json:"model,omitempty"` // as the plan names it
	Took    float64 `json:"took_s"`
}

// Job is the CI job of a nightly run, in the words of the CI system; a field is "" if not known.
type Job struct {
	Commit string `json:"commit,omitempty"`
	Ref    string `json:"ref,omitempty"` // "refs/heads/main"; on GitLab "main"
	Runner string `json:"runner,omitempty"`
	URL    string `json:"url,omitempty"` // of the job
}

// Figure is one number of a nightly run, in base units (seconds, tokens). A number that could not
// be measured has no Figure.
type Figure struct {
	Trend
	Value float64 `json:"value"`
	N     int     `json:"n,omitempty"` // number of observations behind Value; 0 if there are none
}

// Trend identifies a series of figures, one figure from each nightly run.
type Trend struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Level    string `json:"level"` // as the plan names it; "capacity" for a limit
	Metric   string `json:"metric"`
	// Stat is the statistic, such as "p95"; "" for a level-wide metric. For a capacity it says
	// what the search counts; "" for requests in flight.
	Stat string `json:"stat,omitempty"`
	// Asked is a digest of the requests that were sent. If a workload changes, the digest changes,
	// and a new series begins.
	Asked string `json:"asked,omitempty"`
}

// Pin records that somebody accepted the changes of a run. Later runs are compared with that run.
type Pin struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// History holds the nights in the order in which they ran, and the pins in the order in which they
// were made.
type History struct {
	Nights []Night
	Pins   []Pin
}
