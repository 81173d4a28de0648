package plan_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

func podOf(t *testing.T, spec string) *plan.Pod {
	t.Helper()
	var tree plan.Tree
	must.Do(t, yaml.Unmarshal([]byte("spec: "+strings.ReplaceAll(spec, "\t", " ")), &tree))
	return &plan.Pod{Template: tree}
}

// Everything in a template that gives the pod of its node, or of its namespace's rights and secrets, is a grant.
func TestGrants(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{`{containers: [{name: server, image: x, resources: {limits: {memory: 1Gi}}, ports: [{containerPort: 80}]}], nodeSelector: {a: b}, tolerations: [], restartPolicy: Always}`, ""},
		{`{hostNetwork: true, hostPID: true, hostIPC: false, hostUsers: true}`, "hostNetwork hostPID hostUsers"},
		{`{automountServiceAccountToken: false}`, ""},
		{`{automountServiceAccountToken: true, serviceAccountName: admin}`, "automountServiceAccountToken serviceAccountName=admin"},
		{`{runtimeClassName: nvidia, priorityClassName: high, priority: 9}`, "priority=9 priorityClassName=high runtimeClassName=nvidia"},
		{`{aKeyOfTomorrow: {x: 1}, resourceClaims: [{name: a}]}`, "aKeyOfTomorrow resourceClaims"},
		{`{volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {}}, {name: c, persistentVolumeClaim: {claimName: c}}]}`, "hostPath=/"},
		{`{volumes: [{name: a, secret: {secretName: tls}}, {name: b, nfs: {server: n, path: /}}, {name: c, csi: {driver: d}}]}`, "secret=tls volume=csi volume=nfs"},
		{`{volumes: [{name: a, projected: {sources: [{secret: {name: s}}, {serviceAccountToken: {path: t}}, {configMap: {name: c}}]}}]}`, "automountServiceAccountToken secret=s"},
		{`{imagePullSecrets: [{name: regcred}]}`, "secret=regcred"},
		{`{containers: [{env: [{name: A, valueFrom: {secretKeyRef: {name: hf, key: k}}}], envFrom: [{secretRef: {name: all}}]}]}`, "secret=all secret=hf"},
		{`{initContainers: [{securityContext: {privileged: true}}], containers: [{securityContext: {privileged: false, capabilities: {add: [IPC_LOCK], drop: [ALL]}}}]}`, "capability=IPC_LOCK privileged"},
		{`{securityContext: {runAsUser: 0, seccompProfile: {type: Unconfined}, sysctls: [{name: net.x, value: "1"}]}}`, "seccompProfile=Unconfined sysctl=net.x"},
		{`{containers: [{securityContext: {seccompProfile: {type: RuntimeDefault}, procMount: Unmasked, seLinuxOptions: {type: spc_t}}}]}`, "procMount=Unmasked seLinuxOptions=spc_t"},
		{`{containers: [{ports: [{containerPort: 80, hostPort: 80}]}]}`, "hostPort=80"},
	} {
		must.Same(t, tt.spec, tt.want, strings.Join(podOf(t, tt.spec).Grants(), " "))
	}
	must.Same(t, "grants without a template", 0, len((&plan.Pod{}).Grants()))
}

// A template starts programs in several ways; all are listed.
func TestTemplatePrograms(t *testing.T) {
	p := podOf(t, `{initContainers: [{name: i, image: busybox, command: [sh, -c, "wget x"]}], containers: [
		{name: proxy, image: envoy, args: [--x, 1], env: [{name: LD_PRELOAD, value: y}]},
		{name: server, image: mine, livenessProbe: {exec: {command: [probe]}}, lifecycle: {preStop: {exec: {command: [stop]}}}}]}`)
	var commands []string
	for _, words := range p.Commands() {
		commands = append(commands, strings.Join(words, " "))
	}
	must.Same(t, "commands", "--x 1; probe; stop; sh -c wget x", strings.Join(commands, "; "))
	must.Same(t, "variables", "LD_PRELOAD", strings.Join(p.Variables(), " "))
	must.Same(t, "images", "envoy busybox", strings.Join(p.Images(), " "))
	must.Same(t, "main", any("mine"), p.Main()["image"])
}

// An emptyDir is filled again at each start. One in memory, or of /tmp, is no cache.
func TestLost(t *testing.T) {
	p := podOf(t, `{volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: }, {name: c, emptyDir: {medium: Memory}}, {name: d, persistentVolumeClaim: {claimName: d}}],
		containers: [{name: server, volumeMounts: [{name: a, mountPath: /root/.cache}, {name: b, mountPath: /models}, {name: c, mountPath: /dev/shm}, {name: d, mountPath: /data}, {name: a, mountPath: /tmp}]}]}`)
	must.Same(t, "lost", "/root/.cache /models", strings.Join(p.Lost(), " "))
}
