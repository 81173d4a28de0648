package decode

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // decodes a logo in JPEG format
	_ "image/png"  // decodes a logo in PNG format

	"github.com/tokgate/tokgate/plan"
)

func readWords(b *body, w *plan.Workload, p *preset) {
	if p != nil {
		w.Title, w.Description, w.Users = p.title, p.about, p.users
	}
	if !b.given("users_per_request") {
		return
	}
	list := b.list("users_per_request")
	if len(list) != 2 {
		b.d.errorf(b.rangeOf("users_per_request"), sumOutOfRange, "users_per_request needs two numbers: the fewest and the most people for one request in flight, such as [4, 5].")
		return
	}
	for i, e := range list {
		n, ok := e.integer()
		if !ok {
			return
		}
		w.Users[i] = float64(n)
	}
	if w.Users[0] > w.Users[1] {
		b.d.errorf(b.rangeOf("users_per_request"), sumOutOfRange, "Write the smaller number first: users_per_request = [%v, %v].", w.Users[1], w.Users[0])
	}
}

const maxLogo = 64 << 10

func (d *decoder) decodeReport() {
	b := d.single(reportBlock)
	if b == nil {
		return
	}
	b.bind(&d.out.Cover)
	name := b.text("logo")
	if name == "" || name == unknownText {
		return
	}
	src, err := d.readLogo(name)
	if err != nil {
		d.errorf(b.rangeOf("logo"), sumOutOfRange, "The logo cannot be used: %s.", err)
		return
	}
	d.hash.add("file", name, src)
	d.out.Cover.Logo = src
}

func (d *decoder) readLogo(name string) ([]byte, error) {
	file, err := d.within(d.dir, name)
	if err != nil {
		return nil, err
	}
	src, err := d.read(file)
	if err != nil {
		return nil, errors.New(readError(name, err))
	}
	if len(src) > maxLogo {
		return nil, fmt.Errorf("%q has more than %d bytes", name, maxLogo)
	}
	if _, _, err := image.DecodeConfig(bytes.NewReader(src)); err != nil {
		return nil, fmt.Errorf("%q is not a PNG or JPEG picture", name)
	}
	return src, nil
}
