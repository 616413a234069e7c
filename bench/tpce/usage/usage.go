// Package usage measures the processor time of servers and of this process.
//
//	pid 4711, @postmaster.pid ─┐ /proc: the process and its descendants, with those that have ended
//	cgroup directory ──────────┼─▶ Meter.Read ──▶ Reading: seconds of each node, and of this process
//	http://…/metrics ──────────┘ process_cpu_seconds_total
//
// Invariants:
//  1. What was counted is never lost: the time of a process that has ended, and of a server that was
//     started anew, stays in the sum. Readings of one Meter never decrease.
//  2. A process is told from another by its number and its start time together, because numbers come back.
//
// What a child uses between the last look at it and its end is counted if its parent waited for it, as
// PostgreSQL does: then it is in the parent's own count of its children. It works on Linux only.
package usage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Options says which servers are measured. With none, only this process is.
type Options struct {
	// PIDs are processes that are measured with their descendants: a number, or @ and a file whose first
	// line is one (postmaster.pid), which is read again when the process has ended.
	PIDs []string
	// Cgroups are directories of control groups (version 2), measured by their cpu.stat.
	Cgroups []string
	// MetricsURLs are Prometheus endpoints that have process_cpu_seconds_total.
	MetricsURLs []string
	// Every is how often processes are looked for, and servers asked; default 200 ms.
	Every time.Duration
}

// Reading is processor time, in seconds since the Meter was opened.
type Reading struct {
	At     time.Time
	Nodes  []Node // in the order of the options: PIDs, Cgroups, MetricsURLs
	Driver float64
}

// Node is one of the servers.
type Node struct {
	Name    string
	Seconds float64
}

// Server returns the sum over all nodes.
func (r Reading) Server() (s float64) {
	for _, n := range r.Nodes {
		s += n.Seconds
	}
	return s
}

// Since returns what was used between an earlier reading of the same Meter and this one, with the time
// of this one.
func (r Reading) Since(earlier Reading) Reading {
	d := Reading{At: r.At, Driver: r.Driver - earlier.Driver, Nodes: make([]Node, len(r.Nodes))}
	for i, n := range r.Nodes {
		d.Nodes[i] = Node{n.Name, n.Seconds - earlier.Nodes[i].Seconds}
	}
	return d
}

// source is a server. seconds returns a count that never decreases, also together with an error.
type source interface {
	name() string
	seconds(ctx context.Context) (float64, error)
}

// Meter measures. Its methods may be called from several goroutines at once.
type Meter struct {
	stop func()
	done chan struct{}

	mu      sync.Mutex
	sources []source
	begin   []float64 // of sources, when the Meter was opened
	self    float64
}

// Open starts measuring. It fails if one of the servers is not there. The caller closes the Meter.
func Open(ctx context.Context, o Options) (*Meter, error) {
	if o.Every <= 0 {
		o.Every = 200 * time.Millisecond
	}
	m := &Meter{done: make(chan struct{}), self: self()}
	for _, text := range o.PIDs {
		t, err := newTree("/proc", text)
		if err != nil {
			return nil, err
		}
		m.sources = append(m.sources, t)
	}
	for _, dir := range o.Cgroups {
		m.sources = append(m.sources, &cgroup{dir: dir})
	}
	for _, url := range o.MetricsURLs {
		m.sources = append(m.sources, &endpoint{url: url, client: &http.Client{Timeout: 5 * time.Second}})
	}
	for _, s := range m.sources {
		seconds, err := s.seconds(ctx)
		if err != nil {
			return nil, fmt.Errorf("processor time of %s: %w", s.name(), err)
		}
		m.begin = append(m.begin, seconds)
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	go m.watch(watch, o.Every)
	return m, nil
}

// watch reads now and then, so that little is lost of what ends without being waited for.
func (m *Meter) watch(ctx context.Context, every time.Duration) {
	defer close(m.done)
	if len(m.sources) == 0 {
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, _ = m.Read(ctx) // whoever asks for a reading gets the error, if it is still there
		}
	}
}

// Read returns what has been used so far. A server that cannot be read at the moment counts with its last
// value, and is named by the error, with which the reading is valid.
func (m *Meter) Read(ctx context.Context) (Reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Reading{Driver: self() - m.self, Nodes: make([]Node, len(m.sources))}
	var errs []error
	for i, s := range m.sources {
		seconds, err := s.seconds(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("processor time of %s: %w", s.name(), err))
		}
		r.Nodes[i] = Node{s.name(), seconds - m.begin[i]}
	}
	r.At = time.Now()
	return r, errors.Join(errs...)
}

// Close stops measuring.
func (m *Meter) Close() {
	m.stop()
	<-m.done
}

// self returns the seconds that this process has used.
func self() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("usage: " + err.Error()) // its arguments are right
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
