package metric

import "time"

// Night is one nightly run, as a history keeps it: its servers and its figures.
type Night struct {
	Run       string    `json:"run"`  // ID of the run; unique in a history
	Tool      string    `json:"tool"` // tokgate's version
	Plan      string    `json:"plan"` // name of the plan
	Started   time.Time `json:"started"`
	Simulated bool      `json:"simulated,omitempty"`
	// Job is the CI job of the run; nil if not known.
	Job *Job `json:"job,omitempty"`
	// Servers holds the fingerprint of each server, by the server's address.
	Servers map[string]Fingerprint `json:"servers"`
	Figures []Figure               `json:"figures"`
	// Series defines the metrics that the plan named itself, read from a Prometheus server.
	Series []Def `json:"series,omitempty"`
	// Rambling holds, for a run that passed, the share of each level's natural answers that were
	// empty or repeated themselves.
	Rambling []Figure `json:"rambling,omitempty"`
	// Accepts holds the bounds on nights that counted in this run.
	Accepts []Accept `json:"accepts,omitempty"`
	// Starts holds the last start of each server that the run started.
	Starts []NightStart `json:"starts,omitempty"`
}

// NightStart records the program and the model of a server in a nightly run, and the time until the
// server was ready.
type NightStart struct {
	Server  string  `json:"server"`
	Program string  `json:"program"`         // image or command
	Model   string  `json:"model,omitempty"` // name of the model in the plan
	Took    float64 `json:"took_s"`
}

// Job is the CI job of a nightly run, in the terms of the CI system. An unknown field is "".
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
	N     int     `json:"n,omitempty"` // number of observations behind Value; 0 if Value has none
}

// Trend identifies a series of figures: one figure from each nightly run.
type Trend struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Level    string `json:"level"` // name of the level; "capacity" for a capacity
	Metric   string `json:"metric"`
	// Stat is the statistic, such as "p95"; "" for a metric of a whole level. For a capacity it
	// says what the search counts; "" means requests in flight.
	Stat string `json:"stat,omitempty"`
	// Asked is a digest of the requests that were sent. If the workload changes, the digest changes
	// too, and a new series begins.
	Asked string `json:"asked,omitempty"`
}

// MetricForeign is the metric of a series that another tool measured. Its value has no unit, and its
// statistic is StatLowerIsBetter or StatHigherIsBetter. Server and Level are "".
const (
	MetricForeign      = "value"
	StatLowerIsBetter  = "lower is better"
	StatHigherIsBetter = "higher is better"
)

// Pin records that somebody accepted the changes that a run shows. Later runs are then compared
// with that run.
type Pin struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// Void records that somebody took a night out of the history, because it measured something else.
type Void Pin

// History holds nights in the order in which they ran. Pins, the changes that a team accepted, are
// in the order in which they were made.
type History struct {
	Nights []Night `json:"nights"`
	Pins   []Pin   `json:"pins"`
	// Voids are the nights that were taken out. Nights does not have them.
	Voids []Void `json:"voids,omitempty"`
}
