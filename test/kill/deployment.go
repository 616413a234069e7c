package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// deployment is percodb as this program runs it.
type deployment struct {
	processes []*process
	links     []*link
	sql       []string // addresses of SQL clients
	checks    []string // data directories to verify
	binary    string
}

// link is a proxy between processes.
type link struct {
	name string
	*proxy
}

// How a cluster is made up.
const (
	stores       = 3
	sqlProcesses = 2
)

// deploy starts percodb on free ports, with its data and logs below dir.
func deploy(binary, dir string, cluster bool) (_ *deployment, err error) {
	d := &deployment{binary: binary}
	defer func() {
		if err != nil {
			d.killAll()
		}
	}()
	listen := func() string {
		var addr string
		if err == nil {
			addr, err = freeAddr()
		}
		return addr
	}
	if !cluster {
		addr, data := listen(), filepath.Join(dir, "data")
		d.sql, d.checks = []string{addr}, []string{data}
		d.add(dir, "percodb", collectOften("--listen", addr, "--data", data)...)
		return d, errors.Join(err, d.startAll())
	}
	oracle := listen()
	// join is the oracle's address as a process sees it, through a proxy of its own.
	join := func(from string) string { return d.link(&err, from+" to oracle", oracle) }
	d.checks = []string{filepath.Join(dir, "oracle")}
	d.add(dir, "oracle", collectOften("--role=tso", "--rpc-listen", oracle, "--data", d.checks[0])...)
	for i := range stores {
		name, addr := fmt.Sprintf("kv%d", i+1), listen()
		data := filepath.Join(dir, name)
		d.checks = append(d.checks, data)
		d.add(dir, name, "--role=kv", "--rpc-listen", addr, "--rpc-advertise", d.link(&err, "all to "+name, addr),
			"--join", join(name), "--data", data)
	}
	for i := range sqlProcesses {
		name, addr := fmt.Sprintf("sql%d", i+1), listen()
		d.sql = append(d.sql, addr)
		d.add(dir, name, "--role=sql", "--listen", addr, "--join", join(name), "--gc-lease", gcLease)
	}
	return d, errors.Join(err, d.startAll())
}

// gcLease is how long a SQL process's pin on history holds. It is shorter than some faults last, and than
// the lives of most processes here, so that there is garbage collection between them.
const gcLease = "800ms"

// collectOften adds to a process's arguments that history is collected as soon as can be.
func collectOften(args ...string) []string {
	return append(args, "--gc-life", "1s", "--gc-interval", "500ms", "--gc-lease", gcLease)
}

func (d *deployment) add(dir, name string, args ...string) {
	d.processes = append(d.processes, &process{name: name, binary: d.binary, args: append([]string{"start"}, args...), log: filepath.Join(dir, name+".log")})
}

func (d *deployment) link(err *error, name, target string) string {
	if *err != nil {
		return ""
	}
	p, newErr := newProxy(target)
	if newErr != nil {
		*err = newErr
		return ""
	}
	d.links = append(d.links, &link{name, p})
	return p.addr()
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startAll starts what does not run; the processes wait for each other.
func (d *deployment) startAll() error {
	for _, p := range d.processes {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// killAll ends everything.
func (d *deployment) killAll() {
	d.killProcesses()
	for _, l := range d.links {
		l.close()
	}
}

func (d *deployment) killProcesses() {
	for _, p := range d.processes {
		p.kill()
	}
}

// heal undoes all faults.
func (d *deployment) heal() error {
	for _, l := range d.links {
		l.heal()
	}
	for _, p := range d.processes {
		p.resume()
	}
	return d.startAll()
}

// recoverWithin is how long percodb may take to answer again after the last fault. It covers the time
// after which connections that swallow everything are given up.
const recoverWithin = 60 * time.Second

// wait returns when every SQL process writes.
func (d *deployment) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	for _, addr := range d.sql {
		for {
			err := probe(ctx, addr)
			if err == nil {
				break
			}
			for _, p := range d.processes {
				if ended := p.ended(); ended != nil {
					return fmt.Errorf("%s ended by itself: %w; see %s", p.name, ended, p.log)
				}
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s does not answer within %v of the last fault: %w", addr, recoverWithin, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

func probe(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, urlOf(addr))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table if not exists probe (id int primary key, n bigint)"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "insert into probe values (1, 1) on conflict (id) do update set n = probe.n + 1")
	return err
}

func urlOf(addr string) string {
	return "postgres://kill@" + addr + "/percodb?sslmode=disable&connect_timeout=5"
}

// check verifies the data directories of the processes, which must not run.
func (d *deployment) check(ctx context.Context) (findings []finding) {
	dirs := strings.Join(d.checks, ",")
	out, err := exec.CommandContext(ctx, d.binary, "check", "--data", dirs).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		findings = append(findings, finding{"percodb check --data " + dirs, string(out)})
	}
	return findings
}

// process is a percodb process of ours. Its faults are one goroutine's.
type process struct {
	name, binary, log string
	args              []string

	mu     sync.Mutex
	cmd    *exec.Cmd // nil: not running, as far as we know
	exited chan struct{}
	err    error // why it exited
	paused bool
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- start at %s\n", time.Now().Format(time.StampMilli))
	cmd := exec.Command(p.binary, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	p.cmd, p.exited = cmd, exited
	go func() {
		p.err = cmd.Wait()
		close(exited)
	}()
	return nil
}

// ended returns why the process has ended without having been killed, nil if it runs.
func (p *process) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.exited:
		return fmt.Errorf("exit status: %v", p.err)
	default:
		return nil
	}
}

// kill is kill -9.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// terminate asks the process to stop.
func (p *process) terminate() { p.end(syscall.SIGTERM) }

func (p *process) end(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal) // It may have ended, which is what we want.
	if p.paused {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.cmd, p.paused = nil, false
}

// pause stops the process as it stands, until resume.
func (p *process) pause() { p.signal(syscall.SIGSTOP, true) }

func (p *process) resume() { p.signal(syscall.SIGCONT, false) }

func (p *process) signal(signal syscall.Signal, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.paused == paused {
		return
	}
	_ = p.cmd.Process.Signal(signal)
	p.paused = paused
}
