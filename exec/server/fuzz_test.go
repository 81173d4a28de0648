package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record"
)

// FuzzLog writes any output, in writes of any size, to a server's log. No secret may stay in memory
// or on disk, and the log must stay within its largest size.
func FuzzLog(f *testing.F) {
	const secret = "sk-verysecret"
	f.Add("key sk-very", "secret\nand sk-", "verysecret")
	f.Add(strings.Repeat("x", lineSize-5), secret, "\r\n")
	f.Add("\x00\xff", secret+secret[:6], "\n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var file bytes.Buffer
		log := &tail{file: &file, redactor: record.NewRedactor([]string{secret})}
		for _, piece := range []string{a, b, c} {
			n, err := log.Write([]byte(piece))
			must.Need(t, n == len(piece) && err == nil, "%d of %d bytes, %v", n, len(piece), err)
			_, _ = log.lastLine(), log.since(len(a))
		}
		log.finish()
		for where, text := range map[string]string{"the file": file.String(), "the tail": log.String(), "the last line": log.lastLine()} {
			must.Hold(t, !strings.Contains(text, secret), "%s holds the secret: %q", where, text)
		}
		must.Hold(t, cap(log.end)+cap(log.partial) <= 8*tailSize, "%d bytes in memory", cap(log.end)+cap(log.partial))
	})
}

// Every output of a container runtime is either parsed or leads to an error.
func FuzzContainerOutput(f *testing.F) {
	f.Add(`sha256:1f2e ["docker.io/vllm/vllm-openai@sha256:abc"]`, "vllm/vllm-openai:v0.19.1")
	f.Add("name\trun-1\tgate.hcl\tvllm\t4711\tboot/1\t19:00\t8000\n", "a@b")
	f.Add(`{"Running":true,"ExitCode":1e999}`, "")
	f.Add(" null", ":")
	f.Fuzz(func(t *testing.T, out, name string) {
		if i, err := readImage(out); err == nil {
			i.digest(name)
		}
		for _, s := range (&cli{name: "docker"}).readLabelled(out) {
			must.Hold(t, !strings.ContainsAny(s.Container+s.Run, "\t\n"), "%q names a container", s.Container)
		}
	})
}
