package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve starts the built-in server in a pod, and returns its URL.
func serve(t *testing.T, namespace, name string, flags ...string) string {
	t.Helper()
	args := append([]string{"sim", "--listen=0.0.0.0:8000"}, flags...)
	apply(t, namespace, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"restartPolicy": "Never", "containers": [
		{"name": "sim", "image": %q, "args": ["%s"], "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}}]}}`,
		name, up.tokgate, strings.Join(args, `", "`)))
	must(t, "wait", "-n", namespace, "--for=condition=Ready", "--timeout=120s", "pod/"+name)
	return "http://" + must(t, "get", "-n", namespace, "pod/"+name, "-o", "jsonpath={.status.podIP}") + ":8000"
}

const gate = `server "s" {
  engine = "vllm"
  endpoint { url = "%[1]s" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 120, jitter = "50%%" }
  load {
    concurrency = 6
    requests    = 72
  }
  sla { ttft = "p95 < %[2]s" }
}
`

const capacity = `server "s" {
  engine = "vllm"
  endpoint { url = "%[1]s" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 120, jitter = "50%%" }
  sla {
    at   = "capacity"
    ttft = "p95 < %[2]s"
  }
  capacity {
    from       = 3
    up_to      = 6
    resolution = 3
    require    = 3
  }
}
`

const comparison = `server "s" {
  for_each = { old = "%[1]s", new = "%[2]s" }
  engine = "vllm"
  endpoint { url = each.value }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 120, jitter = "50%%" }
  load {
    concurrency = 6
    requests    = 6 * 24
  }
}
compare "upgrade" {
  control   = server.s["old"]
  candidate = server.s["new"]
  changed   = ["url"]
  rounds    = 6
  tolerate { ttft = "p95 +100%%" }
}
`

// Three pods of the printed manifest send the load of each kind of plan, for a server that is good enough and for one
// that is not.
func TestWorkers(t *testing.T) {
	ns := space(t, "workers")
	good, slow, slower := serve(t, ns, "good"), serve(t, ns, "slow", "--fault=late:delay=1s"), serve(t, ns, "slower", "--fault=late:delay=4s")
	for _, x := range []struct {
		name, plan string
		code       int
		words      string
	}{
		{"gate-green", fmt.Sprintf(gate, good, "1s"), 0, "PASS"},
		{"gate-red", fmt.Sprintf(gate, slower, "1s"), 1, "FAIL"},
		{"capacity-green", fmt.Sprintf(capacity, good, "1s"), 0, "PASS"},
		{"capacity-red", fmt.Sprintf(capacity, slower, "1s"), 1, "FAIL"},
		{"compare-green", fmt.Sprintf(comparison, slow, slow), 0, "PASS"},
		{"compare-red", fmt.Sprintf(comparison, slow, slower), 1, "FAIL"},
	} {
		t.Run(x.name, func(t *testing.T) {
			measured(t, func() *command {
				run := crew(t, ns, x.plan)
				run.code(t)
				must(t, "wait", "-n", ns, "--for=condition=Complete", "--timeout=60s", "job/tokgate-workers")
				phases := must(t, "get", "pods", "-n", ns, "-l", "job-name=tokgate-workers", "-o", "jsonpath={.items[*].status.phase}")
				if phases != "Succeeded Succeeded Succeeded" {
					t.Errorf("the workers: %s", phases)
				}
				dismiss(t, ns)
				return run
			}).ends(t, x.code, x.words)
		})
	}
}

// A worker whose pod is deleted or evicted in the middle ends the run, which names it.
func TestWorkersAreLost(t *testing.T) {
	ns := space(t, "lost")
	url := serve(t, ns, "good")
	for i := range *times {
		run := crew(t, ns, strings.Replace(fmt.Sprintf(gate, url, "1s"), "requests    = 72", "duration    = \"5m\"", 1))
		run.after(t, "w at 6 on s")
		time.Sleep(time.Duration(i%20) * 100 * time.Millisecond)
		pods := strings.Fields(must(t, "get", "pods", "-n", ns, "-l", "job-name=tokgate-workers", "-o", "jsonpath={.items[*].metadata.name}"))
		victim := pods[i%len(pods)]
		began := time.Now()
		if i%2 == 0 {
			must(t, "delete", "pod", "-n", ns, victim, "--wait=false")
		} else if _, err := up.kubectlWith(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, victim),
			"create", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+victim+"/eviction", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(victim, "-"+victim[strings.LastIndex(victim, "-")+1:]) // the machine's name, without the random end
		run.ends(t, 4, "worker "+name+" was lost")
		t.Logf("the run ended %v after its worker's pod", time.Since(began).Round(time.Millisecond))
		must(t, "wait", "-n", ns, "--for=condition=Failed", "--timeout=90s", "job/tokgate-workers")
		dismiss(t, ns)
	}
}

// crew begins a run, and the Job of its three workers.
func crew(t *testing.T, namespace, plan string) *command {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan.hcl"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	run := begin(t, dir, "run", "plan.hcl", "--workers=3", "--token-file=token", "--listen=10.77.0.1:7443", "--out=results")
	join := run.after(t, "tokgate worker --join ")
	print := exec.Command(*tool, "worker", "--join", join, "--token-file=token", "--fingerprint", run.after(t, "--fingerprint "),
		"--manifest=kubernetes", "--workers=3", "--image="+up.tokgate, "--cpus=1")
	print.Dir = dir
	manifest, err := print.Output()
	if err != nil {
		t.Fatal(err)
	}
	apply(t, namespace, string(manifest))
	return run
}

// dismiss removes a Job and what belongs to it, and waits until its name is free.
func dismiss(t *testing.T, namespace string) {
	t.Helper()
	must(t, "delete", "-n", namespace, "job/tokgate-workers", "secret/tokgate-workers", "service/tokgate-workers", "--cascade=foreground", "--wait")
}
