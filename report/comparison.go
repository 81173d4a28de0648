package report

// Comparison is a candidate against a control, on the same prompts.
type Comparison struct {
	Name      string `json:"name"`
	Control   string `json:"control"`   // address of the server, or the folder of a stored one
	Candidate string `json:"candidate"` // address
	// Paired: rounds took turns, and each is compared with its partner. Else
	// the control was recorded at another time, and drift is not excluded.
	Paired  bool    `json:"paired"`
	Restart string  `json:"restart,omitempty"` // "leg", "order" or "never"; "" when not paired
	Rounds  int     `json:"rounds"`            // judged, of each side
	Units   int     `json:"units"`             // independent ones among them
	Outcome Outcome `json:"outcome"`           // of what it requires
	// Skipped says why nothing was compared; "" when it was.
	Skipped string `json:"skipped,omitempty"`
	// Line is the answer in one line for people: "mtp: yes for decode and
	// chat; no for long_prefill".
	Line string `json:"line"`
	// Differences between the two servers, in order of the key: what was
	// observed and what was declared.
	Differences []Difference `json:"differences"`
	Decisions   []Decision   `json:"decisions"` // one for each workload and level, in order of the plan
	Changes     []Change     `json:"changes"`   // what was measured, required or not
	Notes       []string     `json:"notes"`
}

// Difference is one fact in which the servers of a comparison differ.
type Difference struct {
	Key       string `json:"key"`       // "version", "flags.max-model-len"
	Control   string `json:"control"`   // "": not set, or unknown
	Candidate string `json:"candidate"` // likewise
	Allowed   bool   `json:"allowed"`   // named in changed
}

// Decision is what a comparison says for one workload at one level.
type Decision struct {
	Workload string `json:"workload"`
	Level    string `json:"level"`
	// Answer is "yes" (something better, nothing worse), "no" (the reverse),
	// "mixed", "no difference" (none was found), or "unknown".
	Answer string `json:"answer"`
	Why    string `json:"why"` // one line for people
}

// Change is one statistic of one metric on both sides.
type Change struct {
	Workload string `json:"workload"`
	Level    string `json:"level"` // "capacity" for the capacity
	Metric   string `json:"metric"`
	Stat     string `json:"stat"` // "" for a metric of a level
	Unit     string `json:"unit"`
	Better   string `json:"better"` // "lower" or "higher"
	// Control and Candidate are the means of the rounds, geometric unless
	// Points; null: no value.
	Control   Number `json:"control"`
	Candidate Number `json:"candidate"`
	// Change is candidate / control − 1, or their difference where Points is
	// set; Low and High are its one-sided bounds at Confidence.
	Points     bool   `json:"points"`
	Change     Number `json:"change"`
	Low        Number `json:"low"`
	High       Number `json:"high"`
	Confidence Number `json:"confidence"`
	// Limit is the change that is tolerated, or asked for where Improve is set;
	// null: none, the row is shown only.
	Limit   Number `json:"limit"`
	Improve bool   `json:"improve,omitempty"`
	// Certifiable is the smallest change for the worse that these data could
	// have certified to be within the tolerance.
	Certifiable Number  `json:"certifiable"`
	Outcome     Outcome `json:"outcome"` // "skipped" without a limit, or where it is not applicable
	Severity    string  `json:"severity"`
	// Direction is "better", "worse" or "": whether the interval excludes no
	// change.
	Direction string `json:"direction,omitempty"`
	Message   string `json:"message"` // one line
	Why       string `json:"why,omitempty"`
	Pairs     []Pair `json:"pairs"` // round by round; of a stored control each side by itself
}

// Pair is one round of a comparison.
type Pair struct {
	Round     int    `json:"round"` // 0-based
	Seed      int64  `json:"seed"`
	Control   Number `json:"control"`
	Candidate Number `json:"candidate"`
	Change    Number `json:"change"`
	// Note explains a round that stands out: "" when it does not.
	Note string `json:"note,omitempty"`
}
