package market

import (
	"container/heap"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
)

// Facts of the exchange, taken from public ports.
const (
	feedEntries     = 20  // entries of a Market-Feed
	triggerQuantity = 375 // shares of an entry for a limit that was reached
	quantityLow     = 325 // shares of a random entry: quantityLow or quantityHigh
	quantityHigh    = 425
)

// Order is an order that the brokerage's database has acknowledged.
type Order struct {
	TradeID int64
	Type    string // of trade_type
	Limited bool   // waits until the price reaches the limit
	Symbol  string
	Qty     int64
	Limit   int64 // cents; of limited orders
}

// Entry is an entry of the tape: Qty shares were traded at Price cents.
type Entry struct {
	Symbol     string
	Price, Qty int64
}

// Result is an executed trade: a Trade-Result is due for it at Due.
type Result struct {
	Order Order
	Price int64 // cents per share
	Due   time.Time
}

// Feed is a full tape: a Market-Feed is due for it at Due.
type Feed struct {
	Entries []Entry
	Due     time.Time
}

// event is a future event of an order: its execution, or that the price reaches its limit.
type event struct {
	at    time.Time
	seq   uint64 // orders events of the same time by their creation
	order Order
	trade bool
}

type events []event

func (h events) Len() int      { return len(h) }
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h events) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].seq < h[j].seq
}

func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// Exchange is the exchange as a state machine. It is not safe for concurrent use; Emulator is.
type Exchange struct {
	gen      *gen.Generator
	board    *gen.Board
	numbers  map[string]int64 // of securities, by symbol
	rnd      *gen.Rand
	seq      uint64
	events   events
	triggers []Entry // entries for limits that were reached, the oldest first
	tape     []Entry // fewer than feedEntries
	waiting  int     // limit orders that no Market-Feed has found yet
}

// NewExchange returns an exchange of the generator's securities, without orders. period is the period of the
// prices' wave, 900 s if 0.
func NewExchange(g *gen.Generator, period time.Duration, seed uint64) *Exchange {
	x := &Exchange{gen: g, board: g.Board(period), numbers: make(map[string]int64, g.Securities()), rnd: gen.NewRand(seed)}
	for s := range g.Securities() {
		x.numbers[g.Symbol(s)] = s
	}
	return x
}

// price returns the price of a security at a time, in cents.
func (x *Exchange) price(symbol string, at time.Time) int64 {
	return x.board.Price(at, x.numbers[symbol])
}

// Submit submits an order that was committed to the database: a limit order waits for its price, any other order is
// executed.
func (x *Exchange) Submit(now time.Time, o Order) {
	if !o.Limited {
		x.Execute(now, o)
		return
	}
	x.waiting++
	x.at(x.board.Meets(now, x.numbers[o.Symbol], o.Type, o.Limit), o, false)
}

// Execute executes an order: a market order, or a limit order that a committed Market-Feed found.
func (x *Exchange) Execute(now time.Time, o Order) {
	if o.Limited {
		x.waiting--
	}
	x.at(now.Add(x.rnd.Completion()), o, true)
}

func (x *Exchange) at(t time.Time, o Order, trade bool) {
	x.seq++
	heap.Push(&x.events, event{at: t, seq: x.seq, order: o, trade: trade})
}

// Next returns when the next event is due; false if there is none.
func (x *Exchange) Next() (time.Time, bool) {
	if len(x.events) == 0 {
		return time.Time{}, false
	}
	return x.events[0].at, true
}

// Waiting returns the number of submitted limit orders that have not been executed. In a run of several
// processes one of them may execute an order that another has submitted, so the number may be negative.
func (x *Exchange) Waiting() int { return x.waiting }

// Advance processes all events that are due by now, and appends the resulting jobs to results and feeds.
func (x *Exchange) Advance(now time.Time, results []Result, feeds []Feed) ([]Result, []Feed) {
	for len(x.events) > 0 && !x.events[0].at.After(now) {
		e := heap.Pop(&x.events).(event)
		board := x.price(e.order.Symbol, e.at)
		if !e.trade {
			// At this time the board's price meets the order's limit.
			x.triggers = append(x.triggers, Entry{Symbol: e.order.Symbol, Price: board, Qty: triggerQuantity})
			continue
		}
		results = append(results, Result{Order: e.order, Price: gen.Execution(e.order.Type, e.order.Limit, board), Due: e.at})
		for _, entry := range [2]Entry{{Symbol: e.order.Symbol, Price: board, Qty: e.order.Qty}, x.another(e.at)} {
			if x.tape = append(x.tape, entry); len(x.tape) == feedEntries {
				feeds = append(feeds, Feed{Entries: x.tape, Due: e.at})
				x.tape = make([]Entry, 0, feedEntries)
			}
		}
	}
	return results, feeds
}

// another returns the second entry of a trade: the oldest limit that was reached, or a random security.
func (x *Exchange) another(at time.Time) Entry {
	if len(x.triggers) > 0 {
		first := x.triggers[0]
		x.triggers = x.triggers[1:]
		return first
	}
	symbol := x.gen.Symbol(x.rnd.Below(x.gen.Securities()))
	qty := int64(quantityLow)
	if x.rnd.Percent(50) {
		qty = quantityHigh
	}
	return Entry{Symbol: symbol, Price: x.price(symbol, at), Qty: qty}
}
