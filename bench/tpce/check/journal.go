package check

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/percodb/percodb/bench/tpce/journal"
)

// word is what a server has acknowledged of one trade, or left open.
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
)

// said is all that the journals have of one trade.
type said struct {
	word  word
	price int64 // cents, of a completed trade, or one that may be
}

// evidence is what the journals of a database say.
type evidence struct {
	trades map[int64]*said
	leases []span // of trade ids, of journaled runs
	// before is the sum of lt_vol before the first run, volume what runs added to it, maybe what they may
	// have added besides.
	before, volume, maybe int64
	first                 int64           // the first run that has a journal
	runs                  map[int64]bool  // those that have one
	unheard               int64           // acknowledgements that killed drivers may not have written down
	counts                [2]int64        // of facts: acknowledged, unknown
	open                  map[string]bool // the paths of journals that do not end with End
}

// span is the ids [from, to).
type span struct{ from, to int64 }

// largestFeed is the most shares that one connection's lost acknowledgement may stand for: twenty entries
// of 800.
const largestFeed = 20 * 800

// gather reads the journals of a directory, which must be of the database that is checked.
func gather(dir, identity string) (*evidence, error) {
	files, err := journal.Read(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the journals in %s are empty", dir)
	}
	e := &evidence{trades: map[int64]*said{}, runs: map[int64]bool{}, open: map[string]bool{}}
	for _, f := range files {
		run := f.Records[0]
		if run.Symbol != identity {
			return nil, fmt.Errorf("%s is the journal of another database, or of an earlier load of this one", f.Path)
		}
		if e.runs[run.TradeID] {
			return nil, fmt.Errorf("%s: there are two journals of run %d", f.Path, run.TradeID)
		}
		if len(e.runs) == 0 {
			e.first, e.before = run.TradeID, run.Qty
		}
		e.runs[run.TradeID] = true
		if !f.Clean {
			e.unheard += run.Price
			e.open[f.Path] = true
		}
		for _, r := range f.Records[1:] {
			e.add(r)
		}
	}
	return e, nil
}

func (e *evidence) add(r journal.Record) {
	switch r.Kind {
	case journal.Lease:
		e.leases = append(e.leases, span{r.TradeID, r.TradeID + r.Qty})
		return
	case journal.End:
		return
	case journal.Volume:
		if r.Unknown {
			e.maybe += r.Qty
		} else {
			e.volume += r.Qty
		}
	default:
		t := e.trades[r.TradeID]
		if t == nil {
			t = &said{}
			e.trades[r.TradeID] = t
		}
		w := map[journal.Kind]word{journal.Order: ordered, journal.Refused: refused, journal.Result: completed, journal.Trigger: triggered}[r.Kind]
		if r.Unknown {
			w *= maybeOrdered // as far from the fact as maybeOrdered is from ordered
		}
		t.word |= w
		if r.Kind == journal.Result {
			t.price = r.Price
		}
	}
	if r.Unknown {
		e.counts[1]++
	} else {
		e.counts[0]++
	}
}

// leased reports that an id was given out by a run with a journal.
func (e *evidence) leased(id int64) bool {
	for _, s := range e.leases {
		if id >= s.from && id < s.to {
			return true
		}
	}
	return false
}

// judgeJournal compares the trades of the database with what was acknowledged of them.
func judgeJournal(ctx context.Context, s *subject, r *Result) error {
	e := s.evidence
	columns := []string{"t_id", "finding"}
	violate := func(id int64, format string, args ...any) {
		r.violate(columns, []string{fmt.Sprint(id), fmt.Sprintf(format, args...)})
	}
	var extra []string // what is there without having been acknowledged
	var failed error
	err := s.each(ctx, "SELECT t_id, t_st_id, t_trade_price FROM trade WHERE t_id > $1", []any{s.loaded.MaxTradeID}, func(_, row []string) {
		id, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			failed = err
			return
		}
		t := e.trades[id]
		if t == nil {
			if e.leased(id) {
				extra = append(extra, row[0]+" is there, which was not acknowledged")
			}
			return
		}
		t.word |= seen
		if text := t.contradicts(row[1], row[2]); text != "" {
			violate(id, "%s", text)
		}
		if t.word&(ordered|maybeOrdered|refused) == 0 {
			extra = append(extra, row[0]+" is there, which was not acknowledged")
		}
		if row[1] == "CMPT" && t.word&(completed|maybeCompleted) == 0 {
			extra = append(extra, row[0]+" is completed, which was not acknowledged")
		}
	})
	if err = firstError(err, failed); err != nil {
		return err
	}
	for id, t := range e.trades {
		if t.word&seen == 0 && t.word&(ordered|completed|triggered) != 0 {
			violate(id, "was acknowledged and is lost")
		}
	}
	err = s.each(ctx, "SELECT tr_t_id FROM trade_request", nil, func(_, row []string) {
		id, err := strconv.ParseInt(row[0], 10, 64)
		if t := e.trades[id]; err == nil && t != nil && t.word&triggered != 0 {
			violate(id, "was submitted, and still has its trade request")
		}
	})
	lost := r.Violations
	if int64(len(extra)) > e.unheard {
		for _, text := range extra {
			id, finding, _ := strings.Cut(text, " ")
			r.violate(columns, []string{id, finding})
		}
	}
	r.Note = fmt.Sprintf("acknowledged %d, found %d, lost %d; unknown outcome %d", e.counts[0], e.counts[0]-lost, lost, e.counts[1])
	if len(e.open) > 0 {
		r.Note += fmt.Sprintf("; %d drivers were killed, which may have had %d more acknowledgements: %d were found", len(e.open), e.unheard, len(extra))
	}
	return err
}

// contradicts says what of a trade's state is not as acknowledged, "" if nothing is.
func (t *said) contradicts(status, price string) string {
	switch {
	case t.word&refused != 0:
		return "was rolled back, and is there"
	case t.word&completed != 0 && status != "CMPT":
		return "was completed, and is " + status
	case t.word&completed != 0:
		if cents, err := parseCents(price); err != nil || cents != t.price {
			return fmt.Sprintf("was completed at %s, and has the price %s", formatCents(t.price), price)
		}
	case t.word&triggered != 0 && status == "PNDG":
		return "was submitted, and is pending"
	}
	return ""
}

// judgeVolume compares the volumes of last_trade with what was acknowledged to have been added to them.
func judgeVolume(ctx context.Context, s *subject, r *Result) error {
	e := s.evidence
	columns := []string{"lt_vol", "at least", "at most"}
	for run := e.first; run <= s.loaded.Runs; run++ {
		if !e.runs[run] {
			r.violate(columns, []string{"not compared", fmt.Sprintf("run %d has no journal here", run), ""})
			return nil
		}
	}
	least := e.before + e.volume
	most := least + e.maybe + e.unheard*largestFeed
	err := s.each(ctx, "SELECT COALESCE(SUM(lt_vol), 0)::bigint FROM last_trade", nil, func(_, row []string) {
		if sum, err := strconv.ParseInt(row[0], 10, 64); err != nil || sum < least || sum > most {
			r.violate(columns, []string{row[0], fmt.Sprint(least), fmt.Sprint(most)})
		}
	})
	r.Note = fmt.Sprintf("acknowledged %d shares; unknown outcome %d", e.volume, e.maybe)
	return err
}

// errNoJournal: C13 or C14 was asked for, which are judged by a journal.
var errNoJournal = errors.New("C13 and C14 are judged by the journals of runs: say where they are with --journal")
