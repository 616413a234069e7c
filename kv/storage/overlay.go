package storage

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// overlayFS is a filesystem whose changes stay in memory: an engine opened on it can replay its log,
// and its owner can write, without changing a byte of the directory below.
type overlayFS struct {
	lower vfs.FS
	upper *vfs.MemFS // files created or changed since

	mu struct {
		sync.Mutex
		hidden map[string]bool // files of lower that were removed or replaced
	}
}

func newOverlayFS(lower vfs.FS) *overlayFS {
	o := &overlayFS{lower: lower, upper: vfs.NewMem()}
	o.mu.hidden = map[string]bool{}
	return o
}

func notExist(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// inUpper reports whether the file's contents are in memory.
func (o *overlayFS) inUpper(name string) bool {
	_, err := o.upper.Stat(name)
	return err == nil
}

func (o *overlayFS) isHidden(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.hidden[name]
}

func (o *overlayFS) hide(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.hidden[name] = true
}

// exists reports whether the overlay shows the file.
func (o *overlayFS) exists(name string) bool {
	_, err := o.Stat(name)
	return err == nil
}

// copyUp makes newname, in memory, a copy of oldname.
func (o *overlayFS) copyUp(oldname, newname string) error {
	src, err := o.Open(oldname)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := o.Create(newname, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// Create implements vfs.FS.
func (o *overlayFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := o.upper.MkdirAll(o.PathDir(name), 0o700); err != nil {
		return nil, err
	}
	o.hide(name)
	return o.upper.Create(name, category)
}

// Link implements vfs.FS.
func (o *overlayFS) Link(oldname, newname string) error {
	if o.exists(newname) {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: fs.ErrExist}
	}
	return o.copyUp(oldname, newname)
}

// Open implements vfs.FS.
func (o *overlayFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	switch {
	case o.inUpper(name):
		return o.upper.Open(name, opts...)
	case o.isHidden(name):
		return nil, notExist("open", name)
	}
	return o.lower.Open(name, opts...)
}

// OpenReadWrite implements vfs.FS.
func (o *overlayFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if !o.inUpper(name) {
		var err error
		if o.exists(name) {
			err = o.copyUp(name, name)
		} else {
			err = o.upper.MkdirAll(o.PathDir(name), 0o700)
		}
		if err != nil {
			return nil, err
		}
	}
	return o.upper.OpenReadWrite(name, category, opts...)
}

// OpenDir implements vfs.FS. The handle's Sync does nothing.
func (o *overlayFS) OpenDir(name string) (vfs.File, error) {
	if !o.exists(name) {
		return nil, notExist("open", name)
	}
	if err := o.upper.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	return o.upper.OpenDir(name)
}

// Remove implements vfs.FS.
func (o *overlayFS) Remove(name string) error {
	if !o.exists(name) {
		return notExist("remove", name)
	}
	o.hide(name)
	if o.inUpper(name) {
		return o.upper.Remove(name)
	}
	return nil
}

// RemoveAll implements vfs.FS.
func (o *overlayFS) RemoveAll(name string) error {
	if o.exists(name) {
		o.hide(name)
	}
	return o.upper.RemoveAll(name)
}

// Rename implements vfs.FS.
func (o *overlayFS) Rename(oldname, newname string) error {
	if !o.inUpper(oldname) {
		if err := o.copyUp(oldname, newname); err != nil {
			return err
		}
		return o.Remove(oldname)
	}
	if err := o.upper.MkdirAll(o.PathDir(newname), 0o700); err != nil {
		return err
	}
	o.hide(oldname)
	o.hide(newname)
	return o.upper.Rename(oldname, newname)
}

// ReuseForWrite implements vfs.FS. The new file is an empty one.
func (o *overlayFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := o.Remove(oldname); err != nil {
		return nil, err
	}
	return o.Create(newname, category)
}

// MkdirAll implements vfs.FS.
func (o *overlayFS) MkdirAll(dir string, perm os.FileMode) error { return o.upper.MkdirAll(dir, perm) }

// Lock implements vfs.FS. It excludes servers that are running or start later; a directory without the lock's file has
// no server, and the file is not created.
func (o *overlayFS) Lock(name string) (io.Closer, error) {
	if _, err := o.lower.Stat(name); errors.Is(err, fs.ErrNotExist) {
		if err := o.upper.MkdirAll(o.PathDir(name), 0o700); err != nil {
			return nil, err
		}
		return o.upper.Lock(name)
	}
	return o.lower.Lock(name)
}

// List implements vfs.FS.
func (o *overlayFS) List(dir string) ([]string, error) {
	names := map[string]bool{}
	lower, lowerErr := o.lower.List(dir)
	for _, name := range lower {
		if !o.isHidden(o.PathJoin(dir, name)) {
			names[name] = true
		}
	}
	upper, err := o.upper.List(dir)
	if err != nil && lowerErr != nil {
		return nil, lowerErr
	}
	for _, name := range upper {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Stat implements vfs.FS.
func (o *overlayFS) Stat(name string) (vfs.FileInfo, error) {
	if o.isHidden(name) || o.inUpper(name) {
		return o.upper.Stat(name)
	}
	return o.lower.Stat(name)
}

// PathBase implements vfs.FS.
func (o *overlayFS) PathBase(path string) string { return o.lower.PathBase(path) }

// PathJoin implements vfs.FS.
func (o *overlayFS) PathJoin(elem ...string) string { return o.lower.PathJoin(elem...) }

// PathDir implements vfs.FS.
func (o *overlayFS) PathDir(path string) string { return o.lower.PathDir(path) }

// GetDiskUsage implements vfs.FS.
func (o *overlayFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// Unwrap implements vfs.FS. The underlying filesystem is not accessible.
func (o *overlayFS) Unwrap() vfs.FS { return nil }
