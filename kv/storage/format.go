package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FormatVersion is the version of everything percodb writes into a data directory: key layout,
// records and meta keys. It grows when any of them changes.
const FormatVersion = 2

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
	Found string // what the marker file says; empty if there is none
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
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("storage: %s is damaged: %s", e.Dir, e.Detail)
}

// damageOf makes a *DamageError of an error with which Pebble refused the directory, unless the
// operating system is to blame.
func (e *Engine) damageOf(err error) error {
	var errno syscall.Errno
	var failed *FailedError
	system := errors.As(err, &errno) && errno != syscall.ENOENT
	if err == nil || system || errors.As(err, &failed) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return &DamageError{Dir: e.opts.Dir, Detail: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// listing is what a data directory holds, by kind.
type listing struct {
	tables, logs, manifests int
	manifestMarker          string // the manifest in force; empty if no marker names one
	versionMarker           bool   // a marker names Pebble's format version
	format                  bool
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
			l.format = true
		case name == lockFile, name == lostAndFound, name == formatTemp:
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
		default:
			l.others = append(l.others, name)
		}
	}
	return l, nil
}

// isNew reports whether nothing of a database is there.
func (l *listing) isNew() bool {
	return l.tables+l.logs+l.manifests+len(l.others) == 0 && l.manifestMarker == "" && !l.versionMarker
}

// verifyDir verifies that the directory is one of ours, and whole as far as names tell, or fresh: then
// it holds nothing. It changes nothing.
func verifyDir(fsys vfs.FS, dir string) (fresh bool, err error) {
	l, err := listDir(fsys, dir)
	if err != nil {
		return false, err
	}
	found, err := readFormat(fsys, dir)
	switch {
	case err != nil:
		return false, err
	case found == "" && l.isNew():
		// There is no marker, or an empty one whose write a crash cut off.
		return true, nil
	case found != fmt.Sprint(formatPrefix, FormatVersion):
		return false, &FormatError{Dir: dir, Found: strings.TrimPrefix(found, formatPrefix)}
	}
	return false, l.checkMarkers(fsys, dir)
}

// prepareDir verifies the directory, and makes a data directory of a fresh one. The caller holds its lock.
func prepareDir(fsys vfs.FS, dir string) error {
	fresh, err := verifyDir(fsys, dir)
	if err != nil || !fresh {
		return err
	}
	return writeFormat(fsys, dir)
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
	if _, err := fsys.Stat(fsys.PathJoin(dir, l.manifestMarker)); errors.Is(err, fs.ErrNotExist) {
		return damaged("the manifest %s is missing", l.manifestMarker)
	} else if err != nil {
		return err
	}
	if !l.versionMarker && l.tables > 0 {
		return damaged("it holds %d table files, but no file %s* that names their format", l.tables, formatMajorMarker)
	}
	return nil
}

// readFormat returns what the directory's marker file says, empty if there is none.
func readFormat(fsys vfs.FS, dir string) (string, error) {
	f, err := fsys.Open(fsys.PathJoin(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	return strings.TrimSpace(string(text)), err
}

// writeFormat makes the directory's marker file say FormatVersion.
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

// lockDir creates the directory if need be and locks it against other servers.
func lockDir(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory %s: %w", dir, err)
	}
	if _, err := fsys.Stat(fsys.PathJoin(dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		// A directory that is refused does not get the lock's file.
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
