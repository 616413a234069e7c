package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
)

// surplus is what the database contains without an acknowledgement, by the run that would have received it.
type surplus map[int64][]extra

type extra struct {
	id      int64
	finding string
}

func (s surplus) add(run, id int64, finding string) {
	if run != 0 { // nothing is known of a run without a journal
		s[run] = append(s[run], extra{id, finding})
	}
}

// judgeJournal compares the trades of the database with the acknowledgements.
func judgeJournal(ctx context.Context, s *subject, r *Result) error {
	e, more := s.evidence, surplus{}
	columns := []string{"t_id", "finding"}
	violate := func(id int64, finding string) { r.violate(columns, []string{fmt.Sprint(id), finding}) }
	var failed error
	err := s.each(ctx, "SELECT t_id, t_st_id, t_trade_price FROM trade WHERE t_id > $1", []any{s.loaded.MaxTradeID}, func(_, row []string) {
		id, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			failed = err
			return
		}
		t := e.trades[id]
		if t == nil {
			more.add(e.lessee(id), id, "is there, which was not acknowledged")
			return
		}
		t.word |= seen
		t.held = t.word & (ordered | completed | triggered)
		if broken, text := t.contradicts(row[1], row[2]); broken != 0 {
			t.held &^= broken
			violate(id, text)
		}
		if t.word&(ordered|maybeOrdered|refused) == 0 {
			more.add(e.lessee(id), id, "is there, which was not acknowledged")
		}
		if row[1] == "CMPT" && t.word&(completed|maybeCompleted) == 0 {
			more.add(t.by, id, "is completed, which was not acknowledged")
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	for id, t := range e.trades {
		if t.word&seen != 0 {
			continue
		}
		t.held = t.word & refused
		if t.word&(ordered|completed|triggered) != 0 {
			violate(id, "was acknowledged and is lost")
		}
	}
	err = s.each(ctx, "SELECT tr_t_id FROM trade_request", nil, func(_, row []string) {
		id, err := strconv.ParseInt(row[0], 10, 64)
		failed = errors.Join(failed, err)
		if t := e.trades[id]; t != nil && t.word&triggered != 0 {
			t.held &^= triggered
			violate(id, "was submitted, and still has its trade request")
		}
	})
	e.sumUp(r, more, violate)
	return errors.Join(err, failed)
}

// sumUp counts facts, and evaluates the surplus. A killed driver may have failed to record one acknowledgement for
// each of its connections; a driver that was not killed has recorded all.
func (e *evidence) sumUp(r *Result, more surplus, violate func(id int64, finding string)) {
	var acknowledged, found, unknown, besides int
	var unrecorded int64
	for _, t := range e.trades {
		acknowledged += bits.OnesCount16(uint16(t.word & facts))
		found += bits.OnesCount16(uint16(t.held))
		unknown += bits.OnesCount16(uint16(t.word & open))
	}
	for run, allowed := range e.unrecorded {
		unrecorded += allowed
		if int64(len(more[run])) <= allowed {
			besides += len(more[run])
			continue
		}
		for _, x := range more[run] {
			violate(x.id, x.finding)
		}
	}
	r.Note = fmt.Sprintf("acknowledged %d, found %d, lost %d; unknown outcome %d", acknowledged, found, acknowledged-found, unknown)
	if e.killed > 0 {
		r.Note += fmt.Sprintf("; %d drivers were killed, which may have had %d more acknowledgements: %d were found", e.killed, unrecorded, besides)
	}
}

// contradicts returns the acknowledged fact that a trade's state contradicts, 0 if there is none, and a description.
func (t *said) contradicts(status, price string) (word, string) {
	switch {
	case t.word&refused != 0:
		return refused, "was rolled back, and is there"
	case t.word&completed != 0 && status != "CMPT":
		return completed, "was completed, and is " + status
	case t.word&completed != 0:
		if cents, err := parseCents(price); err != nil || cents != t.price {
			return completed, fmt.Sprintf("was completed at %s, and has the price %s", formatCents(t.price), price)
		}
	case t.word&triggered != 0 && status == "PNDG":
		return triggered, "was submitted, and is pending"
	}
	return 0, ""
}

// judgeVolume compares the volumes of last_trade with the acknowledged additions: for each security if all
// runs have a journal, because a load has no volumes; otherwise their sum. Any excess must be a sum of entries of
// unknown outcome, each whole or not at all.
func judgeVolume(ctx context.Context, s *subject, r *Result) error {
	e := s.evidence
	columns := []string{"s_symb", "lt_vol", "acknowledged", "unknown outcome"}
	for run := e.first; run <= s.loaded.Runs; run++ {
		if _, ok := e.unrecorded[run]; !ok {
			r.violate(columns, []string{"not compared", fmt.Sprintf("run %d has no journal here", run), "", ""})
			return nil
		}
	}
	there := map[string]int64{}
	var failed error
	err := s.each(ctx, "SELECT lt_s_symb, lt_vol FROM last_trade", nil, func(_, row []string) {
		n, err := strconv.ParseInt(row[1], 10, 64)
		failed = errors.Join(failed, err)
		there[row[0]] = n
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	all, expected := traded{acked: e.before}, maps.Clone(e.volumes)
	var sum int64
	for symbol, n := range there {
		sum += n
		if expected[symbol] == nil {
			expected[symbol] = &traded{}
		}
	}
	for _, t := range e.volumes {
		all.acked += t.acked
		all.open = append(all.open, t.open...)
	}
	r.Note = fmt.Sprintf("acknowledged %d shares; unknown outcome %d entries", all.acked-e.before, len(all.open))
	if e.first > 1 {
		r.Note += fmt.Sprintf("; only the sum is compared: the first journal is of run %d", e.first)
		there, expected = map[string]int64{"all": sum}, map[string]*traded{"all": &all}
	}
	for _, symbol := range slices.Sorted(maps.Keys(expected)) {
		if t := expected[symbol]; !t.explains(there[symbol]) {
			r.violate(columns, []string{symbol, fmt.Sprint(there[symbol]), fmt.Sprint(t.acked), fmt.Sprint(t.open)})
		}
	}
	return nil
}

// explains reports whether a volume is the acknowledged sum plus some of the entries of unknown outcome.
func (t *traded) explains(volume int64) bool {
	besides := volume - t.acked
	var most int64
	for _, n := range t.open {
		most += n
	}
	if besides < 0 || besides > most {
		return false
	}
	sums := big.NewInt(1) // bit n: some of the entries of unknown outcome sum to n
	for _, n := range t.open {
		sums.Or(sums, new(big.Int).Lsh(sums, uint(n)))
	}
	return sums.Bit(int(besides)) == 1
}

// errNoJournal: C13 or C14 was requested without a journal.
var errNoJournal = errors.New("C13 and C14 are judged by the journals of runs: say where they are with --journal")
