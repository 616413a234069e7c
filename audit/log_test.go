package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// disk is an output that can be full, take a part of a line, or not answer.
type disk struct {
	mu      sync.Mutex
	written bytes.Buffer
	full    bool
	room    int           // when full: bytes that still fit
	block   chan struct{} // unless nil: writes wait for its end
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	block := d.block
	d.mu.Unlock()
	if block != nil {
		<-block
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		n := min(d.room, len(p))
		d.room -= n
		d.written.Write(p[:n])
		return n, syscall.ENOSPC
	}
	return d.written.Write(p)
}

func (d *disk) set(full bool, room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.room = full, room
}

func (d *disk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written.String()
}

func openOn(t *testing.T, out *disk, log *bytes.Buffer) *Log {
	t.Helper()
	l, err := Open(Options{File: Standard, Out: out, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kinds are the kinds of the events of a log, and the counts of those lost; lines that are no events are "torn".
func kinds(t *testing.T, text string) (all []string, lost int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e Event
		if json.Unmarshal([]byte(line), &e) != nil {
			all = append(all, "torn")
			continue
		}
		all = append(all, string(e.Event))
		if e.Event == Lost {
			lost += e.Count
		}
	}
	return all, lost
}

// Goal: L1, and a log that can be read: one line for each event, with nothing in it that could be taken for another line.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(Options{File: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l.Write(Event{Event: Refused, User: "eve\n{\"event\":\"connect\"}\x00\xff", Text: strings.Repeat("é", maxText)})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := kinds(t, string(text)); strings.Join(got, " ") != "start login_failed" {
		t.Errorf("before the end: %q", got)
	}
	l.Close()
	text, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var e Event
	if err := json.Unmarshal([]byte(lines[1]), &e); len(lines) != 3 || err != nil {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if len(e.Text) != maxText || !e.Truncated || !strings.HasPrefix(e.User, "eve\n") || e.Time == "" {
		t.Errorf("%d bytes of the statement, truncated %v; user %q at %q", len(e.Text), e.Truncated, e.User, e.Time)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
	var none *Log
	none.Write(Event{Event: Connect})
	none.Close()
	if err := none.Reopen(); err != nil {
		t.Error(err)
	}
}

// Goal: a file that every user can read is refused; so is one that cannot be opened.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open.log")
	if err := errors.Join(os.WriteFile(open, nil, 0o600), os.Chmod(open, 0o604)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{open: "chmod 600", filepath.Join(dir, "no", "x"): "no such file", dir: "is a directory"} {
		if l, err := Open(Options{File: path, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", path, l, err)
		}
	}
}

// Goal: after Reopen events are in the file of the name, and none is lost; where that is not possible they go on in the old file.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	path, rotated := filepath.Join(dir, "audit.log"), filepath.Join(dir, "audit.log.1")
	l, err := Open(Options{File: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename(path, rotated); err != nil {
		t.Fatal(err)
	}
	l.Write(Event{Event: Connect})
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Write(Event{Event: Disconnect})
	for file, want := range map[string]string{rotated: "start connect", path: "disconnect"} {
		text, err := os.ReadFile(file)
		if got, _ := kinds(t, string(text)); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if err := errors.Join(os.Rename(path, rotated), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("a directory was opened")
	}
	l.Write(Event{Event: Connect})
	if text, err := os.ReadFile(rotated); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("the old file has %q, %v", text, err)
	}
}

// Goal: L2 on a full disk. The first event that does not fit is not waited for long, later ones not at all; all that find room in
// memory are written when there is space again, of the others the number; a line that was cut off does not spoil the next.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		out := &disk{}
		l := openOn(t, out, &log)
		out.set(true, 10)
		began := time.Now()
		const large = 1000
		sent := 0
		for range queueBytes/large + 100 {
			l.Write(Event{Event: Connect, User: strings.Repeat("u", large)})
			sent++
		}
		if took := time.Since(began); took > waitLimit {
			t.Errorf("clients waited for %v", took)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "cannot be written"); n != 1 {
			t.Errorf("%d complaints: %s", n, log.String())
		}
		out.set(false, 0)
		time.Sleep(2 * retryAfter) // It is the writer's next attempt that is waited for, in the bubble's time.
		synctest.Wait()
		l.Write(Event{Event: Disconnect})
		got, lost := kinds(t, out.text())
		connects := 0
		for _, k := range got {
			if k == string(Connect) {
				connects++
			}
		}
		if total, waiting := l.Counts(); total != lost || waiting > 1 {
			t.Errorf("counted: %d lost, %d waiting", total, waiting)
		}
		if lost == 0 || connects+lost != sent || got[len(got)-1] != string(Disconnect) {
			t.Errorf("%d events: %d written, %d counted as lost; the last is %s", sent, connects, lost, got[len(got)-1])
		}
		if torn := strings.Count(strings.Join(got, " "), "torn"); torn != 1 {
			t.Errorf("%d torn lines", torn)
		}
		l.Close()
	})
}

// Goal: L2 where writes do not return: one client waits for a second, then nobody does, and Close ends.
func TestBlockedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		out := &disk{}
		l := openOn(t, out, &log)
		block := make(chan struct{})
		out.mu.Lock()
		out.block = block
		out.mu.Unlock()
		began := time.Now()
		for range 100 {
			l.Write(Event{Event: Connect})
		}
		if took := time.Since(began); took != waitLimit {
			t.Errorf("clients waited for %v", took)
		}
		l.Close()
		if !strings.Contains(log.String(), "events=101") {
			t.Errorf("at the end: %s", log.String())
		}
		close(block)
		<-l.stopped
	})
}
