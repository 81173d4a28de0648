package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// stat reads the state of a process from /proc; ok is false if the process is gone.
func stat(pid int) (state byte, parent, group int, start string, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0, "", false
	}
	// The name of the process is in parentheses, and may contain anything, even ") ".
	name := strings.LastIndexByte(string(raw), ')')
	f := strings.Fields(string(raw[name+1:]))
	if name < 0 || len(f) < 20 {
		return 0, 0, 0, "", false
	}
	parent, _ = strconv.Atoi(f[1])
	group, _ = strconv.Atoi(f[2])
	return f[0][0], parent, group, f[19], true
}

// startOf returns the boot of the machine and the clock tick at which a process started. A later
// process with the same pid has a different value. startOf returns "" if the process is gone.
func startOf(pid int) string {
	state, _, _, start, ok := stat(pid)
	if !ok || ended(state) {
		return ""
	}
	return boot() + "/" + start
}

func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// ended reports whether a process with the given state has ended. A zombie has ended too. It
// remains until its parent waits for it, which may never happen in a container without an init
// process.
func ended(state byte) bool { return state == 'Z' || state == 'X' }

func pids() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, d := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// family lists the processes of a server, without its keeper: those of its process group (0: none),
// those with its mark in their environment ("": none), and all processes below them.
func family(group int, mark string) []int {
	parents, in := map[int]int{}, map[int]bool{}
	want := []byte(markName + "=" + mark)
	for _, pid := range pids() {
		state, parent, of, _, ok := stat(pid)
		if !ok || pid == os.Getpid() {
			continue
		}
		parents[pid] = parent
		in[pid] = group > 1 && of == group || mark != "" && hasVariable(pid, want)
		if ended(state) {
			parents[pid], in[pid] = 0, false
		}
	}
	for again := true; again; {
		again = false
		for pid, parent := range parents {
			if !in[pid] && in[parent] {
				in[pid], again = true, true
			}
		}
	}
	var out []int
	for pid := range parents {
		if in[pid] && !keeper(pid) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

func terminate(group int, mark string) {
	for _, pid := range family(group, mark) {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// hasVariable reports whether a process was started with a variable, given as NAME=value, in its
// environment.
func hasVariable(pid int, variable []byte) bool {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return bytes.Contains(append([]byte{0}, env...), slices.Concat([]byte{0}, variable, []byte{0}))
}

// Local addresses in the kernel's tables of sockets at which a connection to 127.0.0.1 may arrive: that
// address itself, any address, and the same for IPv6.
var (
	loopback  = fmt.Sprintf("%08X", binary.NativeEndian.Uint32([]byte{127, 0, 0, 1}))
	mapped    = strings.Repeat("0", 16) + fmt.Sprintf("%08X", binary.NativeEndian.Uint32([]byte{0, 0, 255, 255}))
	receiving = []string{loopback, strings.Repeat("0", 8), strings.Repeat("0", 32), mapped + loopback, mapped + strings.Repeat("0", 8)}
)

// listening returns the inodes of the sockets that listen on a port of this machine, where a
// connection to 127.0.0.1 may arrive. Several sockets can share a port.
func listening(port int) []string {
	var out []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, _ := os.ReadFile(table)
		out = append(out, listeners(string(raw), port)...)
	}
	slices.Sort(out)
	return out
}

func listeners(table string, port int) []string {
	var out []string
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		const listening = "0A"
		if len(f) < 10 || f[3] != listening {
			continue
		}
		address, on, _ := strings.Cut(f[1], ":")
		if on == fmt.Sprintf("%04X", port) && slices.Contains(receiving, address) {
			out = append(out, f[9])
		}
	}
	return out
}

// sockets finds out which processes have the sockets on a port. The processes of the server are given
// as family; only if they do not have all, other processes are looked at.
func sockets(port int, family []int) ([]socket, error) {
	var out []socket
	for _, id := range listening(port) {
		out = append(out, socket{id: id})
	}
	found := func(pids []int, ours bool) (all bool) {
		for _, pid := range pids {
			links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, link := range links {
				to, _ := os.Readlink(link)
				if i := slices.IndexFunc(out, func(s socket) bool { return to == "socket:["+s.id+"]" }); i >= 0 {
					out[i].owners = append(out[i].owners, owner{pid, nameOf(pid), ours})
				}
			}
		}
		return !slices.ContainsFunc(out, func(s socket) bool { return len(s.owners) == 0 })
	}
	if !found(family, true) {
		found(slices.DeleteFunc(pids(), func(pid int) bool { return slices.Contains(family, pid) }), false)
	}
	return out, nil
}

func nameOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// Ports returns how many local ports connections to one address may use; 0 if that is not known.
func Ports() int {
	var first, last int
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(raw), &first, &last); err != nil || last < first {
		return 0
	}
	return last - first + 1
}
