package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat reads the state of a process from /proc; ok is false if the process is gone.
func stat(pid int) (state byte, group int, start string, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, "", false
	}
	// The name of the process is in parentheses, and may contain anything, even ") ".
	_, rest, found := cutLast(string(raw), ")")
	f := strings.Fields(rest)
	if !found || len(f) < 20 {
		return 0, 0, "", false
	}
	group, _ = strconv.Atoi(f[2])
	return f[0][0], group, f[19], true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// startOf returns the boot of the machine and the clock tick at which a process started. A later
// process with the same pid has a different value. startOf returns "" if the process is gone.
func startOf(pid int) string {
	state, _, start, ok := stat(pid)
	if !ok || ended(state) {
		return ""
	}
	return boot() + "/" + start
}

// boot returns the id of this start of the machine.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// ended reports whether a process with the given state has ended. A zombie has ended too. It
// remains until its parent waits for it, which may never happen in a container without an init
// process.
func ended(state byte) bool { return state == 'Z' || state == 'X' }

// pids lists all processes.
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

// alive reports whether a process of the group still runs.
func alive(group int) bool {
	if !exists(group) {
		return false
	}
	for _, pid := range pids() {
		if state, g, _, ok := stat(pid); ok && g == group && !ended(state) {
			return true
		}
	}
	return false
}

// marked lists the processes that a server started, even outside of its process group. They have
// the server's mark in their environment.
func marked(mark string) []int {
	if mark == "" {
		return nil
	}
	want := []byte(markName + "=" + mark)
	var out []int
	for _, pid := range pids() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || pid == os.Getpid() {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(v, want) {
				if state, _, _, ok := stat(pid); ok && !ended(state) {
					out = append(out, pid)
				}
				break
			}
		}
	}
	return out
}

// listener identifies the socket that listens on a port of this machine. It returns the socket's
// inode, which differs for a socket that is opened later. It returns "" if no socket listens, or if
// the inode cannot be read.
func listener(port int) string {
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			const listening = "0A"
			if len(f) > 9 && strings.HasSuffix(f[1], suffix) && f[3] == listening {
				return f[9]
			}
		}
	}
	return ""
}
