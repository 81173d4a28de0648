package decode

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/tokgate/tokgate/plan"
)

// bind sets the fields of a struct from the attributes of the block, and from the blocks in it. A
// field's tag names its attribute or block, such as plan:"timeout"; the tag "." stands for a struct of
// attributes of the same block. The field's type and the schema say how to read it: a struct is an
// object. A field stays unchanged if the value is wrong, or if there is no value and no default.
func (b *body) bind(into any) {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Tag.Get("plan")
		switch {
		case name == ".":
			b.bind(field.Addr().Interface())
		case name != "" && b.spec.block(name) != nil:
			b.bindBlock(field, name)
		case name != "" && b.spec.attr(name) != nil && b.hasValue(name):
			b.bindField(field, b.spec.attr(name))
		}
	}
}

// bindBlock sets a field from a block in the block. A pointer stays nil without the block; a struct
// then gets the defaults. A field Range of theirs gets the place of the block.
func (b *body) bindBlock(field reflect.Value, name string) {
	child := b.child(name)
	if field.Kind() == reflect.Pointer {
		if child == nil {
			return
		}
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	if child == nil {
		b.absent(name).bind(field.Addr().Interface())
		return
	}
	child.bind(field.Addr().Interface())
	if place := field.FieldByName("Range"); place.IsValid() {
		place.Set(reflect.ValueOf(child.rng))
	}
}

func (b *body) bindField(field reflect.Value, a *Attr) {
	switch p := field.Addr().Interface().(type) {
	case *[]string:
		*p = b.texts(a.Name)
		return
	case *map[string]string:
		*p = b.textMap(a.Name)
		return
	case **plan.GPUs:
		*p = readGPUs(b)
		return
	}
	switch field.Kind() {
	case reflect.Struct:
		if o := b.object(a.Name); o != nil {
			o.bind(field.Addr().Interface())
		}
		return
	case reflect.Slice: // of objects
		for _, o := range b.objects(a.Name) {
			one := reflect.New(field.Type().Elem())
			o.bind(one.Interface())
			field.Set(reflect.Append(field, one.Elem()))
		}
		return
	}
	x, ok := b.item(a.Name)
	if !ok {
		return
	}
	switch p := field.Addr().Interface().(type) {
	case *bool:
		put(p, x.boolean)
	case *int:
		put(p, x.integer)
	case *int64:
		if n, ok := x.integer(); ok {
			*p = int64(n)
		}
	case *float64:
		put(p, x.real())
	case **float64:
		if f, ok := x.real()(); ok {
			*p = &f
		}
	case *time.Duration:
		put(p, x.duration)
	default: // the field is a string, or of a type based on string
		read := x.text
		if a.OneOf != nil {
			read = x.word
		} else if a.Type == "path" {
			read = x.path
		} else if a.Type == "url" {
			read = x.url
		}
		s, _ := read()
		field.SetString(s)
	}
}

func put[T any](into *T, read func() (T, bool)) {
	if v, ok := read(); ok {
		*into = v
	}
}

func (x item) real() func() (float64, bool) {
	switch {
	case strings.Contains(x.attr.Type, "share"):
		return x.share
	case strings.Contains(x.attr.Type, "rate"):
		return x.rate
	}
	return x.number
}

func get[T any](b *body, name string, read func(item) (T, bool)) (v T, ok bool) {
	if x, ok := b.item(name); ok {
		return read(x)
	}
	return v, false
}

func (b *body) integer(name string) (int, bool)            { return get(b, name, item.integer) }
func (b *body) duration(name string) (time.Duration, bool) { return get(b, name, item.duration) }

func (b *body) boolean(name string) bool {
	v, _ := get(b, name, item.boolean)
	return v
}

// text returns "" if the plan does not set the attribute, or "(unknown)" if its value is still
// unknown.
func (b *body) text(name string) string {
	s, _ := get(b, name, item.text)
	return s
}

func (b *body) oneOf(name string) string {
	if x, ok := b.item(name); ok {
		s, _ := x.word()
		return s
	}
	return b.spec.attr(name).OneOf[0]
}

func (b *body) pathOf(name string) string {
	p, _ := get(b, name, item.path)
	return p
}

// file opens a file that the plan names. The error does not quote the file.
func (b *body) file(name string) (*os.File, error) {
	p, err := b.d.within(b.d.dir, b.text(name))
	if err != nil {
		return nil, err
	}
	f, err := p.open()
	if err != nil {
		return nil, errors.New(readError(p.path, err))
	}
	return f, nil
}
