package pgwire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// pair returns both ends of a TCP connection over loopback, the first as the server has it.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ours = newSocket(c)
	if _, ok := ours.(*socket); !ok {
		t.Fatalf("%T is no socket", ours)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// Goal: more than the socket's buffers hold passes both ways at once, whole, though each side must wait for
// the other.
func TestSocketWaits(t *testing.T) {
	ours, theirs := pair(t)
	sent := make([]byte, 32<<20)
	for i := range sent {
		sent[i] = byte(i * 7 / 3)
	}
	var wg sync.WaitGroup
	for _, c := range []net.Conn{ours, theirs} {
		wg.Go(func() {
			if n, err := c.Write(sent); n != len(sent) || err != nil {
				t.Errorf("wrote %d: %v", n, err)
			}
		})
		wg.Go(func() {
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("read something else: %v", err)
			}
		})
	}
	wg.Wait()
}

// Goal: errors are those of package net: the end, a deadline, a connection closed by either side.
func TestSocketErrors(t *testing.T) {
	buf := make([]byte, 10)
	ours, theirs := pair(t)
	if err := ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := ours.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("deadline: %d, %v", n, err)
	}
	if err := ours.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if n, err := ours.Read(buf); string(buf[:n]) != "abc" || err != nil {
		t.Errorf("after the deadline: %q, %v", buf[:n], err)
	}
	theirs.Close()
	if n, err := ours.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	var err error
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, err = ours.Write(buf) // The kernel may accept the first writes.
	}
	var netErr net.Error
	if !errors.As(err, &netErr) {
		t.Errorf("to a peer that is gone: %v", err)
	}
	ours, _ = pair(t)
	done := make(chan error)
	go func() {
		_, err := ours.Read(make([]byte, 10))
		done <- err
	}()
	time.Sleep(5 * time.Millisecond) // The read blocks in the poller.
	ours.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed while it read: %v", err)
	}
}
