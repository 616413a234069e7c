package storage

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardedFS watches over the write-ahead log. When a write to it fails, Pebble panics, here and there
// with its own mutex in a state that no recover can save. So the failure is told to the engine's
// owner first, who ends the process, and Pebble does not get to hear of it.
type guardedFS struct {
	vfs.FS
	e *Engine
}

func isLog(name string) bool { return strings.HasSuffix(name, logSuffix) }

// Create implements vfs.FS.
func (g *guardedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, category)
	return g.guard(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (g *guardedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(oldname, newname, category)
	return g.guard(newname, f, err)
}

func (g *guardedFS) guard(name string, f vfs.File, err error) (vfs.File, error) {
	switch {
	case !isLog(name):
		return f, err
	case err != nil:
		return nil, g.e.stopOn(err)
	default:
		return &guardedFile{File: f, e: g.e}, nil
	}
}

// Unwrap implements vfs.FS.
func (g *guardedFS) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file of the write-ahead log.
type guardedFile struct {
	vfs.File
	e *Engine
}

// Write implements vfs.File.
func (f *guardedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.e.stopOn(err)
}

// Sync implements vfs.File.
func (f *guardedFile) Sync() error { return f.e.stopOn(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *guardedFile) SyncData() error { return f.e.stopOn(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *guardedFile) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	return fullSync, f.e.stopOn(err)
}

// Close implements vfs.File.
func (f *guardedFile) Close() error { return f.e.stopOn(f.File.Close()) }

// stopOn does nothing without an error. With one, of an engine that is open and has an owner to tell,
// it does not return.
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
