package kubetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rights is what tokgate needs in a namespace when it is outside the cluster; see docs/kubernetes/gate.yaml. With
// more it can also say why a pod waits on its node, and how long a pull took.
var rights = []string{"create pods", "delete pods", "get pods", "list pods", "patch pods", "watch pods", "get pods/log", "create pods/portforward"}

const more = "list events"

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

// folder makes a folder with a plan and the kubeconfig of a user with all rights, and more.
func folder(t *testing.T, namespace, plan string) string {
	t.Helper()
	dir := t.TempDir()
	user(t, namespace, dir, append(slices.Clone(rights), more))
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

// nothingLeft looks for pods after a run.
func nothingLeft(t *testing.T, namespace string, after *command) {
	t.Helper()
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

// tries plays something -times, side by side, each in a namespace of its own.
func tries(t *testing.T, name string, try func(t *testing.T, namespace string)) {
	t.Helper()
	for range *times {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, space(t, name))
		})
	}
}

// template writes a template whose only container has the name of the server's; spec goes on below it.
func template(t *testing.T, dir, spec string) {
	t.Helper()
	raw := fmt.Sprintf("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - name: server\n      image: any\n%s\n", spec)
	if err := os.WriteFile(dir+"/pod.yaml", []byte(raw), 0o644); err != nil {
		t.Fatal(err)
	}
}

// unmounted is a template whose volume never comes.
const unmounted = `      volumeMounts: [{name: weights, mountPath: /weights}]
  volumes: [{name: weights, configMap: {name: nosuch}}]`

// What Kubernetes says about a pod that cannot serve is what tokgate says; it exits with 4.
func TestPodsFail(t *testing.T) {
	of := func(image, more string) string {
		return fmt.Sprintf(`pod {
    image          = %q
    entrypoint     = "/container"
    command        = [%s]
    container_port = 8000
    %s
  }`, image, `"`+image[len("localhost/"):strings.Index(image, ":")]+`"`, more)
	}
	for _, x := range []struct {
		name, pod string
		template  string
		harm      func(t *testing.T, namespace, pod string) // once it runs
		words     []string
	}{
		{"pull", of("localhost/nosuch:1", ""), "", nil, []string{"localhost/nosuch:1"}},
		{"unschedulable", of("localhost/hang:1", `gpus = 3
    gpu_resource = "example.com/gpu"`), "", nil, []string{"0/2 nodes are available", "Insufficient example.com/gpu"}},
		{"mount", of("localhost/hang:1", `template = "pod.yaml"`), unmounted, nil, []string{"got no volumes and network on node", `FailedMount: MountVolume.SetUp failed for volume "weights"`}},
		{"oom", of("localhost/eat:1", `template = "pod.yaml"`), "      resources: {limits: {memory: 64Mi}}", nil, []string{"OOMKilled", "loading the weights"}},
		{"deadline", of("localhost/hang:1", `template = "pod.yaml"`), "  activeDeadlineSeconds: 6", nil, []string{"DeadlineExceeded"}},
		{"eviction", of("localhost/hang:1", ""), "", func(t *testing.T, ns, pod string) {
			if _, err := up.kubectlWith(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, pod),
				"create", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+pod+"/eviction", "-f", "-"); err != nil {
				t.Error(err)
			}
		}, []string{"EvictionByEvictionAPI"}},
		{"ended", of("localhost/fail:1", ""), "", nil, []string{"exit code 3", "no such model"}},
	} {
		tries(t, x.name, func(t *testing.T, ns string) {
			dir := folder(t, ns, strings.Replace(fmt.Sprintf(single, x.pod, "100"), "pod {", fmt.Sprintf("pod {\n    namespace = %q", ns), 1))
			if x.template != "" {
				template(t, dir, x.template)
			}
			run := begin(t, dir, "run", "plan.hcl", "--out=results")
			if x.harm != nil {
				x.harm(t, ns, running(t, ns))
			}
			run.ends(t, 4, x.words...)
			nothingLeft(t, ns, run)
		})
	}
}

// A pull may take longer than the server to be ready; it is timed, and no part of the start.
func TestPodsPull(t *testing.T) {
	ns := space(t, "pull")
	const slow = 30 * time.Second
	name := fmt.Sprintf("late:%08x", rand.Uint32())
	unknown := t.TempDir() + "/unknown" // or the nodes would know the files from another image
	if err := os.WriteFile(unknown, []byte(name), 0o644); err != nil {
		t.Fatal(err)
	}
	m := image{name: "localhost/" + name, file: *tool, more: []string{up.dir + "/quick/faults.json", unknown}}
	registry(t, m, slow)
	dir := folder(t, ns, strings.Replace(fmt.Sprintf(brief+single, simulated(ns, m.name), "12"), `timeout = "60s"`, `timeout = "15s"`, 1))
	run := begin(t, dir, "run", "plan.hcl", "--out=results")
	serves(t, run)
	raw, err := os.ReadFile(dir + "/results/results.json")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), `"pull_ns":`)
	var pull time.Duration
	if _, err := fmt.Sscan(strings.TrimLeft(after, " "), &pull); err != nil || pull < slow-time.Second {
		t.Errorf("a pull of %v took %v (%v)", slow, pull, err)
	}
	t.Logf("a pull of %v took %v", slow, pull)
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
			code, words, given := 0, []string(nil), rights
			if without != "" {
				code, words, given = 4, []string{without}, slices.Concat(rights[:i-1], rights[i:])
			}
			user(t, ns, dir, given)
			run := begin(t, dir, "run", "plan.hcl", "--out=results")
			run.ends(t, code, words...)
			nothingLeft(t, ns, run)
		})
	}
}

// What a killed run left is gone after the next run.
func TestPodsAfterKills(t *testing.T) {
	plan := func(ns string) string { return fmt.Sprintf(brief+single, simulated(ns, up.tokgate), "12") }
	ns := space(t, "whole")
	began := time.Now()
	serves(t, begin(t, folder(t, ns, plan(ns)), "run", "plan.hcl", "--out=first"))
	whole := time.Since(began)
	var kills, found atomic.Int32
	t.Run("kills", func(t *testing.T) {
		tries(t, "kill", func(t *testing.T, ns string) {
			dir := folder(t, ns, plan(ns))
			run := begin(t, dir, "run", "plan.hcl", "--out=killed")
			time.Sleep(rand.N(whole))
			if kills.Add(1)%2 == 0 {
				_ = run.Process.Kill() // the process that supervises the run
			} else { // and all others, as when the machine fails
				_ = exec.Command("pkill", "-KILL", "-s", fmt.Sprint(run.Process.Pid)).Run()
			}
			run.code(t)
			found.Add(int32(len(left(t, ns))))
			next := begin(t, dir, "run", "plan.hcl", "--out=next")
			serves(t, next)
			nothingLeft(t, ns, next)
		})
	})
	t.Logf("%d kills left %d pods, each of which the next run removed", kills.Load(), found.Load())
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
	tries(t, "apart", func(t *testing.T, ns string) {
		plan := fmt.Sprintf(brief+single, simulated(ns, up.tokgate), "12")
		first := begin(t, folder(t, ns, plan), "run", "plan.hcl", "--out=results")
		time.Sleep(rand.N(5 * time.Second))
		second := begin(t, folder(t, ns, plan), "run", "plan.hcl", "--out=results")
		serves(t, first)
		serves(t, second)
		nothingLeft(t, ns, second)
	})
}

// Side by side, the two servers are on two nodes, and swap them every round, or there is no verdict. A round that is
// measured again has the nodes of the first try.
func TestPodsSideBySide(t *testing.T) {
	ns := ""
	run := measured(t, func() *command {
		ns = space(t, "beside")
		plan := fmt.Sprintf(pair, simulated(ns, up.tokgate), simulated(ns, up.tokgate))
		plan = strings.Replace(plan, "rounds    = 6", "rounds    = 6\n  side_by_side = true", 1)
		return begin(t, folder(t, ns, plan), "run", "plan.hcl", "--out=results")
	})
	run.ends(t, 0)
	nothingLeft(t, ns, run)
	nodes := map[string][]string{} // of the starts of each side, in their order
	said := must(t, "get", "events", "-n", ns, "--field-selector=reason=Scheduled", "--sort-by=.metadata.creationTimestamp", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
	for line := range strings.Lines(said) {
		for _, side := range []string{"old", "new"} {
			if strings.Contains(line, "-"+side+"-") {
				nodes[side] = append(nodes[side], line[strings.LastIndex(line, " ")+1:len(line)-1])
			}
		}
	}
	for i, node := range nodes["old"] {
		if i >= len(nodes["new"]) || nodes["new"][i] == node {
			t.Fatalf("old was on %q, new on %q", nodes["old"], nodes["new"])
		}
	}
	if !slices.Contains(nodes["old"], "node0") || !slices.Contains(nodes["old"], "node1") {
		t.Errorf("old was on %q", nodes["old"])
	}
	t.Logf("old was on %q, new on %q", nodes["old"], nodes["new"])
}

// gateYAML is the Job in the docs, with an image that is there, and a volume for its claim.
func gateYAML(t *testing.T, namespace string) (manifest, results string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/kubernetes/gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	results = fmt.Sprintf("%s/results-%s", up.dir, namespace)
	if err := os.MkdirAll(results, 0o777); err != nil {
		t.Fatal(err)
	}
	apply(t, namespace, fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %[1]q}, "spec": {"capacity": {"storage": "10Gi"},
		"accessModes": ["ReadWriteOnce"], "hostPath": {"path": %[2]q}, "claimRef": {"namespace": %[1]q, "name": "tokgate-results"}}}`, namespace, results))
	t.Cleanup(func() { must(t, "delete", "persistentvolume", namespace, "--wait=false") })
	return strings.NewReplacer("namespace: gates", "namespace: "+namespace, "registry.example/tokgate", up.gate).Replace(string(raw)), results
}

// job starts the Job in the docs with a plan, and returns where its results stay.
func job(t *testing.T, namespace, ttft, requests string) (results string) {
	t.Helper()
	manifest, results := gateYAML(t, namespace)
	plan := fmt.Sprintf(brief+single, simulated(namespace, up.tokgate), requests)
	plan = strings.NewReplacer("p95 < 2s", "p95 < "+ttft, fmt.Sprintf("namespace      = %q", namespace), "").Replace(plan)
	must(t, "create", "-n", namespace, "configmap", "tokgate-plan", "--from-literal=gate.hcl="+plan)
	apply(t, namespace, manifest)
	return results
}

// tokgate in the cluster reaches the pods by their addresses, and its results outlive its own pod.
func TestPodsFromInside(t *testing.T) {
	for _, x := range []struct{ name, ttft, code string }{{"green", "2s", "0"}, {"red", "100ms", "1"}} {
		t.Run(x.name, func(t *testing.T) {
			code := "4"
			for again := 0; code == "4" && again < 10; again++ { // a busy machine
				ns := space(t, "inside-"+x.name)
				results := job(t, ns, x.ttft, "12")
				must(t, "wait", "-n", ns, "--for=jsonpath={.status.conditions[*].type}", "--timeout=10m", "job/tokgate")
				said := must(t, "logs", "-n", ns, "job/tokgate")
				code = must(t, "get", "pods", "-n", ns, "-l", "job-name=tokgate", "-o", "jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}")
				t.Logf("exit %s", code)
				if pods := left(t, ns); len(pods) != 0 {
					t.Errorf("left: %q", pods)
				}
				must(t, "delete", "-n", ns, "job/tokgate", "--cascade=foreground", "--wait")
				kept, _ := filepath.Glob(results + "/*/results.json")
				if len(kept) != 1 {
					t.Fatalf("%d results are kept:\n%s", len(kept), said)
				}
				if raw, err := os.ReadFile(kept[0]); err != nil || strings.Contains(string(raw), "port-forward") || !strings.Contains(string(raw), `"node"`) {
					t.Errorf("%v\n%s", err, raw)
				}
			}
			if code != x.code {
				t.Errorf("exit %s, not %s", code, x.code)
			}
		})
	}
}

// If tokgate's own pod is gone at once, Kubernetes removes those of its servers.
func TestPodsOfALostJob(t *testing.T) {
	tries(t, "lost", func(t *testing.T, ns string) {
		job(t, ns, "2s", "2000")
		running(t, ns)
		must(t, "delete", "pods", "-n", ns, "-l", "job-name=tokgate", "--grace-period=0", "--force")
		if err := await(2*time.Minute, func() error {
			if pods := left(t, ns); len(pods) > 0 {
				return fmt.Errorf("left: %q", pods)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
