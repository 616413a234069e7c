package session

import (
	"net"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/percodb/percodb/advisory"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/tso"
)

// shown is what other sessions may see of this one's transaction (percodb.transactions). The session's
// goroutine stores, any may load; the parts may be of slightly different moments.
type shown struct {
	startTS, readTS atomic.Uint64 // 0: none is open
	modes           atomic.Uint64 // isolation, and pessimisticBit
	phase           atomic.Uint64 // as of the end of the last message
	application     atomic.Pointer[string]
	numbered        atomic.Bool // the transaction has been asked for its number
	relations       relationLocks
	// As of the end of the block's last statement.
	reads, locks, writes atomic.Uint64
	// statement is the beginning of the text of the last statement, and when it began.
	statement struct {
		sync.Mutex
		text []byte
		at   int64
	}
}

// shownBytesOfText is how much of a statement's text is shown, as in PostgreSQL.
const shownBytesOfText = 1023

// setStatement notes the text of a statement that begins.
func (v *shown) setStatement(text string, at int64) {
	if len(text) > shownBytesOfText {
		text = text[:shownBytesOfText]
		for len(text) > 0 && !utf8.ValidString(text[max(0, len(text)-utf8.UTFMax):]) {
			text = text[:len(text)-1]
		}
	}
	s := &v.statement
	s.Lock()
	s.text, s.at = append(s.text[:0], text...), at
	s.Unlock()
}

// lastStatement returns the text of the last statement, and when it began. Safe from any goroutine.
func (v *shown) lastStatement() (string, int64) {
	s := &v.statement
	s.Lock()
	defer s.Unlock()
	return string(s.text), s.at
}

const pessimisticBit = 1 << 8

// begin notes a transaction that has begun.
func (v *shown) begin(txn *percolator.Txn, level settings.Isolation) {
	bits := uint64(level)
	if txn.Pessimistic() {
		bits |= pessimisticBit
	}
	change(&v.modes, bits)
	v.note(percolator.Counts{}, txn.ReadTS())
	v.startTS.Store(uint64(txn.StartTS()))
}

func (v *shown) note(c percolator.Counts, readTS tso.Timestamp) {
	change(&v.reads, uint64(c.Reads))
	change(&v.locks, uint64(c.Locks))
	change(&v.writes, uint64(c.Writes))
	change(&v.readTS, uint64(readTS))
}

// end notes that no transaction is open.
func (v *shown) end() {
	change(&v.startTS, 0)
	if v.numbered.Load() {
		v.numbered.Store(false)
	}
	v.relations.rollbackTo(0)
}

// setApplication notes the application's name.
func (v *shown) setApplication(name string) {
	if v.applicationName() != name {
		v.application.Store(&name)
	}
}

func (v *shown) applicationName() string {
	if name := v.application.Load(); name != nil {
		return *name
	}
	return ""
}

// change stores a value that only the caller's goroutine changes. Most are what they were, and loading is cheaper.
func change(at *atomic.Uint64, value uint64) {
	if at.Load() != value {
		at.Store(value)
	}
}

// activity is what any goroutine may learn of a session.
type activity struct {
	*identity
	interrupts *interrupts
	shown      *shown
	advisory   atomic.Pointer[advisory.Locks] // nil: none has been locked
}

// transaction returns what is shown of the session's transaction, if one is open. Safe from any
// goroutine.
func (a *activity) transaction() (catalog.Transaction, bool) {
	start := tso.Timestamp(a.shown.startTS.Load())
	if start == 0 {
		return catalog.Transaction{}, false
	}
	bits := a.shown.modes.Load()
	t := catalog.Transaction{
		PID: a.key.PID, Role: a.role, User: a.user, Isolation: settings.Isolation(bits &^ pessimisticBit).String(), Pessimistic: bits&pessimisticBit != 0,
		StartTS: start, ReadTS: tso.Timestamp(a.shown.readTS.Load()),
		Reads: int64(a.shown.reads.Load()), Locks: int64(a.shown.locks.Load()), Writes: int64(a.shown.writes.Load()),
	}
	t.State = a.state()
	return t, true
}

// lockers returns what the session may lock keys with: its transaction and its advisory locks. Safe from any goroutine.
func (a *activity) lockers() (all []tso.Timestamp) {
	if start := tso.Timestamp(a.shown.startTS.Load()); start != 0 {
		all = append(all, start)
	}
	if locks := a.advisory.Load(); locks != nil {
		for _, l := range locks.List() {
			all = append(all, l.Hold)
		}
	}
	return all
}

// row returns what pg_stat_activity shows of the session. Safe from any goroutine.
func (a *activity) row() catalog.Activity {
	row := catalog.Activity{
		PID: a.key.PID, Role: a.role, DatabaseOID: a.databaseOID, Database: a.database, User: a.user, State: a.state(), Application: a.shown.applicationName(), BackendStart: builtin.UnixToTimestamp(a.started), ClientPort: -1, TLS: a.client.TLS,
	}
	row.Query, row.QueryStart = a.shown.lastStatement()
	if tcp, ok := a.client.Addr.(*net.TCPAddr); ok {
		row.ClientAddr, row.ClientPort = tcp.IP.String(), tcp.Port
	}
	return row
}

// state is what the session does, as pg_stat_activity says it. Safe from any goroutine.
func (a *activity) state() string {
	switch {
	case a.interrupts.running():
		return "active"
	case phase(a.shown.phase.Load()) == failed:
		return "idle in transaction (aborted)"
	case phase(a.shown.phase.Load()) == block, a.shown.startTS.Load() != 0:
		return "idle in transaction"
	}
	return "idle"
}
