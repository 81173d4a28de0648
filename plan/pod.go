package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Pod is a server that tokgate starts in a pod of a Kubernetes cluster.
type Pod struct {
	Image       string            `plan:"image"`
	Entrypoint  string            `plan:"entrypoint"` // "": see Server.Entrypoint
	Command     []string          `plan:"command"`    // nil: the engine's own command; see Server.Launch
	Env         map[string]string `plan:"env"`
	GPUs        int               `plan:"gpus"`         // 0: none
	GPUResource string            `plan:"gpu_resource"` // the cluster's name of a GPU
	Namespace   string            `plan:"namespace"`    // "": kubectl's own
	Template    Tree              // the pod on which the pod is built; nil: none
	File        string            // path of the template, as the plan writes it
	Inside      int               `plan:"container_port"` // port of the server in the pod
	ServedAs    string            `plan:"served_as"`      // model id in requests; "" takes the id that /v1/models lists
	Place       Place             // set by the run
	Range       hcl.Range
}

// declare is the part of Server.Declared that is of a pod.
func (p *Pod) declare(set func(key, value string)) {
	set("image", p.Image)
	set("entrypoint", p.Entrypoint)
	set("command", strings.Join(p.Command, " "))
	setEnv(p.Env, set)
	if p.GPUs > 0 {
		set("gpus", strconv.Itoa(p.GPUs))
		set("gpu_resource", p.GPUResource)
	}
	set("namespace", p.Namespace)
	if p.Template != nil {
		raw, _ := json.Marshal(p.Template) // what has no JSON is refused when the pod is created
		sum := sha256.Sum256(raw)
		set("template", "sha256:"+hex.EncodeToString(sum[:4]))
	}
}

// Place says where a pod must run: on a node of that name, or on any other node. The zero value is any node.
type Place struct {
	Node string
	Away bool
}

// Tree is a mapping of YAML: its values are scalars, lists ([]any) and Trees.
type Tree = map[string]any

// Under returns the mapping at a key; nil if there is none.
func Under(t Tree, key string) Tree {
	m, _ := t[key].(Tree)
	return m
}

// each returns the mappings in the list at a key.
func each(t Tree, key string) (out []Tree) {
	list, _ := t[key].([]any)
	for _, x := range list {
		if m, ok := x.(Tree); ok {
			out = append(out, m)
		}
	}
	return out
}

// Containers returns all containers of the template, those that only start the pod too.
func (p *Pod) Containers() []Tree {
	spec := Under(p.Template, "spec")
	return slices.Concat(each(spec, "containers"), each(spec, "initContainers"))
}

// Images lists the images of the template's other containers.
func (p *Pod) Images() (images []string) {
	main := p.Main()
	for _, c := range p.Containers() {
		if image, ok := c["image"].(string); ok && c["name"] != main["name"] {
			images = append(images, image)
		}
	}
	return images
}

// Images lists the images that a start of the server may have to pull.
func (s *Server) Images() []string {
	switch {
	case s.Container != nil:
		return []string{s.Container.Image}
	case s.Pod != nil:
		return append(s.Pod.Images(), s.Pod.Image)
	}
	return nil
}

// Commands lists the commands of the template as it writes them, each as its words: those of its
// containers, hooks and probes.
func (p *Pod) Commands() (commands [][]string) {
	add := func(lists ...any) {
		var words []string
		for _, list := range lists {
			list, _ := list.([]any)
			for _, word := range list {
				words = append(words, fmt.Sprint(word))
			}
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	for _, c := range p.Containers() {
		add(c["command"], c["args"])
		for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			add(Under(Under(c, key), "exec")["command"])
		}
		for _, key := range []string{"postStart", "preStop"} {
			add(Under(Under(Under(c, "lifecycle"), key), "exec")["command"])
		}
	}
	return commands
}

// Variables lists the environment variables that the template sets, in the order of its containers.
func (p *Pod) Variables() (names []string) {
	for _, c := range p.Containers() {
		for _, env := range each(c, "env") {
			names = append(names, fmt.Sprint(env["name"]))
		}
	}
	return names
}

// What a template may say without giving the pod anything of its node, or of the rights and secrets of its
// namespace. Any other key is a grant, also one that Kubernetes has not yet.
var (
	plainVolumes = []string{"name", "configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
	plainSpec    = []string{"activeDeadlineSeconds", "affinity", "containers", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostname",
		"imagePullSecrets", "initContainers", "nodeSelector", "os", "preemptionPolicy", "readinessGates", "resources", "restartPolicy",
		"schedulerName", "schedulingGates", "securityContext", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
		"terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes"}
	plainSecurity = []string{"allowPrivilegeEscalation", "capabilities", "fsGroup", "fsGroupChangePolicy", "readOnlyRootFilesystem", "runAsGroup",
		"runAsNonRoot", "runAsUser", "supplementalGroups", "supplementalGroupsPolicy", "sysctls"}
)

// grants is a set of what a template gives a pod.
type grants map[string]bool

// add adds what, or "what=which". Nothing and false are no grant.
func (g grants) add(what string, which any) {
	switch which := which.(type) {
	case nil:
	case bool:
		if which {
			g[what] = true
		}
	case Tree, []any:
		g[what] = true
	default:
		g[what+"="+fmt.Sprint(which)] = true
	}
}

func (g grants) unless(plain []string, of Tree) {
	for key, value := range of {
		if !slices.Contains(plain, key) {
			g.add(key, value)
		}
	}
}

// Grants lists what the template gives the pod of its node, and of the rights and secrets of its
// namespace, as "what" or "what=which", in ascending order.
func (p *Pod) Grants() []string {
	g := grants{}
	spec := Under(p.Template, "spec")
	g.unless(plainSpec, spec)
	for _, secret := range each(spec, "imagePullSecrets") {
		g.add("secret", secret["name"])
	}
	for _, v := range each(spec, "volumes") {
		g.volume(v)
	}
	g.security(Under(spec, "securityContext"))
	for _, c := range p.Containers() {
		g.security(Under(c, "securityContext"))
		for _, port := range each(c, "ports") {
			g.add("hostPort", port["hostPort"])
		}
		for _, from := range each(c, "envFrom") {
			g.add("secret", Under(from, "secretRef")["name"])
		}
		for _, env := range each(c, "env") {
			g.add("secret", Under(Under(env, "valueFrom"), "secretKeyRef")["name"])
		}
	}
	return slices.Sorted(maps.Keys(g))
}

func (g grants) volume(v Tree) {
	for kind := range v {
		of := Under(v, kind)
		switch {
		case slices.Contains(plainVolumes, kind):
		case kind == "hostPath":
			g.add(kind, of["path"])
		case kind == "secret":
			g.add(kind, of["secretName"])
		case kind == "projected":
			for _, source := range each(of, "sources") {
				g.add("secret", Under(source, "secret")["name"])
				g.add("automountServiceAccountToken", source["serviceAccountToken"] != nil)
			}
		default:
			g.add("volume", kind)
		}
	}
}

func (g grants) security(of Tree) {
	for key, value := range of {
		profile := Under(of, key)["type"]
		switch {
		case profile == "RuntimeDefault" && (key == "seccompProfile" || key == "appArmorProfile"):
		case profile != nil:
			g.add(key, profile)
		case !slices.Contains(plainSecurity, key):
			g.add(key, value)
		}
	}
	added, _ := Under(of, "capabilities")["add"].([]any)
	for _, name := range added {
		g.add("capability", name)
	}
	for _, sysctl := range each(of, "sysctls") {
		g.add("sysctl", sysctl["name"])
	}
}

// Lost lists the folders of the server's container that are empty at each start, because they are of an
// emptyDir on a disk. A cache of models there is filled again each time.
func (p *Pod) Lost() (paths []string) {
	empty := map[any]bool{}
	for _, v := range each(Under(p.Template, "spec"), "volumes") {
		if dir, ok := v["emptyDir"].(Tree); ok && dir["medium"] != "Memory" {
			empty[v["name"]] = true
		} else if x, there := v["emptyDir"]; there && x == nil {
			empty[v["name"]] = true
		}
	}
	for _, mount := range each(p.Main(), "volumeMounts") {
		if path, ok := mount["mountPath"].(string); ok && empty[mount["name"]] && !strings.HasPrefix(path, "/tmp") {
			paths = append(paths, path)
		}
	}
	return paths
}

// MainContainer is the name of the container of the server, if the template has several. Without one of
// that name it is the first.
const MainContainer = "server"

// Main returns the container of the template in which the server runs; nil if there is none.
func (p *Pod) Main() Tree {
	list := each(Under(p.Template, "spec"), "containers")
	for _, c := range list {
		if c["name"] == MainContainer {
			return c
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}
