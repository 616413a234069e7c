// Package process builds and starts percodb processes for tests and benchmarks of several processes: it waits until they
// are ready, pauses, stops and kills them.
//
// A Process is one execution of the binary; to restart, call Start again. Its methods may be called concurrently.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// StopTimeout is how long a process may take to end after a signal; then it is killed.
const StopTimeout = 60 * time.Second

// Build compiles percodb and returns the path of the binary, which is in dir. It copies what go run has in its cache, so
// that the tests of many packages link the binary once.
func Build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "percodb")
	if out, err := exec.CommandContext(ctx, "go", "run", "-exec", "cp", "github.com/percodb/percodb/cmd/percodb", binary).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build percodb: %w\n%s", err, out)
	}
	return binary, nil
}

// given are the files by which FreeAddr has claimed ports, by port. They are open, and locked, until this process ends.
var given sync.Map

// FreeAddr returns a loopback address on which nothing listens, another one at each call, in this process and in others. Its
// port is below those that the kernel gives to connections, so that it stays free while the process that listens there
// is restarted.
func FreeAddr() (string, error) {
	var errs []error
	for range 1000 {
		port := 10000 + rand.IntN(10000)
		claimed, err := claim(port)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !claimed {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no port is free: %w", errors.Join(errs...))
}

// claim claims a port, unless this process or another one that runs has claimed it: tests of several packages run at
// once, and nothing listens on a port between FreeAddr and the start of a process.
func claim(port int) (bool, error) {
	dir := filepath.Join(os.TempDir(), "percodb-test-ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return false, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, f.Close()
	}
	given.Store(port, f)
	return true, nil
}

// Process is a child process.
type Process struct {
	cmd    *exec.Cmd
	output *output
	exited chan struct{} // closed when the process has ended, with err set
	err    error
}

// Start starts `binary args...`. Its output is written to log; if log is nil, it is kept in memory for Output.
func Start(binary string, log io.Writer, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(binary, args...), output: &output{log: log, ready: make(chan struct{})}, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID returns the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns what the process has printed so far, if Start was called without a log.
func (p *Process) Output() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return p.output.mu.text.String()
}

// Exited is closed when the process has ended; Err then returns its exit status.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasExited reports whether the process has ended.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Err waits for the process to end and returns its exit status, nil for success.
func (p *Process) Err() error {
	<-p.exited
	return p.err
}

// AwaitReady waits until the process has printed that it is ready, and returns the address that it printed. It fails if
// the process ends first.
func (p *Process) AwaitReady(ctx context.Context) (addr string, err error) {
	select {
	case <-p.output.ready:
		return p.output.addr, nil
	case <-p.exited:
		return "", fmt.Errorf("the process ended while it started (%v)", p.err)
	case <-ctx.Done():
		return "", fmt.Errorf("the process has not become ready: %w", ctx.Err())
	}
}

// IsReady reports whether the process has printed that it is ready.
func (p *Process) IsReady() bool {
	select {
	case <-p.output.ready:
		return true
	default:
		return false
	}
}

// End sends a signal that ends the process, resumes it if it is paused, and waits for its end. A process that has not
// ended after StopTimeout is killed, and End returns an error. It returns nil if the process had ended before.
func (p *Process) End(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = p.Resume() // It fails only if the process has ended.
	select {
	case <-p.exited:
		return nil
	case <-time.After(StopTimeout):
		err := p.cmd.Process.Kill()
		<-p.exited
		return errors.Join(fmt.Errorf("the process did not end within %v of the signal: %s", StopTimeout, signal), err)
	}
}

// Kill ends the process with SIGKILL and waits for its end.
func (p *Process) Kill() { _ = p.End(syscall.SIGKILL) } // It fails only if the process has ended.

// Pause stops the process until Resume, and returns when the kernel has stopped it.
func (p *Process) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(StopTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			return err
		}
		// The state follows the command's name, which is in parentheses.
		if i := bytes.LastIndexByte(stat, ')'); bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return nil
		}
	}
	return fmt.Errorf("the process has not stopped within %v", StopTimeout)
}

// Resume continues a paused process.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// output receives what a process prints and looks for the line that says that the process is ready.
type output struct {
	log io.Writer // nil: the output is kept in text

	mu struct {
		sync.Mutex
		text bytes.Buffer
		line []byte // the beginning of an incomplete line; unused when the process is ready
	}

	ready chan struct{} // closed, with addr set, when the line has been found
	addr  string
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.findReady(b)
	if o.log != nil {
		return o.log.Write(b)
	}
	return o.mu.text.Write(b)
}

func (o *output) findReady(b []byte) {
	select {
	case <-o.ready:
		return
	default:
	}
	o.mu.line = append(o.mu.line, b...)
	for {
		line, rest, ok := bytes.Cut(o.mu.line, []byte("\n"))
		if !ok {
			return
		}
		o.mu.line = rest
		if addr, ok := readyAddr(string(line)); ok {
			o.addr, o.mu.line = addr, nil
			close(o.ready)
			return
		}
	}
}

// readyLine matches the line that percodb prints when it accepts connections.
var readyLine = regexp.MustCompile(`is ready(?: on ([^ ]+?):?(?: |$)|: psql -h ([^ ]+) -p (\d+) )`)

// readyAddr returns the HOST:PORT in such a line.
func readyAddr(line string) (string, bool) {
	m := readyLine.FindStringSubmatch(line)
	switch {
	case m == nil:
		return "", false
	case m[1] != "":
		return m[1], true
	default:
		return net.JoinHostPort(m[2], m[3]), true
	}
}
