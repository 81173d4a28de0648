package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/plan"
)

func (l *Launcher) endpoint(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	e := s.Endpoint
	var roots *x509.CertPool
	if e.CAFile != "" {
		var err error
		if roots, err = client.LoadCA(e.CAFile); err != nil {
			return nil, fmt.Errorf("could not read the certificate authority: %w", err)
		}
	}
	var shown []tls.Certificate
	if e.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("could not read the certificate of the client: %w", err)
		}
		shown = append(shown, pair)
	}
	r, err := l.reach(s, state, client.Config{
		BaseURL: e.URL, APIKey: s.APIKey(), Headers: e.Headers, Query: e.Query, RootCAs: roots, Certificates: shown,
		AnyRedirect: e.Redirects == "any", H2C: e.H2C, Engine: engine.Of(s.Engine),
	})
	if err != nil {
		return nil, err
	}
	for _, url := range e.More {
		c := r.config
		c.BaseURL = url
		front, err := client.New(c)
		if err != nil {
			return nil, err
		}
		r.fronts = append(r.fronts, front)
	}
	for _, x := range e.Replicas {
		if err := r.behind(x, roots); err != nil {
			return nil, err
		}
	}
	t, err := r.target(ctx)
	if err != nil {
		return nil, err
	}
	t.SessionHeader = e.SessionHeader
	return t, nil
}
