package kubetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// image is one file and the command line that a container of it runs.
type image struct {
	name string   // such as localhost/tokgate:good
	file string   // the program; it lies in the root folder
	more []string // other files beside it
	args []string
}

// parts returns the files of an image, as a tar, and its configuration.
func (m image) parts() (layer, config []byte, err error) {
	var files bytes.Buffer
	t := tar.NewWriter(&files)
	for _, dir := range []string{"tmp/", "etc/"} {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o1777}); err != nil {
			return nil, nil, err
		}
	}
	for _, file := range append([]string{m.file}, m.more...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		if err := put(t, filepath.Base(file), raw); err != nil {
			return nil, nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, nil, err
	}
	config, err = json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + filepath.Base(m.file)}, "Cmd": m.args, "Env": []string{"PATH=/"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(files.Bytes()))}},
	})
	return files.Bytes(), config, err
}

// archive writes an image as `docker save` would, for containerd to import.
func (m image) archive(w io.Writer) error {
	layer, config, err := m.parts()
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{m.name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for name, raw := range map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest} {
		if err := put(t, name, raw); err != nil {
			return err
		}
	}
	return t.Close()
}

func put(t *tar.Writer, name string, raw []byte) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(raw))}); err != nil {
		return err
	}
	_, err := t.Write(raw)
	return err
}

// registry serves an image at localhost, and makes each pull of it take a time.
func registry(t *testing.T, m image, slow time.Duration) {
	t.Helper()
	layer, config, err := m.parts()
	if err != nil {
		t.Fatal(err)
	}
	blobs := map[string][]byte{}
	blob := func(kind string, raw []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
		blobs[digest] = raw
		return map[string]any{"mediaType": kind, "digest": digest, "size": len(raw)}
	}
	const kind = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": kind,
		"config": blob("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{blob("application/vnd.oci.image.layer.v1.tar", layer)}})
	if err != nil {
		t.Fatal(err)
	}
	blob(kind, manifest)
	name, tag, _ := strings.Cut(strings.TrimPrefix(m.name, "localhost/"), ":")
	l, err := net.Listen("tcp", "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if r.URL.Path == "/v2/"+name+"/manifests/"+tag {
			last = fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
		}
		raw, ok := blobs[last]
		switch {
		case !ok:
			http.NotFound(w, r)
			return
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", kind)
		case len(raw) == len(layer):
			time.Sleep(slow)
		}
		w.Header().Set("Docker-Content-Digest", last)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}
