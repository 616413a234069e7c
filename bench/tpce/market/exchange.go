package market

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// Facts of the exchange, as public ports show them.
const (
	feedEntries     = 20  // entries of a Market-Feed
	triggerQuantity = 375 // shares of an entry that says a limit was reached
	quantityLow     = 325 // shares of an entry drawn at random: the one or the other
	quantityHigh    = 425
	delayMean       = time.Second // from an order's arrival to its trade
	delayMax        = 5 * time.Second
)

// Type is one of the five types of orders, by its name in trade_type.
type Type string

const (
	MarketBuy  Type = "TMB"
	MarketSell Type = "TMS"
	StopLoss   Type = "TSL"
	LimitSell  Type = "TLS"
	LimitBuy   Type = "TLB"
)

// Limited reports that orders of the type wait until the price reaches a limit.
func (t Type) Limited() bool { return t == StopLoss || t == LimitSell || t == LimitBuy }

// Order is an order that the brokerage's database has acknowledged.
type Order struct {
	TradeID int64
	Type    Type
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
	board    *Board
	rnd      *rand.Rand
	seq      uint64
	events   events
	triggers []Entry // limits that were reached, the oldest first
	tape     []Entry // less than feedEntries
	waiting  int     // limit orders that no Market-Feed has found yet
}

// NewExchange returns an exchange without orders.
func NewExchange(board *Board, seed uint64) *Exchange {
	return &Exchange{board: board, rnd: rand.New(rand.NewPCG(seed, 0x6d61726b6574))}
}

// Submit takes an order that was committed to the database: a limit order is there to be found, any other
// is executed.
func (x *Exchange) Submit(now time.Time, o Order) {
	if !o.Type.Limited() {
		x.Execute(now, o)
		return
	}
	x.waiting++
	reached := x.board.firstAtMost
	if o.Type == LimitSell {
		reached = x.board.firstAtLeast
	}
	x.at(reached(o.Symbol, now, o.Limit), o, false)
}

// Execute takes an order that is to be traded now: a market order, or a limit order that a committed
// Market-Feed found.
func (x *Exchange) Execute(now time.Time, o Order) {
	if o.Type.Limited() {
		x.waiting--
	}
	delay := min(time.Duration(x.rnd.ExpFloat64()*float64(delayMean)), delayMax)
	x.at(now.Add(delay), o, true)
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
		board := x.board.Price(e.order.Symbol, e.at)
		if !e.trade {
			x.triggers = append(x.triggers, Entry{Symbol: e.order.Symbol, Price: triggerPrice(e.order, board), Qty: triggerQuantity})
			continue
		}
		results = append(results, Result{Order: e.order, Price: tradePrice(e.order, board), Due: e.at})
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
	l := x.board.listings[x.rnd.IntN(len(x.board.listings))]
	qty := int64(quantityLow)
	if x.rnd.IntN(2) == 1 {
		qty = quantityHigh
	}
	return Entry{Symbol: l.Symbol, Price: x.board.Price(l.Symbol, at), Qty: qty}
}

// triggerPrice is the price of an entry that is to make the order be found: the board's, which satisfies
// the limit at the moment the limit is reached, as it does when the order arrives in the money.
func triggerPrice(o Order, board int64) int64 {
	if o.Type == LimitSell {
		return max(board, o.Limit)
	}
	return min(board, o.Limit)
}

// tradePrice is what the order is traded at: never worse than its limit, except a stop-loss, which asks
// for the market's price once its limit is reached.
func tradePrice(o Order, board int64) int64 {
	switch o.Type {
	case LimitBuy:
		return min(o.Limit, board)
	case LimitSell:
		return max(o.Limit, board)
	}
	return board
}
