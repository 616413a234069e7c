package memory

import (
	"runtime/debug"
	"sync"
)

// tightPercent is how much garbage, in percent of what is live, the collector lets pile up while somebody has tightened it.
const tightPercent = 200

// collector is the state of TightenCollector.
var collector struct {
	sync.Mutex
	users   int
	percent int // to be restored
}

// TightenCollector has the collector run more often until LoosenCollector has been called as many times. It is
// for work that holds tens of megabytes for seconds: the garbage that is otherwise allowed is a multiple of
// that. Each first and last call stops the world for a moment.
func TightenCollector() {
	c := &collector
	c.Lock()
	defer c.Unlock()
	if c.users++; c.users > 1 {
		return
	}
	c.percent = debug.SetGCPercent(tightPercent)
	if c.percent <= tightPercent { // -1 is off
		debug.SetGCPercent(c.percent)
	}
}

// LoosenCollector ends the effect of one TightenCollector.
func LoosenCollector() {
	c := &collector
	c.Lock()
	defer c.Unlock()
	if c.users--; c.users == 0 {
		debug.SetGCPercent(c.percent)
	}
}
