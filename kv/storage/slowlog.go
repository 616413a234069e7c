package storage

import "github.com/cockroachdb/pebble/v2/vfs"

// DelayLogSyncs returns a view of fs whose syncs of the write-ahead log call before first, which may block: for tests of
// slow syncs. Pebble syncs one log at a time and holds no lock during a sync.
func DelayLogSyncs(fs FS, before func()) FS { return &delayedFS{FS: fs, before: before} }

type delayedFS struct {
	vfs.FS
	before func()
}

// Create implements vfs.FS.
func (d *delayedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return d.delay(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (d *delayedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(oldname, newname, category)
	return d.delay(newname, f, err)
}

func (d *delayedFS) delay(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !isLog(name) {
		return f, err
	}
	return &delayedFile{File: f, before: d.before}, nil
}

// Unwrap implements vfs.FS.
func (d *delayedFS) Unwrap() vfs.FS { return d.FS }

type delayedFile struct {
	vfs.File
	before func()
}

// Sync implements vfs.File.
func (f *delayedFile) Sync() error {
	f.before()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *delayedFile) SyncData() error {
	f.before()
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *delayedFile) SyncTo(length int64) (fullSync bool, err error) {
	f.before()
	return f.File.SyncTo(length)
}
