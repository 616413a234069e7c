// Package audit writes the audit log: who connected, who was refused, who changed the schema, roles and privileges. It is one
// line of JSON for each event.
//
// Invariants:
//
//	L1 An event is in the file before its client is answered, unless the file cannot be written.
//	L2 A file that cannot be written delays a client once by at most waitLimit, and ends nothing. Up to queueBytes of events wait
//	   in memory for it; of more, the number is kept, and the file has it in a line as soon as it can be written.
//	L3 No event contains a password or a verifier. Callers mask them.
//
// A nil *Log writes nothing.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// Standard is the name of the standard output.
	Standard = "-"

	// queueBytes bounds the events that wait to be written.
	queueBytes = 4 << 20
	// waitLimit is how long an event is waited for.
	waitLimit = time.Second
	// retryAfter is the time between two attempts to write after a failure.
	retryAfter = time.Second
	// complainAfter is the time between two lines in the server's log while writing fails.
	complainAfter = time.Minute
)

// Options configure a Log.
type Options struct {
	// File is the path of the log, which is created with the permissions 0600; Standard: Out.
	File   string
	Out    io.Writer
	Logger *slog.Logger
}

// Log is an audit log. Safe for concurrent use.
type Log struct {
	opts Options
	now  func() time.Time

	wake    chan struct{} // has a token when there is something to do
	stop    chan struct{}
	stopped chan struct{}

	mu struct {
		sync.Mutex
		queue   []*entry
		bytes   int // of queue
		lost    int // events that found no place, and that no line has counted yet
		total   int // events that found no place
		since   time.Time
		failing bool // the last write failed, or lasts long: nobody waits
		reopen  []chan error
		closed  bool
	}

	// Of the writer's goroutine.
	out        io.Writer
	file       *os.File // nil: Out
	torn       bool     // the last line is incomplete
	complained time.Time
}

// entry is an event on its way.
type entry struct {
	line []byte
	// done is closed when the event has been written, or is not waited for any longer; released: it is.
	done     chan struct{}
	released bool
}

func newEntry(e *Event) *entry {
	line, err := json.Marshal(e)
	if err != nil {
		panic("BUG: " + err.Error()) // Strings and numbers can be encoded.
	}
	return &entry{line: append(line, '\n'), done: make(chan struct{})}
}

// release has nobody wait for the entry. The writer's.
func (e *entry) release() {
	if !e.released {
		e.released = true
		close(e.done)
	}
}

// Open opens the log and writes its first line.
func Open(opts Options) (*Log, error) {
	l := &Log{opts: opts, now: time.Now, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}), out: opts.Out}
	if opts.File != Standard {
		f, err := openFile(opts.File)
		if err != nil {
			return nil, err
		}
		l.file, l.out = f, f
	}
	go l.run()
	l.Write(Event{Event: Start})
	return l, nil
}

// openFile opens a file to append to. A named pipe needs a reader.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be opened: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
		err = fmt.Errorf("the audit log %s has permissions %04o, which let every user in: use chmod 600 (or 640 for a group that reads it)", path, info.Mode().Perm())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Write writes an event. It returns when the event is in the file, or after a second if that is not possible.
func (l *Log) Write(e Event) {
	if l == nil {
		return
	}
	e.Time = stamp(l.now())
	e.bound()
	entry := newEntry(&e)
	if !l.enqueue(entry) {
		return
	}
	timer := time.NewTimer(waitLimit)
	defer timer.Stop()
	select {
	case <-entry.done:
	case <-l.stopped:
	case <-timer.C:
		l.mu.Lock()
		l.mu.failing = true
		l.mu.Unlock()
	}
}

// enqueue gives an entry to the writer, and reports whether to wait for it.
func (l *Log) enqueue(e *entry) (wait bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed || l.mu.bytes+len(e.line) > queueBytes {
		if l.mu.lost == 0 {
			l.mu.since = l.now()
		}
		l.mu.lost++
		l.mu.total++
		return false
	}
	l.mu.queue = append(l.mu.queue, e)
	l.mu.bytes += len(e.line)
	l.kick()
	return !l.mu.failing
}

// Counts returns how many events have been lost since the log was opened, and how many wait to be written.
func (l *Log) Counts() (lost, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.total, len(l.mu.queue)
}

func (l *Log) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Reopen opens the file again, by its name, for programs that rotate logs: they rename it, and have the server reload its
// configuration. If it cannot be opened, the old one stays in use. It returns when that is done, or after a second if the file
// cannot be written.
func (l *Log) Reopen() error {
	if l == nil || l.opts.File == Standard {
		return nil
	}
	done := make(chan error, 1)
	l.mu.Lock()
	l.mu.reopen = append(l.mu.reopen, done)
	l.mu.Unlock()
	l.kick()
	timer := time.NewTimer(waitLimit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-l.stopped:
		return fs.ErrClosed
	case <-timer.C:
		return errors.New("the audit log is still being written to; it is opened again after that")
	}
}

// Close writes what waits, and ends the log.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.Write(Event{Event: Stop})
	l.mu.Lock()
	l.mu.closed = true
	l.mu.Unlock()
	close(l.stop)
	timer := time.NewTimer(waitLimit) // A pipe that nobody reads must not keep the server from ending.
	defer timer.Stop()
	select {
	case <-l.stopped:
	case <-timer.C:
	}
	l.mu.Lock()
	unwritten := len(l.mu.queue) + l.mu.lost
	l.mu.Unlock()
	if unwritten > 0 {
		l.opts.Logger.Error("the audit log ends without events that could not be written", "file", l.opts.File, "events", unwritten)
	}
}

// run is the writer's goroutine.
func (l *Log) run() {
	defer close(l.stopped)
	defer func() {
		if l.file != nil {
			if err := l.file.Close(); err != nil {
				l.opts.Logger.Error("close the audit log", "err", err)
			}
		}
	}()
	retry := time.NewTimer(retryAfter)
	defer retry.Stop()
	for {
		select {
		case <-l.wake:
		case <-retry.C:
		case <-l.stop:
			l.answerReopens()
			l.writeAll()
			return
		}
		l.answerReopens()
		if !l.writeAll() {
			retry.Reset(retryAfter)
		}
	}
}

func (l *Log) answerReopens() {
	l.mu.Lock()
	waiting := l.mu.reopen
	l.mu.reopen = nil
	l.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	f, err := openFile(l.opts.File)
	if err == nil {
		if err := l.file.Close(); err != nil {
			l.opts.Logger.Error("close the audit log", "err", err)
		}
		l.file, l.out, l.torn = f, f, false
	}
	for _, done := range waiting {
		done <- err
	}
}

// writeAll writes what waits, and reports whether nothing is left.
func (l *Log) writeAll() bool {
	for {
		e := l.first()
		if e == nil {
			return true
		}
		if err := l.writeLine(e.line); err != nil {
			l.failed(err)
			return false
		}
		l.written(e)
	}
}

// first returns the next entry, nil if there is none. Events that were lost come after those that wait.
func (l *Log) first() *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.queue) == 0 && l.mu.lost > 0 {
		e := newEntry(&Event{Time: stamp(l.now()), Event: Lost, Count: l.mu.lost, Since: stamp(l.mu.since)})
		l.mu.lost = 0
		l.mu.queue = append(l.mu.queue, e)
		l.mu.bytes += len(e.line)
	}
	if len(l.mu.queue) == 0 {
		l.mu.failing = false
		return nil
	}
	return l.mu.queue[0]
}

// writeLine writes a line. After a line that was written in part it begins on a new one.
func (l *Log) writeLine(line []byte) error {
	if l.torn {
		if _, err := l.out.Write([]byte{'\n'}); err != nil {
			return err
		}
		l.torn = false
	}
	n, err := l.out.Write(line)
	if err != nil && n > 0 {
		l.torn = true
	}
	return err
}

func (l *Log) written(e *entry) {
	l.mu.Lock()
	l.mu.queue[0] = nil
	if l.mu.queue = l.mu.queue[1:]; len(l.mu.queue) == 0 {
		l.mu.queue = nil
	}
	l.mu.bytes -= len(e.line)
	l.mu.Unlock()
	e.release()
}

// failed notes that the file cannot be written: nobody waits for it until it can.
func (l *Log) failed(err error) {
	l.mu.Lock()
	l.mu.failing = true
	waiting, lost := slices.Clone(l.mu.queue), l.mu.lost
	l.mu.Unlock()
	for _, e := range waiting {
		e.release()
	}
	if now := l.now(); now.Sub(l.complained) >= complainAfter {
		l.complained = now
		l.opts.Logger.Error("the audit log cannot be written; its events wait in memory, and are counted when there is no room",
			"file", l.opts.File, "err", err, "waiting", len(waiting), "lost", lost)
	}
}
