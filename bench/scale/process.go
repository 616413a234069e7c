package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/percodb/percodb/internal/process"
)

const startTimeout = 60 * time.Second

// server is a running percodb process.
type server struct {
	*process.Process
	name, role string
	addr       string // HOST:PORT on which it accepts connections
	log        *os.File
}

// startServer starts binary as `percodb start --role=ROLE ARGS` and waits until it is ready. Its output is appended to
// dir/NAME.log.
func startServer(ctx context.Context, binary, dir, name, role string, args ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	p, err := process.Start(binary, log, append([]string{"start", "--role=" + role}, args...)...)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s := &server{Process: p, name: name, role: role, log: log}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.addr, err = p.AwaitReady(ctx); err != nil {
		p.Kill()
		return nil, errors.Join(fmt.Errorf("%s: %w; see %s", name, err, log.Name()), log.Close())
	}
	return s, nil
}

// stop stops the process. It fails if the process had ended before.
func (s *server) stop() error {
	if s.HasExited() {
		return errors.Join(fmt.Errorf("%s had ended (%v): see %s", s.name, s.Err(), s.log.Name()), s.log.Close())
	}
	return errors.Join(s.End(syscall.SIGTERM), s.log.Close())
}

// deployment is a percodb of several processes, or of one.
type deployment struct {
	processes []*server // in the order of their start
	urls      []string  // that clients connect to
}

// deploy starts a percodb with its data in dir: of one process that does everything if stores is 0, else of
// an oracle, stores and SQL processes.
func deploy(ctx context.Context, binary, dir string, stores, sqls, cacheMB int) (_ *deployment, err error) {
	d := &deployment{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	add := func(name, role string, args ...string) (*server, error) {
		p, err := startServer(ctx, binary, dir, name, role, args...)
		if err == nil {
			d.processes = append(d.processes, p)
		}
		return p, err
	}
	client := func(p *server) {
		d.urls = append(d.urls, "postgres://postgres@"+p.addr+"/percodb?sslmode=disable")
	}
	cache := "--cache-mb=" + strconv.Itoa(cacheMB)
	if stores == 0 {
		p, err := add("all", "all", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), cache)
		if err == nil {
			client(p)
		}
		return d, err
	}
	oracle, err := add("tso", "tso", "--rpc-listen", "127.0.0.1:0", "--data", filepath.Join(dir, "tso-data"))
	if err != nil {
		return d, err
	}
	for i := range stores {
		name := fmt.Sprintf("kv%d", i+1)
		if _, err := add(name, "kv", "--rpc-listen", "127.0.0.1:0", "--join", oracle.addr, "--data", filepath.Join(dir, name+"-data"), cache); err != nil {
			return d, err
		}
	}
	for i := range sqls {
		p, err := add(fmt.Sprintf("sql%d", i+1), "sql", "--listen", "127.0.0.1:0", "--join", oracle.addr)
		if err != nil {
			return d, err
		}
		client(p)
	}
	return d, nil
}

// deployOracle starts an oracle and a store: an oracle with a new directory serves no requests without a store.
func deployOracle(ctx context.Context, binary, dir string) (*deployment, error) {
	oracle, err := startServer(ctx, binary, dir, "tso", "tso", "--rpc-listen", "127.0.0.1:0", "--data", filepath.Join(dir, "tso-data"))
	if err != nil {
		return nil, err
	}
	d := &deployment{processes: []*server{oracle}}
	store, err := startServer(ctx, binary, dir, "kv1", "kv", "--rpc-listen", "127.0.0.1:0", "--join", oracle.addr,
		"--data", filepath.Join(dir, "kv1-data"), "--cache-mb=64")
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	d.processes = append(d.processes, store)
	return d, nil
}

// pids returns the processes' numbers, in the order of d.processes.
func (d *deployment) pids() []string {
	var pids []string
	for _, p := range d.processes {
		pids = append(pids, strconv.Itoa(p.PID()))
	}
	return pids
}

// stop stops the processes, the last one first.
func (d *deployment) stop() error {
	var errs []error
	for i := len(d.processes) - 1; i >= 0; i-- {
		errs = append(errs, d.processes[i].stop())
	}
	d.processes = nil
	return errors.Join(errs...)
}
