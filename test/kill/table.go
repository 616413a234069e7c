package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/internal/faultproxy"
	"github.com/percodb/percodb/internal/process"
	"github.com/percodb/percodb/kv/bigtable"
)

// tableProcesses is the number of SQL processes over a table unless another is given; one of them issues the timestamps.
const tableProcesses = 3

// table is a table of Bigtable's emulator, which runs in this process, behind a proxy.
type table struct {
	emulator *bigtable.Emulator
	proxy    *faultproxy.Proxy
	client   *bigtable.Client

	mu   sync.Mutex // guards rand
	rand *rand.Rand

	faults requestFaults
}

// requestFaults is how many requests met each kind of fault. Safe for concurrent use.
type requestFaults struct {
	refused, lost, late, repeated, delayed atomic.Int64
}

func (f *requestFaults) String() string {
	return fmt.Sprintf("requests: %d not executed, %d executed without an answer, %d executed late without one, %d executed twice, %d delayed",
		f.refused.Load(), f.lost.Load(), f.late.Load(), f.repeated.Load(), f.delayed.Load())
}

// deployOnTable starts a number of SQL processes over an emulator.
func deployOnTable(binary, dir string, seed uint64, processes int) (_ *deployment, err error) {
	d := &deployment{binary: binary, table: &table{rand: rand.New(rand.NewPCG(seed, 3))}}
	defer func() {
		if err != nil {
			d.killAll()
		}
	}()
	if d.table.emulator, err = bigtable.StartEmulator("127.0.0.1:0"); err != nil {
		return nil, err
	}
	if d.table.proxy, err = faultproxy.New(d.table.emulator.Addr()); err != nil {
		return nil, err
	}
	for i := range processes {
		addr, err1 := process.FreeAddr()
		rpc, err2 := process.FreeAddr()
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		d.sql = append(d.sql, addr)
		d.add(dir, fmt.Sprintf("sql%d", i+1), "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", d.table.proxy.Addr(),
			"--listen", addr, "--rpc-listen", rpc, "--gc-lease", gcLease)
		d.processes[i].rpc = rpc
	}
	if err := d.startAll(); err != nil {
		return nil, err
	}
	return d, d.table.open()
}

// open connects with the emulator, not through the proxy. It makes the table, unless a process has done so.
func (t *table) open() (err error) {
	opts := bigtable.Options{Project: "p", Instance: "i", Emulator: t.emulator.Addr()}
	if _, err = bigtable.CreateTable(context.Background(), opts); err == nil {
		t.client, err = bigtable.Open(context.Background(), opts)
	}
	return err
}

// coordinator returns the address of the coordinator, "" if there is none.
func (t *table) coordinator() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	addr, err := t.client.Coordinator(ctx)
	if err != nil { // The table is not there yet, or the emulator has much to do.
		return ""
	}
	return addr
}

func (t *table) close() {
	if t.client != nil {
		_ = t.client.Close() // No request is in flight.
	}
	if t.proxy != nil {
		t.proxy.Close()
	}
	if t.emulator != nil {
		t.emulator.Close()
	}
}

func (t *table) heal() { t.proxy.Inject(nil) }

// disturb has the proxy disturb one request in twenty from now on.
func (t *table) disturb() {
	t.proxy.Inject(func(string, []byte) faultproxy.Fault {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.rand.IntN(20) > 0 {
			return faultproxy.Fault{}
		}
		after := time.Duration(t.rand.Int64N(int64(300 * time.Millisecond)))
		if t.rand.IntN(10) == 0 {
			after *= 20
		}
		switch t.rand.IntN(5) {
		case 0:
			t.faults.refused.Add(1)
			return faultproxy.Fault{Err: faultproxy.ErrUnavailable}
		case 1:
			t.faults.lost.Add(1)
			return faultproxy.Fault{Err: faultproxy.ErrUnavailable, Execute: true}
		case 2:
			t.faults.late.Add(1)
			return faultproxy.Fault{Err: faultproxy.ErrUnavailable, Execute: true, Delay: after}
		case 3:
			t.faults.repeated.Add(1)
			return faultproxy.Fault{Again: after}
		default:
			t.faults.delayed.Add(1)
			return faultproxy.Fault{Delay: after}
		}
	})
}

// check verifies the table.
func (t *table) check(ctx context.Context, binary string) []finding {
	args := []string{"check", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", t.emulator.Addr()}
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return []finding{{"percodb check --engine bigtable", string(out)}}
	}
	return nil
}
