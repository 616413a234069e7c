package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FormatVersion is the version of everything percodb writes into a data directory: key layout,
// records and meta keys. It grows when any of them changes.
const FormatVersion = 2

const (
	formatFile   = "PERCODB_FORMAT"
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
		return fmt.Sprintf("storage: %s holds files but no %s: it is not a percodb data directory", e.Dir, formatFile)
	}
	return fmt.Sprintf("storage: %s has data format %q, this server reads version %d", e.Dir, e.Found, FormatVersion)
}

// checkFormat verifies the directory's marker file, and writes it into an empty directory. The
// caller holds the directory's lock.
func checkFormat(fsys vfs.FS, dir string) error {
	name := fsys.PathJoin(dir, formatFile)
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return createFormat(fsys, dir, name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return err
	}
	found := strings.TrimSpace(string(text))
	if found == fmt.Sprint(formatPrefix, FormatVersion) {
		return nil
	}
	// An empty marker is one whose write a crash cut off: there can be no data yet.
	if found == "" {
		return createFormat(fsys, dir, name)
	}
	return &FormatError{Dir: dir, Found: strings.TrimPrefix(found, formatPrefix)}
}

func createFormat(fsys vfs.FS, dir, name string) error {
	desc, err := pebble.Peek(dir, fsys)
	if err != nil {
		return err
	}
	if desc.Exists {
		return &FormatError{Dir: dir}
	}
	f, err := fsys.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(f, "%s%d\n", formatPrefix, FormatVersion); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
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
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create data directory %s: %w", dir, err)
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
