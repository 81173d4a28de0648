package decode

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type passage struct {
	path   string // path of the file, as messages show it
	root   string // the folder to which the door opens: the repository, or a folder of the operator
	inside string // path of the file in root, with links resolved
}

// within is the door to all files that a plan names. A path is relative to the folder dir. within
// returns an error if the path leads outside the repository and outside the folders that the
// operator gives, even through a link. Every .git is closed, because git may store tokens there.
func (d *decoder) within(dir, name string) (passage, error) {
	return d.door(dir, name, append([]string{d.root}, d.opts.Files...))
}

func (d *decoder) door(dir, name string, roots []string) (passage, error) {
	if name == "" {
		return passage{}, errors.New("the path is empty")
	}
	if strings.ContainsRune(name, 0) {
		return passage{}, errors.New("the path contains a NUL byte")
	}
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real := realPath(path)
	git := ""
	for _, root := range roots {
		root = realPath(root)
		inside, err := filepath.Rel(root, real)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		parts := strings.Split(inside, string(filepath.Separator))
		if i := slices.IndexFunc(parts, func(part string) bool { return strings.EqualFold(part, ".git") }); i >= 0 {
			git = parts[i]
			continue
		}
		return passage{filepath.Clean(path), root, inside}, nil
	}
	if git != "" {
		return passage{}, fmt.Errorf("%q is in %s, where git may store tokens, so a plan must not read it", name, git)
	}
	return passage{}, &outsideError{name, d.root, filepath.Dir(real)}
}

type outsideError struct{ name, root, folder string }

// Error says how an operator allows the folder of the file.
func (e *outsideError) Error() string {
	return fmt.Sprintf("%q lies outside the repository (%s). Who runs the plan can allow its folder: --files %s, or files = [%q] in the policy", e.name, e.root, e.folder, e.folder)
}

// open opens the file, which must be regular. os.Root holds even if a link changes meanwhile.
func (p passage) open() (*os.File, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Check before opening, because opening a pipe waits for its writer.
	info, err := root.Stat(p.inside)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(p.path)
	}
	return root.Open(p.inside)
}

func (d *decoder) read(p passage) ([]byte, error) {
	if d.opts.ReadFile != nil {
		return d.opts.ReadFile(p.path)
	}
	f, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSmall(f)
}

func (d *decoder) readGiven(path string) ([]byte, error) {
	if d.opts.ReadFile != nil {
		return d.opts.ReadFile(path)
	}
	return ReadFile(path)
}

// ReadFile reads a regular file of at most 4 MiB. Any other file is an error: a device or a pipe
// may never end.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSmall(f)
}

func readSmall(f *os.File) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(src) > maxFileBytes {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("it is larger than %d bytes, the limit for a file", maxFileBytes)}
	}
	return src, err
}

func notRegular(path string) error {
	return &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
}

func readError(path string, err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Sprintf("could not read %q: %v", path, err)
}

// If the path does not exist, the part that exists is resolved.
func realPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for at := abs; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return abs
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

func repositoryRoot(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return abs
		}
	}
}
