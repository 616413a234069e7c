package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// unixSocket is a listener on a Unix socket. While it is open, its lock file is locked, which ends with the process however
// it ends.
type unixSocket struct {
	*net.UnixListener
	lock *os.File
}

// maxSocketPath is the length of the longest path that the system accepts.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// listenUnix listens on .s.PGSQL.PORT in dir, where libpq looks for it. Everyone on the machine may connect; the rules decide
// who is let in. What a process that has ended left there is replaced.
func listenUnix(dir string, port int) (*unixSocket, error) {
	path := filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(port))
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("path of the Unix-domain socket %q is too long (maximum %d bytes); give --socket-dir a directory with a shorter path", path, maxSocketPath)
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, explainDir(dir, err)
	}
	listener, err := replaceSocket(path)
	if err != nil {
		lock.Close()
		return nil, explainDir(dir, err)
	}
	return &unixSocket{listener, lock}, nil
}

// explainDir says what to do about a directory in which no socket can be made.
func explainDir(dir string, err error) error {
	switch info, statErr := os.Stat(dir); {
	case errors.Is(statErr, os.ErrNotExist):
		return fmt.Errorf("--socket-dir %s does not exist; create it first, as the user who runs the server", dir)
	case statErr == nil && !info.IsDir():
		return fmt.Errorf("--socket-dir %s is not a directory; give one that the user who runs the server may write to", dir)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("no permission to make a socket in --socket-dir %s (%v); give a directory that the user who runs the server may write to", dir, err)
	}
	return err
}

// replaceSocket listens on path. A socket on which nobody listens is removed before.
func replaceSocket(path string) (*net.UnixListener, error) {
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, socketInUse(path)
	} else if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o777); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

func socketInUse(path string) error {
	return fmt.Errorf("%s is in use by another process; stop it, or give --listen another port or --socket-dir another directory", path)
}

// lockSocket locks the file beside a socket, and writes the process's number into it as PostgreSQL does.
func lockSocket(path string) (*os.File, error) {
	name := path + ".lock"
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			holder, _ := io.ReadAll(io.LimitReader(f, 20)) // The number is a help only.
			pid, _, _ := strings.Cut(string(holder), "\n")
			f.Close()
			return nil, fmt.Errorf("%w (process %s, lock file %s)", socketInUse(path), pid, name)
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !isFile(f, name) { // Its last owner has removed it meanwhile.
			f.Close()
			continue
		}
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
}

// isFile reports whether f is the file of this name.
func isFile(f *os.File, name string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Lstat(name)
	return err == nil && os.SameFile(ours, theirs)
}

// Close stops listening, and removes the socket and its lock file.
func (s *unixSocket) Close() error {
	err := s.UnixListener.Close()
	return errors.Join(err, os.Remove(s.lock.Name()), s.lock.Close())
}
