package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// damagedSuffix marks the files with the rest of a damaged log. They are kept until an operator removes them.
	damagedSuffix = ".damaged"
	salvageTemp   = "PERCODB_SALVAGE.new"
)

// salvageLogs truncates the directory's log at the first unreadable record, and moves the rest to other files: the data
// up to there is a state that the database once had. It reports whether it truncated anything.
func (e *Engine) salvageLogs() (cut bool, err error) {
	fsys, dir := e.opts.FS, e.opts.Dir
	l, err := listDir(fsys, dir)
	if err != nil {
		return false, err
	}
	logs, err := e.liveLogs(l.manifestMarker)
	if err != nil {
		return false, err
	}
	for i, log := range logs {
		end, missing, err := e.readLog(log)
		if err != nil {
			return false, err
		}
		last := i == len(logs)-1
		if !missing && !last && end.closed && end.chunks >= e.synced.syncedTo(log) {
			continue
		}
		if !missing {
			err = e.cutLog(log, end.records)
		}
		for _, later := range slices.Backward(logs[i+1:]) {
			if err == nil {
				err = e.dropLog(later)
			}
		}
		if err == nil && missing {
			err = e.synced.forget(log)
		}
		e.opts.Logger.Warn("data loss was accepted: the log was cut, and the rest set aside", "dir", dir,
			"log", log.String(), "offset", end.records, "synced", e.synced.syncedTo(log), "later_logs", len(logs)-1-i)
		return true, errors.Join(err, syncDir(fsys, dir))
	}
	return false, nil
}

// liveLogs returns the logs that are needed, by number: those there, and those of which something was synced.
func (e *Engine) liveLogs(manifest string) ([]recordFile, error) {
	first, err := e.synced.firstLog(manifest)
	if err != nil {
		return nil, err
	}
	names, err := e.opts.FS.List(e.opts.Dir)
	if err != nil {
		return nil, err
	}
	var logs []recordFile
	for _, name := range names {
		if f := recordFileOf(name); f.kind == logRecords && f.number >= first {
			logs = append(logs, f)
		}
	}
	for _, s := range e.synced.all() {
		if s.kind == logRecords && s.number >= first && s.synced > 0 {
			logs = append(logs, s.recordFile)
		}
	}
	slices.SortFunc(logs, func(a, b recordFile) int { return cmp.Compare(a.number, b.number) })
	return slices.Compact(logs), nil
}

func (e *Engine) readLog(f recordFile) (end readable, missing bool, err error) {
	if _, err := e.opts.FS.Stat(e.opts.FS.PathJoin(e.opts.Dir, f.String())); isNotExist(err) {
		return end, true, nil
	}
	end, err = e.synced.read(f)
	return end, false, err
}

// cutLog replaces a log by its first length bytes; the original is kept under another name.
func (e *Engine) cutLog(f recordFile, length int64) error {
	fsys := e.opts.FS
	name, temp := fsys.PathJoin(e.opts.Dir, f.String()), fsys.PathJoin(e.opts.Dir, salvageTemp)
	if err := copyPrefix(fsys, name, temp, length); err != nil {
		return err
	}
	aside, err := e.asideName(f)
	if err != nil {
		return err
	}
	// Until the rename the directory is as damaged as before.
	if err := errors.Join(fsys.Link(name, aside), e.synced.set(f, length, true)); err != nil {
		return err
	}
	return fsys.Rename(temp, name)
}

// dropLog sets a log aside.
func (e *Engine) dropLog(f recordFile) error {
	name := e.opts.FS.PathJoin(e.opts.Dir, f.String())
	if _, err := e.opts.FS.Stat(name); isNotExist(err) {
		return e.synced.forget(f)
	}
	aside, err := e.asideName(f)
	if err != nil {
		return err
	}
	return errors.Join(e.synced.forget(f), e.opts.FS.Rename(name, aside))
}

// asideName returns an unused name for the original of a log.
func (e *Engine) asideName(f recordFile) (string, error) {
	for i := 1; ; i++ {
		name := e.opts.FS.PathJoin(e.opts.Dir, f.String()+damagedSuffix)
		if i > 1 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		if _, err := e.opts.FS.Stat(name); isNotExist(err) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

func copyPrefix(fsys vfs.FS, from, to string, length int64) error {
	src, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := fsys.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = io.CopyN(dst, src, length); err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
