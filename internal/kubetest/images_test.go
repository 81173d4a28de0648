package kubetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// image is one file and the command line that a container of it runs.
type image struct {
	name string   // such as localhost/tokgate:good
	file string   // the program; it lies in the root folder
	more []string // other files beside it
	args []string
}

// archive writes an image as `docker save` would, for containerd to import.
func (m image) archive(w io.Writer) error {
	var layer bytes.Buffer
	t := tar.NewWriter(&layer)
	for _, dir := range []string{"tmp/", "etc/"} {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o1777}); err != nil {
			return err
		}
	}
	for _, file := range append([]string{m.file}, m.more...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := put(t, filepath.Base(file), raw); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + filepath.Base(m.file)}, "Cmd": m.args, "Env": []string{"PATH=/"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{m.name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	t = tar.NewWriter(w)
	for name, raw := range map[string][]byte{"layer.tar": layer.Bytes(), "config.json": config, "manifest.json": manifest} {
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
