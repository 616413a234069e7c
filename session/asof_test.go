package session

import (
	"testing"
	"time"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// Goal: the texts of AS OF SYSTEM TIME become timestamps that include their whole millisecond, and what is no time in the past
// is refused with 22007, 22008 or 22023. Method: a table of texts at one moment.
func TestTimesOfTexts(t *testing.T) {
	moment := time.Date(2024, 3, 31, 12, 0, 0, 0, time.UTC)
	now := tso.FromPhysical(moment.UnixMilli())
	for _, c := range []struct {
		text string
		back time.Duration // before the moment
		code string
	}{
		{text: "-10s", back: 10 * time.Second},
		{text: "-1 hour -30 min", back: 90 * time.Minute},
		{text: "-1 day", back: 24 * time.Hour},
		{text: "-1 month", back: moment.Sub(time.Date(2024, 3, 2, 12, 0, 0, 0, time.UTC))}, // there is no 31 February
		{text: "2024-03-31 11:59:59.5", back: 500 * time.Millisecond},
		{text: "2024-03-31 13:00:00+02", back: time.Hour},
		{text: "+10s", code: "22023"},
		{text: "-0s", code: "22023"},
		{text: "-something", code: "22007"},
		{text: "yesterdays", code: "22007"},
		{text: "infinity", code: "22023"},
		{text: "1960-01-01", code: "22023"},
	} {
		got, err := parseTime(c.text, now, builtin.UnixToTimestamp(moment), &types.Format{Location: time.UTC}, 1)
		if c.code != "" {
			if err == nil || string(ToPGError(err).Code) != c.code || ToPGError(err).Position == 0 {
				t.Errorf("%s: %d, %v", c.text, got, err)
			}
			continue
		}
		want := tso.FromPhysical(moment.Add(-c.back).UnixMilli()+1) - tso.Tick
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", c.text, time.UnixMilli(got.Physical()).UTC(), err)
		}
	}
	// A time at or after the statement includes all that the oracle has given so far, also when its clock is ahead.
	if got, err := wallTime(builtin.UnixToTimestamp(moment), now+tso.FromPhysical(5000), builtin.UnixToTimestamp(moment), 1); err != nil || got != now+tso.FromPhysical(5000) {
		t.Errorf("now(): %d, %v", got, err)
	}
}

// Goal: a transaction reads at one time, which is fixed before its first query, and writes nothing. Method: transcripts.
func TestAsOfInBlocks(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int)")
	c.transcript(`
		begin as of system time 1; show transaction_read_only; rollback → BEGIN; columns transaction_read_only; row on; SHOW; ROLLBACK; I
		begin as of system time 1 read write → error 42601; I
		begin as of system time 0 → error 22023; I
		begin as of system time null → error 22023; I
		begin; select 1; set transaction as of system time 1; rollback → BEGIN; columns ?column?; row 1; SELECT 1; error 25001; E
		rollback → ROLLBACK; I
		begin; savepoint a; set transaction as of system time 1 → BEGIN; SAVEPOINT; error 25001; E
		rollback → ROLLBACK; I
		begin; select id from t as of system time 1 → BEGIN; error 25001; E
		rollback → ROLLBACK; I
		set session characteristics as transaction as of system time 1 → error 0A000; I
	`)
}
