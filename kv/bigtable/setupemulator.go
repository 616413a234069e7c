package bigtable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// emulatorTimeout is how long a process waits for its emulator to listen, and then to answer.
const emulatorTimeout = 3 * time.Second

// awaitEmulator waits until an emulator, which may have been started at the same time, accepts connections, and checks that what does so speaks
// HTTP/2, as gRPC does. Google's library would say nothing for the whole setupTimeout.
func awaitEmulator(ctx context.Context, addr string, timeout time.Duration) error {
	if addr == "" {
		return nil
	}
	dialer := net.Dialer{Timeout: timeout}
	for begun := time.Now(); ; {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			return checkEmulator(ctx, conn, addr, timeout)
		}
		if time.Since(begun) > timeout {
			return &SetupError{What: "no emulator answers at " + addr, Err: err,
				Hint: "Start one, and leave it running: percodb bigtable-emulator --listen " + addr}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkEmulator is the error of a process that listens at addr and does not speak HTTP/2. It closes the connection.
func checkEmulator(ctx context.Context, conn net.Conn, addr string, timeout time.Duration) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	err := greetHTTP2(conn, timeout)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("it does not answer within %v", timeout)
	}
	return &SetupError{What: "what listens at " + addr + " is no emulator of Bigtable", Err: err,
		Hint: "Give --emulator the address that percodb bigtable-emulator prints; it listens elsewhere with --listen HOST:PORT."}
}

// greetHTTP2 sends the beginning of a connection by HTTP/2 and reads that of the server (RFC 9113, section 3.4): a frame of settings.
func greetHTTP2(conn net.Conn, timeout time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // none, of stream 0
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings); err != nil {
		return err
	}
	var header [9]byte // length(3) type(1) flags(1) stream(4)
	_, err := io.ReadFull(conn, header[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err != nil || header[3] != settings[3] || header[5] != 0 {
		return errors.New("it does not speak gRPC")
	}
	return nil
}
