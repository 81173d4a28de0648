package server

import (
	"fmt"
	"slices"
	"strings"
)

// socket is a socket that listens on a server's port.
type socket struct {
	id string // inode
	// owners are the processes that have the socket. It is empty if none can be seen, such as a
	// process of another user.
	owners []owner
}

// owner is a process that has a listening socket.
type owner struct {
	pid  int
	name string
	ours bool // the process belongs to the server that tokgate started
}

// forwarders are the programs with which container engines pass on connections to a container.
var forwarders = []string{"docker-proxy", "rootlesskit-doc", "rootlessport", "conmon", "slirp4netns", "pasta", "pasta.avx2", "passt", "passt.avx2", "gvproxy"}

// whose decides whether the server that tokgate started is what listens on its port. Another program
// there is an error. If that is not known, fact says why.
func whose(port int, sockets []socket) (fact string, err error) {
	if len(sockets) == 0 {
		return fmt.Sprintf("not known: no socket on this machine listens on port %d", port), nil
	}
	for _, s := range sockets {
		named := func(o owner) bool { return o.ours || slices.Contains(forwarders, o.name) }
		switch i := slices.IndexFunc(s.owners, named); {
		case i >= 0 && s.owners[i].ours:
		case i >= 0:
			fact = s.owners[i].name + " forwards the port to a container"
		case len(s.owners) == 0:
			fact = "not known: the program that listens cannot be seen from here, such as another user's"
		default:
			return "", fmt.Errorf("another program listens on port %d: %v, which tokgate did not start, so this is not the declared server. "+
				"End it, or declare it as an endpoint", port, s)
		}
	}
	return fact, nil
}

func (s socket) String() string {
	var names []string
	for _, o := range s.owners {
		names = append(names, fmt.Sprintf("%s (pid %d)", o.name, o.pid))
	}
	return strings.Join(names, ", ")
}
