package report

import "strings"

// Named divides an address such as use_case["chat"] into the name of its block and its key. The key is
// "" if the address has none.
func Named(address string) (name, key string) {
	name, key, _ = strings.Cut(strings.TrimSuffix(address, `"]`), `["`)
	return name, key
}
