// Package disk is the file system for all code that records and reports. It offers the calls of
// package os. A test can make each call fail; see Inject.
package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Call is an operation on the disk that is about to be made.
type Call struct {
	Op   string // open (also creates), read, write, truncate, chmod, sync, close, stat, list, rename, remove, mkdir
	Path string
	Size int // bytes of a write
}

// Fault decides whether a disk call fails. If err is not nil, the call fails with err. A write that
// fails still writes some bytes; the result done is their number.
type Fault func(Call) (done int, err error)

var injected atomic.Pointer[Fault]

// Inject makes every disk call of this process ask the function fault first, until undo is called.
// Only one test may use it at a time.
func Inject(fault Fault) (undo func()) {
	if !injected.CompareAndSwap(nil, &fault) {
		panic("faults are injected already")
	}
	return func() { injected.Store(nil) }
}

// ask returns the injected fault of a call, or 0 and nil without a fault. The result done is how
// many bytes a write still writes before it fails.
func ask(op, path string, size int) (done int, err error) {
	fault := injected.Load()
	if fault == nil {
		return 0, nil
	}
	if done, err = (*fault)(Call{op, path, size}); err != nil {
		err = &fs.PathError{Op: op, Path: path, Err: err}
	}
	return min(done, size), err
}

// call makes a disk call that returns a value and an error.
func call[T any](op, path string, do func() (T, error)) (got T, err error) {
	if _, err := ask(op, path, 0); err != nil {
		return got, err
	}
	return do()
}

// act makes a disk call that returns only an error.
func act(op, path string, do func() error) error {
	if _, err := ask(op, path, 0); err != nil {
		return err
	}
	return do()
}

// OpenFile is os.OpenFile.
func OpenFile(path string, flag int, perm fs.FileMode) (*File, error) {
	return open(path, func() (*os.File, error) { return os.OpenFile(path, flag, perm) })
}

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (*File, error) {
	return open(filepath.Join(dir, pattern), func() (*os.File, error) { return os.CreateTemp(dir, pattern) })
}

func open(path string, do func() (*os.File, error)) (*File, error) {
	f, err := call("open", path, do)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// ReadDir is os.ReadDir.
func ReadDir(path string) ([]fs.DirEntry, error) {
	return call("list", path, func() ([]fs.DirEntry, error) { return os.ReadDir(path) })
}

// Stat is os.Stat.
func Stat(path string) (fs.FileInfo, error) {
	return call("stat", path, func() (fs.FileInfo, error) { return os.Stat(path) })
}

// Lstat is os.Lstat.
func Lstat(path string) (fs.FileInfo, error) {
	return call("stat", path, func() (fs.FileInfo, error) { return os.Lstat(path) })
}

// MkdirAll is os.MkdirAll.
func MkdirAll(path string, perm fs.FileMode) error {
	return act("mkdir", path, func() error { return os.MkdirAll(path, perm) })
}

// Rename is os.Rename.
func Rename(from, to string) error {
	return act("rename", to, func() error { return os.Rename(from, to) })
}

// Remove is os.Remove.
func Remove(path string) error { return act("remove", path, func() error { return os.Remove(path) }) }

// Root wraps an os.Root.
type Root struct {
	dir  string
	root *os.Root
}

// OpenRoot is os.OpenRoot.
func OpenRoot(dir string) (*Root, error) {
	r, err := call("open", dir, func() (*os.Root, error) { return os.OpenRoot(dir) })
	return &Root{dir, r}, err
}

// Close closes the os.Root. Tests inject no fault, because a Root writes nothing.
func (r *Root) Close() error { return r.root.Close() }

// Lstat is os.Root's.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	return call("stat", filepath.Join(r.dir, name), func() (fs.FileInfo, error) { return r.root.Lstat(name) })
}

// OpenFile is os.Root's.
func (r *Root) OpenFile(name string, flag int, perm fs.FileMode) (*File, error) {
	return open(filepath.Join(r.dir, name), func() (*os.File, error) { return r.root.OpenFile(name, flag, perm) })
}

// File wraps an open os.File.
type File struct{ file *os.File }

// Name is os.File's.
func (f *File) Name() string { return f.file.Name() }

// Fd returns the descriptor of the os.File, for lock calls.
func (f *File) Fd() uintptr { return f.file.Fd() }

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	return call("read", f.Name(), func() (int, error) { return f.file.Read(p) })
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, at int64) (int, error) {
	return call("read", f.Name(), func() (int, error) { return f.file.ReadAt(p, at) })
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.write(p, f.file.Write) }

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(p []byte, at int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.file.WriteAt(p, at) })
}

func (f *File) write(p []byte, do func([]byte) (int, error)) (int, error) {
	done, fault := ask("write", f.Name(), len(p))
	if fault != nil {
		p = p[:done]
	}
	n, err := do(p)
	if err == nil {
		err = fault
	}
	return n, err
}

// Stat is os.File's.
func (f *File) Stat() (fs.FileInfo, error) { return call("stat", f.Name(), f.file.Stat) }

// Truncate is os.File's.
func (f *File) Truncate(size int64) error {
	return act("truncate", f.Name(), func() error { return f.file.Truncate(size) })
}

// Chmod is os.File's.
func (f *File) Chmod(mode fs.FileMode) error {
	return act("chmod", f.Name(), func() error { return f.file.Chmod(mode) })
}

// Sync is os.File's.
func (f *File) Sync() error { return act("sync", f.Name(), f.file.Sync) }

// Close closes the file even if an injected fault makes the call fail.
func (f *File) Close() error {
	_, fault := ask("close", f.Name(), 0)
	if err := f.file.Close(); err != nil {
		return err
	}
	return fault
}
