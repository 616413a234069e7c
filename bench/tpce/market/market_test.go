package market

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
)

// start is an arbitrary time.
func start() time.Time { return time.UnixMicro(1_700_000_000_123_456) }

func testGenerator(t *testing.T) *gen.Generator {
	t.Helper()
	scale, err := gen.Profile("tiny")
	if err != nil {
		t.Fatal(err)
	}
	g, err := gen.New(scale)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// brokerage is a model of the database's processing of orders and tape entries.
type brokerage struct {
	pending map[string][]Order // limit orders, by symbol
	placed  map[int64]time.Time
	waited  []time.Duration // for limit orders that were found
	volume  int64
}

// feed runs a Market-Feed, and returns the orders that it submits to the exchange.
func (b *brokerage) feed(now time.Time, entries []Entry) []Order {
	var found []Order
	for _, e := range entries {
		b.volume += e.Qty
		b.pending[e.Symbol] = slices.DeleteFunc(b.pending[e.Symbol], func(o Order) bool {
			if o.Type == "TLS" && o.Limit > e.Price || o.Type != "TLS" && o.Limit < e.Price {
				return false
			}
			found = append(found, o)
			b.waited = append(b.waited, now.Sub(b.placed[o.TradeID]))
			return true
		})
	}
	return found
}

// trading is the result of a simulated session.
type trading struct {
	results []Result
	feeds   int
	b       brokerage
}

// trade simulates customers who place 20 orders a second for a duration, and continues
// until no limit order waits.
func trade(t *testing.T, g *gen.Generator, seed uint64, long time.Duration) trading {
	t.Helper()
	x := NewExchange(g, 0, seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := trading{b: brokerage{pending: map[string][]Order{}, placed: map[int64]time.Time{}}}
	now := start()
	var results []Result
	var feeds []Feed
	for id := int64(1); ; {
		if now.Sub(start()) < long || x.Waiting() > 0 {
			o := Order{TradeID: id, Type: []string{"TMB", "TMS", "TLB", "TLS", "TSL"}[rnd.IntN(5)],
				Symbol: g.Symbol(rnd.Int64N(g.Securities())), Qty: 100, Limit: 20_00 + rnd.Int64N(10_01)}
			if now.Sub(start()) >= long { // keep the tape moving
				o.Type = "TMB"
			}
			id++
			if o.Limited = o.Type[1] != 'M'; o.Limited {
				out.b.pending[o.Symbol] = append(out.b.pending[o.Symbol], o)
				out.b.placed[o.TradeID] = now
			}
			x.Submit(now, o)
		} else if _, any := x.Next(); !any {
			return out
		}
		now = now.Add(50 * time.Millisecond)
		results, feeds = x.Advance(now, results[:0], feeds[:0])
		out.results = append(out.results, results...)
		out.feeds += len(feeds)
		for _, f := range feeds {
			if len(f.Entries) != 20 {
				t.Fatalf("a feed of %d entries", len(f.Entries))
			}
			for _, o := range out.b.feed(now, f.Entries) {
				x.Execute(now, o)
			}
		}
		if now.Sub(start()) > long+24*time.Hour {
			t.Fatalf("%d limit orders wait for ever", x.Waiting())
		}
	}
}

// TestTrading: every order is executed exactly once, at the board's price or at its limit if that is
// better; a feed follows every ten results; the waiting times of limit orders agree with the wave. Method: a session
// of half an hour against a model of the database.
func TestTrading(t *testing.T) {
	g := testGenerator(t)
	board := g.Board(0)
	out := trade(t, g, 7, 30*time.Minute)
	if again := trade(t, g, 7, 30*time.Minute); !reflect.DeepEqual(again, out) {
		t.Error("the same session went differently")
	}
	seen := map[int64]bool{}
	for _, r := range out.results {
		if seen[r.Order.TradeID] {
			t.Fatalf("order %d is traded twice", r.Order.TradeID)
		}
		seen[r.Order.TradeID] = true
		price := board.Price(r.Due, g.SecurityOf(r.Order.Symbol))
		switch o := r.Order; o.Type {
		case "TLB":
			price = min(price, o.Limit)
		case "TLS":
			price = max(price, o.Limit)
		}
		if r.Price != price || price < 20_00 || price > 30_00 {
			t.Fatalf("%+v: price %d", r, price)
		}
	}
	for id := int64(1); id <= int64(len(seen)); id++ {
		if !seen[id] {
			t.Fatalf("order %d is not traded", id)
		}
	}
	if want := len(out.results) / 10; out.feeds != want {
		t.Errorf("%d feeds for %d results", out.feeds, len(out.results))
	}
	slices.Sort(out.b.waited)
	var sum time.Duration
	atOnce := 0
	for _, w := range out.b.waited {
		sum += w
		if w < 10*time.Second { // a feed every half second, behind a few others
			atOnce++
		}
	}
	n := len(out.b.waited)
	mean, p90, share := sum/time.Duration(n), out.b.waited[n*9/10], float64(atOnce)/float64(n)
	if mean < 120*time.Second || mean > 180*time.Second || p90 < 400*time.Second || p90 > 600*time.Second || share < 0.45 || share > 0.6 {
		t.Errorf("limit orders wait %v, p90 %v, %.2f not at all, want 150 s, 500 s, 0.5", mean, p90, share)
	}
}

// TestOwnEntryFindsOrder: the entry that is put on the tape when an order's limit is reached lets a
// Market-Feed find the order, for any time, type and limit. Method: one limit order, and a market
// order whose execution puts the entry on the tape.
func TestOwnEntryFindsOrder(t *testing.T) {
	g := testGenerator(t)
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		x := NewExchange(g, 20*time.Second, 1)
		now := start().Add(time.Duration(rnd.Int64N(int64(time.Hour))))
		o := Order{TradeID: 1, Type: []string{"TLB", "TLS", "TSL"}[rnd.IntN(3)], Limited: true, Symbol: g.Symbol(7), Limit: 20_00 + rnd.Int64N(10_01)}
		x.Submit(now, o)
		due, _ := x.Next()
		if due.Sub(now) > 20*time.Second {
			t.Fatalf("%+v waits %v", o, due.Sub(now))
		}
		x.Advance(due, nil, nil)
		if len(x.triggers) != 1 {
			t.Fatalf("%+v: %d entries", o, len(x.triggers))
		}
		b := brokerage{pending: map[string][]Order{o.Symbol: {o}}, placed: map[int64]time.Time{}}
		if e := x.triggers[0]; len(b.feed(due, []Entry{e})) != 1 || e.Qty != 375 {
			t.Fatalf("%+v is not found by %+v", o, e)
		}
	}
}

// TestEmulator: jobs are delivered when they are due, also with concurrent submitters. Method: a fake clock.
func TestEmulator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEmulator(NewExchange(testGenerator(t), 0, 1))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { e.Run(ctx) })
		for i := range int64(100) {
			wg.Go(func() { e.Submit(Order{TradeID: i, Type: "TMB", Symbol: "AAAA", Qty: 100}) })
		}
		seen := map[int64]bool{}
		for range 100 {
			r, ok := e.Results.Pop(ctx)
			if !ok || seen[r.Order.TradeID] || time.Since(r.Due) < 0 || time.Since(r.Due) > time.Millisecond {
				t.Fatalf("%+v %v at %v", r, ok, time.Now())
			}
			seen[r.Order.TradeID] = true
		}
		synctest.Wait() // the last result is delivered just before its feed
		if e.Feeds.Len() != 10 || e.Feeds.Longest() != 10 {
			t.Errorf("%d feeds for 100 results", e.Feeds.Len())
		}
		cancel()
		if _, ok := e.Results.Pop(ctx); ok {
			t.Error("a job after the end")
		}
		wg.Wait()
	})
}

// TestQueueLosesNothing: every job is delivered to one worker, also when workers stop waiting. Method: workers whose
// contexts end at random, under the race detector.
func TestQueueLosesNothing(t *testing.T) {
	var q Queue[int]
	const jobs = 5000
	var mu sync.Mutex
	seen := map[int]int{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var workers, producers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for ctx.Err() == nil {
				short, stop := context.WithTimeout(ctx, time.Duration(1+w)*37*time.Microsecond)
				if item, ok := q.Pop(short); ok {
					mu.Lock()
					if seen[item]++; len(seen) == jobs {
						cancel()
					}
					mu.Unlock()
				}
				stop()
			}
		})
	}
	for p := range 2 {
		producers.Go(func() {
			for i := range jobs / 2 {
				q.Push(p*jobs/2 + i)
			}
		})
	}
	producers.Wait()
	workers.Wait()
	for i := range jobs {
		if seen[i] != 1 {
			t.Fatalf("job %d came %d times", i, seen[i])
		}
	}
}
