package sim

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Policy says whether an engine prefills prompts and decodes answers in the same step.
type Policy string

const (
	// Mixed is vLLM's policy. Every step decodes all running sequences. The rest of the step's
	// token budget goes to prompts, in order of arrival. A prompt chunk makes the whole step
	// longer, so it also delays the decoding sequences.
	Mixed Policy = "mixed"
	// PrefillFirst is SGLang's policy. A step either prefills or decodes. No sequence decodes while
	// a prompt can be prefilled.
	PrefillFirst Policy = "prefill_first"
)

// Profile describes the speed and the limits of one model on one machine. The file is JSON with
// these names, which include the units. A missing field is zero. The comment of each field says
// what zero means. The time of a step is the sum of two costs:
//
//	decode:  base_ms + per_seq_ms·(B−1) + per_ktoken_ms·R + per_ktoken_longest_ms·L
//	         + moe_ms·(s(B·v) − s(v)),  s(n) = 1 − (1 − moe_active_share)^n
//	prefill: chunk_ms + Σ (us_per_token·n + ns_per_token2·((p+n)² − p²))
//
// B is the number of sequences that decode. R is the number of their tokens in the cache, and L is
// the number of the longest sequence, both in units of 1024 tokens. v is 1 + the number of draft
// tokens.
//
// The sum Σ is over the prompt chunks of the step. A chunk has n tokens, and p tokens of its prompt
// come before it. A step without decoding sequences also costs base_ms.
type Profile struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Source says where the numbers of the profile come from.
	Source string `json:"source,omitempty"`
	// Base names a shipped profile. Values that the file does not set come from that profile.
	Base string `json:"base,omitempty"`

	Model       string `json:"model"`         // id in /v1/models and in every answer
	MaxModelLen int    `json:"max_model_len"` // most tokens of a prompt and its answer together, at least 2
	Policy      Policy `json:"policy"`        // mixed | prefill_first

	// LoadMS is the loading time after the start. The server answers with status 503 until it has
	// passed.
	LoadMS float64 `json:"load_ms,omitempty"`
	// OverheadMS is the time from a request's arrival to the engine's queue. Several requests can
	// spend this time at once.
	OverheadMS float64 `json:"overhead_ms,omitempty"`
	// FrontMSPerRequest and FrontUSPerToken are the time that a request spends in the server's
	// front end, such as a tokenizer, after OverheadMS. The front end works on one request at a
	// time.
	FrontMSPerRequest float64 `json:"front_ms_per_request,omitempty"`
	FrontUSPerToken   float64 `json:"front_us_per_token,omitempty"`

	Prefill     PrefillCost  `json:"prefill"`
	Decode      DecodeCost   `json:"decode"`
	Limits      Limits       `json:"limits"`
	Speculation *Speculation `json:"speculation,omitempty"` // nil: none
	// FirstVisibleToken is the number of the first token that a client can see. All tokens before
	// it arrive in the same chunk. With 0 or 1 no token is held back.
	FirstVisibleToken int           `json:"first_visible_token,omitempty"`
	PrefixCache       *PrefixCache  `json:"prefix_cache,omitempty"` // nil: off
	Noise             Noise         `json:"noise,omitzero"`
	Stalls            *Stalls       `json:"stalls,omitempty"` // nil: none
	Drift             *Drift        `json:"drift,omitempty"`  // nil: none
	NaturalOutput     NaturalOutput `json:"natural_output,omitzero"`
	GPU               *GPU          `json:"gpu,omitempty"` // nil means that the server reports no GPU

	// Faults are errors that the server makes on purpose.
	Faults Script `json:"faults,omitempty"`
}

// PrefillCost is the time for the prefilling part of a step.
type PrefillCost struct {
	USPerToken  float64 `json:"us_per_token"`       // linear part, µs
	NSPerToken2 float64 `json:"ns_per_token2"`      // cost of attention, in ns per tokens²
	ChunkMS     float64 `json:"chunk_ms,omitempty"` // time added to each step that prefills
}

// DecodeCost is the time for the decoding part of a step.
type DecodeCost struct {
	BaseMS             float64 `json:"base_ms"`                         // time of a step with one sequence, above 0
	PerSeqMS           float64 `json:"per_seq_ms,omitempty"`            // time for each other sequence
	PerKtokenMS        float64 `json:"per_ktoken_ms,omitempty"`         // time for every 1024 tokens that all sequences have together
	PerKtokenLongestMS float64 `json:"per_ktoken_longest_ms,omitempty"` // time for every 1024 tokens of the longest sequence
	// MoEMS is for a mixture of experts. It is the time in which a step reads all experts.
	// MoEActiveShare is the share of the experts that one token uses, in [0, 1). BaseMS includes
	// the time to read these.
	MoEMS          float64 `json:"moe_ms,omitempty"`
	MoEActiveShare float64 `json:"moe_active_share,omitempty"`
}

// Limits are the engine's limits on batches and on the KV cache.
type Limits struct {
	MaxBatchedTokens int `json:"max_batched_tokens"`          // most tokens in one step, at least 1
	MaxSeqs          int `json:"max_seqs,omitempty"`          // running sequences; 0: no limit
	KVTokens         int `json:"kv_tokens,omitempty"`         // tokens in a full KV cache; 0: no limit
	KVPerSeqTokens   int `json:"kv_per_seq_tokens,omitempty"` // tokens that each sequence reserves beyond its input and output
}

// Speculation is speculative decoding: the engine drafts several tokens, and the model verifies
// them in one step.
type Speculation struct {
	// Accept[i] is the share of steps in which draft token i was accepted, in [0, 1]. A draft token
	// is accepted only if all draft tokens before it were accepted, so the shares never increase.
	// The length of Accept is the number of draft tokens.
	Accept []float64 `json:"accept"`
	// Spread says how much requests differ in their mean number of tokens per step. It is the
	// largest difference from the overall mean, as a share of that mean, in [0, 1).
	Spread float64 `json:"spread,omitempty"`
}

// PrefixCache reuses the KV cache of prompts that have the same beginning.
type PrefixCache struct {
	BlockTokens    int `json:"block_tokens"`    // tokens in a block, at least 1; only whole blocks count
	CapacityTokens int `json:"capacity_tokens"` // most tokens in the cache, at least block_tokens; the least recently used blocks leave
}

// Noise varies the times of steps, and the speed of each start of the server. Each variation is a
// log-normal factor with the mean 1.
type Noise struct {
	StepCV  float64 `json:"step_cv,omitempty"`  // coefficient of variation of a step's time, in [0, 1]
	StartCV float64 `json:"start_cv,omitempty"` // coefficient of variation of the speed between starts, in [0, 1]
	// SlowCV is the coefficient of variation of a slow noise, in [0, 1]. Steps that are close in time
	// have nearly the same factor: the correlation of its logarithm falls to 1/e within SlowS seconds.
	SlowCV float64 `json:"slow_cv,omitempty"`
	SlowS  float64 `json:"slow_s,omitempty"` // above 0 if slow_cv is set
}

// Stalls are pauses of the whole engine at regular intervals, as a garbage collection would cause.
type Stalls struct {
	EverySteps int     `json:"every_steps"` // number of decoding steps for each stall; at least 1
	MS         float64 `json:"ms"`          // length of a stall
}

// Drift makes every step slower as time passes, as throttling, a fragmented cache or a neighbour on
// the machine would. Without a drift, a step takes 1 times as long; with it 1 + Slower +
// SlowerPerMinute·m times, where m is the number of minutes since the drift began.
type Drift struct {
	AfterS          float64 `json:"after_s,omitempty"`           // seconds from the server's start until the drift begins
	Slower          float64 `json:"slower,omitempty"`            // share by which steps are slower at once, such as 0.1
	SlowerPerMinute float64 `json:"slower_per_minute,omitempty"` // further share for each minute
}

func (d *Drift) factor(at time.Duration) float64 {
	since := at.Seconds()
	if d == nil || since < d.AfterS {
		return 1
	}
	return 1 + d.Slower + d.SlowerPerMinute*(since-d.AfterS)/60
}

// NaturalOutput describes the length of answers that the model itself ends.
type NaturalOutput struct {
	Mean int     `json:"mean"` // tokens; 0: 200
	CV   float64 `json:"cv"`   // coefficient of variation of the log-normal length, in [0, 2]
	// Parts is the share of answers at temperature 0 that depart from the most likely answer. In
	// such an answer, one word is the second of two about equally likely words. Real servers depart
	// like this because of batching and kernels.
	Parts float64 `json:"parts,omitempty"`
}

//go:embed profiles/*.json
var shipped embed.FS

// Profiles lists the names of the shipped profiles, in order.
func Profiles() []string {
	files, err := fs.Glob(shipped, "profiles/*.json")
	if err != nil {
		panic(err) // cannot happen: the pattern is a constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "profiles/"), ".json")
	}
	slices.Sort(files)
	return files
}

// DefaultProfile returns the shipped profile "default".
func DefaultProfile() *Profile {
	p, err := shippedProfile("default")
	if err != nil {
		panic(err) // cannot happen: the profile is part of the binary, and a test checks it
	}
	return p
}

// LoadProfile returns the profile with the given name; "" means "default". A name that ends in
// .json or contains a slash is the path of a file, relative to baseDir. Any other name is a shipped
// profile.
func LoadProfile(nameOrPath, baseDir string) (*Profile, error) {
	if nameOrPath == "" {
		nameOrPath = "default"
	}
	if !strings.HasSuffix(nameOrPath, ".json") && !strings.ContainsAny(nameOrPath, `/\`) {
		return shippedProfile(nameOrPath)
	}
	path := nameOrPath
	if !filepath.IsAbs(path) {
		path = filepath.Join(baseDir, path)
	}
	src, err := ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("could not read the simulator profile: %w", err)
	}
	p, err := parseProfile(src)
	if err != nil {
		return nil, fmt.Errorf("simulator profile %s: %w", nameOrPath, err)
	}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(path), ".json")
	}
	return p, nil
}

// maxFile is the largest size of a profile or a script, in bytes. Usual files are hundreds of times
// smaller.
const maxFile = 4 << 20

// ReadFile reads a profile or a script, a regular file of at most 4 MiB. It refuses a link to a
// device or a pipe before it opens it.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has more than %d bytes, which is the most that is read", path, maxFile)
	}
	return os.ReadFile(path)
}

func shippedProfile(name string) (*Profile, error) {
	src, err := shipped.ReadFile("profiles/" + name + ".json")
	if err != nil {
		names := Profiles()
		return nil, fmt.Errorf("unknown simulator profile %q%s; shipped are: %s (a path ends in .json)",
			name, didYouMean(name, names), strings.Join(names, ", "))
	}
	p, err := parseProfile(src)
	if err != nil {
		return nil, fmt.Errorf("simulator profile %s: %w", name, err)
	}
	return p, nil
}

// parseProfile decodes and checks a profile. If a field is unknown, the error names the known field
// that is most similar.
func parseProfile(src []byte) (*Profile, error) {
	var head struct {
		Base string `json:"base"`
	}
	// Ignore an error here: the strict decoder below finds it again, and reports where it is.
	if json.Unmarshal(src, &head) != nil {
		head.Base = ""
	}
	p := new(Profile)
	if head.Base != "" {
		b, err := shipped.ReadFile("profiles/" + head.Base + ".json")
		if err != nil {
			return nil, fmt.Errorf("unknown base%s", nearly(head.Base, Profiles()))
		}
		if p, err = parseProfile(b); err != nil {
			return nil, err
		}
		p.Name, p.Description, p.Source = "", "", ""
	}
	if err := decodeStrict(src, p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

var unknownField = regexp.MustCompile(`unknown field "(.*)"`)

func decodeStrict(src []byte, p *Profile) error {
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		// The message quotes nothing: the file may not be a profile at all.
		if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("line %d: unknown field%s", lineAt(src, d.InputOffset()), nearly(m[1], fieldNames(reflect.TypeFor[Profile]())))
		}
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Errorf("line %d: it is not valid JSON", lineAt(src, bad.Offset))
		}
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			kind, _, _ := strings.Cut(bad.Value, " ")
			return fmt.Errorf("line %d: %s cannot be a %s", lineAt(src, bad.Offset), bad.Field, kind)
		}
		return errors.New("it is not valid JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the profile's closing brace")
	}
	return nil
}

func nearly(name string, known []string) string {
	if hint := didYouMean(name, known); hint != "" {
		return fmt.Sprintf(" %q%s", name, hint)
	}
	return ""
}

func lineAt(src []byte, offset int64) int {
	return 1 + bytes.Count(src[:min(int(offset), len(src))], []byte("\n"))
}

func fieldNames(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		names = append(names, fieldNames(t.Field(i).Type)...)
	}
	return names
}

// validate returns an error that names every value outside its range.
func (p *Profile) Validate() error {
	var bad []error
	say := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	for _, v := range []struct {
		name  string
		value float64
	}{
		{"load_ms", p.LoadMS}, {"overhead_ms", p.OverheadMS},
		{"front_ms_per_request", p.FrontMSPerRequest}, {"front_us_per_token", p.FrontUSPerToken},
		{"prefill.us_per_token", p.Prefill.USPerToken}, {"prefill.ns_per_token2", p.Prefill.NSPerToken2},
		{"prefill.chunk_ms", p.Prefill.ChunkMS},
		{"decode.per_seq_ms", p.Decode.PerSeqMS}, {"decode.per_ktoken_ms", p.Decode.PerKtokenMS},
		{"decode.per_ktoken_longest_ms", p.Decode.PerKtokenLongestMS}, {"decode.moe_ms", p.Decode.MoEMS},
	} {
		say(finite(v.value, 0, 1e9), "%s must not be negative, and not above 1e9: %v", v.name, v.value)
	}
	say(p.Policy == Mixed || p.Policy == PrefillFirst, "policy must be %q or %q, not %q", Mixed, PrefillFirst, p.Policy)
	say(p.Model != "", "model must not be empty")
	say(p.MaxModelLen >= 2, "max_model_len must be at least 2: %d", p.MaxModelLen)
	say(p.Decode.BaseMS > 0 && finite(p.Decode.BaseMS, 0, 1e9), "decode.base_ms must be above 0: %v", p.Decode.BaseMS)
	say(p.Decode.MoEActiveShare < 1 && finite(p.Decode.MoEActiveShare, 0, 1), "decode.moe_active_share must be in [0, 1): %v", p.Decode.MoEActiveShare)
	say(p.Limits.MaxBatchedTokens >= p.verify(), "limits.max_batched_tokens must hold one step of one sequence (%d): %d", p.verify(), p.Limits.MaxBatchedTokens)
	say(p.Limits.MaxSeqs >= 0, "limits.max_seqs must not be negative: %d", p.Limits.MaxSeqs)
	say(p.Limits.KVPerSeqTokens >= 0, "limits.kv_per_seq_tokens must not be negative: %d", p.Limits.KVPerSeqTokens)
	say(p.Limits.KVTokens == 0 || p.Limits.KVTokens >= p.MaxModelLen+p.Limits.KVPerSeqTokens,
		"limits.kv_tokens must hold one request of max_model_len and kv_per_seq_tokens (%d): %d", p.MaxModelLen+p.Limits.KVPerSeqTokens, p.Limits.KVTokens)
	say(p.FirstVisibleToken >= 0, "first_visible_token must not be negative: %d", p.FirstVisibleToken)
	if s := p.Speculation; s != nil {
		say(len(s.Accept) > 0 && len(s.Accept) <= 64, "speculation.accept needs 1 to 64 positions: %d", len(s.Accept))
		last := 1.0
		for i, a := range s.Accept {
			say(finite(a, 0, last), "speculation.accept[%d] must be in [0, %v]: %v", i, last, a)
			last = a
		}
		say(s.Spread < 1 && finite(s.Spread, 0, 1), "speculation.spread must be in [0, 1): %v", s.Spread)
	}
	if c := p.PrefixCache; c != nil {
		say(c.BlockTokens >= 1, "prefix_cache.block_tokens must be at least 1: %d", c.BlockTokens)
		say(c.CapacityTokens >= c.BlockTokens, "prefix_cache.capacity_tokens must hold one block: %d", c.CapacityTokens)
	}
	p.Noise.validate(say)
	p.Drift.validate(say)
	if s := p.Stalls; s != nil {
		say(s.EverySteps >= 1, "stalls.every_steps must be at least 1: %d", s.EverySteps)
		say(finite(s.MS, 0, 1e9), "stalls.ms must not be negative, and not above 1e9: %v", s.MS)
	}
	say(p.NaturalOutput.Mean >= 0, "natural_output.mean must not be negative: %d", p.NaturalOutput.Mean)
	say(finite(p.NaturalOutput.CV, 0, 2), "natural_output.cv must be in [0, 2]: %v", p.NaturalOutput.CV)
	say(finite(p.NaturalOutput.Parts, 0, 1), "natural_output.parts must be in [0, 1]: %v", p.NaturalOutput.Parts)
	p.GPU.validate(say)
	if err := p.Faults.validate(); err != nil {
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

func (n Noise) validate(say func(bool, string, ...any)) {
	say(finite(n.StepCV, 0, 1), "noise.step_cv must be in [0, 1]: %v", n.StepCV)
	say(finite(n.StartCV, 0, 1), "noise.start_cv must be in [0, 1]: %v", n.StartCV)
	say(finite(n.SlowCV, 0, 1), "noise.slow_cv must be in [0, 1]: %v", n.SlowCV)
	say(finite(n.SlowS, 0, 1e9) && (n.SlowCV == 0 || n.SlowS > 0), "noise.slow_s must be above 0 if slow_cv is set: %v", n.SlowS)
}

func (d *Drift) validate(say func(bool, string, ...any)) {
	if d != nil {
		say(finite(d.AfterS, 0, 1e9), "drift.after_s must not be negative, and not above 1e9: %v", d.AfterS)
		say(finite(d.Slower, 0, 1e3), "drift.slower must be in [0, 1000]: %v", d.Slower)
		say(finite(d.SlowerPerMinute, 0, 1e3), "drift.slower_per_minute must be in [0, 1000]: %v", d.SlowerPerMinute)
	}
}

// TokensPerStep is the mean number of tokens that a sequence gets in a decode step. It is 1 without
// speculative decoding.
func (p *Profile) TokensPerStep() float64 {
	tokens := 1.0
	if p.Speculation != nil {
		for _, a := range p.Speculation.Accept {
			tokens += a
		}
	}
	return tokens
}

func (p *Profile) verify() int {
	if p.Speculation == nil {
		return 1
	}
	return 1 + len(p.Speculation.Accept)
}

func finite(v, low, high float64) bool { return !math.IsNaN(v) && v >= low && v <= high }
