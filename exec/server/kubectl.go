package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

// kubectl speaks to a cluster by the program of that name, which finds the cluster, logs in and crosses
// proxies. Needed are kubectl 1.27 or newer, and the rights in podRights.
type kubectl struct {
	*cli
	namespace string
}

// findKubectl finds the program. Its processes have the mark, so that they are found even if tokgate was
// killed: one may still create a pod.
func findKubectl(c clock.Clock, namespace, mark string) (*kubectl, error) {
	r, err := findRuntime(c, kubernetes)
	if err != nil {
		return nil, err
	}
	if mark != "" {
		r.env = []string{markName + "=" + mark}
	}
	return &kubectl{r, namespace}, nil
}

// kubernetes is the runtime of pods in notes about servers.
const kubernetes = "kubectl"

func (k *kubectl) words(words ...string) []string { return append(words, "--namespace", k.namespace) }

// get asks for one object, or for a list, and reads it.
func (k *kubectl) get(ctx context.Context, into any, words ...string) error {
	out, err := k.run(ctx, nil, k.words(append([]string{"get", "--output", "json"}, words...)...)...)
	if err != nil {
		return err
	}
	return k.read(out, into)
}

// create creates an object, or those of a list, and returns what became of them: one JSON text after another.
func (k *kubectl) create(ctx context.Context, object any) (string, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	return k.feed(ctx, raw, k.words("create", "--filename", "-", "--output", "json")...)
}

func (k *kubectl) read(out string, into any) error {
	if err := json.Unmarshal([]byte(out), into); err != nil {
		return fmt.Errorf("kubectl did not write the expected JSON: %w", err)
	}
	return nil
}

// remove deletes a pod and waits until it is gone. A pod that is not there is no error.
func (k *kubectl) remove(ctx context.Context, name string, grace time.Duration) error {
	_, err := k.output(ctx, nil, k.words("delete", "pod", name, "--ignore-not-found", "--grace-period", fmt.Sprint(int(grace.Round(time.Second).Seconds())))...)
	return err
}

func (k *kubectl) exists(ctx context.Context, name string) (bool, error) {
	out, err := k.run(ctx, nil, k.words("get", "pod", name, "--ignore-not-found", "--output", "name")...)
	return out != "", err
}

// inCluster reports whether tokgate runs in a pod of the cluster, and so reaches other pods by their
// addresses. With a KUBECONFIG it may be another cluster.
func inCluster() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" && os.Getenv("KUBECONFIG") == ""
}

// ownNamespace is the namespace of a pod whose plan names none.
func (k *kubectl) ownNamespace(ctx context.Context) string {
	if inCluster() {
		raw, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		return cmp.Or(os.Getenv("POD_NAMESPACE"), strings.TrimSpace(string(raw)), "default")
	}
	said, _ := k.run(ctx, nil, "config", "view", "--minify", "--output", "jsonpath={..namespace}")
	return cmp.Or(said, "default")
}

// cluster is the address of the cluster's API; "" if not known.
func (k *kubectl) cluster(ctx context.Context) string {
	if inCluster() {
		return os.Getenv("KUBERNETES_SERVICE_HOST")
	}
	said, _ := k.run(ctx, nil, "config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}")
	return said
}

// owner returns the pod that tokgate runs in; nil if that is not known, or is in another namespace than
// the servers, where an owner has no effect.
func (k *kubectl) owner(ctx context.Context) *ownerReference {
	name := cmp.Or(os.Getenv("POD_NAME"), os.Getenv("HOSTNAME"))
	if !inCluster() || name == "" || k.namespace != k.ownNamespace(ctx) {
		return nil
	}
	var own podObject
	if k.get(ctx, &own, "pod", name) != nil {
		return nil
	}
	return &ownerReference{"v1", "Pod", own.Metadata.Name, own.Metadata.UID}
}

// orphan reports whether the pod that owns this one has ended, or is gone.
func (k *kubectl) orphan(ctx context.Context, o *podObject) bool {
	for _, by := range o.Metadata.OwnerReferences {
		if by.Kind != "Pod" {
			continue
		}
		out, err := k.run(ctx, nil, k.words("get", "pod", by.Name, "--ignore-not-found", "--output", "json")...)
		var owner podObject
		switch {
		case err != nil || out != "" && json.Unmarshal([]byte(out), &owner) != nil: // not known
		case out == "", owner.Metadata.UID != by.UID, owner.Status.Phase == "Failed", owner.Status.Phase == "Succeeded":
			return true
		}
	}
	return false
}

// right is something that tokgate does in a cluster.
type right struct{ verb, resource, sub string }

func (r right) String() string {
	if r.sub != "" {
		return fmt.Sprintf("%s %s/%s", r.verb, r.resource, r.sub)
	}
	return r.verb + " " + r.resource
}

// podRights returns what tokgate must be allowed to do in the namespace.
func podRights(inside bool) []right {
	rights := []right{{"create", "pods", ""}, {"delete", "pods", ""}, {"get", "pods", ""}, {"list", "pods", ""}, {"patch", "pods", ""}, {"watch", "pods", ""}, {"get", "pods", "log"}}
	if !inside {
		rights = append(rights, right{"create", "pods", "portforward"})
	}
	return rights
}

// allows returns an error if no cluster answers, or tokgate does not have the rights. Where a cluster does not say
// which it has, what is forbidden fails by itself.
func (k *kubectl) allows(ctx context.Context, rights []right) error {
	var items []any
	for _, r := range rights {
		items = append(items, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": map[string]any{
			"resourceAttributes": map[string]any{"namespace": k.namespace, "verb": r.verb, "resource": r.resource, "subresource": r.sub}}})
	}
	out, err := k.create(ctx, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		// What kubectl says of a create without a cluster is about schemas.
		if _, err := k.exists(ctx, "any"); err != nil {
			return fmt.Errorf("%w (`kubectl get pods --namespace %s` must work first)", err, k.namespace)
		}
		return nil
	}
	var missing []string
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb, Resource, Subresource string }
			}
			Status struct{ Allowed bool }
		}
		if d.Decode(&review) != nil {
			break
		}
		if a := review.Spec.ResourceAttributes; a.Verb != "" && !review.Status.Allowed {
			missing = append(missing, right{a.Verb, a.Resource, a.Subresource}.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("tokgate lacks rights in namespace %s: %s; add them to its Role", k.namespace, strings.Join(missing, ", "))
}

// podObject is what tokgate reads of a pod.
type podObject struct {
	Metadata struct {
		Name, Namespace, UID                 string
		CreationTimestamp, DeletionTimestamp time.Time
		Labels, Annotations                  map[string]string
		OwnerReferences                      []ownerReference
		ManagedFields                        []struct{ Time time.Time }
	}
	Spec struct {
		NodeName                      string
		TerminationGracePeriodSeconds int
	}
	Status struct {
		Phase, Reason, Message, PodIP            string
		Conditions                               []podCondition
		ContainerStatuses, InitContainerStatuses []podContainer
	}
}

type ownerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

type podCondition struct {
	Type, Status, Reason, Message string
	LastTransitionTime            time.Time
}

type podContainer struct {
	Name, ImageID string
	State         struct {
		Waiting    *struct{ Reason, Message string }
		Running    *struct{ StartedAt time.Time }
		Terminated *struct {
			ExitCode        int
			Reason, Message string
		}
	}
}

func (o *podObject) condition(kind string) podCondition {
	i := slices.IndexFunc(o.Status.Conditions, func(c podCondition) bool { return c.Type == kind })
	if i < 0 {
		return podCondition{}
	}
	return o.Status.Conditions[i]
}

func (o *podObject) container(name string) (c podContainer) {
	if i := slices.IndexFunc(o.Status.ContainerStatuses, func(c podContainer) bool { return c.Name == name }); i >= 0 {
		c = o.Status.ContainerStatuses[i]
	}
	return c
}

// runs reports whether the container of the server has started and not ended.
func (o *podObject) runs(name string) bool {
	how, _ := o.ended(name)
	return o.container(name).State.Running != nil && how == ""
}

// ended says in Kubernetes' words why the pod no longer serves; "" if it does, or may still. byItself means
// that a container ended without being told to.
func (o *podObject) ended(name string) (how string, byItself bool) {
	if c := o.condition("DisruptionTarget"); c.Status == "True" {
		return reasoned("the pod was disrupted: "+c.Reason, c.Message), false
	}
	if s := o.Status; s.Phase == "Failed" && s.Reason != "" {
		return reasoned(s.Reason, s.Message), false
	}
	told := !o.Metadata.DeletionTimestamp.IsZero()
	for _, c := range slices.Concat(o.Status.InitContainerStatuses, o.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && !told && (c.Name == name || t.ExitCode != 0) {
			return reasoned(fmt.Sprintf("container %s ended with exit code %d (%s)", c.Name, t.ExitCode, t.Reason), t.Message), true
		}
	}
	switch {
	case told:
		return "somebody deleted the pod", false
	case o.Status.Phase == "Failed", o.Status.Phase == "Succeeded":
		return "its phase is " + o.Status.Phase, true
	}
	return "", false
}

// grace is how long the pod may take to end. If another than tokgate told it to end, it has the time of its own
// spec, which nobody can cut short. patience is tokgate's; one in a hurry waits no longer.
func (o *podObject) grace(patience time.Duration) time.Duration {
	if patience < Grace || o.condition("DisruptionTarget").Status != "True" && o.Metadata.DeletionTimestamp.IsZero() {
		return patience
	}
	return max(patience, time.Duration(o.Spec.TerminationGracePeriodSeconds)*time.Second)
}

// waiting says in Kubernetes' words what the pod waits for; "" if its containers run. hopeless means that
// waiting longer does not help.
func (o *podObject) waiting() (what string, hopeless bool) {
	for _, c := range slices.Concat(o.Status.InitContainerStatuses, o.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			return reasoned(w.Reason, w.Message), slices.Contains(hopelessReasons, w.Reason)
		}
	}
	if c := o.condition("PodScheduled"); c.Status == "False" {
		return reasoned(c.Reason, c.Message), false
	}
	if o.Spec.NodeName == "" {
		return "waiting for a node", false
	}
	return "its volumes, network and containers are made on node " + o.Spec.NodeName + ", and its images are pulled", false
}

// hopelessReasons are those for which a container does not start, and which a plan's author must mend. An
// image that could not be pulled is tried again by the kubelet once before it is one of them.
var hopelessReasons = []string{"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}

func reasoned(reason, message string) string {
	if message = strings.TrimSpace(strings.Join(strings.Fields(message), " ")); message != "" {
		return reason + ": " + shorten(message, 600)
	}
	return reason
}

// digest is the digest of the image that runs; "" if not known.
func (o *podObject) digest(name string) string {
	id := o.container(name).ImageID
	return id[strings.LastIndexByte(id, '@')+1:]
}

// made reports whether the pod's volumes and network are known to be there. Kubelets before 1.36 say so only when
// the first image is there.
func (o *podObject) made() bool {
	all := slices.Concat(o.Status.InitContainerStatuses, o.Status.ContainerStatuses)
	return o.condition("PodReadyToStartContainers").Status == "True" || slices.ContainsFunc(all, func(c podContainer) bool {
		return c.State.Running != nil || c.State.Terminated != nil
	})
}

// heartbeat is the annotation that a living run changes, and silence how long one may not.
const (
	heartbeat = "tokgate.dev/heartbeat"
	beat      = 30 * time.Second
	silence   = 2 * time.Minute
)

// silent reports whether nobody has changed the pod for so long that its run is dead. Both times are the
// cluster's.
func (o *podObject) silent(now time.Time) bool {
	last := o.Metadata.CreationTimestamp
	for _, f := range o.Metadata.ManagedFields {
		if f.Time.After(last) {
			last = f.Time
		}
	}
	return now.Sub(last) > silence
}
