package check

import (
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/bench/tpce/journal"
)

// written writes the journal of a run of two connections into a directory; the journal of a killed driver has no
// End record.
func written(t *testing.T, dir string, run int64, killed bool, records ...journal.Record) {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	w, err := journal.Create(dir, journal.Record{Kind: journal.Run, TradeID: run, Price: 2, Symbol: testIdentity, At: at})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(records...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(at); err != nil {
		t.Fatal(err)
	}
	if killed {
		cutEnd(t, dir, run)
	}
}

// TestKilledDrivers: acknowledgements that a killed driver may have failed to record explain unacknowledged trades
// of its run, and none of later runs. Method: journals of two runs, the first killed.
func TestKilledDrivers(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 1, true,
		journal.Record{Kind: journal.Lease, TradeID: 1001, Qty: 100},
		journal.Record{Kind: journal.Order, TradeID: 1001},
		journal.Record{Kind: journal.Sent, Symbol: "A", Qty: 100},
		journal.Record{Kind: journal.Sent, Symbol: "A", Qty: 100},
		journal.Record{Kind: journal.Volume, Symbol: "A", Qty: 100},
		journal.Record{Kind: journal.Sent, Symbol: "B", Qty: 375})
	written(t, dir, 2, false,
		journal.Record{Kind: journal.Lease, TradeID: 2001, Qty: 100},
		journal.Record{Kind: journal.Order, TradeID: 2001},
		journal.Record{Kind: journal.Trigger, TradeID: 1001},
		journal.Record{Kind: journal.Sent, Symbol: "C", Qty: 800})
	e, err := gather(dir, testIdentity)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]int64{1000: 0, 1001: 1, 1100: 1, 1101: 0, 2001: 2} {
		if run := e.lessee(id); run != want {
			t.Errorf("trade %d is of run %d, want %d", id, run, want)
		}
	}
	if by := e.trades[1001].by; by != 2 {
		t.Errorf("trade 1001 was to be completed by run %d, want the one that submitted it", by)
	}
	for symbol, want := range map[string]traded{"A": {acked: 100, open: []int64{100}}, "B": {open: []int64{375}}} {
		if got := e.security(symbol); got.acked != want.acked || len(got.open) != 1 || got.open[0] != want.open[0] {
			t.Errorf("%s: %+v, want %+v", symbol, *got, want)
		}
	}
	if got := e.security("C"); got.acked != 0 || len(got.open) != 0 {
		t.Errorf("C: %+v: its driver has heard of everything", *got)
	}
	for _, c := range []struct {
		first, second int // trades without an acknowledgement
		violations    int64
	}{{2, 0, 0}, {3, 0, 3}, {0, 1, 1}, {2, 1, 1}} {
		var r Result
		more := surplus{}
		for i := range c.first {
			more.add(e.lessee(1002), 1002+int64(i), "is there")
		}
		for i := range c.second {
			more.add(e.lessee(2002), 2002+int64(i), "is there")
		}
		more.add(e.lessee(5000), 5000, "is of a run without a journal")
		e.sumUp(&r, more, func(id int64, finding string) { r.violate([]string{"t_id"}, []string{finding}) })
		if r.Violations != c.violations || !strings.Contains(r.Note, "1 drivers were killed, which may have had 2 more") {
			t.Errorf("%+v: %d violations, %s", c, r.Violations, r.Note)
		}
	}
}

// TestExplains: entries of unknown outcome count whole or not at all.
func TestExplains(t *testing.T) {
	v := traded{acked: 1000, open: []int64{100, 325, 800}}
	for volume, want := range map[int64]bool{999: false, 1000: true, 1001: false, 1100: true, 1200: false, 1325: true, 1425: true, 1800: true, 1900: true, 2125: true, 2225: true, 2224: false, 2226: false} {
		if v.explains(volume) != want {
			t.Errorf("%d: %v", volume, !want)
		}
	}
}
