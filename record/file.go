package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tokgate/tokgate/record/disk"
)

// WriteFile writes a whole file, and creates missing folders. It writes a temporary file in the
// same folder and renames it. So after a crash, and for a concurrent reader, the file has its old
// content or all of data.
//
// If the file exists and is not regular, as /dev/stdout or a named pipe, WriteFile writes to it
// directly. Renaming would replace it.
func WriteFile(path string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("could not write %s: %w", path, err)
		}
	}()
	if special(path) {
		return writeTo(path, data)
	}
	dir := filepath.Dir(path)
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := disk.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer disk.Remove(temp.Name()) // does nothing after a successful rename
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if err == nil {
		err = temp.Sync()
	}
	if e := temp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := disk.Rename(temp.Name(), path); err != nil {
		return err
	}
	// Sync the folder, so that the new name is on disk. Ignore errors: the content is on disk
	// already, and some systems cannot sync folders.
	if d, err := disk.OpenFile(dir, os.O_RDONLY, 0); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// OpenIn opens the regular file with the given name in the folder dir. The parameter flag is as for
// os.OpenFile. OpenIn refuses a link, a pipe or a device. The folder may come from a repository,
// where a link could point to files that the run must not touch.
func OpenIn(dir, name string, flag int) (*disk.File, error) {
	root, err := disk.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := filepath.Join(dir, name)
	switch info, err := root.Lstat(name); {
	case err == nil && !info.Mode().IsRegular():
		return nil, notRegular(path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := root.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	// Check that the name still belongs to the open file. Somebody could have replaced the file by
	// a link after it was found to be regular.
	opened, err := f.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = root.Lstat(name); err == nil && (!named.Mode().IsRegular() || !os.SameFile(opened, named)) {
			err = notRegular(path)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(path string) error { return fmt.Errorf("%s is not a regular file", path) }

// special reports whether a file must be written in place. Other files are replaced by a new file.
// /dev/stdout is special, although it may be another name of a regular file.
func special(path string) bool {
	if info, err := disk.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return true
	}
	abs, err := filepath.Abs(path)
	return err == nil && (strings.HasPrefix(abs, "/dev/fd/") || strings.HasPrefix(abs, "/dev/std") || strings.HasPrefix(abs, "/proc/"))
}

func writeTo(path string, data []byte) error {
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
