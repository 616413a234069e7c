package bigtable

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/faultproxy"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/tso"
)

// Goal: one process is the coordinator; a silent one is replaced within its time, and can then neither save a window nor issue
// timestamps; timestamps never go back. Method: two candidates, of which the first does not renew its lease.
func TestLease(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	first, err := e.client.AcquireLease(ctx, Candidate{Addr: "first:1"})
	if err != nil {
		t.Fatal(err)
	}
	before := openOracle(t, first)
	last := mustNow(t, before)

	short, cancel := context.WithTimeout(ctx, leaseTime/2)
	defer cancel()
	if _, err := e.client.AcquireLease(short, Candidate{Addr: "second:1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a lease that holds was taken: %v", err)
	}
	begun := time.Now()
	second, err := e.client.AcquireLease(ctx, Candidate{Addr: "second:1"})
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
	if _, err := before.Remote().NowN(ctx, 1); errkind.Of(err) != errkind.OracleClosed {
		t.Errorf("another process would not repeat its request: %v", err)
	}
	if ts := mustNow(t, openOracle(t, second)); ts <= last {
		t.Errorf("%d after %d", ts, last)
	}

	if err := second.Release(ctx); err != nil {
		t.Fatal(err)
	}
	begun = time.Now()
	if _, err := e.client.AcquireLease(ctx, Candidate{Addr: "third:1"}); err != nil || time.Since(begun) > leaseTime/2 {
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

// faultyTable executes conditional requests as fault says: nil, as they come.
type faultyTable struct {
	widerow.Table
	fault func() (silent, late time.Duration)
}

// CheckAndMutate implements widerow.Table. A silent request is executed, without an answer until silent or its ctx is over; a late one fails, and
// is executed when late is over.
func (f *faultyTable) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (bool, error) {
	silent, late := f.fault()
	if late > 0 {
		time.AfterFunc(late, func() { _, _ = f.Table.CheckAndMutate(context.Background(), row, predicate, matched, unmatched) })
		return false, status.Error(codes.Unavailable, "lost")
	}
	is, err := f.Table.CheckAndMutate(ctx, row, predicate, matched, unmatched)
	if silent > 0 {
		select {
		case <-time.After(silent):
		case <-ctx.Done():
			return false, status.FromContextError(ctx.Err()).Err()
		}
	}
	return is, err
}

func mustLead(t *testing.T, c *Client, who Candidate) *Lease {
	t.Helper()
	l, err := c.AcquireLease(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Goal: the lease of a process that ends is taken when it is over, and not much later; the successor learns the members, and others that the coordinator has
// moved. Method: a clock that the test moves; the holder's last renewal is at every time between two polls.
func TestLeaseIsTakenInTime(t *testing.T) {
	for lives := time.Millisecond; lives < leaseRenewal+leasePoll; lives += 37 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			c := NewClient(widerow.NewMemory(), DefaultRequestTimeout)
			first := mustLead(t, c, Candidate{Addr: "first:1", Process: 1})
			alive, kill := context.WithCancel(t.Context())
			go first.Keep(alive)
			first.SetMembers([]uint64{1, 2, 3})
			time.Sleep(leaseRenewal + lives) // It renews its lease.
			kill()
			killed := time.Now()
			second := mustLead(t, c, Candidate{Addr: "second:1", Process: 2})
			if first.Valid() {
				t.Error("two processes are the coordinator")
			}
			if took := time.Since(killed); took > leaseTime+leaseMargin+leasePoll {
				t.Errorf("the lease was taken %v after its holder's end", took)
			}
			if got := second.Former(); !slices.Equal(got, []uint64{1, 3}) {
				t.Errorf("former members: %v", got)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(widerow.NewMemory(), DefaultRequestTimeout)
		first := mustLead(t, c, Candidate{Addr: "first:1"})
		moves := 0
		watching, stop := context.WithCancel(t.Context())
		go c.AcquireLease(watching, Candidate{Addr: "third:1", Moved: func() { moves++ }})
		go first.Keep(watching)
		time.Sleep(10 * leaseRenewal) // It is renewed.
		if moves > 0 {
			t.Error("a renewal was taken for a move")
		}
		if err := first.Release(t.Context()); err != nil || first.Valid() {
			t.Errorf("%v; the lease holds: %v", err, first.Valid())
		}
		mustLead(t, c, Candidate{Addr: "second:1"})
		time.Sleep(leasePoll) // The third looks.
		stop()
		synctest.Wait()
		if moves == 0 {
			t.Error("the move was not noticed")
		}
	})
}

// Goal: requests that are lost, late or silent cost no lease, timestamps are issued meanwhile, and a lease is not taken for kept that is another's. Method: every third
// conditional request is disturbed, for a minute of a clock that the test moves, while windows are saved.
func TestLeaseBesideLostRequests(t *testing.T) {
	for name, fault := range map[string]func(n int) (silent, late time.Duration){
		"late":   func(int) (silent, late time.Duration) { return 0, 30 * time.Millisecond },
		"later":  func(n int) (silent, late time.Duration) { return 0, time.Duration(n%4) * 200 * time.Millisecond },
		"silent": func(int) (silent, late time.Duration) { return time.Hour, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				var mu sync.Mutex
				table := &faultyTable{Table: widerow.NewMemory(), fault: func() (silent, late time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					if n++; n%3 == 0 {
						return fault(n)
					}
					return 0, 0
				}}
				c := NewClient(table, DefaultRequestTimeout)
				lease := mustLead(t, c, Candidate{Addr: "first:1"})
				alive, stop := context.WithCancel(t.Context())
				defer stop()
				go lease.Keep(alive)
				window := lease.WindowStore()
				for i := range 60 {
					before := time.Now()
					if !lease.Valid() || time.Since(before) > 0 {
						t.Fatalf("after %d s the lease is lost", i)
					}
					err := window.Save(t.Context(), tso.Timestamp(i+1))
					if saved, _ := window.Load(t.Context()); err == nil && saved != tso.Timestamp(i+1) {
						t.Fatalf("the window is %d, not %d", saved, i+1)
					}
					time.Sleep(time.Second) // The lease is renewed.
				}
				stop()
				mustLead(t, NewClient(table.Table, DefaultRequestTimeout), Candidate{Addr: "second:1"})
				if err := window.Save(t.Context(), 1000); lease.Valid() || !errors.Is(err, ErrLeaseLost) {
					t.Errorf("the lease holds, beside another: %v", err)
				}
			})
		})
	}
}

// Goal: a coordinator whose machine was suspended, so that its monotonic clock stood still, issues no timestamp: another may have become the
// coordinator. Method: the wall clock alone goes on.
func TestLeaseOfASuspendedMachine(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	l, err := e.client.AcquireLease(t.Context(), Candidate{Addr: "first:1"})
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
	l, err := client.AcquireLease(t.Context(), Candidate{Addr: "first:1"})
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
