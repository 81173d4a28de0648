package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan/suggest"
)

// Script is a list of faults. Each rule says which requests have its fault.
type Script []Rule

// Rule applies one fault to some requests. Requests to the rule's path are counted from 0, in order
// of arrival. From, To, Every and Share limit which of these requests have the fault. Zero means no
// limit.
type Rule struct {
	Fault string  `json:"fault"`           // a name of Faults
	Path  string  `json:"path,omitempty"`  // exact URL path; "" means the paths of all APIs
	From  int     `json:"from,omitempty"`  // first request
	To    int     `json:"to,omitempty"`    // first request after the range; 0: no end
	Every int     `json:"every,omitempty"` // n: only every n-th request from From on; 0: all
	Share float64 `json:"share,omitempty"` // share of requests with the fault, at random; 0: all

	Tokens  int     `json:"tokens,omitempty"`   // tokens of the fault; 0 means the fault's default
	DelayMS float64 `json:"delay_ms,omitempty"` // delay of the fault in ms; 0 means its default
	Text    string  `json:"text,omitempty"`     // text of the fault; "" means the fault's default
}

// ParseRule reads a rule from a command line: the name of a fault, then settings after a colon, if
// there are any.
//
//	http-500:share=0.3
//	error-event:every=2,tokens=5,text=out of memory
//	http-500:path=/metrics,share=0.01
//
// The settings are path, from, to, every, share, tokens, delay (a duration such as 1.5s) and text.
// The text is everything after "text=".
func ParseRule(s string) (Rule, error) {
	name, rest, _ := strings.Cut(s, ":")
	r := Rule{Fault: name}
	for rest != "" {
		var pair string
		if strings.HasPrefix(rest, "text=") {
			pair, rest = rest, ""
		} else {
			pair, rest, _ = strings.Cut(rest, ",")
		}
		key, value, _ := strings.Cut(pair, "=")
		var err error
		switch key {
		case "path":
			r.Path = value
		case "from":
			r.From, err = strconv.Atoi(value)
		case "to":
			r.To, err = strconv.Atoi(value)
		case "every":
			r.Every, err = strconv.Atoi(value)
		case "share":
			r.Share, err = strconv.ParseFloat(value, 64)
		case "tokens":
			r.Tokens, err = strconv.Atoi(value)
		case "delay":
			var d time.Duration
			d, err = time.ParseDuration(value)
			r.DelayMS = d.Seconds() * 1000
		case "text":
			r.Text = value
		default:
			known := []string{"path", "from", "to", "every", "share", "tokens", "delay", "text"}
			return Rule{}, fmt.Errorf("fault %q: unknown key %q%s", s, key, didYouMean(key, known))
		}
		if err != nil {
			return Rule{}, fmt.Errorf("fault %q: %s: %w", s, key, err)
		}
	}
	return r, r.validate()
}

// validate returns an error for all rules with an unknown fault or with a value out of range.
func (s Script) validate() error {
	var bad []error
	for i := range s {
		if err := s[i].validate(); err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

func (r *Rule) validate() error {
	if findFault(r.Fault) == nil {
		names := make([]string, len(faults))
		for i, f := range faults {
			names[i] = f.Name
		}
		return fmt.Errorf("unknown fault %q%s", r.Fault, didYouMean(r.Fault, names))
	}
	switch {
	case r.From < 0 || r.To < 0 || r.Every < 0 || r.Tokens < 0:
		return fmt.Errorf("fault %q: from, to, every and tokens must not be negative", r.Fault)
	case r.To > 0 && r.To <= r.From:
		return fmt.Errorf("fault %q: to must be above from", r.Fault)
	case !finite(r.Share, 0, 1):
		return fmt.Errorf("fault %q: share must be in [0, 1]: %v", r.Fault, r.Share)
	case !finite(r.DelayMS, 0, 1e9):
		return fmt.Errorf("fault %q: the delay must be in [0, 1e9] ms: %v", r.Fault, r.DelayMS)
	case r.Path != "" && !strings.HasPrefix(r.Path, "/"):
		return fmt.Errorf("fault %q: a path begins with /: %q", r.Fault, r.Path)
	}
	return nil
}

// whole returns the rule with the defaults of its fault.
func (r *Rule) whole() *Rule {
	f, out := findFault(r.Fault), *r
	out.Tokens, out.Text = cmp.Or(r.Tokens, f.tokens), cmp.Or(r.Text, f.text)
	if out.DelayMS == 0 {
		out.DelayMS = float64(f.delay) / float64(time.Millisecond)
	}
	if out.Text == "" && f.status != 0 {
		out.Text = "scripted fault: " + http.StatusText(f.status)
	}
	return &out
}

func findFault(name string) *Fault {
	for i := range faults {
		if faults[i].Name == name {
			return &faults[i]
		}
	}
	return nil
}

type director struct {
	rules Script
	mu    sync.Mutex
	seen  []int
	draws []rng
}

func newDirector(rules Script, seed int64) *director {
	d := &director{rules: rules, seen: make([]int, len(rules)), draws: make([]rng, len(rules))}
	seeds := rng(seed)
	for i := range d.draws {
		d.draws[i] = rng(seeds.next())
	}
	return d
}

func (d *director) loading() time.Duration {
	var most time.Duration
	for i := range d.rules {
		if d.rules[i].Fault == "loading" {
			most = max(most, ms(d.rules[i].whole().DelayMS))
		}
	}
	return most
}

// root is the path below which the APIs are.
const root = "/v1"

// isAPI reports whether the path is that of an API. A rule that sets no path applies to all of them.
func isAPI(path string) bool {
	return slices.ContainsFunc(engine.APIs, func(api string) bool { return root+engine.API(api).Path() == path })
}

func (d *director) next(path string) (fx effect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.rules {
		r := &d.rules[i]
		if r.Path != path && (r.Path != "" || !isAPI(path)) {
			continue
		}
		n := d.seen[i]
		d.seen[i]++
		draw := d.draws[i].float() // always draw, so that later draws stay the same
		switch {
		case n < r.From, r.To > 0 && n >= r.To:
		case r.Every > 1 && (n-r.From)%r.Every != 0:
		case r.Share > 0 && draw >= r.Share:
		default:
			fx = append(fx, r.whole())
		}
	}
	return fx
}

func didYouMean(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
