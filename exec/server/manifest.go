package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan"
)

// manifest returns the pod that the plan describes, on top of its template. won says what of the template
// the plan replaced. owner is nil if there is none.
func (l *Launcher) manifest(s *plan.Server, p *pod, owner *ownerReference) (manifest plan.Tree, won string, err error) {
	manifest = plan.Tree{}
	raw, err := json.Marshal(s.Pod.Template)
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s is not a pod: %w", s.Pod.File, err)
	}
	if manifest == nil {
		manifest = plan.Tree{}
	}
	manifest["apiVersion"], manifest["kind"] = "v1", "Pod"
	meta := plan.Tree{"name": p.name, "labels": mapping(mapping(manifest, "metadata"), "labels"), "annotations": mapping(mapping(manifest, "metadata"), "annotations")}
	manifest["metadata"] = meta // nothing else of the template's: a finalizer would keep the pod
	labels, notes := mapping(meta, "labels"), mapping(meta, "annotations")
	labels[podRun], labels["app.kubernetes.io/managed-by"] = l.Holder.Run, "tokgate"
	notes["tokgate.dev/server"], notes["tokgate.dev/plan"], notes["tokgate.dev/started"], notes[heartbeat] = s.Address(), l.Holder.Plan, l.Holder.Started, "0"
	if owner != nil {
		meta["ownerReferences"] = []any{owner}
	}
	spec := mapping(manifest, "spec")
	spec["restartPolicy"] = "Never"
	if spec["automountServiceAccountToken"] == nil {
		spec["automountServiceAccountToken"] = false
	}
	life := int(cmp.Or(l.Life, podLife).Seconds())
	if own, ok := spec["activeDeadlineSeconds"].(float64); ok {
		life = min(life, int(own))
	}
	spec["activeDeadlineSeconds"] = life
	if at := s.Pod.Place; at.Node != "" {
		pin(spec, at)
	}
	c := mainContainer(spec)
	p.container, _ = c["name"].(string)
	return manifest, l.fill(c, s), nil
}

// fill writes what the plan says into the container of the server, and returns what it replaced.
func (l *Launcher) fill(c plan.Tree, s *plan.Server) string {
	var won []string
	put := func(in plan.Tree, key, name string, value any) {
		if before := in[key]; before != nil && fmt.Sprint(before) != fmt.Sprint(value) {
			won = append(won, name)
		}
		in[key] = value
	}
	put(c, "image", "image", s.Pod.Image)
	if entry := s.Entrypoint(); entry != "" {
		put(c, "command", "command", []any{entry})
	}
	if words := s.Launch("0.0.0.0", strconv.Itoa(s.Pod.Inside)); len(words) > 0 {
		put(c, "args", "args", words)
	}
	env := map[string]string{}
	maps.Copy(env, engine.Of(s.Engine).Launch.Env)
	maps.Copy(env, s.Pod.Env)
	list, _ := c["env"].([]any)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entry := any(plan.Tree{"name": name, "value": env[name]})
		if i := slices.IndexFunc(list, func(x any) bool { m, _ := x.(plan.Tree); return m["name"] == name }); i >= 0 {
			list[i], won = entry, append(won, "env "+name)
		} else {
			list = append(list, entry)
		}
	}
	if len(list) > 0 {
		c["env"] = list
	}
	if s.Pod.GPUs > 0 {
		put(mapping(mapping(c, "resources"), "limits"), s.Pod.GPUResource, s.Pod.GPUResource, s.Pod.GPUs)
	}
	if s.Pod.File == "" {
		return ""
	}
	if len(won) == 0 {
		return s.Pod.File
	}
	return s.Pod.File + ", but for " + strings.Join(won, ", ") + " of the plan"
}

// mapping returns the mapping at a key, and makes it if it is not there.
func mapping(in plan.Tree, key string) plan.Tree {
	m, ok := in[key].(plan.Tree)
	if !ok {
		m = plan.Tree{}
		in[key] = m
	}
	return m
}

func mainContainer(spec plan.Tree) plan.Tree {
	c := (&plan.Pod{Template: plan.Tree{"spec": spec}}).Main()
	if c == nil {
		c = plan.Tree{}
		spec["containers"] = []any{c}
	}
	if c["name"] == nil {
		c["name"] = plan.MainContainer
	}
	return c
}

// pin makes a pod run on a node, or away from it. The scheduler still counts what the node has: with nodeName
// it would not.
func pin(spec plan.Tree, at plan.Place) {
	operator := "In"
	if at.Away {
		operator = "NotIn"
	}
	required := mapping(mapping(mapping(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
	terms, _ := required["nodeSelectorTerms"].([]any)
	if len(terms) == 0 {
		terms = []any{plan.Tree{}}
	}
	for _, term := range terms {
		if t, ok := term.(plan.Tree); ok {
			fields, _ := t["matchFields"].([]any)
			t["matchFields"] = append(fields, plan.Tree{"key": "metadata.name", "operator": operator, "values": []any{at.Node}})
		}
	}
	required["nodeSelectorTerms"] = terms
}
