package sim

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

func TestShippedProfiles(t *testing.T) {
	names := Profiles()
	must.Need(t, slices.Contains(names, "default"), "Profiles() = %v", names)
	for _, name := range names {
		p, err := LoadProfile(name, "/nowhere")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		must.Hold(t, p.Name == name && p.Description != "", "%s: name %q, description %q", name, p.Name, p.Description)
	}
	p, err := LoadProfile("", "")
	must.Hold(t, err == nil && p.Name == "default", `LoadProfile(""): %v, %v`, p, err)
}

// The figures in this test are also in the description of the default profile and in the README's
// examples.
func TestDefaultProfile(t *testing.T) {
	p := DefaultProfile()
	p.Noise = Noise{}
	ttft, _ := closedLoop(p, 1, 1, 200, func() int { return 100 })
	// By the figures of the profile, the TTFT is 12 + 5.5 + 0.2 + 200·0.05 + 0.016 = 27.7 ms.
	must.Same(t, "TTFT of a 200-token prompt", 27700*time.Microsecond, ttft.Round(100*time.Microsecond))
	rate := func(n int) float64 {
		_, throughput := closedLoop(p, n, 4*n, 200, func() int { return 100 })
		return throughput / float64(n)
	}
	one, sixteen, thirtyTwo, many := rate(1), rate(16), rate(32), rate(64)
	t.Logf("tok/s per user: %.0f at 1, %.0f at 16, %.0f at 32, %.0f at 64", one, sixteen, thirtyTwo, many)
	if one < 150 || sixteen > one/2 || thirtyTwo > sixteen*3/4 || many > thirtyTwo*2/3 {
		t.Errorf("tok/s per user: %.0f at 1, %.0f at 16, %.0f at 32, %.0f at 64: no knee", one, sixteen, thirtyTwo, many)
	}
}

func TestProfileFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, src string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(src), 0o644))
	}
	write("own.json", `{"base": "default", "description": "mine", "limits": {"max_seqs": 4}, "faults": [{"fault": "http-500", "share": 0.3}]}`)
	p := must.Get(LoadProfile("own.json", dir))(t)
	want := DefaultProfile()
	want.Name, want.Base, want.Description, want.Source = "own", "default", "mine", ""
	want.Limits.MaxSeqs = 4
	want.Faults = Script{{Fault: "http-500", Share: 0.3}}
	must.Same(t, "own.json (-want +got)", want, p)
	_, err := LoadProfile(filepath.Join(dir, "own.json"), "/nowhere")
	must.Hold(t, err == nil, "an absolute path: %v", err)
	for _, test := range []struct{ src, want string }{
		{`{"base": "defalt"}`, `unknown base "defalt", did you mean "default"?`},
		{`{"base": "default", "overhed_ms": 1}`, `unknown field "overhed_ms", did you mean "overhead_ms"?`},
		{`{"base": "default", "decode": {"base": 1}}`, `unknown field "base", did you mean`},
		{`{"base": "default", "decode": {"per_sec_ms": 1}}`, `unknown field "per_sec_ms", did you mean "per_seq_ms"?`},
		{`{"base": "default"} {}`, "there is more after"},
		{"{\n\"base\": \"default\",\n,}", "line 3: "},
		{`{"base": "default", "model": 3}`, "line 1: model cannot be a number"},
		{`{}`, "model must not be empty"},
		{`{"base": "default", "policy": "fifo"}`, `policy must be "mixed" or "prefill_first", not "fifo"`},
		{`{"base": "default", "decode": {"base_ms": 0}}`, "decode.base_ms must be above 0"},
		{`{"base": "default", "overhead_ms": -1}`, "overhead_ms must not be negative"},
		{`{"base": "default", "max_model_len": 1}`, "max_model_len must be at least 2"},
		{`{"base": "default", "limits": {"max_batched_tokens": 0}}`, "limits.max_batched_tokens must hold one step"},
		{`{"base": "default", "limits": {"kv_tokens": 32767}}`, "limits.kv_tokens must hold one request"},
		{`{"base": "default", "limits": {"max_seqs": -1}}`, "limits.max_seqs must not be negative"},
		{`{"base": "default", "speculation": {"accept": []}}`, "needs 1 to 64 positions"},
		{`{"base": "default", "speculation": {"accept": [0.5, 0.6]}}`, "speculation.accept[1] must be in [0, 0.5]"},
		{`{"base": "default", "speculation": {"accept": [0.5], "spread": 1}}`, "speculation.spread"},
		{`{"base": "default", "prefix_cache": {}}`, "prefix_cache.block_tokens"},
		{`{"base": "default", "prefix_cache": {"block_tokens": 16, "capacity_tokens": 15}}`, "prefix_cache.capacity_tokens"},
		{`{"base": "default", "noise": {"step_cv": 2}}`, "noise.step_cv"},
		{`{"base": "default", "noise": {"start_cv": -1}}`, "noise.start_cv"},
		{`{"base": "default", "natural_output": {"mean": -1}}`, "natural_output.mean"},
		{`{"base": "default", "natural_output": {"cv": 3}}`, "natural_output.cv"},
		{`{"base": "default", "decode": {"moe_active_share": 1}}`, "decode.moe_active_share"},
		{`{"base": "default", "first_visible_token": -1}`, "first_visible_token"},
		{`{"base": "default", "faults": [{"fault": "http-50"}]}`, `unknown fault "http-50", did you mean "http-500"?`},
	} {
		write("bad.json", test.src)
		_, err := LoadProfile("./bad.json", dir)
		must.Hold(t, err != nil && strings.Contains(err.Error(), test.want), "%s:\n got %v\nwant %s", test.src, err, test.want)
	}
	write("large.json", "{")
	must.Do(t, errors.Join(os.Truncate(filepath.Join(dir, "large.json"), maxFile+1), os.Mkdir(filepath.Join(dir, "folder.json"), 0o755)))
	for _, test := range []struct{ name, want string }{
		{"defualt", `unknown simulator profile "defualt", did you mean "default"?; shipped are: `},
		{"no/such.json", "could not read the simulator profile: "},
		{"./folder.json", "folder.json is not a regular file"},
		{"./large.json", "large.json has more than 4194304 bytes"},
	} {
		_, err := LoadProfile(test.name, dir)
		must.Hold(t, err != nil && strings.Contains(err.Error(), test.want), "LoadProfile(%q): %v, want %q", test.name, err, test.want)
	}
}

func FuzzParseProfile(f *testing.F) {
	src := must.Get(shipped.ReadFile("profiles/default.json"))(f)
	f.Add(src)
	f.Add([]byte(`{"base":"default","faults":[{"fault":"cut","share":1e-9}]}`))
	f.Add([]byte(`{"base":"../x"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := parseProfile(src)
		if err != nil {
			return
		}
		// An engine runs with every accepted profile. Writing and reading a profile does not change
		// it.
		e := NewEngine(p, 1)
		must.Do(t, e.Submit(0, Job{Input: 1, Output: 1}))
		all := drain(e)
		must.Hold(t, len(all) == 1, "%d emissions", len(all))
		again, err := json.Marshal(p)
		must.Do(t, err)
		q, err := parseProfile(again)
		must.Need(t, err == nil, "%v in %s", err, again)
		// A missing list of faults means the same as an empty list.
		if len(p.Faults) == 0 {
			p.Faults, q.Faults = nil, nil
		}
		must.Same(t, "(-first +again)", p, q)
	})
}

func FuzzParseRule(f *testing.F) {
	for _, test := range faultTests {
		f.Add(test.rule)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule(s)
		if err != nil {
			return
		}
		d := newDirector(Script{r}, 1)
		for range 3 {
			d.next(pathChat)
		}
	})
}

// No error quotes a file: it may not be a profile at all.
func TestProfilesAreNotQuoted(t *testing.T) {
	const secret = "AKIAQ7XSECRET"
	for _, src := range []string{
		secret, `"` + secret + `"`, `{"` + secret + `": 1}`, `{"base": "` + secret + `"}`, `{"model": ["` + secret + `"]}`, `{"overhead_ms": "` + secret + `"}`,
		"TOKEN=" + secret, `{"base": "default"} ` + secret,
	} {
		_, err := parseProfile([]byte(src))
		must.Hold(t, err != nil && !strings.Contains(err.Error(), secret), "%s: %v", src, err)
	}
}
