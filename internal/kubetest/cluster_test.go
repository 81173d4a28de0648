// Package kubetest tries tokgate on Kubernetes: etcd, the API server, the scheduler, the whole controller manager and two
// nodes (kubelet, containerd, runc), of the versions in go.mod. RBAC, admission and service accounts are on. All of it
// runs in namespaces of its own, which end with the tests; it needs root. There is no DNS and no kube-proxy: the first
// address of the services is the API server's. It is a module of its own, because nothing in tokgate needs Kubernetes:
// `make kube`.
package kubetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	apiAddress = "10.77.0.1:443"
	version    = "v1.34.4"
)

var (
	programs = flag.String("programs", "", "the programs of the cluster: ./programs, built")
	tool     = flag.String("tokgate", "", "tokgate, built")
	helper   = flag.String("container", "", "what pods run besides tokgate: ./container, built")
	kept     = flag.String("folder", "", "`folder` of logs and of the cluster's files")
	hold     = flag.Bool("hold", false, "run no test, and leave the cluster up until this ends")
	joined   = flag.Bool("joined", false, "use the cluster that -hold left up: FOLDER/in THIS -joined …")
	times    = flag.Int("times", 1, "how often to try what should never fail")
)

// private gives the machine of the cluster its network, and a /proc/sys that nothing can change. Kubelet insists on
// three values of the kernel, so it is shown files with them. It waits for orphans, as the first process must.
const private = `set -e
mount --make-rprivate / && mount --make-rshared /
hostname kubetest
ip link set lo up
ip address add 10.96.0.1/32 dev lo
ip link add host0 type bridge
ip address add 10.77.0.1/24 dev host0
ip address add 10.77.0.2/24 dev host0
ip link set host0 up
ip route add default dev host0
echo 1 >/proc/sys/net/ipv4/ip_forward
cd "$1"
for setting in vm/overcommit_memory:1 kernel/panic:10 kernel/panic_on_oops:1; do
  file=sysctl.$(basename "${setting%:*}")
  echo "${setting#*:}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%:*}"
done
mount --rbind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t tmpfs tmpfs /run
shift
cd "$1"
shift
"$@" & wait $!`

func TestMain(m *testing.M) {
	flag.Parse()
	if *programs == "" {
		fmt.Println("no cluster: make kube")
		return
	}
	if *joined || os.Getenv("KUBETEST") != "" {
		os.Exit(inside(m))
	}
	if err := outside(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// outside runs this program again in namespaces of its own, and removes what the cluster left in the control groups.
func outside() error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(*kept), os.MkdirAll(*kept, 0o755)); err != nil {
		return err
	}
	name := fmt.Sprintf("kubetest-%d", os.Getpid())
	groups, err := makeGroups(name)
	defer func() {
		for _, g := range groups {
			removeGroup(g)
		}
	}()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"-m", "-n", "-p", "-u", "-i", "--fork", "--kill-child", "--mount-proc", "sh", "-c", private, "sh", *kept, here, self}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, "unshare", append(args, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), "KUBETEST="+name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	enter := fmt.Sprintf("#!/bin/sh\nexec nsenter -t \"$(pgrep -P %d)\" -m -n -p -u -i env KUBECONFIG=%s/admin.conf \"$@\"\n", cmd.Process.Pid, *kept)
	if err := os.WriteFile(*kept+"/in", []byte(enter), 0o755); err != nil {
		return err
	}
	failed := cmd.Wait()
	for _, large := range []string{"etcd", "node0", "node1"} { // the logs stay
		if err := os.RemoveAll(*kept + "/" + large); err != nil {
			return err
		}
	}
	return failed
}

// makeGroups makes a control group under each controller of the machine; with version 2, one for all controllers.
func makeGroups(name string) (made []string, err error) {
	const unified = "/sys/fs/cgroup/cgroup.procs"
	controllers, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if _, err := os.Stat(unified); err == nil {
		controllers = []string{unified}
	}
	for _, c := range controllers {
		parent := filepath.Dir(c)
		for _, dir := range []string{name, name + "/node0", name + "/node1"} {
			dir = parent + "/" + dir
			if err := errors.Join(os.Mkdir(dir, 0o755), passOn(filepath.Dir(dir))); err != nil {
				return made, err
			}
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				if raw, err := os.ReadFile(filepath.Dir(dir) + "/" + file); err == nil {
					if err := os.WriteFile(dir+"/"+file, raw, 0o644); err != nil {
						return made, err
					}
				}
			}
		}
		made = append(made, parent+"/"+name)
	}
	return made, err
}

// passOn lets the groups below one use its controllers, which only version 2 has to be told.
func passOn(group string) error {
	raw, err := os.ReadFile(group + "/cgroup.controllers")
	if err != nil {
		return nil
	}
	all := "+" + strings.Join(strings.Fields(string(raw)), " +")
	return os.WriteFile(group+"/cgroup.subtree_control", []byte(all), 0o644)
}

// removeGroup removes a control group and those below it, once their processes have ended.
func removeGroup(dir string) {
	below, _ := filepath.Glob(dir + "/*/cgroup.procs")
	for _, b := range below {
		removeGroup(filepath.Dir(b))
	}
	for range 100 {
		if err := syscall.Rmdir(dir); !errors.Is(err, syscall.EBUSY) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func inside(m *testing.M) int {
	began := time.Now()
	c := &cluster{dir: *kept}
	start := c.start
	if *joined {
		start = c.images
	}
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("Kubernetes %s is up after %.1f s; to look at it: %s/in kubectl get pods -A\n", version, time.Since(began).Seconds(), c.dir)
	up = c
	if *hold {
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
		return 0
	}
	return m.Run()
}

// up is the cluster that the tests share.
var up *cluster

// cluster is a Kubernetes. Its kubeconfigs and logs lie in dir.
type cluster struct {
	dir             string
	tokgate, slower string // images of tokgate; they differ in /faults.json
	gate            string // image of tokgate and kubectl
}

// start starts everything, and returns once both nodes are ready.
func (c *cluster) start() error {
	if err := c.identities(); err != nil {
		return err
	}
	if err := c.control(); err != nil {
		return err
	}
	if err := await(3*time.Minute, func() error { _, err := c.kubectl("get", "--raw", "/readyz"); return err }); err != nil {
		return fmt.Errorf("the API server is not ready: %w", err)
	}
	for n := range 2 {
		if err := c.node(n); err != nil {
			return err
		}
	}
	if err := c.images(); err != nil {
		return err
	}
	err := await(3*time.Minute, func() error {
		_, err := c.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "node/node0", "node/node1")
		return err
	})
	if err != nil {
		return err
	}
	return c.extend()
}

// identities writes the certificates of all parts.
func (c *cluster) identities() error {
	a, err := newAuthority(c.dir)
	if err != nil {
		return err
	}
	return errors.Join(
		a.serviceAccounts(),
		a.issue("server", &x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"}, IPAddresses: addresses("10.77.0.1", "10.96.0.1", "127.0.0.1")}),
		a.client("admin", "admin", "system:masters"),
		a.client("manager", "system:kube-controller-manager"),
		a.client("scheduler", "system:kube-scheduler"),
		a.client("node0", "system:node:node0", "system:nodes"),
		a.client("node1", "system:node:node1", "system:nodes"))
}

// control starts the control plane.
func (c *cluster) control() error {
	at := func(name string) string { return c.dir + "/" + name }
	return errors.Join(
		c.run("etcd", "--data-dir="+at("etcd"), "--unsafe-no-fsync", "--log-level=warn", "--listen-client-urls=http://127.0.0.1:2379",
			"--advertise-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380"),
		c.run("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address=10.77.0.1",
			"--authorization-mode=Node,RBAC", "--client-ca-file="+at("ca.crt"), "--tls-cert-file="+at("server.crt"),
			"--tls-private-key-file="+at("server.key"), "--kubelet-client-certificate="+at("admin.crt"), "--kubelet-client-key="+at("admin.key"),
			"--kubelet-preferred-address-types=InternalIP", "--service-cluster-ip-range=10.96.0.0/16",
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file="+at("accounts.key"),
			"--service-account-key-file="+at("accounts.pub")),
		c.run("kube-controller-manager", "--kubeconfig="+at("manager.conf"), "--leader-elect=false", "--bind-address=127.0.0.1",
			"--use-service-account-credentials", "--service-account-private-key-file="+at("accounts.key"), "--root-ca-file="+at("ca.crt"),
			"--node-monitor-grace-period=5m"),
		c.run("kube-scheduler", "--kubeconfig="+at("scheduler.conf"), "--leader-elect=false", "--bind-address=127.0.0.1"))
}

// run starts one of the programs; its output lies in a log of its name.
func (c *cluster) run(args ...string) error {
	return c.launch(args[0], exec.Command(*programs, args...))
}

func (c *cluster) launch(name string, cmd *exec.Cmd) error {
	log, err := os.Create(c.dir + "/" + name + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}

// node starts containerd and kubelet. What they would write into the machine's folders, they write into memory.
const node = `set -e
mount --make-rshared /
for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs $folder; done
containerd --config "$1/containerd.toml" >"$1/containerd.log" 2>&1 &
while ! [ -S "$1/containerd.sock" ]; do sleep 0.1; done
exec "$3" kubelet --kubeconfig="$1/../$2.conf" --config="$1/kubelet.yaml" --root-dir="$1/kubelet" --cert-dir="$1" --node-ip="$4" --hostname-override="$2"`

func (c *cluster) node(n int) error {
	name, ip := fmt.Sprintf("node%d", n), fmt.Sprintf("10.77.0.%d", n+1)
	dir := c.dir + "/" + name
	if err := os.MkdirAll(dir+"/cni", 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"containerd.toml": fmt.Sprintf(containerdConfig, dir),
		"kubelet.yaml":    fmt.Sprintf(kubeletConfig, dir, ip, "/"+os.Getenv("KUBETEST")+"/"+name, c.dir),
		"cni/pods.conf":   fmt.Sprintf(podNetwork, n, dir),
	} {
		if err := os.WriteFile(dir+"/"+file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return c.launch(name, exec.Command("unshare", "-m", "--propagation", "slave", "sh", "-c", node, "sh", dir, name, *programs, ip))
}

const containerdConfig = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true # a machine without CAP_SYS_RESOURCE
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "%[1]s/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
address: %[2]s
healthzPort: 0
cgroupDriver: cgroupfs
cgroupRoot: %[3]s
failCgroupV1: false
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: %[4]s/ca.crt}}
featureGates: {KubeletInUserNamespace: true}
localStorageCapacityIsolation: false
resolvConf: ""
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", imagefs.available: "0%%"}
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
enforceNodeAllocatable: []
`

// podNetwork gives the pods of both nodes addresses of one network.
const podNetwork = `{"cniVersion": "0.4.0", "name": "pods", "type": "bridge", "bridge": "pods", "isGateway": true, "ipam": {"type": "host-local",
"dataDir": "%[2]s/addresses", "ranges": [[{"subnet": "10.88.0.0/16", "rangeStart": "10.88.%[1]d.2", "rangeEnd": "10.88.%[1]d.250", "gateway": "10.88.0.1"}]],
"routes": [{"dst": "0.0.0.0/0"}]}}
`

// images gives both nodes what their pods run; a node has no registry to pull from.
func (c *cluster) images() error {
	raw, err := os.ReadFile(*tool)
	if err != nil {
		return err
	}
	c.tokgate = fmt.Sprintf("localhost/tokgate:%.6x", sha256.Sum256(raw))
	c.slower, c.gate = strings.Replace(c.tokgate, "tokgate", "slower", 1), strings.Replace(c.tokgate, "tokgate", "gate", 1)
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return err
	}
	faults := map[string]string{"quick": `[{"fault": "late", "delay_ms": 500}]`, "slow": `[{"fault": "late", "delay_ms": 3000}]`}
	for dir, text := range faults {
		dir = c.dir + "/" + dir
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/faults.json", []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for _, m := range []image{
		{name: "localhost/pause:1", file: *helper, args: []string{"pause"}},
		{name: "localhost/eat:1", file: *helper, args: []string{"eat"}},
		{name: "localhost/fail:1", file: *helper, args: []string{"fail"}},
		{name: "localhost/hang:1", file: *helper, args: []string{"hang"}},
		{name: c.tokgate, file: *tool, more: []string{c.dir + "/quick/faults.json"}},
		{name: c.gate, file: *tool, more: []string{kubectl}},
		{name: c.slower, file: *tool, more: []string{c.dir + "/slow/faults.json"}},
	} {
		if err := c.load(m); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) load(m image) error {
	var archive bytes.Buffer
	if err := m.archive(&archive); err != nil {
		return err
	}
	for n := range 2 {
		socket := fmt.Sprintf("%s/node%d/containerd.sock", c.dir, n)
		err := await(time.Minute, func() error {
			cmd := exec.Command("ctr", "-a", socket, "-n", "k8s.io", "images", "import", "-")
			cmd.Stdin = bytes.NewReader(archive.Bytes())
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("importing %s: %w\n%s", m.name, err, out)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// extend gives the nodes GPUs, as a device plugin would.
func (c *cluster) extend() error {
	_, err := c.kubectl("patch", "node", "node0", "node1", "--subresource=status", "--type=json", "-p",
		`[{"op": "add", "path": "/status/capacity/example.com~1gpu", "value": "2"}]`)
	return err
}

// kubectl runs kubectl as the administrator, and returns what it printed.
func (c *cluster) kubectl(args ...string) (string, error) { return c.kubectlWith("", args...) }

func (c *cluster) kubectlWith(input string, args ...string) (string, error) {
	cmd := exec.Command("kubectl", append([]string{"--kubeconfig", c.dir + "/admin.conf"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return string(out), err
}

// await asks until there is no error, for a time.
func await(limit time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
