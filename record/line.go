package record

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// File is the name of the recording in a run folder.
const File = "samples.jsonl"

// Schema is the version of the lines, as "tokgate.samples/MAJOR.MINOR". A reader accepts every
// minor version of its major version, and ignores fields and lines that it does not know.
var Schema = samplesSchema.String()

var samplesSchema = schema{name: "tokgate.samples/", major: 1, minor: 3}

const chainMinor = 3 // the first minor version of samples whose lines have checksums

type schema struct {
	name         string
	major, minor int
}

func (s schema) String() string { return fmt.Sprintf("%s%d.%d", s.name, s.major, s.minor) }

// Types of lines, in the order in which they first occur in a file.
const (
	typeHeader      = "header" // the first line, which names the schema
	typeRun         = "run"    // start of the run; servers, levels and end have lines of their own
	typeServerReady = "server_ready"
	typeLevel       = "level"  // without rounds
	typeSample      = "sample" // one request, written when it ended
	typeRoundDone   = "round_done"
	typeLevelDone   = "level_done"
	typeCapacity    = "capacity"   // the result of a search; since 1.1
	typeComparison  = "comparison" // the record of a comparison, written at its end; since 1.2
	typeServerDone  = "server_done"
	typeRunDone     = "run_done"
)

// line is one line of the recording. Type says which fields are set.
type line struct {
	Type   string            `json:"type"`
	Schema string            `json:"schema,omitempty"`
	Run    *metric.Run       `json:"run,omitempty"`
	Server *metric.ServerRun `json:"server,omitempty"`
	Level  *metric.Level     `json:"level,omitempty"`
	Due    int               `json:"due,omitempty"` // number of requests due at a level, over all rounds
	Round  *metric.Round     `json:"round,omitempty"`
	Of     *levelKey         `json:"of,omitempty"` // level of the round
	Sample *metric.Sample    `json:"sample,omitempty"`

	Capacity   *metric.Capacity   `json:"capacity,omitempty"`
	Comparison *metric.Comparison `json:"comparison,omitempty"`
}

type levelKey struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Name     string `json:"name"`
}

func keyOf(l *metric.Level) levelKey { return levelKey{l.Server, l.Workload, l.Name} }

func bare(r *metric.Run) *metric.Run {
	c := *r
	c.Servers, c.Levels, c.Capacities, c.Comparisons = nil, nil, nil, nil
	return &c
}

func hollow(l *metric.Level) *metric.Level {
	c := *l
	c.Rounds, c.Voided = nil, nil
	return &c
}

func (s schema) parse(raw []byte) (minor int, err error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil || l.Type != typeHeader {
		return 0, fmt.Errorf("the first line is not a header: this is not a recording of tokgate")
	}
	version, ours := strings.CutPrefix(l.Schema, s.name)
	major, after, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err == nil {
		minor, err = strconv.Atoi(after)
	}
	switch {
	case !ours || err != nil:
		return 0, fmt.Errorf("the schema is %q: this is not a recording of tokgate", l.Schema)
	case n != s.major:
		return 0, fmt.Errorf("the schema is %q and this version of tokgate reads %q", l.Schema, s)
	}
	return minor, nil
}
