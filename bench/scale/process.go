package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
)

// process is a running percodb.
type process struct {
	name, role string
	addr       string // HOST:PORT that it said it is ready on
	cmd        *exec.Cmd
	log        *os.File
	ended      chan struct{} // closed when it has, with err set
	err        error
}

// ready is what percodb says when clients or other processes may come.
var ready = regexp.MustCompile(`is ready(?: on ([^ ]+?):?(?: |$)|: psql -h ([^ ]+) -p (\d+) )`)

// address finds the HOST:PORT in what percodb said.
func address(line string) (string, bool) {
	m := ready.FindStringSubmatch(line)
	switch {
	case m == nil:
		return "", false
	case m[1] != "":
		return m[1], true
	default:
		return m[2] + ":" + m[3], true
	}
}

// startProcess starts binary as `percodb start --role=ROLE ARGS` and waits until it is ready. What it logs
// goes to dir/NAME.log.
func startProcess(ctx context.Context, binary, dir, name, role string, args ...string) (*process, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, role: role, log: log, ended: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{"start", "--role=" + role}, args...)...)
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	said := make(chan string, 1)
	go p.listen(out, said)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case p.addr = <-said:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended while it started (%v): see %s", name, p.err, log.Name())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("%s has not become ready: %w; see %s", name, ctx.Err(), log.Name()), p.stop())
	}
}

// listen reads what the process says until it ends, and says where it is ready.
func (p *process) listen(out io.Reader, said chan<- string) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addr, ok := address(lines.Text()); ok {
			select {
			case said <- addr:
			default: // it has been said
			}
		}
	}
	p.err = errors.Join(lines.Err(), p.cmd.Wait(), p.log.Close())
}

// stop asks the process to end, and ends it if it does not.
func (p *process) stop() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s had ended (%v): see %s", p.name, p.err, p.log.Name())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		err := p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(fmt.Errorf("%s did not stop within %v", p.name, stopTimeout), err)
	}
}

// deployment is a percodb of several processes, or of one.
type deployment struct {
	processes []*process // in the order of their start
	urls      []string   // that clients connect to
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
	add := func(name, role string, args ...string) (*process, error) {
		p, err := startProcess(ctx, binary, dir, name, role, args...)
		if err == nil {
			d.processes = append(d.processes, p)
		}
		return p, err
	}
	client := func(p *process) {
		d.urls = append(d.urls, "postgres://percodb@"+p.addr+"/percodb?sslmode=disable")
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

// deployOracle starts an oracle and the store without which an oracle with a new directory serves nobody.
func deployOracle(ctx context.Context, binary, dir string) (*deployment, error) {
	oracle, err := startProcess(ctx, binary, dir, "tso", "tso", "--rpc-listen", "127.0.0.1:0", "--data", filepath.Join(dir, "tso-data"))
	if err != nil {
		return nil, err
	}
	d := &deployment{processes: []*process{oracle}}
	store, err := startProcess(ctx, binary, dir, "kv1", "kv", "--rpc-listen", "127.0.0.1:0", "--join", oracle.addr,
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
		pids = append(pids, strconv.Itoa(p.cmd.Process.Pid))
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
