package kubetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// rights is what tokgate needs in a namespace when it is outside the cluster; see docs/kubernetes/gate.yaml.
var rights = []string{"create pods", "delete pods", "get pods", "list pods", "patch pods", "watch pods", "get pods/log", "create pods/portforward"}

// user makes a service account with rights, and its kubeconfig in a folder.
func user(t *testing.T, namespace, dir string, rights []string) {
	t.Helper()
	var rules []string
	for _, r := range rights {
		verb, resource, _ := strings.Cut(r, " ")
		rules = append(rules, fmt.Sprintf(`{"apiGroups": [""], "resources": [%q], "verbs": [%q]}`, resource, verb))
	}
	name := fmt.Sprintf("user-%08x", rand.Uint32())
	apply(t, namespace, fmt.Sprintf(`{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": %[1]q}},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": %[1]q}, "rules": [%[3]s]},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": %[1]q},
			"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": %[1]q},
			"subjects": [{"kind": "ServiceAccount", "name": %[1]q, "namespace": %[2]q}]}]}`, name, namespace, strings.Join(rules, ", ")))
	token := strings.TrimSpace(must(t, "create", "token", name, "-n", namespace))
	a := authority{dir: up.dir}
	if err := a.config(name, "token: "+token); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(up.dir+"/"+name+".conf", dir+"/kubeconfig"); err != nil {
		t.Fatal(err)
	}
}

// folder makes a folder with a plan and the kubeconfig of a user with all rights.
func folder(t *testing.T, namespace, plan string) string {
	t.Helper()
	dir := t.TempDir()
	user(t, namespace, dir, rights)
	write(t, dir, plan)
	return dir
}

func write(t *testing.T, dir, plan string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "plan.hcl"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
}

// left lists the pods of tokgate in a namespace.
func left(t *testing.T, namespace string) []string {
	t.Helper()
	return strings.Fields(must(t, "get", "pods", "-n", namespace, "-l", "tokgate.dev/run", "-o", "jsonpath={.items[*].metadata.name}"))
}

// nothingLeft looks for pods after a run. One that ignores its end lives until the cluster's patience is over, which
// the run says.
func nothingLeft(t *testing.T, namespace string, after *command) {
	t.Helper()
	for range 40 {
		if !strings.Contains(after.String(), "is still being deleted") || len(left(t, namespace)) == 0 {
			break
		}
		time.Sleep(time.Second)
	}
	if pods := left(t, namespace); len(pods) != 0 {
		t.Errorf("left: %q\n%s", pods, after)
	}
}

// simulated is a pod with the built-in server. An image says how late it answers.
func simulated(namespace, image string) string {
	return fmt.Sprintf(`pod {
    image          = %q
    entrypoint     = "/tokgate"
    command        = ["sim", "--listen", "0.0.0.0:{port}", "--faults", "/faults.json"]
    container_port = 8000
    namespace      = %q
  }`, image, namespace)
}

const single = `server "s" {
  engine = "vllm"
  %s
  ready { timeout = "60s" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 40, jitter = "50%%" }
  load {
    concurrency = 4
    requests    = %s
  }
  sla { ttft = "p95 < 2s" }
}
`

// brief lets a dozen requests decide.
const brief = `gate {
  decide = "estimate"
}
`

const pair = `server "old" {
  engine = "vllm"
  %[1]s
}
server "new" {
  engine = "vllm"
  %[2]s
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 40, jitter = "50%%" }
  load {
    concurrency = 4
    requests    = 6 * 24
  }
}
compare "upgrade" {
  control   = server.old
  candidate = server.new
  changed   = ["image"]
  rounds    = 6
  tolerate { ttft = "p95 +100%%" }
}
`

// An A/B of two images in pods: all starts of both sides are on one node of two.
func TestPodsCompare(t *testing.T) {
	for name, x := range map[string]struct {
		image string
		code  int
	}{
		"green": {up.tokgate, 0},
		"red":   {up.slower, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ns := space(t, "compare-"+name)
			dir := folder(t, ns, fmt.Sprintf(pair, simulated(ns, up.tokgate), simulated(ns, x.image)))
			run := measured(t, func() *command { return begin(t, dir, "run", "plan.hcl", "--out=results") })
			run.ends(t, x.code)
			nothingLeft(t, ns, run)
			nodes := strings.Fields(must(t, "get", "events", "-n", ns, "--field-selector=reason=Scheduled", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`))
			nodes = slices.DeleteFunc(nodes, func(w string) bool { return !strings.HasPrefix(w, "node") })
			starts := len(nodes)
			slices.Sort(nodes)
			if nodes = slices.Compact(nodes); starts < 2 || len(nodes) != 1 {
				t.Errorf("%d starts were on %q", starts, nodes)
			}
			t.Logf("%d starts on %q", starts, nodes)
		})
	}
}

// What Kubernetes says about a pod that cannot serve is what tokgate says; it exits with 4.
func TestPodsFail(t *testing.T) {
	ns := space(t, "fail")
	of := func(image, more string) string {
		return fmt.Sprintf(`pod {
    image          = %q
    entrypoint     = "/container"
    command        = [%s]
    container_port = 8000
    namespace      = %q
    %s
  }`, image, `"`+image[len("localhost/"):strings.Index(image, ":")]+`"`, ns, more)
	}
	template := func(dir, spec string) {
		raw := fmt.Sprintf("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - name: server\n      image: any\n%s\n", spec)
		if err := os.WriteFile(dir+"/pod.yaml", []byte(raw), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name, pod string
		template  string
		harm      func(t *testing.T, pod string) // once it runs
		words     []string
	}{
		{"pull", of("localhost/nosuch:1", ""), "", nil, []string{"localhost/nosuch:1"}},
		{"unschedulable", of("localhost/hang:1", `gpus = 3
    gpu_resource = "example.com/gpu"`), "", nil, []string{"0/2 nodes are available", "Insufficient example.com/gpu"}},
		{"oom", of("localhost/eat:1", `template = "pod.yaml"`), "      resources: {limits: {memory: 64Mi}}", nil, []string{"OOMKilled", "loading the weights"}},
		{"deadline", of("localhost/hang:1", `template = "pod.yaml"`), "  activeDeadlineSeconds: 6", nil, []string{"DeadlineExceeded"}},
		{"eviction", of("localhost/hang:1", ""), "", func(t *testing.T, pod string) {
			if _, err := up.kubectlWith(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, pod),
				"create", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+pod+"/eviction", "-f", "-"); err != nil {
				t.Error(err)
			}
		}, []string{"EvictionByEvictionAPI"}},
		{"ended", of("localhost/fail:1", ""), "", nil, []string{"exit code 3", "no such model"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			for range *times {
				dir := folder(t, ns, fmt.Sprintf(single, x.pod, "100"))
				if x.template != "" {
					template(dir, x.template)
				}
				run := begin(t, dir, "run", "plan.hcl", "--out=results")
				if x.harm != nil {
					x.harm(t, running(t, ns))
				}
				run.ends(t, 4, x.words...)
				nothingLeft(t, ns, run)
			}
		})
	}
}

// running waits until a pod of tokgate runs, and returns its name.
func running(t *testing.T, namespace string) (name string) {
	t.Helper()
	err := await(2*time.Minute, func() error {
		name = strings.TrimSpace(must(t, "get", "pods", "-n", namespace, "-l", "tokgate.dev/run", "--field-selector=status.phase=Running", "-o",
			"jsonpath={range .items[*]}{.metadata.name}{\" \"}{end}"))
		if name == "" {
			return fmt.Errorf("no pod runs")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// The rights that are named are enough, and a message names each one that is missing.
func TestPodsRights(t *testing.T) {
	ns := space(t, "rights")
	for i, without := range append([]string{""}, rights...) {
		t.Run("without "+without, func(t *testing.T) {
			dir := folder(t, ns, fmt.Sprintf(single, simulated(ns, up.tokgate), "60"))
			code, words := 0, []string(nil)
			if without != "" {
				user(t, ns, dir, slices.Concat(rights[:i-1], rights[i:]))
				code, words = 4, []string{without}
			}
			run := begin(t, dir, "run", "plan.hcl", "--out=results")
			run.ends(t, code, words...)
			nothingLeft(t, ns, run)
		})
	}
}

// What a killed run left is gone after the next run.
func TestPodsAfterKills(t *testing.T) {
	ns := space(t, "kills")
	dir := folder(t, ns, fmt.Sprintf(brief+single, simulated(ns, up.tokgate), "12"))
	began := time.Now()
	serves(t, begin(t, dir, "run", "plan.hcl", "--out=first"))
	whole, found := time.Since(began), 0
	for i := range *times {
		run := begin(t, dir, "run", "plan.hcl", fmt.Sprintf("--out=killed%d", i))
		time.Sleep(rand.N(whole))
		if i%2 == 0 {
			_ = run.Process.Kill() // the process that supervises the run
		} else { // and all others, as when the machine fails
			_ = exec.Command("pkill", "-KILL", "-s", fmt.Sprint(run.Process.Pid)).Run()
		}
		run.code(t)
		found += len(left(t, ns))
		next := begin(t, dir, "run", "plan.hcl", fmt.Sprintf("--out=next%d", i))
		serves(t, next)
		nothingLeft(t, ns, next)
	}
	t.Logf("%d kills left %d pods, each of which the next run removed", *times, found)
}

// serves waits for the end of a run whose server must have served to the end; a busy machine may have kept it from a verdict.
func serves(t *testing.T, run *command) {
	t.Helper()
	if code := run.code(t); code != 0 && code != 3 && code != 4 || !strings.Contains(run.String(), "server s: done") {
		t.Errorf("exit %d:\n%s", code, run)
	}
}

// Two runs at once in one namespace, of users on two machines, never touch each other's pods.
func TestPodsApart(t *testing.T) {
	ns := space(t, "apart")
	plan := fmt.Sprintf(brief+single, simulated(ns, up.tokgate), "12")
	a, b := folder(t, ns, plan), folder(t, ns, plan)
	for i := range *times {
		out := fmt.Sprintf("--out=results%d", i)
		first := begin(t, a, "run", "plan.hcl", out)
		time.Sleep(rand.N(5 * time.Second))
		second := begin(t, b, "run", "plan.hcl", out)
		serves(t, first)
		serves(t, second)
		nothingLeft(t, ns, second)
	}
}
