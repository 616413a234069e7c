package pgwire

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket reads and writes a connection without informing the scheduler of its system calls. They never block, because
// the descriptor is non-blocking; waiting is left to the runtime's poller.
//
// Package net announces each call, so that another goroutine can use the processor if the call blocks. A send over
// loopback wakes the client, which often runs immediately in place of the sender; the processor is then handed over and
// requested again in vain. Without the announcement point reads cost a tenth less.
type socket struct {
	net.Conn
	raw syscall.RawConn
	// The functions below use these fields: they are created once, because functions created for each call would be
	// allocated. The reader and the writer may be two goroutines.
	in, out         []byte
	got             int
	inErr, outErr   syscall.Errno
	readOnce, write func(fd uintptr) (done bool)
}

// newSocket returns c, with system calls as described above if it is a socket.
func newSocket(c net.Conn) net.Conn {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return c
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return c // Whatever is wrong with it will show.
	}
	s := &socket{Conn: c, raw: raw}
	s.readOnce, s.write = s.tryRead, s.tryWrite
	return s
}

// tryRead reads once; false: nothing is available.
func (s *socket) tryRead(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.in))), uintptr(len(s.in)))
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			s.got = int(n)
		}
		s.inErr = errno
		return true
	}
}

// tryWrite writes the rest of s.out; false: the socket buffer is full.
func (s *socket) tryWrite(fd uintptr) bool {
	for len(s.out) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.out))), uintptr(len(s.out)))
		switch errno {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		case 0:
			s.out = s.out[n:]
		default:
			s.outErr = errno
			return true
		}
	}
	return true
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.in, s.got, s.inErr = p, 0, 0
	err := s.raw.Read(s.readOnce)
	s.in = nil
	switch {
	case err != nil:
		return 0, err
	case s.inErr != 0:
		return 0, os.NewSyscallError("read", s.inErr)
	case s.got == 0:
		return 0, io.EOF
	}
	return s.got, nil
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	s.out, s.outErr = p, 0
	err := s.raw.Write(s.write)
	n := len(p) - len(s.out)
	s.out = nil
	if err == nil && s.outErr != 0 {
		err = os.NewSyscallError("write", s.outErr)
	}
	return n, err
}

// hungUp reports whether the client of a connection has closed it, or its end of it.
func hungUp(c net.Conn) bool {
	s, ok := c.(*socket)
	if !ok {
		return false
	}
	gone := false
	err := s.raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(polled, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}
