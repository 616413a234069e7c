package session

import (
	"sync"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
)

// transactionTimer ends the session when its transaction lasts for too long (transaction_timeout). follow is the session
// goroutine's.
type transactionTimer struct {
	expired func() // nil: there is no client

	mu    sync.Mutex
	armed bool
	// deadline guards against a timer that has fired for an earlier transaction.
	deadline time.Time
	timer    *time.Timer
}

// follow is called when a message begins (open: its statements are in a transaction) and when it has ended. limit is for how long a
// transaction may last, 0 for ever. A limit that is set within a transaction counts from then on.
func (t *transactionTimer) follow(open bool, limit time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open = open && limit > 0; open == t.armed {
		return
	}
	if t.armed = open; !open {
		if t.timer != nil {
			t.timer.Stop()
		}
		return
	}
	t.deadline = time.Now().Add(limit)
	if t.timer == nil {
		t.timer = time.AfterFunc(limit, t.fire)
	} else {
		t.timer.Reset(limit)
	}
}

func (t *transactionTimer) fire() {
	t.mu.Lock()
	due := t.armed && !time.Now().Before(t.deadline)
	t.mu.Unlock()
	if due && t.expired != nil {
		t.expired()
	}
}

// errTransactionTimeout is what a client whose transaction has lasted for too long is sent.
func errTransactionTimeout() *pgerror.Error {
	return pgerror.New(pgerror.TransactionTimeout, "terminating connection due to transaction timeout")
}
