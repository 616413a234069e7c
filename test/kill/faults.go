package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// faults injects faults into a deployment. Not safe for concurrent use.
type faults struct {
	d            *deployment
	rand         *rand.Rand
	log          io.Writer
	large        []*large // are informed of kills
	kills, other int
	coordinators int // of the killed processes over Bigtable
}

// run injects faults until ctx ends, and does not undo the last ones.
func (f *faults) run(ctx context.Context) {
	for {
		if !sleep(ctx, f.between(200*time.Millisecond, 2500*time.Millisecond)) {
			return
		}
		if !f.one(ctx) {
			return
		}
	}
}

// one injects one fault and undoes it. It reports whether there is time for more.
func (f *faults) one(ctx context.Context) bool {
	p := f.d.processes[f.rand.IntN(len(f.d.processes))]
	if c := f.d.coordinator(); c != nil && f.rand.IntN(3) == 0 {
		p = c
	}
	switch n := f.rand.IntN(10); {
	case n < 5 || n < 8 && len(f.d.links) == 0:
		f.aim(ctx)
		return f.restart(ctx, p, "kill", func() { f.kill(p) })
	case n < 6:
		return f.restart(ctx, p, "stop", p.terminate)
	case n < 9 && len(f.d.links) > 0:
		return f.partition(ctx)
	default:
		f.other++
		return f.during(ctx, "pause "+p.name, p.pause, p.resume)
	}
}

// aim usually waits until a large transaction has reached a chosen short phase of its commit.
func (f *faults) aim(ctx context.Context) {
	var there func() bool
	switch f.rand.IntN(4) {
	case 0:
		return
	case 1:
		there = func() bool { return hasTables(f.d.checks) }
	default:
		there = func() bool {
			return slices.ContainsFunc(f.large, func(l *large) bool {
				l.current.Lock()
				defer l.current.Unlock()
				return l.current.phase >= single
			})
		}
	}
	const limit = 1500 * time.Millisecond
	for begun := time.Now(); !there() && time.Since(begun) < limit; {
		if !sleep(ctx, time.Millisecond) {
			return
		}
	}
	sleep(ctx, f.between(0, 150*time.Millisecond)/time.Duration(1+f.rand.IntN(8)))
}

// kill kills a process, and records in which phase.
func (f *faults) kill(p *member) {
	for _, l := range f.large {
		l.current.Lock() // For its client a transaction ends when the kill is recorded.
		defer l.current.Unlock()
	}
	if f.d.coordinator() == p {
		f.coordinators++
	}
	p.kill()
	tables := hasTables(f.d.checks)
	for _, l := range f.large {
		l.killedLocked(tables)
	}
}

// restart ends a process, and sometimes a second one, and starts it again.
func (f *faults) restart(ctx context.Context, p *member, how string, end func()) bool {
	ended := []*member{p}
	fmt.Fprintf(f.log, "%s %s %s\n", time.Now().Format(time.StampMilli), how, p.name)
	end()
	f.kills++
	if other := f.d.processes[f.rand.IntN(len(f.d.processes))]; other != p && f.rand.IntN(4) == 0 {
		fmt.Fprintf(f.log, "%s kill %s as well\n", time.Now().Format(time.StampMilli), other.name)
		f.kill(other)
		f.kills++
		ended = append(ended, other)
	}
	if f.rand.IntN(3) == 0 && !sleep(ctx, f.between(0, 2*time.Second)) {
		return false
	}
	for _, p := range ended {
		if err := p.start(); err != nil {
			fmt.Fprintf(f.log, "start %s: %v\n", p.name, err)
		}
	}
	return true
}

// partition interrupts one or two links.
func (f *faults) partition(ctx context.Context) bool {
	links := []*link{f.d.links[f.rand.IntN(len(f.d.links))]}
	if f.rand.IntN(3) == 0 {
		links = append(links, f.d.links[f.rand.IntN(len(f.d.links))])
	}
	frozen := f.rand.IntN(2) == 0
	name := ""
	for _, l := range links {
		name += ", " + l.name
	}
	f.other += len(links)
	return f.during(ctx, fmt.Sprintf("partition%s (frozen: %v)", name, frozen), func() {
		for _, l := range links {
			if frozen {
				l.freeze()
			} else {
				l.cut()
			}
		}
	}, func() {
		for _, l := range links {
			l.heal()
		}
	})
}

// during is a fault that lasts.
func (f *faults) during(ctx context.Context, what string, begin, end func()) bool {
	lasts := f.between(50*time.Millisecond, time.Second)
	if f.rand.IntN(4) == 0 {
		lasts = f.between(time.Second, 6*time.Second) // longer than the TTL of locks
	}
	fmt.Fprintf(f.log, "%s %s for %v\n", time.Now().Format(time.StampMilli), what, lasts.Round(time.Millisecond))
	begin()
	more := sleep(ctx, lasts)
	end()
	return more
}

func (f *faults) between(low, high time.Duration) time.Duration {
	return low + time.Duration(f.rand.Int64N(int64(high-low)))
}

// sleep reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
