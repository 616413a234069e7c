package observer

import (
	"slices"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/tso"
)

func upTo(key string, ts uint64) kv.NotifyUpTo {
	return kv.NotifyUpTo{Key: []byte(key), UpTo: tso.Timestamp(ts)}
}

// Goal: cells of handled changes are cleared together when they are due or many, one request at a time; until then scans and hints do not
// have these changes handled again, but newer ones of the same keys.
func TestClearer(t *testing.T) {
	var c clearer
	c.init()
	covers := func(key string, ts uint64) bool {
		return c.covers(&kv.NotifyCell{Key: []byte(key), Latest: tso.Timestamp(ts)})
	}
	now := time.Unix(1000, 0)
	late := now.Add(time.Hour)
	c.add(nil, now)
	if c.start(late); c.under || c.nextDue(late) != late {
		t.Fatal("a request for nothing")
	}
	c.add([]kv.NotifyUpTo{upTo("a", 10), upTo("b", 10)}, now)
	if c.start(now); c.under || c.nextDue(late) != now.Add(clearPause) {
		t.Fatal("a request before it is due")
	}
	if !covers("a", 10) || covers("a", 11) || covers("c", 1) {
		t.Error("changes that wait to be cleared are not told from others")
	}
	c.start(now.Add(clearPause))
	first := <-c.request
	c.add([]kv.NotifyUpTo{upTo("a", 20)}, now.Add(clearPause))
	if c.start(late); len(first) != 2 || len(c.request) != 0 || c.nextDue(late) != late {
		t.Fatalf("requested %v, and more at the same time", first)
	}
	c.finish(first)
	if !covers("a", 20) || covers("b", 1) || len(c.handled) != 1 {
		t.Errorf("after the first request: %v", c.handled)
	}
	many := []kv.NotifyUpTo{upTo("a", 15)}
	for range clearMost {
		many = append(many, upTo("z", 30))
	}
	c.add(many, now)
	c.start(now)
	if sorted := ascending(<-c.request); len(sorted) != 2 || sorted[0].UpTo != 20 || string(sorted[1].Key) != "z" {
		t.Errorf("many were requested as %v", sorted)
	}
}

// Goal: the latency of a change counts from the time that its hint names, whichever of a key's changes was handled; without a hint from
// its timestamp.
func TestCommitted(t *testing.T) {
	at := func(key string, ts tso.Timestamp, micros int64) change {
		return change{NotifyCell: kv.NotifyCell{Key: []byte(key), Latest: ts}, atMicros: micros}
	}
	newer, other := at("b", tso.FromPhysical(20)+8, 21_500), at("d", tso.FromPhysical(30), 31_000)
	items := []*item{
		{cell: at("a", tso.FromPhysical(10), 12_345)},
		{cell: at("b", tso.FromPhysical(11), 13_000), again: &newer},
		{cell: at("c", tso.FromPhysical(14), 0)},
		{cell: at("d", tso.FromPhysical(15), 15_001), again: &other},
		{cell: at("e", tso.FromPhysical(16), 16_001)},
	}
	got := committed(items, []observe.Change{
		{Key: []byte("a"), CommitTS: tso.FromPhysical(10)}, {Key: []byte("b"), CommitTS: newer.Latest},
		{Key: []byte("c"), CommitTS: tso.FromPhysical(14)}, {Key: []byte("d"), CommitTS: tso.FromPhysical(17)},
	})
	if want := []int64{12_345, 21_500, 14_000, 17_000}; !slices.Equal(got, want) {
		t.Errorf("committed at %v, want %v", got, want)
	}
}
