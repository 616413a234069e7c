// Package deploy starts percodb for the examples, as one process or as a cluster, and kills its processes (as kill -9 does) now and
// then while an example runs.
package deploy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Deployment is percodb on this machine: one process, or a cluster of an oracle, three stores and a SQL process.
type Deployment struct {
	dir   string
	addr  string     // of SQL clients
	procs []*process // in the order in which they start
}

// Start starts percodb with empty data directories on free ports. The caller must call Remove.
func Start(binary string, cluster bool) (_ *Deployment, err error) {
	d := &Deployment{}
	if d.dir, err = os.MkdirTemp("", "percodb-example-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.Remove()
		}
	}()
	if d.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if !cluster {
		return d, d.add(binary, "percodb", "--listen", d.addr, "--data", d.dir+"/data")
	}
	oracle, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if err := d.add(binary, "oracle", "--role=tso", "--rpc-listen", oracle, "--data", d.dir+"/tso"); err != nil {
		return nil, err
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("kv%d", i)
		if err := d.add(binary, name, "--role=kv", "--join", oracle, "--data", filepath.Join(d.dir, name)); err != nil {
			return nil, err
		}
	}
	return d, d.add(binary, "sql", "--role=sql", "--join", oracle, "--listen", d.addr)
}

// freeAddr returns a loopback address with an unused port.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// URL returns the URL for clients.
func (d *Deployment) URL() string { return "postgres://postgres@" + d.addr + "/percodb" }

func (d *Deployment) add(binary, name string, args ...string) error {
	p := &process{name: name, binary: binary, args: append([]string{"start"}, args...)}
	d.procs = append(d.procs, p)
	return p.start()
}

// KillEvery kills a process and starts it again, now and then, until the function it returns is called.
func (d *Deployment) KillEvery(pause time.Duration) (stop func()) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(pause):
			}
			p := d.procs[rand.IntN(len(d.procs))]
			p.kill()
			begin := time.Now()
			if err := p.start(); err != nil {
				fmt.Fprintln(os.Stderr, "restart:", err)
				return
			}
			fmt.Printf("%s killed; it was back after %v\n", p.name, time.Since(begin).Round(time.Millisecond))
		}
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// Remove ends the processes and removes their data.
func (d *Deployment) Remove() {
	for i := len(d.procs) - 1; i >= 0; i-- {
		d.procs[i].kill()
	}
	if err := os.RemoveAll(d.dir); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
	}
}

// process is a percodb process of ours.
type process struct {
	name   string
	binary string
	args   []string
	cmd    *exec.Cmd // running, or nil
}

// start returns when the process says that it is ready.
func (p *process) start() error {
	cmd := exec.Command(p.binary, p.args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, "ready") {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s did not start", p.name), cmd.Wait())
		}
	}
	go io.Copy(io.Discard, lines) // until the process ends
	p.cmd = cmd
	return nil
}

// kill ends the process without warning, as kill -9 does.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	_ = p.cmd.Wait()         // it was killed, and says so
	p.cmd = nil
}
