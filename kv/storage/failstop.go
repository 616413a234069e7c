package storage

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardedFS wraps the filesystem that Pebble uses.
//
// It records how much of logs and manifests has been synced (syncedTable). If a write to the log fails, Pebble panics,
// in some places with its mutex in a state that no recover can repair; the failure is therefore reported to the engine's
// owner first, which ends the process, and Pebble does not see it.
type guardedFS struct {
	vfs.FS
	e *Engine
}

func isLog(name string) bool { return strings.HasSuffix(name, logSuffix) }

// Create implements vfs.FS.
func (g *guardedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.guard(name, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (g *guardedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.guard(newname, func() (vfs.File, error) {
		if err := g.forget(oldname); err != nil {
			return nil, err
		}
		return g.FS.ReuseForWrite(oldname, newname, category)
	})
}

// Remove implements vfs.FS.
func (g *guardedFS) Remove(name string) error {
	if err := g.forget(name); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

func (g *guardedFS) forget(name string) error {
	if f := recordFileOf(g.PathBase(name)); f.kind != noRecords {
		return g.e.synced.forget(f)
	}
	return nil
}

// guard creates a file, and wraps it if it is a log or a manifest.
func (g *guardedFS) guard(name string, create func() (vfs.File, error)) (vfs.File, error) {
	f := recordFileOf(g.PathBase(name))
	if f.kind == noRecords {
		return create()
	}
	guarded := &guardedFile{e: g.e, name: f}
	err := g.e.synced.set(f, 0, true)
	if err == nil {
		guarded.File, err = create()
	}
	if err != nil {
		return nil, guarded.stopOn(err)
	}
	return guarded, nil
}

// Unwrap implements vfs.FS.
func (g *guardedFS) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file of the write-ahead log, or a manifest. Pebble writes and syncs it from one goroutine
// at a time.
type guardedFile struct {
	vfs.File
	e       *Engine
	name    recordFile
	written int64
}

// Write implements vfs.File.
func (f *guardedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, f.stopOn(err)
}

// Sync implements vfs.File.
func (f *guardedFile) Sync() error { return f.synced(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *guardedFile) SyncData() error { return f.synced(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *guardedFile) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	if err == nil && fullSync {
		err = f.e.synced.set(f.name, f.written, false)
	}
	return fullSync, f.stopOn(err)
}

// Close implements vfs.File.
func (f *guardedFile) Close() error { return f.stopOn(f.File.Close()) }

// synced records the bytes that a sync which returned err has made durable.
func (f *guardedFile) synced(err error) error {
	if err == nil {
		err = f.e.synced.set(f.name, f.written, false)
	}
	return f.stopOn(err)
}

// stopOn is Engine.stopOn for errors of the log.
func (f *guardedFile) stopOn(err error) error {
	if f.name.kind != logRecords {
		return err
	}
	return f.e.stopOn(err)
}

// stopOn does nothing without an error. With an error, of an open engine with an owner to report it to, it does not
// return.
func (e *Engine) stopOn(err error) error {
	if err == nil || !e.serving.Load() || e.closed.Load() {
		return err
	}
	f := e.fail(err)
	if e.opts.OnFatal != nil {
		select {} // the process is about to end
	}
	return f
}
