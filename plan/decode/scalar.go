package decode

import (
	"errors"
	"os"
	"time"
)

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
