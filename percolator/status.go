package percolator

import (
	"sync"

	"github.com/percodb/percodb/tso"
)

// outcome is the state of a transaction whose lock was encountered, final or not.
type outcome struct {
	kind     outcomeKind
	commitTS tso.Timestamp // if committed
	// undecided qualifies outcomeRolledBack: the transaction has lost its primary's lock, but might acquire it again. It
	// applies to pessimistic locks only, and must not be cached.
	undecided bool
}

type outcomeKind int

const (
	outcomeAlive      outcomeKind = iota
	outcomePassed                 // alive, and will commit above the snapshot of the calling reader
	outcomeCommitted              // at commitTS
	outcomeRolledBack             // permanently
	outcomeKinds
	// outcomeAway: only an unavailable shard knows the outcome; see withAway. It is not counted.
	outcomeAway
)

// statusCache caches outcomes that are final (I3). It has two generations: when the young one is full it becomes the old
// one, and entries that are not used again are dropped. Safe for concurrent use.
type statusCache struct {
	mu         sync.Mutex
	young, old map[tso.Timestamp]outcome
}

const statusCacheGeneration = 4096

func (c *statusCache) get(startTS tso.Timestamp) (outcome, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.young[startTS]; ok {
		return f, true
	}
	f, ok := c.old[startTS]
	if ok {
		c.putLocked(startTS, f)
	}
	return f, ok
}

func (c *statusCache) put(startTS tso.Timestamp, f outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(startTS, f)
}

func (c *statusCache) putLocked(startTS tso.Timestamp, f outcome) {
	if c.young == nil || len(c.young) >= statusCacheGeneration {
		c.old, c.young = c.young, make(map[tso.Timestamp]outcome)
	}
	c.young[startTS] = f
}
