package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// othersBits are the permissions that a data directory and its files do not grant.
const othersBits fs.FileMode = 0o077

// PermissionsError: a data directory, or a file of it, is open to other users, and cannot be closed to them.
type PermissionsError struct {
	Path string
	Mode fs.FileMode
	Err  error
}

func (e *PermissionsError) Error() string {
	return fmt.Sprintf("storage: %s has permissions %04o, and they cannot be changed: %v", e.Path, e.Mode.Perm(), e.Err)
}

func (e *PermissionsError) Unwrap() error { return e.Err }

// narrowPermissions makes the directory and its files accessible to their owner only. It returns how many of
// them were open to others. Filesystems other than the operating system's have no permissions.
func narrowPermissions(fsys vfs.FS, dir string) (narrowed int, err error) {
	if vfs.Root(fsys) != vfs.Default {
		return 0, nil
	}
	paths := []string{dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return narrowed, err
		}
		if info.Mode().Perm()&othersBits == 0 {
			continue
		}
		if err := os.Chmod(path, info.Mode().Perm()&^othersBits); err != nil {
			return narrowed, &PermissionsError{Path: path, Mode: info.Mode(), Err: err}
		}
		narrowed++
	}
	return narrowed, nil
}
