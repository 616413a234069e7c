package main

import (
	"sync"

	"github.com/percodb/percodb/test/history"
)

// anomalies are what a workload has found wrong. Safe for concurrent use.
type anomalies struct {
	mu    sync.Mutex
	wrong []history.Anomaly
}

func (a *anomalies) note(class history.Class, stories ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, story := range stories {
		a.wrong = append(a.wrong, history.Anomaly{Class: class, Story: "  " + story + "\n"})
	}
}
