package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/process"
)

// deployment is the percodb processes of a run.
type deployment struct {
	processes []*member
	links     []*link
	sql       []string // addresses of SQL clients
	checks    []string // data directories to verify
	binary    string
	table     *table // the data are in a table of Bigtable, not in directories

	dumping sync.Mutex // guards dumped
	dumped  time.Time
}

// link is a proxy between processes.
type link struct {
	name string
	*proxy
}

// The size of a cluster.
const (
	stores       = 3
	sqlProcesses = 2
)

// deploy starts percodb on free ports, with its data and logs below dir.
func deploy(binary, dir string, o options) (_ *deployment, err error) {
	if o.bigtable {
		return deployOnTable(binary, dir, o.seed, cmp.Or(o.sql, tableProcesses))
	}
	cluster, tls := o.cluster, o.tls
	d := &deployment{binary: binary}
	defer func() {
		if err != nil {
			d.killAll()
		}
	}()
	listen := func() string {
		var addr string
		if err == nil {
			addr, err = process.FreeAddr()
		}
		return addr
	}
	if !cluster {
		addr, data := listen(), filepath.Join(dir, "data")
		d.sql, d.checks = []string{addr}, []string{data}
		d.add(dir, "percodb", collectOften("--listen", addr, "--data", data)...)
		return d, errors.Join(err, d.startAll())
	}
	certificate, err := certificates(dir, tls)
	if err != nil {
		return nil, err
	}
	oracle := listen()
	// join returns the oracle's address for a process, through a separate proxy.
	join := func(from string) string { return d.link(&err, from+" to oracle", oracle) }
	d.checks = []string{filepath.Join(dir, "oracle")}
	d.add(dir, "oracle", append(collectOften("--role=tso", "--rpc-listen", oracle, "--data", d.checks[0]), certificate(certs.TSO)...)...)
	for i := range stores {
		name, addr := fmt.Sprintf("kv%d", i+1), listen()
		data := filepath.Join(dir, name)
		d.checks = append(d.checks, data)
		d.add(dir, name, append([]string{"--role=kv", "--rpc-listen", addr, "--rpc-advertise", d.link(&err, "all to "+name, addr),
			"--join", join(name), "--data", data}, certificate(certs.KV)...)...)
	}
	for i := range sqlProcesses {
		name, addr := fmt.Sprintf("sql%d", i+1), listen()
		d.sql = append(d.sql, addr)
		d.add(dir, name, append([]string{"--role=sql", "--listen", addr, "--join", join(name), "--gc-lease", gcLease}, certificate(certs.SQL)...)...)
	}
	return d, errors.Join(err, d.startAll())
}

// certificates makes certificates below dir and returns the flags of each role's; without tls there are none.
func certificates(dir string, tls bool) (flags func(certs.Role) []string, err error) {
	if !tls {
		return func(certs.Role) []string { return nil }, nil
	}
	dir = filepath.Join(dir, "certs")
	err = certs.WriteTrial(dir, certs.Trial{Hosts: certs.Loopback})
	return func(role certs.Role) []string {
		f := certs.ProcessFiles(dir, role)
		return []string{"--cluster-tls-cert", f.Cert, "--cluster-tls-key", f.Key, "--cluster-tls-ca", f.CA}
	}, err
}

// gcLease is the lease of a SQL process's pin on history. It is shorter than some faults, and than most processes run,
// so that history is collected between them.
const gcLease = "800ms"

// collectOften adds arguments for the most frequent garbage collection.
func collectOften(args ...string) []string {
	return append(args, "--gc-life", "1s", "--gc-interval", "500ms", "--gc-lease", gcLease)
}

// memory is small, so that large transactions use files early.
const memory = "256MB"

func (d *deployment) add(dir, name string, args ...string) {
	d.processes = append(d.processes, &member{name: name, binary: d.binary, args: append([]string{"start", "--memory", memory}, args...), log: filepath.Join(dir, name+".log")})
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

// startAll starts the processes that do not run; they wait for each other.
func (d *deployment) startAll() error {
	for _, p := range d.processes {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// killAll kills all processes.
func (d *deployment) killAll() {
	d.killProcesses()
	for _, l := range d.links {
		l.close()
	}
	if d.table != nil {
		d.table.close()
	}
}

func (d *deployment) killProcesses() {
	for _, p := range d.processes {
		p.kill()
	}
}

// heal undoes all faults.
func (d *deployment) heal() error {
	if d.table != nil {
		d.table.heal()
	}
	for _, l := range d.links {
		l.heal()
	}
	for _, p := range d.processes {
		p.resume()
	}
	return d.startAll()
}

// recoverWithin is how long percodb may take to answer again after the last fault. It includes the time after which
// connections that drop everything time out.
const recoverWithin = 60 * time.Second

// wait returns when every SQL process accepts writes.
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
	return "postgres://postgres@" + addr + "/percodb?sslmode=disable&connect_timeout=5"
}

// coordinator returns the process over Bigtable that is the coordinator, nil if there is none.
func (d *deployment) coordinator() *member {
	if d.table == nil {
		return nil
	}
	addr := d.table.coordinator()
	for _, p := range d.processes {
		if p.rpc == addr {
			return p
		}
	}
	return nil
}

// check verifies the data directories of the processes, or their table. They must not run.
func (d *deployment) check(ctx context.Context) (findings []finding) {
	if d.table != nil {
		return d.table.check(ctx, d.binary)
	}
	dirs := strings.Join(d.checks, ",")
	out, err := exec.CommandContext(ctx, d.binary, "check", "--data", dirs).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		findings = append(findings, finding{"percodb check --data " + dirs, string(out)})
	}
	return findings
}

// member is a process of the deployment, which can be restarted. One goroutine injects its faults.
type member struct {
	name, binary string
	log          string // file that receives the output
	rpc          string // over Bigtable: where it serves if it is the coordinator
	args         []string

	mu struct {
		sync.Mutex
		run    *process.Process // nil: not started, or ended by end
		admin  string           // where it shows its goroutines
		paused bool
	}
}

// start starts the process unless it runs.
func (p *member) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run != nil {
		return nil
	}
	admin, err := process.FreeAddr()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "--- start at %s\n", time.Now().Format(time.StampMilli))
	run, err := process.Start(p.binary, log, append(slices.Clone(p.args), "--admin-listen", admin, "--admin-pprof")...)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	p.mu.run, p.mu.admin = run, admin
	go func() {
		<-run.Exited()
		log.Close()
	}()
	return nil
}

// ended returns the exit status of a process that has ended by itself, nil if it runs.
func (p *member) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run == nil || !p.mu.run.HasExited() {
		return nil
	}
	return fmt.Errorf("exit status: %v", p.mu.run.Err())
}

// kill is kill -9.
func (p *member) kill() { p.end(syscall.SIGKILL) }

// terminate stops the process gracefully.
func (p *member) terminate() { p.end(syscall.SIGTERM) }

func (p *member) end(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run == nil {
		return
	}
	_ = p.mu.run.End(signal) // A process that ignores SIGTERM has been killed.
	p.mu.run, p.mu.paused = nil, false
}

// pause stops the process until resume.
func (p *member) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run != nil && !p.mu.paused {
		p.mu.paused = p.mu.run.Pause() == nil // It fails if the process has ended, which ended reports.
	}
}

func (p *member) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run != nil && p.mu.paused {
		_ = p.mu.run.Resume() // It fails only if the process has ended, which ended reports.
		p.mu.paused = false
	}
}
