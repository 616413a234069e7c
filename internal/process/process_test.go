package process

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start starts a shell script instead of percodb.
func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start("sh", nil, "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// TestReadyAddr checks the address in the line that percodb prints when it is ready.
func TestReadyAddr(t *testing.T) {
	for line, want := range map[string]string{
		"percodb tso is ready on 127.0.0.1:7000: percodb start --role=kv --join 127.0.0.1:7000 --data DIR": "127.0.0.1:7000",
		"percodb kv is ready on 127.0.0.1:7001":                              "127.0.0.1:7001",
		"percodb is ready: psql -h 127.0.0.1 -p 5433 -U postgres -d percodb": "127.0.0.1:5433",
		"percodb is ready: psql -h ::1 -p 5433 -U postgres -d percodb":       "[::1]:5433",
		"percodb kv is ready on [::1]:7001":                                  "[::1]:7001",
		"percodb is getting ready":                                           "",
		"percodb: address in use: another process listens on 127.0.0.1:5433": "",
	} {
		if got, ok := readyAddr(line); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", line, got, ok)
		}
	}
}

// TestAwaitReady: the line is found when it arrives in pieces; a process that ends first, or prints nothing until the
// context ends, is an error.
func TestAwaitReady(t *testing.T) {
	p := start(t, "printf 'recovering\npercodb kv is rea'; printf 'dy on 127.0.0.1:7001\n'; echo serving; exec sleep 600")
	if addr, err := p.AwaitReady(t.Context()); addr != "127.0.0.1:7001" || err != nil || !p.IsReady() || p.HasExited() {
		t.Errorf("%q, %v, ready %v, exited %v", addr, err, p.IsReady(), p.HasExited())
	}
	failed := start(t, "echo 'no such directory' >&2; exit 3")
	if _, err := failed.AwaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") || !failed.HasExited() {
		t.Errorf("a process that ends: %v", err)
	}
	if got := failed.Output(); got != "no such directory\n" || failed.Err() == nil {
		t.Errorf("printed %q, %v", got, failed.Err())
	}
	silent := start(t, "exec sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := silent.AwaitReady(ctx); !errors.Is(err, context.DeadlineExceeded) || silent.IsReady() {
		t.Errorf("a silent process: %v", err)
	}
}

// TestEnd: a paused process does nothing and ends by a signal; ending a process that has ended is no error; the output
// goes to the log if there is one.
func TestEnd(t *testing.T) {
	var log bytes.Buffer
	p, err := Start("sh", &log, "-c", "trap 'echo terminated; exit 0' TERM; echo percodb is ready on 127.0.0.1:1; while :; do sleep 0.01; done")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if _, err := p.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Exited():
		t.Error("a paused process has ended")
	case <-time.After(50 * time.Millisecond):
	}
	if err := p.End(syscall.SIGTERM); err != nil || p.Err() != nil {
		t.Errorf("%v, exit status %v", err, p.Err())
	}
	if err := p.End(syscall.SIGTERM); err != nil {
		t.Errorf("a second signal: %v", err)
	}
	if got := log.String(); got != "percodb is ready on 127.0.0.1:1\nterminated\n" || p.Output() != "" {
		t.Errorf("logged %q, kept %q", got, p.Output())
	}
	if err := p.Pause(); err == nil {
		t.Error("a process that has ended was paused")
	}
}

// Goal: an address is given once, also while nothing listens there, whichever process asks. Method: its port is claimed again, as another process would: the
// claim is that of an open file, not of a process.
func TestFreeAddrClaimsThePort(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if claimed, err := claim(port); claimed || err != nil {
		t.Errorf("port %d was given twice: %v", port, err)
	}
}
