package report

// group is one workload on one server.
type group struct {
	server, workload string
	cases            []*Case // levels of the plan, without the probes of a capacity search
	capacities       []*Capacity
}

// groups returns a group for each pair of server and workload that has a case or a verdict, in the
// order of the document.
func groups(d *Document) []*group {
	var list []*group
	byKey := map[string]*group{}
	at := func(server, workload string) *group {
		key := server + "\x00" + workload
		g := byKey[key]
		if g == nil {
			g = &group{server: server, workload: workload}
			byKey[key] = g
			list = append(list, g)
		}
		return g
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		if g := at(c.Server, c.Workload); c.Probe == nil {
			g.cases = append(g.cases, c)
		}
	}
	for i := range d.Capacities {
		c := &d.Capacities[i]
		g := at(c.Server, c.Workload)
		g.capacities = append(g.capacities, c)
	}
	for _, v := range d.Verdicts {
		if v.Workload != "" && v.Kind != "server" {
			at(v.Server, v.Workload)
		}
	}
	return list
}
