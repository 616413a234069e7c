package tso

import "github.com/prometheus/client_golang/prometheus"

// metrics counts rare events. Issued timestamps are not counted: a second atomic add would double their cost, and the
// oracle's clients count their requests.
type metrics struct {
	windows, waits prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		windows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "percodb_tso_windows_total", Help: "Timestamp windows saved, failed attempts included."}),
		waits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "percodb_tso_waits_total", Help: "Calls that waited for a window or for the clock."}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.windows, m.waits} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
