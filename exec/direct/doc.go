// Package direct sends requests over HTTP/1.1 and reads their answers without net/http. net/http
// needs two goroutines for each connection and one for each request, with their buffers; for many
// streams that costs more than reading them.
//
// A Pool writes a request at once, on an open connection. On Linux a few pollers, at most one for each
// core, read all connections; elsewhere a goroutine reads each of them. The parser of net/http reads the
// head of an answer, and a frame removes the framing of the body. What a Taker gets is what it would
// get from net/http: FuzzPaths of exec/client compares the two.
//
// The package knows nothing of events, JSON or samples. It passes on bytes and when they came.
//
// # What it assumes
//
// Of the kernel (Linux): epoll reports a socket as long as bytes wait in it (level-triggered). A file
// descriptor made by dup refers to the same socket, and closing the first leaves the second open. A
// socket that package net made does not block, also after dup. Closing the last descriptor of a
// socket takes it out of every epoll instance. A read or write that does not block takes
// microseconds, even of 64 KiB. Where epoll is not to be had (a sandbox, another system), each
// connection gets a goroutine.
//
// Of Go's runtime: an epoll instance can be waited for like a socket, so that a poller without work
// takes no thread. system calls by syscall.RawSyscall are not told to the scheduler, so the goroutine keeps its
// processor. Each poller lets others run after every turn, because the runtime cannot interrupt it in a
// system call. The memory of a slice that is passed to a system call does not move meanwhile.
//
// Of the race detector: it learns that a read comes after its write only from syscall.Read and
// syscall.Write. So builds with the detector use these (nowait_race_linux.go), and what is tested with
// it is all but four calls.
//
// If one of these does not hold, `tokgate run --transport net/http` reads the streams without this package.
package direct
