package decode

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

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
	if f := parseParts(src, filename); f != nil {
		return f, nil
	}
	if diags := checkComplexity(src, filename, hcl.InitialPos); diags.HasErrors() {
		return empty, diags
	}
	f, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	diags = explainSyntax(src, diags)
	if f == nil || f.Body == nil {
		f = empty
	}
	return f, diags
}

// leastPart is the least size of a part of a source, in bytes: parsing two small parts takes longer than one.
const leastPart = 512

// parseParts parses a source in parts that end with a line "}", as the blocks of a plan do. HCL's parser
// keeps all tokens of what it parses, so parts take less time and memory than the whole. The result is nil
// if a part has a mistake, for example because it ends within a text: the parser must then see the whole.
func parseParts(src []byte, filename string) *hcl.File {
	end, mark := []byte("\n}\n"), []byte("\ufeff")
	if bytes.LastIndex(src, mark) > 0 {
		return nil // the parser skips a byte order mark where it starts, which must not be in each part
	}
	var whole *hcl.File
	for at := hcl.InitialPos; at.Byte < len(src); {
		part := src[at.Byte:]
		if before, _, cut := bytes.Cut(part[min(leastPart, len(part)):], end); cut {
			part = part[:leastPart+len(before)+len(end)]
		}
		if diags := checkComplexity(part, filename, at); diags.HasErrors() {
			return nil
		}
		f, diags := hclsyntax.ParseConfig(part, filename, at)
		body := f.Body.(*hclsyntax.Body)
		switch {
		case len(diags) > 0 || whole != nil && len(body.Attributes) > 0:
			return nil
		case whole == nil:
			whole = f
		default:
			all := whole.Body.(*hclsyntax.Body)
			all.Blocks = append(all.Blocks, body.Blocks...)
			all.SrcRange.End, all.EndRange = body.SrcRange.End, body.EndRange
		}
		at.Line, at.Byte = at.Line+bytes.Count(part, []byte("\n")), at.Byte+len(part)
		whole.Bytes = src
	}
	return whole
}

func (d *decoder) readSources() bool {
	src := d.opts.Source
	if src == nil {
		var err error
		if src, err = d.readGiven(d.opts.Path); err != nil {
			d.errorf(hcl.Range{Filename: d.opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos}, sumUnreadable, "%s.",
				readError(d.opts.Path, err))
			return false
		}
	}
	return d.readSource(d.opts.Path, src, nil)
}

func (d *decoder) readSource(path string, src []byte, including []string) bool {
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

	content, diags := file.Body.Content(d.schema(schema))
	d.explainUnsupported(diags, schema)
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
		// Only the repository: messages quote the lines of a plan, also of one that is not valid.
		file, err := d.door(filepath.Dir(path), v.AsString(), []string{d.root})
		if out, outside := errors.AsType[*outsideError](err); outside {
			err = fmt.Errorf("%q lies outside the repository (%s), where all files of a plan must lie", out.name, out.root)
		}
		if err != nil {
			d.errorf(expr.Range(), sumInclude, "%s.", err)
			ok = false
			continue
		}
		target := file.path
		if i := slices.Index(including, target); i >= 0 {
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
		src, err := d.read(file)
		if err != nil {
			d.errorf(expr.Range(), sumUnreadable, "%s.", readError(target, err))
			ok = false
			continue
		}
		ok = d.readSource(target, src, including) && ok
	}
	return ok
}
