package bigtable

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/faultproxy"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/tso"
)

// Goal: one process is the coordinator; a silent one is replaced within its time, and can then neither save a window nor issue
// timestamps; timestamps never go back. Method: two candidates, of which the first does not renew its lease.
func TestLease(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	first, err := e.client.AcquireLease(ctx, "first:1")
	if err != nil {
		t.Fatal(err)
	}
	before := openOracle(t, first)
	last := mustNow(t, before)

	short, cancel := context.WithTimeout(ctx, leaseTime/2)
	defer cancel()
	if _, err := e.client.AcquireLease(short, "second:1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a lease that holds was taken: %v", err)
	}
	begun := time.Now()
	second, err := e.client.AcquireLease(ctx, "second:1")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 2*leaseTime {
		t.Errorf("taking over took %v", took)
	}
	if addr, err := e.client.Coordinator(ctx); addr != "second:1" || err != nil {
		t.Errorf("the coordinator is %q, %v", addr, err)
	}
	if err := first.WindowStore().Save(ctx, tso.MaxTimestamp); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a window after the loss of the lease: %v", err)
	}
	if _, err := before.Now(ctx); errkind.Of(err) != errkind.OracleUnavailable {
		t.Errorf("a timestamp after the loss of the lease: %v", err)
	}
	if ts := mustNow(t, openOracle(t, second)); ts <= last {
		t.Errorf("%d after %d", ts, last)
	}

	if err := second.Release(ctx); err != nil {
		t.Fatal(err)
	}
	begun = time.Now()
	if _, err := e.client.AcquireLease(ctx, "third:1"); err != nil || time.Since(begun) > leaseTime/2 {
		t.Errorf("a released lease: %v after %v", err, time.Since(begun))
	}
}

func openOracle(t *testing.T, l *Lease) *Oracle {
	t.Helper()
	local, err := tso.NewLocal(t.Context(), l.WindowStore(), tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	return NewOracle(local, l)
}

// Goal: a coordinator whose machine was suspended, so that its monotonic clock stood still, issues no timestamp: another may have become the
// coordinator. Method: the wall clock alone goes on.
func TestLeaseOfASuspendedMachine(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	l, err := e.client.AcquireLease(t.Context(), "first:1")
	if err != nil {
		t.Fatal(err)
	}
	oracle := openOracle(t, l)
	mustNow(t, oracle)
	l.clocks = func() instant {
		now := systemClocks()
		now.wall = now.wall.Add(2 * leaseTime)
		return now
	}
	if ts, err := oracle.Now(t.Context()); errkind.Of(err) != errkind.OracleUnavailable {
		t.Errorf("timestamp %d, %v", ts, err)
	}
	if err := l.renew(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	mustNow(t, oracle)
}

// Goal: timestamps do not wait for the renewal of the lease. Method: a renewal that is not answered.
func TestTimestampsDuringARenewal(t *testing.T) {
	proxy, opts := newProxy(t)
	if _, err := CreateTable(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	client, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l, err := client.AcquireLease(t.Context(), "first:1")
	if err != nil {
		t.Fatal(err)
	}
	oracle := openOracle(t, l)
	mustNow(t, oracle)
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	proxy.Inject(func(method string, _ []byte) faultproxy.Fault {
		if method == "CheckAndMutateRow" {
			arrived <- struct{}{}
			<-answer
		}
		return faultproxy.Fault{}
	})
	renewed, issued := make(chan error, 1), make(chan error, 1)
	go func() { renewed <- l.renew(t.Context(), nil) }()
	<-arrived
	go func() {
		_, err := oracle.Now(t.Context())
		issued <- err
	}()
	select {
	case err := <-issued:
		if err != nil {
			t.Error(err)
		}
	case err := <-renewed:
		t.Errorf("no timestamp until the renewal had ended, with %v", err)
	}
	close(answer)
	<-renewed
}
