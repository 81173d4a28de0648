package progress

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestColorMode(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		tty  bool
		want bool
	}{
		{"a terminal", map[string]string{"TERM": "xterm"}, true, true},
		{"no terminal", map[string]string{"TERM": "xterm"}, false, false},
		{"a dumb terminal", map[string]string{"TERM": "dumb"}, true, false},
		{"NO_COLOR of any value", map[string]string{"NO_COLOR": "yes"}, true, false},
		{"NO_COLOR=0 is set, too", map[string]string{"NO_COLOR": "0"}, true, false},
		{"an empty NO_COLOR is not set", map[string]string{"NO_COLOR": ""}, true, true},
		{"NO_COLOR beats force", map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, true, false},
		{"forced without a terminal", map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{"forced on a dumb terminal", map[string]string{"CLICOLOR_FORCE": "1", "TERM": "dumb"}, true, true},
		{"forced by FORCE_COLOR", map[string]string{"FORCE_COLOR": "true"}, false, true},
		{"force of 0 is none", map[string]string{"CLICOLOR_FORCE": "0", "FORCE_COLOR": "0"}, false, false},
		{"CLICOLOR=0", map[string]string{"CLICOLOR": "0"}, true, false},
	}
	for _, tt := range tests {
		env := func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
		must.Same(t, fmt.Sprintf("%s: ColorMode(%v, %t)", tt.name, tt.env, tt.tty), tt.want, ColorMode(env, tt.tty))
	}
}
