package market

import (
	"container/heap"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
)

// Facts of the exchange, as public ports show them.
const (
	feedEntries     = 20  // entries of a Market-Feed
	triggerQuantity = 375 // shares of an entry that says a limit was reached
	quantityLow     = 325 // shares of an entry drawn at random: the one or the other
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

// Entry is a line of the tape: so many shares were traded at that price, in cents.
type Entry struct {
	Symbol     string
	Price, Qty int64
}

// Result is a trade that was made: a Trade-Result is to be run for it, from Due on.
type Result struct {
	Order Order
	Price int64 // cents a share
	Due   time.Time
}

// Feed is a full tape: a Market-Feed is to be run for it, from Due on.
type Feed struct {
	Entries []Entry
	Due     time.Time
}

// event is what will happen to an order: its trade, or that the price reaches its limit.
type event struct {
	at    time.Time
	seq   uint64 // events of one moment happen in the order in which they were made
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
	triggers []Entry // limits that were reached, the oldest first
	tape     []Entry // less than feedEntries
	waiting  int     // limit orders that no Market-Feed has found yet
}

// NewExchange returns an exchange without orders, on which the generator's securities are listed. Prices
// go up and down once in a period, 900 s if 0.
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

// Submit takes an order that was committed to the database: a limit order is there to be found, any other
// is executed.
func (x *Exchange) Submit(now time.Time, o Order) {
	if !o.Limited {
		x.Execute(now, o)
		return
	}
	x.waiting++
	x.at(x.board.Meets(now, x.numbers[o.Symbol], o.Type, o.Limit), o, false)
}

// Execute takes an order that is to be traded now: a market order, or a limit order that a committed
// Market-Feed found.
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

// Waiting returns how many limit orders that were submitted have not been executed. In a run of several
// processes one of them may execute what another has submitted, and the number be negative.
func (x *Exchange) Waiting() int { return x.waiting }

// Advance lets everything happen that is due by now, and appends the jobs that follow to those given.
func (x *Exchange) Advance(now time.Time, results []Result, feeds []Feed) ([]Result, []Feed) {
	for len(x.events) > 0 && !x.events[0].at.After(now) {
		e := heap.Pop(&x.events).(event)
		board := x.price(e.order.Symbol, e.at)
		if !e.trade {
			// At this moment the board's price is one that lets the order go.
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

// another returns the entry that goes with a trade: the oldest limit that was reached, or any security.
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
