package observer

import (
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
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
