package check

import (
	"fmt"

	"github.com/percodb/percodb/bench/tpce/journal"
)

// word is a set of facts about one trade that a server has acknowledged or left undetermined.
type word uint16

const (
	ordered word = 1 << iota
	refused
	completed
	triggered
	maybeOrdered
	maybeRefused
	maybeCompleted
	maybeTriggered
	seen // in the database

	facts = ordered | refused | completed | triggered
	open  = maybeOrdered | maybeRefused | maybeCompleted | maybeTriggered
)

// said is what the journals contain about one trade.
type said struct {
	word  word
	held  word  // the facts found in the database
	price int64 // cents, of a trade that is or may be completed
	by    int64 // the run that completes it: the last one that submitted it
}

// traded is what the journals contain about the volume of one security.
type traded struct {
	acked int64   // acknowledged
	open  []int64 // of unknown outcome: each was added whole or not at all
}

// lease is the ids [from, to) of trades, which one run alone creates.
type lease struct{ from, to, run int64 }

// evidence is the contents of the journals of a database.
type evidence struct {
	trades  map[int64]*said
	volumes map[string]*traded
	leases  []lease // of journaled runs
	before  int64   // the sum of lt_vol before the first of them
	first   int64   // its number
	// unrecorded is how many acknowledgements each run's driver may have failed to record because it was killed: 0 for
	// drivers that were not killed.
	unrecorded map[int64]int64
	killed     int // drivers
}

// gather reads the journals of a directory, which must belong to the checked database.
func gather(dir, identity string) (*evidence, error) {
	files, err := journal.Read(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the journals in %s are empty", dir)
	}
	e := &evidence{trades: map[int64]*said{}, volumes: map[string]*traded{}, unrecorded: map[int64]int64{}}
	for _, f := range files {
		run := f.Records[0]
		if run.Symbol != identity {
			return nil, fmt.Errorf("%s is the journal of another database, or of an earlier load of this one", f.Path)
		}
		if _, twice := e.unrecorded[run.TradeID]; twice {
			return nil, fmt.Errorf("%s: there are two journals of run %d", f.Path, run.TradeID)
		}
		if len(e.unrecorded) == 0 {
			e.first, e.before = run.TradeID, run.Qty
		}
		e.unrecorded[run.TradeID] = 0
		if !f.Clean {
			e.killed++
			e.unrecorded[run.TradeID] = run.Price
			e.markInFlight(f.Records)
		}
		for _, r := range f.Records[1:] {
			e.add(run.TradeID, r)
		}
	}
	return e, nil
}

// markInFlight treats as undetermined what a killed driver had sent without receiving an answer.
func (e *evidence) markInFlight(records []journal.Record) {
	type entry struct {
		symbol string
		qty    int64
	}
	count := map[entry]int{}
	for _, r := range records {
		switch r.Kind {
		case journal.Sent:
			count[entry{r.Symbol, r.Qty}]++
		case journal.Volume:
			count[entry{r.Symbol, r.Qty}]--
		}
	}
	for at, n := range count {
		for range n {
			t := e.security(at.symbol)
			t.open = append(t.open, at.qty)
		}
	}
}

func (e *evidence) security(symbol string) *traded {
	t := e.volumes[symbol]
	if t == nil {
		t = &traded{}
		e.volumes[symbol] = t
	}
	return t
}

// add adds a record of a run.
func (e *evidence) add(run int64, r journal.Record) {
	switch r.Kind {
	case journal.Lease:
		e.leases = append(e.leases, lease{r.TradeID, r.TradeID + r.Qty, run})
	case journal.Volume:
		if t := e.security(r.Symbol); r.Unknown {
			t.open = append(t.open, r.Qty)
		} else {
			t.acked += r.Qty
		}
	case journal.Order, journal.Refused, journal.Result, journal.Trigger:
		e.trade(run, r)
	}
}

func (e *evidence) trade(run int64, r journal.Record) {
	t := e.trades[r.TradeID]
	if t == nil {
		t = &said{}
		e.trades[r.TradeID] = t
	}
	w := map[journal.Kind]word{journal.Order: ordered, journal.Refused: refused, journal.Result: completed, journal.Trigger: triggered}[r.Kind]
	if r.Unknown {
		w *= maybeOrdered // each "maybe" bit is the same distance from its fact as maybeOrdered from ordered
	}
	t.word |= w
	switch {
	case r.Kind == journal.Result:
		t.price = r.Price
	case r.Kind == journal.Trigger || t.by == 0:
		t.by = run
	}
}

// lessee returns the journaled run that assigned an id, 0 if none did. The server's sequence assigns ids to
// several runs at a time: then a run whose driver was killed, if there is one.
func (e *evidence) lessee(id int64) int64 {
	var run int64
	for _, l := range e.leases {
		if id >= l.from && id < l.to && (run == 0 || e.unrecorded[l.run] > 0) {
			run = l.run
		}
	}
	return run
}
