package run

import (
	"context"
	"time"

	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/usage"
)

// measurement contains the measurements of the measured time.
type measurement struct {
	begun, whole bool
	ramp         time.Duration
	used         usage.Reading // processor time in the measured time
	seconds      float64       // length of the measured time
	triggered    int64
	feeds        int64
	queueMax     int64
	queueStart   int64
	queueEnd     int64
	pending      int64
	behind       time.Duration // the longest wait of a customer at the end
}

// meeQueue returns the number of waiting jobs of the market, and its maximum since the last call.
func (d *driver) meeQueue() (now, longest int64) {
	return int64(d.market.Results.Len() + d.market.Feeds.Len()), int64(d.market.Results.Longest() + d.market.Feeds.Longest())
}

// measure waits for the end of the ramp and of the measured time, and records every interval. running ends
// early if the run fails or is interrupted.
func (d *driver) measure(ctx, running context.Context) measurement {
	var m measurement
	began := time.Now()
	ticker := time.NewTicker(d.o.Interval)
	defer ticker.Stop()
	last := d.used(running)
	pass := func(until <-chan time.Time) bool {
		for {
			select {
			case <-running.Done():
				return false
			case <-until:
				return true
			case now := <-ticker.C:
				last = d.tick(running, &m, began, now, last)
			}
		}
	}
	if !pass(time.After(d.o.Ramp)) {
		return m
	}
	m.queueStart, _ = d.meeQueue()
	m.queueMax = 0
	triggered, feeds := d.triggered.Load(), d.feeds.Load()
	before := d.used(running)
	start := time.Now()
	m.ramp, m.begun = start.Sub(began), true
	d.rec.StartMeasuring(start)
	ticker.Reset(d.o.Interval)
	last = before
	m.whole = pass(time.After(d.o.Duration))
	end := time.Now()
	d.rec.StopMeasuring(end)
	m.used = d.used(context.WithoutCancel(ctx)).Since(before)
	m.seconds = end.Sub(start).Seconds()
	now, longest := d.meeQueue()
	m.queueEnd, m.queueMax = now, max(m.queueMax, longest)
	m.triggered, m.feeds = d.triggered.Load()-triggered, d.feeds.Load()-feeds
	m.pending = int64(max(0, d.market.Waiting()))
	if d.arrivals != nil {
		_, m.behind = d.arrivals.lateness()
	}
	return m
}

// used reads the processor time. A server that cannot be read counts with its last value. Errors are ignored: the
// reading is valid, and servers may be restarted during a run.
func (d *driver) used(ctx context.Context) usage.Reading {
	r, err := d.meter.Read(ctx)
	if err != nil && ctx.Err() == nil {
		d.o.Notice("processor time: " + err.Error())
	}
	return r
}

// tick ends an interval of the series.
func (d *driver) tick(ctx context.Context, m *measurement, began, now time.Time, last usage.Reading) usage.Reading {
	reading := d.used(ctx)
	used := reading.Since(last)
	seconds := max(reading.At.Sub(last.At).Seconds(), 1e-9)
	queue, longest := d.meeQueue()
	m.queueMax = max(m.queueMax, longest)
	g := report.Gauges{
		Measuring: m.begun, Pending: int64(max(0, d.market.Waiting())), MEEQueue: queue,
		CoresServer: used.Server() / seconds, CoresDriver: used.Driver / seconds,
	}
	nominal := 0.0
	if d.arrivals != nil {
		g.Late, _ = d.arrivals.lateness()
		nominal = d.nominal
	}
	d.o.Live(d.rec.Tick(now, g), now.Sub(began), nominal)
	return reading
}
