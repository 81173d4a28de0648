//go:build unix

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// kubectlScript is a shell script that stands in for kubectl: it replays what kubectl printed about a pod of a
// real cluster, from testdata/kubectl. The server is this test binary, behind the forwarded port. A
// test replaces the words DIR, SELFPATH and MODEWORD.
const kubectlScript = `
S=DIR; SELF=SELFPATH; MODE=MODEWORD
printf '%s\n' "$*" >> $S/calls
[ ! -f $S/no-$1 ] || { cat $S/no-$1 >&2; exit 1; }
tested() { [ -d $S ] && kill -0 $PPID 2>/dev/null; } # else nobody waits any more
named() { sed "s/NAME/$(cat $S/name)/" $S/$1; }
case "$1 $2" in
"create "*)
	cat > $S/created
	if grep -q SelfSubjectAccessReview $S/created; then cat $S/rights; exit; fi
	[ ! -f $S/quota ] || { cat $S/quota >&2; exit 1; }
	cp $S/created $S/manifest
	sed -n 's/.*"name":"\(tokgate-[^"]*\)".*/\1/p' $S/manifest | head -1 > $S/name
	touch $S/there; named pending ;;
"get pod")
	case "$*" in
	*--watch*)
		for e in pending running; do
			[ -f $S/$e ] && { printf '{"type":"MODIFIED","object":'; named $e; echo '}'; }
		done
		while tested && [ ! -f $S/next ]; do sleep 0.02; done
		[ -f $S/next ] && { printf '{"type":"MODIFIED","object":'; named next; echo '}'; }
		while tested && [ -f $S/there ]; do sleep 0.02; done ;;
	*"output name"*) [ -f $S/there ] && echo pod/x ;;
	*) cat $S/owner 2>/dev/null ;;
	esac ;;
"config "*) cat $S/cluster 2>/dev/null ;;
"get --output") case "$*" in
	*" events "*) [ ! -f $S/no-events ] || { cat $S/no-events >&2; exit 1; }; cat $S/events ;;
	*selector*) cat $S/list ;;
	*) cat $S/owner 2>/dev/null ;;
	esac ;;
"logs "*) case "$*" in *--tail*) cat $S/whole 2>/dev/null; exit ;; esac
	while tested && [ ! -f $S/log ]; do sleep 0.02; done
	exec 3< $S/log
	while tested; do cat <&3; [ -f $S/there ] && [ ! -f $S/next ] || exit; sleep 0.02; done ;;
"port-forward "*) TOKGATE_TEST_CHILD=$MODE exec "$SELF" in-pod --port ${3%:*} >> $S/log 2>&1 ;;
"delete "*) rm -f $S/there ;;
esac
exit 0
`

// newKubectl returns a stand-in for kubectl that knows one pod.
func newKubectl(t *testing.T, mode string) dock {
	t.Helper()
	self := must.Get(os.Executable())(t)
	d := dock{t.TempDir()}
	path := bin(t)
	for _, tool := range []string{"sed", "grep", "head", "cp"} {
		from := "/bin/" + tool
		if _, err := os.Stat(from); err != nil {
			from = "/usr/bin/" + tool
		}
		_ = os.Symlink(from, filepath.Join(path, tool))
	}
	script(t, path, "kubectl", strings.NewReplacer("DIR", d.dir, "SELFPATH", self, "MODEWORD", mode).Replace(kubectlScript))
	for _, name := range []string{"pending", "running"} {
		d.replays(t, name, name)
	}
	d.put(t, "list", `{"items": []}`)
	d.put(t, "events", `{"items": []}`)
	var rights []string
	for _, r := range podRights(false) {
		rights = append(rights, fmt.Sprintf(`{"spec":{"resourceAttributes":{"verb":%q,"resource":%q,"subresource":%q}},"status":{"allowed":true}}`, r.verb, r.resource, r.sub))
	}
	d.put(t, "rights", strings.Join(rights, "\n"))
	return d
}

// replays makes the stand-in print a recorded pod.
func (d dock) replays(t *testing.T, name, recorded string) {
	t.Helper()
	d.put(t, name, string(must.Get(os.ReadFile(filepath.Join("testdata", "kubectl", recorded+".json")))(t)))
}

func podServer() *plan.Server {
	s := containerServer()
	s.Container = nil
	s.Pod = &plan.Pod{Image: "registry.example.com/engine:v1", Inside: 8000, GPUs: 2, GPUResource: "nvidia.com/gpu", Namespace: "gates",
		Env: map[string]string{"HF_TOKEN": "sk-verysecret"}}
	return s
}

func TestPod(t *testing.T) {
	d := newKubectl(t, "serve")
	l := childLauncher(t)
	target := must.Get(l.Launch(t.Context(), podServer(), func(string) {}))(t)
	for key, want := range map[string]string{"image": "registry.example.com/engine:v1", "node": "node1",
		"image_digest": "sha256:ed6bb9c4c6dfddbec9babba3d0f4fa7362ca9be45e864faf0d4a1c2833067dcf",
		"reached":      "kubectl port-forward, which adds latency", "gpu": ""} {
		must.Same(t, key, want, target.Fingerprint[key])
	}
	var got plan.Tree
	must.Do(t, json.Unmarshal([]byte(d.read("manifest")), &got))
	must.Same(t, "spec", plan.Tree{
		"restartPolicy": "Never", "automountServiceAccountToken": false, "activeDeadlineSeconds": 21600.0,
		"containers": []any{plan.Tree{
			"name": "server", "image": "registry.example.com/engine:v1", "command": []any{"vllm"},
			"args":      []any{"serve", "tokgate-sim", "--host", "0.0.0.0", "--port", "8000", "--max-num-seqs", "64"},
			"resources": plan.Tree{"limits": plan.Tree{"nvidia.com/gpu": 2.0}},
			"env":       []any{plan.Tree{"name": "HF_TOKEN", "value": "sk-verysecret"}, plan.Tree{"name": "VLLM_SERVER_DEV_MODE", "value": "1"}},
		}},
	}, got["spec"].(plan.Tree))
	must.Same(t, "label", any(l.Holder.Run), plan.Under(plan.Under(got, "metadata"), "labels")["tokgate.dev/run"])
	must.Hold(t, !strings.Contains(d.read("calls"), "verysecret"), "a secret is on a command line:\n%s", d.read("calls"))
	must.Do(t, target.Check(t.Context()))
	must.Do(t, target.Close())
	must.Hold(t, !d.has("there"), "it was not removed:\n%s", d.read("calls"))
	nothingHeld(t, l)
}

// What Kubernetes says is why a pod could not be measured.
func TestPodFails(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mode    string
		replays map[string]string
		files   map[string]string
		want    []string
	}{
		{"no node", "serve", map[string]string{"pending": "unschedulable", "running": ""}, nil,
			[]string{"got no node within", "Unschedulable: 0/2 nodes are available: 2 Insufficient example.com/gpu"}},
		{"no volume", "serve", map[string]string{"pending": "mount", "running": "", "events": "events-mount"}, nil,
			[]string{"got no volumes and network on node node0 within 100ms: FailedMount: MountVolume.SetUp failed for volume \"weights\" : configmap \"nosuch\" not found"}},
		{"no volume, and no right to know why", "serve", map[string]string{"pending": "mount", "running": ""},
			map[string]string{"no-events": "Error from server (Forbidden): events is forbidden: User \"u\" cannot list resource \"events\" in API group \"\" in the namespace \"gates\""},
			[]string{"within 100ms: its events say why, but kubectl get: Error from server (Forbidden)", "cannot list resource \"events\""}},
		{"no image", "serve", map[string]string{"running": "imagepull"}, nil, []string{"does not start: ImagePullBackOff: Back-off pulling image"}},
		{"out of memory", "die", map[string]string{"next": "oom"}, nil, []string{"container server ended with exit code 137 (OOMKilled)"}},
		{"deadline", "sleep", map[string]string{"next": "deadline"}, nil, []string{"DeadlineExceeded: Pod was active on the node longer than the specified deadline"}},
		{"evicted", "sleep", map[string]string{"next": "evicted"}, nil, []string{"the pod was disrupted: EvictionByEvictionAPI: Eviction API: evicting"}},
		{"a right is missing", "serve", nil, map[string]string{"rights": `{"spec":{"resourceAttributes":{"verb":"list","resource":"pods"}},"status":{"allowed":true}}
{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","subresource":"log"}},"status":{"allowed":false}}`},
			[]string{"tokgate lacks rights in namespace gates: get pods/log; add them to its Role"}},
		{"no cluster", "serve", nil, map[string]string{
			"no-create": `error: error validating "STDIN": error validating data: failed to download openapi: Get "http://localhost:8080/openapi/v2?timeout=32s": dial tcp 127.0.0.1:8080: connect: connection refused; if you choose to ignore these errors, turn validation off with --validate=false`,
			"no-get": `E1128 16:56:45.414964   25730 memcache.go:265] "Unhandled Error" err="couldn't get current server API group list: Get \"http://localhost:8080/api?timeout=32s\": dial tcp 127.0.0.1:8080: connect: connection refused"
The connection to the server localhost:8080 was refused - did you specify the right host or port?`},
			[]string{"kubectl get: The connection to the server localhost:8080 was refused - did you specify the right host or port? (`kubectl get pods --namespace gates` must work first)"}},
		{"a quota", "serve", nil, map[string]string{"quota": `Error from server (Forbidden): error when creating "STDIN": pods "x" is forbidden: exceeded quota: gpus`},
			[]string{"kubectl create: Error from server (Forbidden)", "exceeded quota: gpus"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newKubectl(t, tt.mode)
			s := podServer()
			for name, recorded := range tt.replays {
				if recorded == "" { // it waits in vain
					s.Ready.Timeout = 100 * time.Millisecond
					must.Do(t, os.Remove(filepath.Join(d.dir, name)))
				} else {
					d.replays(t, name, recorded)
				}
			}
			for name, text := range tt.files {
				d.put(t, name, text)
			}
			l := childLauncher(t)
			_, err := l.Launch(t.Context(), s, func(string) {})
			must.Need(t, err != nil, "it started")
			for _, want := range tt.want {
				must.Hold(t, strings.Contains(err.Error(), want), "%v, want %q", err, want)
			}
			must.Hold(t, !d.has("there"), "the pod was left:\n%s", d.read("calls"))
			nothingHeld(t, l)
		})
	}
}

// Only pods of dead runs are removed: nobody has touched them for two minutes, or their tokgate's own pod
// has ended. Times are those of the cluster.
func TestDeadPods(t *testing.T) {
	at := func(s string) string { return `"2026-11-28T` + s + `Z"` } // the own pod is of 14:00:05
	item := func(run, changed, owner string) string {
		return fmt.Sprintf(`{"metadata":{"name":"tokgate-%s","labels":{"tokgate.dev/run":%q},"creationTimestamp":%s,"managedFields":[{"time":%s}]%s}}`,
			run, run, at("09:00:00"), at(changed), owner)
	}
	owned := `,"ownerReferences":[{"kind":"Pod","name":"job","uid":"u1"}]`
	for _, tt := range []struct {
		name    string
		item    string
		owner   string
		removed bool
	}{
		{"changed two minutes ago", item("a", "13:58:05", ""), "", false},
		{"changed earlier", item("a", "13:58:04", ""), "", true},
		{"its owner has ended", item("a", "13:59:59", owned), `{"metadata":{"uid":"u1"},"status":{"phase":"Failed"}}`, true},
		{"its owner runs", item("a", "13:59:59", owned), `{"metadata":{"uid":"u1"},"status":{"phase":"Running"}}`, false},
		{"another pod has its owner's name", item("a", "13:59:59", owned), `{"metadata":{"uid":"u2"},"status":{"phase":"Running"}}`, true},
		{"its owner is gone", item("a", "13:59:59", owned), "", true},
	} {
		d := newKubectl(t, "serve")
		d.put(t, "list", `{"items":[`+tt.item+`]}`)
		if tt.owner != "" {
			d.put(t, "owner", tt.owner)
		}
		l := childLauncher(t)
		target := must.Get(l.Launch(t.Context(), podServer(), func(string) {}))(t)
		removed := strings.Contains(d.read("calls"), "delete pod tokgate-a ")
		must.Hold(t, removed == tt.removed, "%s: removed %v", tt.name, removed)
		must.Do(t, target.Close())
	}
}

// A pod of a killed run on this machine is known by its note, and removed at once.
func TestPodLeftBehind(t *testing.T) {
	d := newKubectl(t, "serve")
	l := childLauncher(t)
	d.put(t, "there", "")
	note := must.Get(l.State.Begin(lease.Server{Holder: lease.Holder{Run: "dead"}, Container: "tokgate-dead-1", Runtime: kubernetes, Namespace: "gates"}))(t)
	note.Leave()
	_ = must.Get(l.leftovers(t.Context(), containerServer(), func(string) {}))(t)
	must.Need(t, d.has("there"), "a server that needs no cluster asked for it:\n%s", d.read("calls"))
	must.Do(t, l.EndLeftovers(t.Context(), func(string) {}))
	must.Hold(t, !d.has("there") && strings.Contains(d.read("calls"), "delete pod tokgate-dead-1"), "%s", d.read("calls"))
	nothingHeld(t, l)
}

// A pod in another cluster is not looked for in this one: reports say that it may still run.
func TestPodLeftInAnotherCluster(t *testing.T) {
	d := newKubectl(t, "serve")
	d.put(t, "cluster", "https://b.example:6443")
	l := childLauncher(t)
	note := must.Get(l.State.Begin(lease.Server{Holder: lease.Holder{Run: "dead"}, Container: "tokgate-dead-1", Runtime: kubernetes, Namespace: "gates", Cluster: "https://a.example:6443"}))(t)
	note.Leave()
	target := must.Get(l.Launch(t.Context(), podServer(), func(string) {}))(t)
	said := target.Fingerprint["leftover"]
	must.Hold(t, strings.Contains(said, "may still run: it is in the cluster https://a.example:6443, and kubectl speaks to https://b.example:6443"), "%q", said)
	must.Do(t, target.Close())
	must.Hold(t, !strings.Contains(d.read("calls"), "tokgate-dead-1"), "another cluster was asked:\n%s", d.read("calls"))
	l.Reap = true
	must.Do(t, l.EndLeftovers(t.Context(), func(string) {}))
	nothingHeld(t, l)
}

// The plan wins over the template; what it replaced is told.
func TestPodTemplate(t *testing.T) {
	s := podServer()
	s.Pod.File, s.Pod.Place = "pod.yaml", plan.Place{Node: "node-1"}
	s.Pod.Template = plan.Tree{"kind": "Pod", "metadata": plan.Tree{"name": "x", "labels": plan.Tree{"team": "a"}}, "spec": plan.Tree{
		"restartPolicy": "Always",
		"affinity": plan.Tree{"nodeAffinity": plan.Tree{"requiredDuringSchedulingIgnoredDuringExecution": plan.Tree{
			"nodeSelectorTerms": []any{plan.Tree{"matchExpressions": []any{"a"}}, plan.Tree{"matchExpressions": []any{"b"}}}}}},
		"containers": []any{
			plan.Tree{"name": "sidecar", "image": "proxy"},
			plan.Tree{"name": "server", "image": "other", "env": []any{plan.Tree{"name": "HF_TOKEN", "value": "x"}, plan.Tree{"name": "MINE", "value": "y"}}},
		},
	}}
	l := childLauncher(t)
	p := &pod{Launcher: l, name: "tokgate-1"}
	got, won, err := l.manifest(s, p, nil)
	must.Do(t, err)
	must.Same(t, "won", "pod.yaml, but for image, env HF_TOKEN of the plan", won)
	must.Same(t, "container", "server", p.container)
	spec := plan.Under(got, "spec")
	must.Same(t, "restarts", any("Never"), spec["restartPolicy"])
	must.Same(t, "name", any("tokgate-1"), plan.Under(got, "metadata")["name"])
	must.Same(t, "the template's label", any("a"), plan.Under(plan.Under(got, "metadata"), "labels")["team"])
	must.Same(t, "the sidecar", any("proxy"), spec["containers"].([]any)[0].(plan.Tree)["image"])
	// Terms are alternatives, so each of them is bound to the node.
	here := []any{plan.Tree{"key": "metadata.name", "operator": "In", "values": []any{"node-1"}}}
	terms := plan.Under(plan.Under(plan.Under(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")["nodeSelectorTerms"]
	must.Same(t, "terms", []any{plan.Tree{"matchExpressions": []any{"a"}, "matchFields": here}, plan.Tree{"matchExpressions": []any{"b"}, "matchFields": here}}, terms.([]any))
	must.Same(t, "the template is not changed", any("Always"), plan.Under(s.Pod.Template, "spec")["restartPolicy"])
}

// What is read of pods of a real cluster.
func TestRecordedPods(t *testing.T) {
	for name, want := range map[string]struct {
		node, ended, waiting string
		byItself, hopeless   bool
	}{
		"pending":       {waiting: "waiting for a node"},
		"unschedulable": {waiting: "Unschedulable: 0/2 nodes are available: 2 Insufficient example.com/gpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."},
		"imagepull":     {node: "node1", waiting: "ImagePullBackOff: Back-off pulling image \"localhost/nosuch:1\": ErrImagePull: failed to pull and unpack image", hopeless: true},
		"mount":         {node: "node0", waiting: "its volumes, network and containers are made on node node0"},
		"running":       {node: "node1", waiting: "its volumes, network and containers are made on node node1"},
		"beaten":        {node: "node1", waiting: "its volumes, network and containers are made on node node1"},
		"oom":           {node: "node1", ended: "container server ended with exit code 137 (OOMKilled)", byItself: true},
		"deadline":      {node: "node1", ended: "DeadlineExceeded: Pod was active on the node longer than the specified deadline"},
		"evicted":       {node: "node1", ended: "the pod was disrupted: EvictionByEvictionAPI: Eviction API: evicting"},
	} {
		o := recordedPod(t, name)
		must.Same(t, name+": node", want.node, o.Spec.NodeName)
		ended, byItself := o.ended("server")
		must.Same(t, name+": ended", want.ended, ended)
		must.Same(t, name+": by itself", want.byItself, byItself)
		waiting, hopeless := o.waiting()
		must.Hold(t, ended != "" || strings.HasPrefix(waiting, want.waiting), "%s waits for %q", name, waiting)
		must.Same(t, name+": hopeless", want.hopeless, hopeless)
		must.Same(t, name+": runs", name == "running" || name == "beaten", o.runs("server"))
	}
	running, evicted := recordedPod(t, "running"), recordedPod(t, "evicted")
	running.Spec.TerminationGracePeriodSeconds, evicted.Spec.TerminationGracePeriodSeconds = 30, 30
	must.Same(t, "grace", [3]time.Duration{Grace, 30 * time.Second, time.Second}, [3]time.Duration{running.grace(Grace), evicted.grace(Grace), evicted.grace(time.Second)})
	// The heartbeat is of 14:00:17, two minutes before the last second in which the run may live.
	beaten, last := recordedPod(t, "beaten"), time.Date(2026, 11, 28, 14, 2, 17, 0, time.UTC)
	must.Hold(t, !beaten.silent(last) && beaten.silent(last.Add(time.Second)), "the heartbeat is not read")
}

func recordedPod(t *testing.T, name string) (o podObject) {
	t.Helper()
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", "kubectl", name+".json")))(t), &o))
	return o
}

// What events of a real cluster say: a volume that is missing, and an image whose pull took from 17:18:32 to 17:19:02.
func TestPodEvents(t *testing.T) {
	for name, want := range map[string]struct {
		warning string
		images  bool
		pull    time.Duration
	}{
		"events-mount": {`FailedMount: MountVolume.SetUp failed for volume "weights" : configmap "nosuch" not found`, false, 0},
		"events-pull":  {"MissingClusterDNS: pod: ", true, 30 * time.Second},
	} {
		var list struct{ Items podEvents }
		must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", "kubectl", name+".json")))(t), &list))
		must.Hold(t, strings.HasPrefix(list.Items.warning(), want.warning), "%s: %q", name, list.Items.warning())
		must.Same(t, name+": deals with images", want.images, list.Items.images())
		must.Same(t, name+": pull", want.pull, list.Items.pull("server"))
		must.Same(t, name+": pull of a sidecar", time.Duration(0), list.Items.pull("proxy"))
	}
}

// The end of the log that was not followed is added, and no line comes twice.
func TestPodLogReadAgain(t *testing.T) {
	for _, tt := range []struct{ followed, whole, want string }{
		{"a\nb\n", "a\nb\nc\nd\n", "a\nb\nc\nd\n"},
		{"a\nb\n", "a\nb\n", "a\nb\n"},
		{"", "a\n", "a\n"},
		{"x\n", "c\nd\n", "x\nc\nd\n"}, // more than what was read again is missing
		{"a\n", "", "a\n"},
	} {
		d := newKubectl(t, "serve")
		if tt.whole != "" {
			d.put(t, "whole", tt.whole)
		}
		l := childLauncher(t)
		kube := must.Get(findKubectl(l.Clock, "gates", ""))(t)
		p := &pod{Launcher: l, kube: kube, ctx: t.Context(), name: "x", log: &tail{}, followed: make(chan struct{})}
		close(p.followed)
		fmt.Fprint(p.log, tt.followed)
		p.readAgain()
		p.readAgain()
		must.Same(t, "log", tt.want, p.log.String())
	}
}

func FuzzPodObject(f *testing.F) {
	for _, name := range []string{"pending", "running", "unschedulable", "imagepull", "oom", "deadline", "evicted", "beaten"} {
		f.Add(must.Get(os.ReadFile(filepath.Join("testdata", "kubectl", name+".json")))(f))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var o podObject
		if json.Unmarshal(raw, &o) != nil {
			return
		}
		ended, _ := o.ended("server")
		what, _ := o.waiting()
		must.Hold(t, !o.runs("server") || ended == "", "it runs, and ended: %s", ended)
		must.Hold(t, o.runs("server") || ended != "" || what != "", "nothing is known of it")
		_, _, _ = o.digest("server"), o.silent(time.Now()), o.made()
	})
}

func FuzzPodEvents(f *testing.F) {
	for _, name := range []string{"events-mount", "events-pull"} {
		f.Add(must.Get(os.ReadFile(filepath.Join("testdata", "kubectl", name+".json")))(f))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var list struct{ Items podEvents }
		if json.Unmarshal(raw, &list) != nil {
			return
		}
		pull := list.Items.pull("server")
		must.Hold(t, pull >= 0 && (pull == 0 || list.Items.images()), "a pull of %v", pull)
		_ = list.Items.warning()
	})
}

// The Job in the docs has the rights that tokgate needs in a cluster, and that to list events; its results stay.
func TestKubernetesManifest(t *testing.T) {
	found := map[string]plan.Tree{}
	for d := yaml.NewDecoder(bytes.NewReader(must.Get(os.ReadFile("../../docs/kubernetes/gate.yaml"))(t))); ; {
		var object plan.Tree
		if d.Decode(&object) != nil {
			break
		}
		found[object["kind"].(string)] = object
	}
	given, want := []string(nil), []string{"list events"}
	for _, rule := range found["Role"]["rules"].([]any) {
		for _, resource := range rule.(plan.Tree)["resources"].([]any) {
			for _, verb := range rule.(plan.Tree)["verbs"].([]any) {
				given = append(given, fmt.Sprintf("%v %v", verb, resource))
			}
		}
	}
	for _, r := range podRights(true) {
		want = append(want, r.String())
	}
	slices.Sort(given)
	slices.Sort(want)
	must.Same(t, "rights", want, given)
	spec := plan.Under(plan.Under(plan.Under(found["Job"], "spec"), "template"), "spec")
	must.Same(t, "service account", plan.Under(found["ServiceAccount"], "metadata")["name"], spec["serviceAccountName"])
	claim := any(nil)
	for _, v := range spec["volumes"].([]any) {
		if v := v.(plan.Tree); v["name"] == "results" {
			claim = plan.Under(v, "persistentVolumeClaim")["claimName"]
		}
	}
	must.Same(t, "claim", plan.Under(found["PersistentVolumeClaim"], "metadata")["name"], claim)
}
