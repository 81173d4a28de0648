package progress

// ColorMode reports whether output to a stream is coloured if the user gave no flag
// for it. env looks a variable up in the environment.
//
//	NO_COLOR set and not empty                  no    (no-color.org; any value, "0" too)
//	FORCE_COLOR, CLICOLOR_FORCE set, not "0"    yes   (bixense.com/clicolors, force-color.org)
//	not a terminal, or TERM=dumb                no    (CI logs that render colour ask for it with FORCE_COLOR)
//	CLICOLOR=0                                  no
//	otherwise                                   yes
func ColorMode(env func(string) (string, bool), isTTY bool) bool {
	get := func(name string) string {
		v, _ := env(name)
		return v
	}
	if get("NO_COLOR") != "" {
		return false
	}
	for _, name := range []string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		if v := get(name); v != "" && v != "0" {
			return true
		}
	}
	return isTTY && get("TERM") != "dumb" && get("CLICOLOR") != "0"
}
