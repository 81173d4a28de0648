package decode

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Summaries are the first lines of all diagnostics of this package. A summary is a fixed text, and
// has a fixture under testdata/bad. The detail of a diagnostic says what is wrong, why, and what to
// do. Its subject is the smallest range of the source that is wrong.
const (
	sumDataset           = "Unusable data set"
	sumTrace             = "Unusable trace"
	sumScore             = "Unusable score"
	sumNoScore           = "No score block"
	sumUnreadable        = "Plan cannot be read"
	sumTooLarge          = "Plan too large"
	sumTooDeep           = "Expression too complex"
	sumNumberRange       = "Number out of range"
	sumInclude           = "Invalid include"
	sumIncludeCycle      = "Include cycle"
	sumDuplicateBlock    = "Duplicate block"
	sumDuplicateName     = "Duplicate name"
	sumInvalidName       = "Invalid name"
	sumWrongType         = "Wrong type"
	sumUnknownValue      = "Value not known"
	sumValueTooLarge     = "Value too large"
	sumMissing           = "Missing setting"
	sumConflict          = "Conflicting settings"
	sumOneOf             = "Unknown choice"
	sumOutOfRange        = "Value out of range"
	sumMissingUnit       = "Missing unit"
	sumWrongUnit         = "Wrong unit"
	sumDuration          = "Invalid duration"
	sumUnknownRoot       = "Unknown reference"
	sumUndeclared        = "Undeclared reference"
	sumNotHere           = "Reference not available here"
	sumEnvUnset          = "Environment variable not set"
	sumLocalCycle        = "Cycle in locals"
	sumVariableUnset     = "No value for variable"
	sumVariableValue     = "Invalid value for variable"
	sumVariableUnknown   = "Value for undeclared variable"
	sumVariableFile      = "Invalid variable file"
	sumVariableUnused    = "Unused variable"
	sumForEach           = "Invalid for_each"
	sumForEachEmpty      = "Empty for_each"
	sumServerUnused      = "Unused server"
	sumDrafts            = "Drafts of synthetic prompts"
	sumNoBudget          = "No time limit"
	sumServerReference   = "Invalid server reference"
	sumNoServer          = "Plan has no server"
	sumURL               = "Invalid URL"
	sumAuthority         = "Invalid certificate authority"
	sumCertificate       = "Unusable client certificate"
	sumProfile           = "Invalid profile"
	sumSecret            = "Secret not allowed here"
	sumPort              = "Port unknown to the command"
	sumImage             = "Invalid image"
	sumVolume            = "Invalid volume"
	sumTemplate          = "Invalid template of a pod"
	sumGPUs              = "Invalid GPUs"
	sumFlagName          = "Invalid flag name"
	sumAmbiguousKey      = "Ambiguous key"
	sumNoLoad            = "Workload has no load"
	sumDuplicateLevel    = "Duplicate level"
	sumDuplicateSeed     = "Duplicate seed"
	sumUnknownLevel      = "Unknown level"
	sumFewRequests       = "Too few requests"
	sumContextLength     = "Context longer than the server allows"
	sumUnknownPreset     = "Unknown preset"
	sumThreshold         = "Invalid threshold"
	sumMissingStat       = "Missing statistic"
	sumUnknownStat       = "Unknown statistic"
	sumStatNotAllowed    = "Statistic not allowed"
	sumWrongWay          = "Threshold points the wrong way"
	sumBetterHalf        = "Threshold on the best requests only"
	sumDuplicateBound    = "Duplicate threshold"
	sumEmptySLA          = "Block requires nothing"
	sumNoGood            = "Goodput without good block"
	sumNoLevelOne        = "Scaling efficiency without level 1"
	sumNoCapacity        = "Workload has no capacity search"
	sumCapacityUnbounded = "Capacity without threshold"
	sumRequiresNothing   = "Plan requires nothing"
	sumCompare           = "Nothing to compare"
	sumCompareSame       = "Difference not listed in changed"
	sumUnread            = "Comparison without answers block"
	sumChange            = "Invalid change"
	sumAccept            = "Nothing to accept"
	sumBase              = "No plan on the base branch"
	sumResultReference   = "Unknown result"
	sumPercentileIndex   = "Percentile with a decimal point"
	sumAssertConstant    = "Assert uses no result"
	sumAssertNothing     = "Assert over an empty list"
	sumAssertType        = "Condition is not true or false"
	sumTooManyInstances  = "Too many instances"
	sumInternal          = "Internal error"
)

// maxDiagnostics bounds the number of diagnostics, which a hostile plan could raise without limit.
const maxDiagnostics = 200

// The search for suggestions can then stop.
func (d *decoder) enoughErrors() bool { return len(d.diags) >= maxDiagnostics }

// commandLine stands for the place of a diagnostic about the command line, which has no line in the
// plan.
var commandLine hcl.Range

func (d *decoder) report(severity hcl.DiagnosticSeverity, rng hcl.Range, summary, format string, args ...any) {
	diag := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: fmt.Sprintf(format, args...)}
	if rng != commandLine {
		diag.Subject = &rng
	}
	d.add(diag)
}

func (d *decoder) errorf(rng hcl.Range, summary, format string, args ...any) {
	d.report(hcl.DiagError, rng, summary, format, args...)
}

func (d *decoder) warnf(rng hcl.Range, summary, format string, args ...any) {
	d.report(hcl.DiagWarning, rng, summary, format, args...)
}

// add adds diagnostics that are new. Otherwise each instance of a for_each would repeat a
// diagnostic.
func (d *decoder) add(diags ...*hcl.Diagnostic) {
	for _, diag := range diags {
		if len(diag.Detail) > maxSnippet {
			words, _ := d.masks() // mask secrets before the cut, because half a secret is not found
			diag.Detail = words.Replace(diag.Detail)
		}
		if len(diag.Detail) > maxSnippet {
			diag.Detail = strings.ToValidUTF8(diag.Detail[:maxSnippet], "") + "…"
		}
		key := diagnosticKey{diag.Severity, diag.Summary, diag.Detail, ""}
		if diag.Subject != nil {
			key.subject = diag.Subject.String()
		}
		if d.seen[key] || d.enoughErrors() {
			continue
		}
		d.seen[key] = true
		d.diags = append(d.diags, diag)
	}
}

// Gather merges diagnostics of the same kind at the same place, because one mistake causes them.
// For example, the instances of a for_each may differ only in details. Gather keeps the first
// diagnostic, which says how many more there were.
func Gather(diags hcl.Diagnostics) hcl.Diagnostics {
	var out hcl.Diagnostics
	first, others := map[diagnosticKey]int{}, map[int]int{}
	for _, diag := range diags {
		if diag.Subject == nil {
			out = append(out, diag)
			continue
		}
		key := diagnosticKey{severity: diag.Severity, summary: diag.Summary, subject: diag.Subject.String()}
		if i, ok := first[key]; ok {
			others[i]++
			continue
		}
		first[key] = len(out)
		out = append(out, diag)
	}
	for i, n := range others {
		diag, often := *out[i], "once more"
		if n > 1 {
			often = fmt.Sprintf("%d more times", n)
		}
		diag.Detail += " The same is true " + often + " at this place."
		out[i] = &diag
	}
	return out
}

// WriteDiagnostics prints diagnostics for people. Each has its severity, file, line, source line
// and values, and says what to do. width is the column at which lines wrap; 0 means never.
func WriteDiagnostics(w io.Writer, files map[string]*hcl.File, diags hcl.Diagnostics, width uint, color bool) error {
	for _, diag := range diags {
		shown, source := shorten(files, diag)
		if err := hcl.NewDiagnosticTextWriter(w, source, width, color).WriteDiagnostic(shown); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxSnippet = 2000 // longest source or value that is shown in full, in bytes
	maxExcerpt = 200  // bytes of a longer line that are shown from the mistake on
)

func shorten(files map[string]*hcl.File, diag *hcl.Diagnostic) (*hcl.Diagnostic, map[string]*hcl.File) {
	out := *diag
	if diag.Expression != nil && diag.EvalContext != nil {
		for _, t := range diag.Expression.Variables() {
			if v, diags := t.TraverseAbs(diag.EvalContext); !diags.HasErrors() && valueSize(v, 0, 0) > maxSnippet {
				out.EvalContext = nil
			}
		}
	}
	if diag.Subject == nil || files[diag.Subject.Filename] == nil {
		return &out, files
	}
	src, at := files[diag.Subject.Filename].Bytes, *diag.Subject
	from, to := at.Start.Byte, at.End.Byte
	if diag.Context != nil {
		from, to = min(from, diag.Context.Start.Byte), max(to, diag.Context.End.Byte)
	}
	from, to = max(from, 0), min(to, len(src))
	if from > to {
		return &out, files
	}
	from = bytes.LastIndexByte(src[:from], '\n') + 1
	if end := bytes.IndexByte(src[to:], '\n'); end >= 0 {
		to += end
	} else {
		to = len(src)
	}
	if to-from <= maxSnippet {
		return &out, files
	}
	line, column := excerpt(src, at.Start.Byte)
	length := min(max(at.End.Byte-at.Start.Byte, 1), len(line)-column)
	// Put empty lines before the excerpt, so that messages show its true line number.
	before := max(at.Start.Line-1, 0)
	at.Start = hcl.Pos{Line: at.Start.Line, Column: column + 1, Byte: before + column}
	at.End = hcl.Pos{Line: at.Start.Line, Column: column + length + 1, Byte: before + column + length}
	out.Subject, out.Context = &at, nil
	return &out, map[string]*hcl.File{at.Filename: {Bytes: append(bytes.Repeat([]byte("\n"), before), line...)}}
}

func excerpt(src []byte, at int) (line []byte, column int) {
	at = min(max(at, 0), len(src))
	from := bytes.LastIndexByte(src[:at], '\n') + 1
	to := len(src)
	if end := bytes.IndexByte(src[at:], '\n'); end >= 0 {
		to = at + end
	}
	var before, after string
	if at-from > maxExcerpt/4 {
		from, before = at-maxExcerpt/4, "…"
	}
	if to-at > maxExcerpt {
		to, after = at+maxExcerpt, "…"
	}
	text := bytes.ToValidUTF8(src[from:at], nil)
	line = slices.Concat([]byte(before), text, bytes.ToValidUTF8(src[at:to], nil), []byte(after))
	return line, len(before) + len(text)
}

// Diagnostic is the JSON form of a diagnostic. The JSON names are a stable interface.
type Diagnostic struct {
	Severity string `json:"severity"` // error | warning
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
	Range    *Range `json:"range,omitempty"`
	Snippet  string `json:"snippet,omitempty"` // the first line of the range
}

// Range is the place of a diagnostic in a source. The end is exclusive.
type Range struct {
	File  string `json:"file"`
	Start Pos    `json:"start"`
	End   Pos    `json:"end"`
}

// Pos is a position in a source. Lines and columns count from 1, and bytes from 0. A column is a
// character.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Diagnostics converts diagnostics to their JSON form.
func Diagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) []Diagnostic {
	out := make([]Diagnostic, 0, len(diags))
	for _, diag := range diags {
		j := Diagnostic{Severity: "error", Summary: diag.Summary, Detail: diag.Detail}
		if diag.Severity == hcl.DiagWarning {
			j.Severity = "warning"
		}
		if r := diag.Subject; r != nil && r.Filename != "" {
			j.Range = &Range{
				File:  r.Filename,
				Start: Pos{r.Start.Line, r.Start.Column, r.Start.Byte},
				End:   Pos{r.End.Line, r.End.Column, r.End.Byte},
			}
			if f := files[r.Filename]; f != nil {
				j.Snippet = sourceLine(f.Bytes, r.Start.Byte)
				if len(j.Snippet) > maxSnippet {
					line, _ := excerpt(f.Bytes, r.Start.Byte)
					j.Snippet = string(line)
				}
			}
		}
		out = append(out, j)
	}
	return out
}

func sourceLine(src []byte, at int) string {
	if at < 0 || at > len(src) {
		return ""
	}
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	line, _, _ := bytes.Cut(src[start:], []byte("\n"))
	return strings.ToValidUTF8(strings.TrimRight(string(line), "\r"), "\uFFFD")
}

func choices(names []string) string {
	if more := len(names) - 12; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:12], ", "), more)
	}
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
