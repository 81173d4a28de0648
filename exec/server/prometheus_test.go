package server

import (
	"strings"
	"testing"
)

func vector(results string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + results + `]}}`
}

func TestSampleOf(t *testing.T) {
	for _, tt := range []struct {
		answer string
		v      float64
		err    string // "" if there is a value
	}{
		{vector(`{"metric":{},"value":[1764000000.1,"3.5"]}`), 3.5, ""},
		{`{"status":"success","data":{"resultType":"scalar","result":[1764000000,"0"]}}`, 0, ""},
		{vector(``), 0, "no sample that is recent enough"},
		{vector(`{"value":[1,"1"]},{"value":[1,"2"]}`), 0, "has 2 results; write sum(…) or max(…) around it"},
		{vector(`{"value":[1,"NaN"]}`), 0, "is no number"},
		{vector(`{"value":[1,"+Inf"]}`), 0, "is no number"},
		{vector(`{"value":[1]}`), 0, "is no number"},
		{vector(`{"value":[1,2]}`), 0, "is no number"},
		{vector(`{"value":{}}`), 0, "has no number"},
		{`{"status":"success","data":{"resultType":"matrix","result":[]}}`, 0, "gives a matrix"},
		{`{"status":"error","error":"parse error: unexpected end"}`, 0, "parse error: unexpected end"},
		{`<html>`, 0, "no JSON"},
		{``, 0, "no JSON"},
	} {
		v, _, err := sampleOf([]byte(tt.answer))
		if v != tt.v || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, %v; want %v, %q", tt.answer, v, err, tt.v, tt.err)
		}
	}
}

func FuzzSampleOf(f *testing.F) {
	f.Add([]byte(vector(`{"metric":{},"value":[1764000000.1,"3.5"]}`)))
	f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if v, _, err := sampleOf(answer); err == nil && v-v != 0 {
			t.Errorf("%v", v)
		}
	})
}
