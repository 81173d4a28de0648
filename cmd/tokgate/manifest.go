package main

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/pflag"
)

// manifestOptions says what prints instead of joining: what a cluster needs to start the workers.
type manifestOptions struct {
	kind     string // kubernetes or slurm; "": none
	N        int
	Name     string
	Image    string
	Queue    string
	CPUs     int
	Deadline time.Duration
}

func (o *manifestOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.kind, "manifest", "", "print what starts the workers on a `cluster` instead of joining: kubernetes or slurm")
	f.IntVar(&o.N, "workers", 0, "with --manifest: `number` of workers, as of the run")
	f.StringVar(&o.Image, "image", "ghcr.io/tokgate/tokgate", "with --manifest=kubernetes: `image` of tokgate")
	f.StringVar(&o.Queue, "queue", "", "with --manifest: `name` of the local queue of Kueue, or of the partition of Slurm")
	f.IntVar(&o.CPUs, "cpus", 2, "with --manifest: cores that each worker asks for")
	f.DurationVar(&o.Deadline, "deadline", 4*time.Hour, "with --manifest: when the cluster ends the workers at the latest")
}

func (o *manifestOptions) check() error {
	switch {
	case manifests[o.kind] == nil:
		return usageError("", "--manifest is kubernetes or slurm, not %q", o.kind)
	case o.N < 1 || o.N > mostWorkers:
		return usageError("add --workers N, as of the run", "--manifest needs the number of workers, from 1 to %d", mostWorkers)
	case o.CPUs < 1 || o.Deadline < time.Second:
		return usageError("", "--cpus and --deadline must be positive")
	}
	return nil
}

// printManifest prints the manifest for a run that workers join so.
func (a *app) printManifest(o manifestOptions, join joinOptions, token string) error {
	if err := o.check(); err != nil {
		return err
	}
	o.Name = "tokgate-workers"
	return manifests[o.kind].Execute(a.Out, struct {
		manifestOptions
		URL, Token, TokenFile, Fingerprint string
		Seconds                            int
		Time                               string
	}{o, join.run, token, join.token, join.fingerprint, int(o.Deadline.Seconds()), slurmTime(o.Deadline)})
}

func slurmTime(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

//go:embed manifests
var manifestFiles embed.FS

var manifests = map[string]*template.Template{
	"kubernetes": manifest("kubernetes.yaml", func(s string) string { return fmt.Sprintf("%q", s) }),
	"slurm":      manifest("slurm.sh", func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }),
}

func manifest(name string, quote func(string) string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{"q": quote}).ParseFS(manifestFiles, "manifests/"+name))
}
