package decode

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan"
)

func finishContainer(b *body, s *plan.Server) {
	c := s.Container
	checkCommand(b, s, c.Command)
	b.noteComputed("gpus")
	checkImage(b, c.Image)
	c.Volumes = readVolumes(b)
	readSharedMemory(b, s, c)
	checkOptions(b, c.Options)
	b.noteComputed("port")
	switch c.Network {
	case "none":
		b.d.errorf(b.rangeOf("network"), sumConflict, `With network = "none" no request can reach the server. Choose another network, or remove the argument.`)
	case "host": // the server listens on Port
	default:
		c.Inside = cmp.Or(c.Inside, insidePort(b, s))
	}
}

var (
	imageWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	sizeWord  = regexp.MustCompile(`^[0-9]+[bkmgBKMG]?$`)
)

func checkImage(b *body, image string) {
	if b.isSet("image") && image != unknownText && !imageWord.MatchString(image) {
		b.d.errorf(b.rangeOf("image"), sumImage, `%q is not a valid image. Write one such as "vllm/vllm-openai:v0.19.1", or with its digest "vllm/vllm-openai@sha256:…".`, image)
	}
}

// A source that begins with a dot is a path in the plan's folder. It must be made absolute, because
// the runtime would take it for the name of a volume.
func readVolumes(b *body) []string {
	var out []string
	for _, e := range b.list("volumes") {
		text, ok := e.text()
		if !ok {
			continue
		}
		source, rest, ok := strings.Cut(text, ":")
		if text != unknownText && (!ok || source == "" || !strings.HasPrefix(rest, "/")) {
			b.d.errorf(e.rng, sumVolume, `%q is not a valid volume. Write "host:container", such as "/data/hf:/root/.cache/huggingface:ro".`, text)
			continue
		}
		if strings.HasPrefix(source, ".") {
			source = filepath.Join(b.d.dir, filepath.FromSlash(source))
			if !filepath.IsAbs(source) {
				source = "." + string(filepath.Separator) + source
			}
			text = source + ":" + rest
		}
		out = append(out, text)
	}
	return out
}

func readSharedMemory(b *body, s *plan.Server, c *plan.Container) {
	if b.given("shm_size") {
		if c.SharedMem != unknownText && !sizeWord.MatchString(c.SharedMem) {
			b.d.errorf(b.rangeOf("shm_size"), sumOutOfRange, `shm_size must be a size such as "16g" or "512m".`)
		}
		return
	}
	// With --ipc, a container may use the host's /dev/shm, so it needs no shm_size.
	if size := engine.Of(s.Engine).Launch.SharedMemory; size != "" && !hasOption(c.Options, "--ipc", "--shm-size") {
		c.SharedMem = size
		b.note("shm_size", `"`+size+`"`, "engine = \""+s.Engine+"\"")
	}
}

// The plan has attributes for them, or tokgate sets them itself.
var ownOptions = map[string]string{
	"--gpus":       "use the argument gpus, which reserves the GPUs for this run",
	"--env-file":   "use the argument env, so that tokgate can hide secret values",
	"--env":        "use the argument env, so that tokgate can hide secret values",
	"-e":           "use the argument env, so that tokgate can hide secret values",
	"--network":    "set network",
	"--net":        "set network",
	"--entrypoint": "set entrypoint",
	"--name":       "tokgate names its containers",
	"--rm":         "tokgate itself removes the container, after it has read how the container ended",
	"--restart":    "a server that restarts by itself cannot be measured",
	"--detach":     "tokgate itself follows the container",
	"-d":           "tokgate itself follows the container",
	"--cidfile":    "tokgate itself records the id of the container",
	"--pull":       "set pull",
}

func checkOptions(b *body, options []string) {
	for _, e := range b.list("options") {
		if e.value.Type() != cty.String || !e.value.IsKnown() {
			continue
		}
		word, _, _ := strings.Cut(e.value.AsString(), "=")
		if why, ok := ownOptions[word]; ok {
			b.d.errorf(e.rng, sumConflict, "%s is not allowed in options: %s.", word, why)
		}
	}
	if len(options) > 0 && options[0] != unknownText && !strings.HasPrefix(options[0], "-") {
		b.d.errorf(b.rangeOf("options"), sumConflict, "options are for docker or podman, and each begins with a dash. Write arguments for the server in command, flags or args.")
	}
}

func hasOption(options []string, names ...string) bool {
	return slices.ContainsFunc(options, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.Contains(names, name)
	})
}

// insidePort returns the port on which the server listens inside its container, if the plan sets none.
func insidePort(b *body, s *plan.Server) int {
	port, why := engine.Of(s.Engine).Launch.Port, "engine = \""+s.Engine+"\""
	if n, ok := s.FlagNumber("port"); ok && n > 0 && n < 65536 {
		port, why = n, "flags"
	}
	if !b.given("container_port") {
		b.note("container_port", strconv.Itoa(port), why)
	}
	return port
}
