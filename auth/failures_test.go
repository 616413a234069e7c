package auth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Goal: after a few failures the logins from their address are delayed, ever longer up to a bound, and few at the same time; failures are
// forgotten with time. Other addresses are not delayed.
func TestFailuresSlowTheirAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures()
		bad, good := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		took := func(addr netip.Addr) time.Duration {
			start := time.Now()
			if err := f.wait(context.Background(), addr); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		for range freeFailures {
			f.add(bad)
		}
		if d := took(bad); d != 0 {
			t.Errorf("delayed by %v after %d failures", d, freeFailures)
		}
		f.add(bad)
		if d := took(bad); d != firstDelay {
			t.Errorf("delayed by %v", d)
		}
		f.add(netip.MustParseAddr("::ffff:192.0.2.1"))
		if d := took(bad); d != 2*firstDelay {
			t.Errorf("delayed by %v", d)
		}
		for range 100 {
			f.add(bad)
		}
		if d := took(bad); d != maxDelay {
			t.Errorf("delayed by %v", d)
		}
		if d := took(good); d != 0 {
			t.Errorf("another address is delayed by %v", d)
		}
		var wg sync.WaitGroup
		for range maxWaiting {
			wg.Go(func() { took(bad) })
		}
		synctest.Wait()
		if err := f.wait(context.Background(), bad); describe(err) != "53300 too many failed logins from this address" {
			t.Errorf("one more: %v", err)
		}
		wg.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := f.wait(ctx, bad); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		time.Sleep(forgiveAfter * maxFailures) // Of the test's clock.
		if d := took(bad); d != 0 {
			t.Errorf("never forgiven: %v", d)
		}
	})
}

// Goal: the failures of any number of addresses take bounded memory; hosts of an IPv6 network count as one, and so do the clients of the
// Unix socket.
func TestFailuresAreBounded(t *testing.T) {
	f := newFailures()
	for i := range 3 * maxFailing {
		f.add(netip.MustParseAddr(fmt.Sprintf("2001:db8:%x:%x::1", i>>8, i&0xff)))
	}
	if n := f.byAddr.Len(); n != maxFailing {
		t.Errorf("%d addresses", n)
	}
	g := newFailures()
	for i := range 10 {
		g.add(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i)))
		g.add(netip.Addr{})
	}
	if n := g.byAddr.Len(); n != 2 {
		t.Errorf("%d records", n)
	}
}
