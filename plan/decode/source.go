package decode

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// parse reads a source in either syntax of HCL. It first checks that the source is within the
// limits.
func parse(src []byte, filename string) (*hcl.File, hcl.Diagnostics) {
	// Diagnostics can show the lines of a file even if the file has no body.
	empty := &hcl.File{Bytes: src, Body: hcl.EmptyBody()}
	if len(src) > maxFileBytes {
		return &hcl.File{Body: hcl.EmptyBody()}, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: sumTooLarge,
			Detail:  fmt.Sprintf("The file %s has %d bytes, but the limit is %d.", filename, len(src), maxFileBytes),
			Subject: &hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos},
		}}
	}
	if isJSON(filename) {
		if diags := checkJSON(src, filename); diags.HasErrors() {
			return empty, diags
		}
		f, diags := json.Parse(src, filename)
		if f == nil || f.Body == nil {
			f = empty
		}
		return f, diags
	}
	if ends, ok := shallow(src, limits, partBytes); ok {
		if f := parseParts(src, filename, ends); f != nil {
			return f, nil
		}
	} else if diags := checkComplexity(src, filename); diags.HasErrors() {
		return empty, diags
	}
	f, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	diags = explainSyntax(src, diags)
	if f == nil || f.Body == nil {
		f = empty
	}
	return f, diags
}

// readSources reads the plan and the files that it includes. It sorts the blocks by type, with
// blocks of included files first. It returns false if it cannot decode anything.
func (d *decoder) readSources() bool {
	return d.readSource(d.opts.Path, d.opts.Source, nil, hcl.Range{
		Filename: d.opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos,
	})
}

func (d *decoder) readSource(path string, src []byte, including []string, from hcl.Range) bool {
	if src == nil {
		var err error
		if src, err = d.opts.ReadFile(path); err != nil {
			d.errorf(from, sumUnreadable, "%s.", readError(path, err))
			return false
		}
	}
	file, diags := parse(src, path)
	d.out.Files[path] = file
	name := path
	if rel, err := filepath.Rel(d.dir, path); err == nil {
		name = rel // a relative path gives the same hash in every checkout
	}
	d.hash.add("source", filepath.ToSlash(name), src)
	d.add(diags...)
	if diags.HasErrors() {
		return false
	}

	content, diags := file.Body.Content(d.schema(Schema))
	d.explainUnsupported(diags, Schema)
	d.add(diags...)
	ok := true
	if attr := content.Attributes["include"]; attr != nil {
		ok = d.readIncludes(attr, path, append(including, filepath.Clean(path)))
	}
	for _, b := range content.Blocks {
		d.blocks[b.Type] = append(d.blocks[b.Type], b)
	}
	return ok
}

func (d *decoder) readIncludes(attr *hcl.Attribute, path string, including []string) bool {
	exprs, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		d.errorf(attr.Expr.Range(), sumInclude, `include must be a list of paths, such as include = ["lib/servers.hcl"].`)
		return false
	}
	ok := true
	for _, expr := range exprs {
		// A path may not use variables: they must not decide which files belong to a plan.
		v, diags := expr.Value(nil)
		if diags.HasErrors() || v.Type() != cty.String || v.IsNull() || !v.IsKnown() {
			d.errorf(expr.Range(), sumInclude, "Each element of include must be a path in quotes. Variables and functions are not allowed here.")
			ok = false
			continue
		}
		target, err := d.within(filepath.Dir(path), v.AsString())
		if err != nil {
			d.errorf(expr.Range(), sumInclude, "%s.", err)
			ok = false
			continue
		}
		if i := indexOf(including, target); i >= 0 {
			d.errorf(expr.Range(), sumIncludeCycle, "%s.", strings.Join(append(including[i:], target), " includes "))
			ok = false
			continue
		}
		if d.out.Files[target] != nil {
			continue // already read, because another file includes it too
		}
		if len(d.out.Files) >= maxFiles {
			d.errorf(expr.Range(), sumTooLarge, "A plan has at most %d files.", maxFiles)
			return false
		}
		ok = d.readSource(target, nil, including, expr.Range()) && ok
	}
	return ok
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

// within returns the path of a file that the plan names relative to the folder dir. It returns an
// error if the path leads outside the root or into .git, even through a link.
func (d *decoder) within(dir, name string) (string, error) {
	if name == "" {
		return "", errors.New("the path is empty")
	}
	if strings.ContainsRune(name, 0) {
		return "", errors.New("the path contains a NUL byte")
	}
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	inside, err := filepath.Rel(realPath(d.root), realPath(path))
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%q lies outside the repository (%s)", name, d.root)
	}
	for part := range strings.SplitSeq(inside, string(filepath.Separator)) {
		if strings.EqualFold(part, ".git") {
			return "", fmt.Errorf("%q is in %s, where git may store tokens, so a plan must not read it", name, part)
		}
	}
	return filepath.Clean(path), nil
}

// realPath returns the absolute path without symbolic links. If the path does not exist, the part
// that exists is resolved.
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

// repositoryRoot returns the nearest folder with a .git: dir itself or a folder above it. It
// returns dir if there is none.
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

// ReadFile reads a regular file of at most 4 MiB. Any other file is an error: a device or a pipe
// may never end.
func ReadFile(path string) ([]byte, error) {
	// Check before opening, because opening a pipe waits for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(src) > maxFileBytes {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is larger than %d bytes, the limit for a file", maxFileBytes)}
	}
	return src, err
}

func readError(path string, err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Sprintf("could not read %q: %v", path, err)
}

func cutEnv(kv string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(kv, "=")
	return name, value, ok && name != ""
}
