package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FormatVersion is the version of everything percodb writes into a data directory: key layout, records and meta keys. It
// increases when any of them changes.
//
// 2 → 3: PERCODB_SYNCED
// 3 → 4: lock bounds, and records that garbage collection keeps for unavailable stores. An older server must not open
// such a directory; existing records are unchanged.
// 4 → 5: notify cells, and locks with notify sets. An older server must not open such a directory; existing records are
// unchanged.
const FormatVersion = 5

// oldestFormat is the oldest version that a start upgrades.
const oldestFormat = 2

const (
	formatFile   = "PERCODB_FORMAT"
	formatTemp   = formatFile + ".new"
	formatPrefix = "percodb-format "
)

// ErrLocked: another process, or another engine of this one, has the directory open.
var ErrLocked = errors.New("storage: data directory is in use by another server")

// FormatError: the directory was not written by this format version of percodb.
type FormatError struct {
	Dir   string
	Found string // contents of the marker file; empty if there is none
}

func (e *FormatError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("storage: %s holds files but no %s: it is not a percodb data directory, or not a whole one", e.Dir, formatFile)
	}
	return fmt.Sprintf("storage: %s has data format %q, this server reads version %d", e.Dir, e.Found, FormatVersion)
}

// DamageError: files of the directory are missing or damaged. Nothing in it has been changed.
type DamageError struct {
	Dir    string
	Detail string
	// Log: Options.AcceptDataLoss opens the directory, with the data written before the damage.
	Log bool
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("storage: %s is damaged: %s", e.Dir, e.Detail)
}

// replayFailure is part of Pebble's errors about a log.
const replayFailure = "replaying WAL"

// damageOf makes a *DamageError of an error with which Pebble refused the directory, unless the
// operating system is to blame.
func (e *Engine) damageOf(err error) error {
	var errno syscall.Errno
	var failed *FailedError
	system := errors.As(err, &errno) && errno != syscall.ENOENT
	if err == nil || system || errors.As(err, &failed) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	var damage *DamageError
	if errors.As(err, &damage) {
		return err
	}
	return &DamageError{Dir: e.opts.Dir, Detail: strings.ReplaceAll(err.Error(), "\n", "; "), Log: pebble.IsCorruptionError(err) && strings.Contains(err.Error(), replayFailure)}
}

// listing lists the files of a data directory, by kind.
type listing struct {
	tables, logs, manifests int
	manifestMarker          string   // the manifest in force; empty if no marker names one
	versionMarker           bool     // a marker names Pebble's format version
	synced                  bool     // PERCODB_SYNCED is there
	others                  []string // files that are none of percodb's
}

// The names Pebble gives its files.
const (
	manifestPrefix     = "MANIFEST-"
	optionsPrefix      = "OPTIONS-"
	manifestMarker     = "marker.manifest."
	formatMajorMarker  = "marker.format-version."
	markerPrefix       = "marker."
	lockFile           = "LOCK"
	lostAndFound       = "lost+found" // of a filesystem's own, at its root
	tableSuffix        = ".sst"
	blobSuffix         = ".blob"
	temporarySuffix    = ".dbtmp"
	logSuffix          = ".log"
	manifestMarkerDots = 3 // marker.manifest.ITERATION.MANIFEST-NUMBER
)

func listDir(fsys vfs.FS, dir string) (l listing, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return l, err
	}
	var iteration string
	for _, name := range names {
		switch {
		case name == formatFile:
		case name == lockFile, name == lostAndFound, name == formatTemp, name == syncedTemp, name == salvageTemp, name == reserveFile:
		case name == syncedFile:
			l.synced = true
		case strings.HasSuffix(name, tableSuffix), strings.HasSuffix(name, blobSuffix):
			l.tables++
		case isLog(name):
			l.logs++
		case strings.HasPrefix(name, manifestPrefix):
			l.manifests++
		case strings.HasPrefix(name, manifestMarker):
			// The one with the highest iteration holds; iterations have leading zeros.
			parts := strings.SplitN(name, ".", manifestMarkerDots+1)
			if len(parts) > manifestMarkerDots && strings.HasPrefix(parts[3], manifestPrefix) && parts[2] >= iteration {
				iteration, l.manifestMarker = parts[2], parts[3]
			}
		case strings.HasPrefix(name, formatMajorMarker):
			l.versionMarker = true
		case strings.HasPrefix(name, markerPrefix), strings.HasPrefix(name, optionsPrefix), strings.HasSuffix(name, temporarySuffix):
		case strings.Contains(name, logSuffix+damagedSuffix):
		default:
			l.others = append(l.others, name)
		}
	}
	return l, nil
}

// isNew reports whether the directory contains no file of a database.
func (l *listing) isNew() bool {
	return l.tables+l.logs+l.manifests+len(l.others) == 0 && l.manifestMarker == "" && !l.versionMarker
}

// dirState is the result of verifyDir.
type dirState struct {
	listing
	fresh  bool // it is empty
	format int
}

// verifyDir verifies that the directory is one of percodb's, and complete according to the file names, or fresh. It
// changes nothing.
func verifyDir(fsys vfs.FS, dir string) (d dirState, err error) {
	if d.listing, err = listDir(fsys, dir); err != nil {
		return d, err
	}
	found, err := readFormat(fsys, dir)
	if err != nil {
		return d, err
	}
	if d.fresh = found == "" && d.isNew(); d.fresh {
		return d, nil // There is no marker, or an empty one whose write a crash cut off.
	}
	for d.format = oldestFormat; found != fmt.Sprint(formatPrefix, d.format); d.format++ {
		if d.format == FormatVersion {
			return d, &FormatError{Dir: dir, Found: strings.TrimPrefix(found, formatPrefix)}
		}
	}
	return d, d.checkMarkers(fsys, dir)
}

// prepareDir verifies the directory, and makes a data directory of a fresh one. The caller holds its lock.
func (e *Engine) prepareDir() error {
	fsys, dir := e.opts.FS, e.opts.Dir
	d, err := verifyDir(fsys, dir)
	if err != nil {
		return err
	}
	narrowed, err := narrowPermissions(fsys, dir)
	if err != nil {
		return err
	}
	if narrowed > 0 && !d.fresh {
		e.opts.Logger.Warn("the data directory was open to other users: its permissions are now 0700, those of its files 0600", "dir", dir, "narrowed", narrowed)
	}
	var found bool
	if e.synced, found, err = loadSynced(fsys, dir); err != nil {
		return err
	}
	switch {
	case d.fresh:
		return writeFormat(fsys, dir)
	case d.format == 2:
		// An existing file is from an upgrade that was interrupted.
		e.synced, e.upgrade = newSynced(fsys, dir), true
		return nil
	case !found && d.manifestMarker != "" && !e.opts.AcceptDataLoss:
		return &DamageError{Dir: dir, Log: true, Detail: syncedFile + " is missing or cut short, without which damage of the log cannot be seen"}
	}
	e.upgrade = d.format < FormatVersion
	return e.synced.check(d.manifestMarker)
}

// checkMarkers verifies that there is a manifest where there is data. Pebble takes a directory without
// the marker for an empty one, and removes every other file as obsolete.
func (l *listing) checkMarkers(fsys vfs.FS, dir string) error {
	damaged := func(format string, args ...any) error {
		return &DamageError{Dir: dir, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case l.manifestMarker == "" && l.tables+l.logs > 0:
		// Pebble sets the marker before it creates the first log.
		return damaged("it holds %d table files and %d log files, but no file %s* that names the manifest they belong to", l.tables, l.logs, manifestMarker)
	case l.manifestMarker == "":
		return nil // a crash ended its creation
	}
	if _, err := fsys.Stat(fsys.PathJoin(dir, l.manifestMarker)); isNotExist(err) {
		return damaged("the manifest %s is missing", l.manifestMarker)
	} else if err != nil {
		return err
	}
	if !l.versionMarker && l.tables > 0 {
		return damaged("it holds %d table files, but no file %s* that names their format", l.tables, formatMajorMarker)
	}
	return nil
}

// readFormat returns the contents of the directory's marker file, empty if there is none.
func readFormat(fsys vfs.FS, dir string) (string, error) {
	f, err := fsys.Open(fsys.PathJoin(dir, formatFile))
	if isNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	return strings.TrimSpace(string(text)), err
}

// writeFormat writes FormatVersion to the directory's marker file.
func writeFormat(fsys vfs.FS, dir string) error {
	temp := fsys.PathJoin(dir, formatTemp)
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(f, "%s%d\n", formatPrefix, FormatVersion); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temp, fsys.PathJoin(dir, formatFile)); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockInterval is how often a lock that another process holds is tried.
const lockInterval = 20 * time.Millisecond

// awaitLock is lockDir that waits for another process to end.
func awaitLock(opts *Options) (*pebble.Lock, error) {
	for end := time.Now().Add(opts.LockTimeout); ; time.Sleep(lockInterval) {
		lock, err := lockDir(opts.FS, opts.Dir)
		if !errors.Is(err, ErrLocked) || !time.Now().Before(end) {
			return lock, err
		}
	}
}

// lockDir creates the directory if need be and locks it against other servers.
func lockDir(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory %s: %w", dir, err)
	}
	if _, err := fsys.Stat(fsys.PathJoin(dir, lockFile)); isNotExist(err) {
		// In a directory that is refused the lock's file is not created.
		if _, err := verifyDir(fsys, dir); err != nil {
			return nil, err
		}
	}
	lock, err := pebble.LockDirectory(dir, fsys)
	switch {
	case err == nil:
		return lock, nil
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || isDiskFull(err):
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	default:
		return nil, fmt.Errorf("%w (%s: %w)", ErrLocked, dir, err)
	}
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
