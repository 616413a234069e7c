// Package usage measures the processor time of servers and of this process.
//
//	pid 4711, @postmaster.pid ─┐ /proc: the process and its descendants, including those that have ended
//	cgroup directory ──────────┼─▶ Meter.Read ──▶ Reading: seconds of each node, and of this process
//	http://…/metrics ──────────┘ process_cpu_seconds_total
//
// Invariants:
//  1. Counted time is never lost: the time of a process that has ended, and of a server before its
//     restart, stays in the sum. Readings of one Meter never decrease.
//  2. A process is identified by its number and its start time, because numbers are reused.
//
// The time of a child between its last reading and its end is counted if its parent waits for it, as PostgreSQL
// does: the parent's count of its children then includes it. The package works on Linux only.
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

// Options select the measured servers. Without any, only this process is measured.
type Options struct {
	// PIDs are processes that are measured with their descendants: a number, or @ and a file whose first
	// line is one (postmaster.pid); the file is read again when the process has ended.
	PIDs []string
	// Cgroups are directories of control groups (version 2), measured by their cpu.stat.
	Cgroups []string
	// MetricsURLs are Prometheus endpoints with process_cpu_seconds_total.
	MetricsURLs []string
	// Every is the interval at which processes and servers are read; default 200 ms.
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

// Since returns the difference to an earlier reading of the same Meter, with the time of this one.
func (r Reading) Since(earlier Reading) Reading {
	d := Reading{At: r.At, Driver: r.Driver - earlier.Driver, Nodes: make([]Node, len(r.Nodes))}
	for i, n := range r.Nodes {
		d.Nodes[i] = Node{n.Name, n.Seconds - earlier.Nodes[i].Seconds}
	}
	return d
}

// source is a measured server. seconds returns a count that never decreases; the count is valid also with an error.
type source interface {
	name() string
	seconds(ctx context.Context) (float64, error)
}

// Meter measures processor time. It is safe for concurrent use.
type Meter struct {
	stop func()
	done chan struct{}

	mu      sync.Mutex
	sources []source
	begin   []float64 // of sources, when the Meter was opened
	self    float64
}

// Open starts measuring. It fails if one of the servers cannot be read. The caller must close the Meter.
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

// watch reads periodically, so that little time is lost of processes that end and are not waited for.
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
			_, _ = m.Read(ctx) // the next caller of Read gets the error, if it persists
		}
	}
}

// Read returns the time used so far. A server that cannot be read counts with its last value, and the error
// names it; the reading is valid also with an error.
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

// self returns the processor time of this process in seconds.
func self() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("usage: " + err.Error()) // not reached: its arguments are valid
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
