package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/telemetry"
)

// queries lets the watch ask the Prometheus server of the plan. It gets neither the key nor the
// headers of the endpoint.
func (r *reached) queries(w *telemetry.Watch) (stop func()) {
	p := r.server.Telemetry.Prometheus
	if p == nil {
		return func() {}
	}
	for _, s := range p.Series {
		w.Queried = append(w.Queried, s.Def.Name)
	}
	c := r.config
	api, err := client.New(client.Config{BaseURL: p.URL, Headers: p.Headers, RootCAs: c.RootCAs, Now: c.Now, Dial: c.Dial})
	if err != nil {
		w.Queries = telemetry.Direct(func() (*telemetry.Reading, error) { return nil, err })
		return func() {}
	}
	of := prometheus{api: api, stale: cmp.Or(p.Stale, time.Minute)}
	w.Queries = telemetry.Fetch(r.Clock, func(ctx context.Context) (*telemetry.Reading, error) {
		out := &telemetry.Reading{Gauges: map[string]float64{}, None: map[string]string{}}
		for _, s := range p.Series {
			v, err := of.value(ctx, s.PromQL)
			if err != nil {
				out.None[s.Def.Name] = fmt.Sprintf("Prometheus at %s: %v", p.URL, err)
				continue
			}
			out.Gauges[s.Def.Name] = v
		}
		return out, ctx.Err()
	})
	return api.Close
}

// prometheus is a Prometheus server that answers instant queries.
type prometheus struct {
	api   *client.HTTP
	stale time.Duration // older samples are no value
	back  time.Duration // how far it looks back for a sample; 0 if it was not asked yet
}

// value returns the one number that a query has now.
//
// Prometheus answers with a sample of up to five minutes ago, which would hide a series that has
// ended. Newer versions can be told how far to look back. All versions, asked for a time in the
// future at which samples that are too old are out of reach, have a result only if a sample is young
// enough. A range in a query, such as [1m], is older than any such time, and limits the age itself.
func (p *prometheus) value(ctx context.Context, promql string) (float64, error) {
	v, at, err := p.ask(ctx, url.Values{"query": {promql}, "lookback_delta": {seconds(p.stale.Seconds())}})
	if err != nil || strings.Contains(promql, "[") {
		return v, err
	}
	if p.back == 0 {
		p.back = p.lookback(ctx)
	}
	if p.back > p.stale {
		_, _, err = p.ask(ctx, url.Values{"query": {promql}, "time": {seconds(at + (p.back - p.stale).Seconds())}})
	}
	return v, err
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) }

func (p *prometheus) ask(ctx context.Context, query url.Values) (v, at float64, err error) {
	page, err := p.api.Text(ctx, "/api/v1/query?"+query.Encode(), telemetry.MaxPage)
	if err != nil {
		return 0, 0, err
	}
	return sampleOf(page)
}

// lookback asks how far the server looks back. Not every server says so; the default is five minutes.
func (p *prometheus) lookback(ctx context.Context) time.Duration {
	var told struct{ Data map[string]string }
	page, err := p.api.Text(ctx, "/api/v1/status/flags", telemetry.MaxPage)
	if err == nil {
		err = json.Unmarshal(page, &told)
	}
	if d, parsed := time.ParseDuration(told.Data["query.lookback-delta"]); err == nil && parsed == nil && d > 0 {
		return d
	}
	return 5 * time.Minute
}

// sampleOf returns the one number in the answer of Prometheus to an instant query, and the time for
// which it holds, in seconds since 1970 (prometheus.io/docs, HTTP API).
func sampleOf(answer []byte) (v, at float64, err error) {
	var in struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(answer, &in); err != nil {
		return 0, 0, errors.New("its answer is no JSON of an instant query")
	}
	if in.Status != "success" {
		return 0, 0, fmt.Errorf("it answers %.200q", cmp.Or(in.Error, in.Status))
	}
	var pair [2]any
	switch in.Data.ResultType {
	case "scalar":
		if json.Unmarshal(in.Data.Result, &pair) != nil {
			return 0, 0, errors.New("its answer has no number")
		}
	case "vector":
		var vector []struct{ Value [2]any }
		if json.Unmarshal(in.Data.Result, &vector) != nil {
			return 0, 0, errors.New("its answer has no number")
		}
		switch n := len(vector); n {
		case 0:
			return 0, 0, errors.New("it has no sample that is recent enough")
		case 1:
			pair = vector[0].Value
		default:
			return 0, 0, fmt.Errorf("the query has %d results; write sum(…) or max(…) around it", n)
		}
	default:
		return 0, 0, fmt.Errorf("the query gives a %.20s, not one number", in.Data.ResultType)
	}
	text, _ := pair[1].(string)
	at, _ = pair[0].(float64)
	if v, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, 0, fmt.Errorf("the result %.20q is no number", text)
	}
	return v, at, nil
}
