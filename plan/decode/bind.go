package decode

import (
	"reflect"
	"time"
)

// bind sets the fields of a struct from the attributes of the block. A field's tag names its
// attribute, such as plan:"timeout". The field's type and the schema say how to read the value. A
// field stays unchanged if the value is wrong, or if there is no value and no default.
func (b *body) bind(into any) {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("plan"); name != "" && b.hasValue(name) {
			b.bindField(v.Field(i), b.spec.attr(name))
		}
	}
}

func (b *body) bindField(field reflect.Value, a *Attr) {
	var ok bool
	var n int64
	var x float64
	var span time.Duration
	switch p := field.Addr().Interface().(type) {
	case *bool:
		*p = b.boolean(a.Name)
	case *int:
		if n, ok = b.integer(a.Name, a.Min, a.Max); ok {
			*p = int(n)
		}
	case *int64:
		if n, ok = b.integer(a.Name, a.Min, a.Max); ok {
			*p = n
		}
	case *float64:
		if x, ok = b.number(a.Name, float64(a.Min), float64(a.Max)); ok {
			*p = x
		}
	case **float64:
		if x, ok = b.number(a.Name, float64(a.Min), float64(a.Max)); ok {
			*p = &x
		}
	case *time.Duration:
		if span, ok = b.duration(a.Name, time.Duration(a.Min), time.Duration(a.Max)); ok {
			*p = span
		}
	case *[]string:
		*p = b.texts(a.Name)
	case *map[string]string:
		*p = b.textMap(a.Name)
	default: // the field is a string, or of a type based on string
		switch {
		case a.OneOf != nil:
			field.SetString(b.oneOf(a.Name, a.OneOf...))
		case a.Type == "path":
			field.SetString(b.pathOf(a.Name))
		default:
			field.SetString(b.text(a.Name))
		}
	}
}
