package txn

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

// proxy forwards the connections of sessions to a server, and cuts one at a chosen message.
type proxy struct {
	t        *testing.T
	listener net.Listener
	server   string
	// left counts down: the connection is cut when it reaches 0, before the current message is forwarded.
	left atomic.Int64
	// answers: count the server's messages, not the session's.
	answers atomic.Bool
	// late, if not nil, delays the message at which a connection is cut, instead of dropping it.
	late  atomic.Pointer[late]
	group sync.WaitGroup
}

// late controls when the server receives a message whose sender has lost its connection, and when the server's
// connection is closed.
type late struct{ deliver, end chan struct{} }

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, server: server}
	p.group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.group.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.group.Wait()
	})
	return p
}

// cutAfter cuts the connection after n messages in one direction; never if n is negative.
func (p *proxy) cutAfter(n int64, answers bool) {
	p.answers.Store(answers)
	p.left.Store(n + 1)
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer server.Close()
	var group sync.WaitGroup
	group.Go(func() { p.copy(server, client, false) })
	group.Go(func() { p.copy(client, server, true) })
	group.Wait()
}

func (p *proxy) copy(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if p.answers.Load() == answers && p.left.Add(-1) == 0 {
				if l := p.late.Swap(nil); l != nil {
					_ = from.Close()
					<-l.deliver
					_, _ = to.Write(buffer[:n]) // if the server is gone, the test notices
					<-l.end
				}
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestLostConnections: at whatever message the connection is lost, before or after the server has processed it, an
// order is entered once, a trade completed once and an order submitted once, and the sessions report it.
// Method: on a server, through a proxy that cuts the connection at the first, second, … message of each
// transaction, until a transaction ends without a cut; in both directions.
func TestLostConnections(t *testing.T) {
	ctx := context.Background()
	d := loaded(ctx, t)
	p, through := d.proxied()
	for _, pipeline := range []bool{true, false} {
		s := d.open(ctx, through, Settings{Pipeline: pipeline})
		l := &lossy{database: d, proxy: p, s: s, in: NewInputs(d.gen, 5, InputOptions{})}
		for _, answers := range []bool{false, true} {
			for n := int64(0); ; n++ {
				passed := l.round(ctx, n, answers)
				if t.Failed() {
					t.Fatalf("pipeline %v, answers %v, cut at message %d", pipeline, answers, n)
				}
				if passed {
					break
				}
			}
		}
		if l.done == 0 || l.unknown == 0 {
			t.Errorf("of %d lost connections, %d had committed and %d were not known", l.cuts, l.done, l.unknown)
		}
	}
	d.check(ctx)
}

// proxied returns a proxy for the database's server, initially without cuts, and its URL.
func (d *database) proxied() (*proxy, string) {
	d.t.Helper()
	u, err := url.Parse(d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	p := newProxy(d.t, u.Host)
	u.Host = p.listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable") // avoids one more message to be cut
	u.RawQuery = query.Encode()
	p.cutAfter(-1, false)
	return p, u.String()
}

// TestLateCommit: a COMMIT that reaches the server after its session has lost the connection, and has not found the
// transaction's effects, is not repeated: an order is submitted once and its volume added once, and a
// Trade-Update makes its changes once. Method: on a server, through a proxy that delays the message with the
// COMMIT until the query for the effects was answered.
func TestLateCommit(t *testing.T) {
	ctx := context.Background()
	d := loaded(ctx, t)
	p, through := d.proxied()
	in := NewInputs(d.gen, 11, InputOptions{})
	doubts := 0 // attempts that were repeated
	for range 4 {
		s := d.open(ctx, through, Settings{Pipeline: true})
		// The first run of each prepares the statements, so that the third message of the second run contains the COMMIT.
		feed := func(held bool) {
			o := in.Order()
			o.RollBack, o.Terms = false, gen.Terms{Type: "TLB", Qty: 100, Limit: 25_00}
			order, sample := s.TradeOrder(ctx, o)
			settled(t, sample, mix.Committed)
			const volume = "SELECT lt_vol FROM last_trade WHERE lt_s_symb = $1"
			before := d.number(ctx, volume, order.Symbol)
			tape := FeedInput{Tickers: []Ticker{{Symbol: order.Symbol, Price: 25_00, Qty: 10}}}
			var fed FeedResult
			p.holdThird(held, func() { fed, sample = s.MarketFeed(ctx, tape) })
			if sample.Err != nil || len(fed.Triggered) != 1 || fed.Triggered[0].TradeID != order.TradeID {
				t.Errorf("order %d: %+v, %+v", order.TradeID, fed, sample)
			}
			if after := d.number(ctx, volume, order.Symbol); after != before+10 {
				t.Errorf("the volume rose from %d to %d, by 10", before, after)
			}
			doubts += len(sample.Aborts)
		}
		update := func(held bool) {
			l := in.lookup(2)
			found, sample := s.TradeLookup(ctx, l)
			for len(found.Trades) == 0 && !t.Failed() {
				l = in.lookup(2)
				found, sample = s.TradeLookup(ctx, l)
				settled(t, sample, mix.Committed)
			}
			if t.Failed() {
				return
			}
			const cash = "SELECT count(*) FROM settlement WHERE se_t_id = $1 AND se_cash_type IN ('Cash', 'Margin')"
			before := d.number(ctx, cash, found.Trades[0])
			p.holdThird(held, func() { _, sample = s.TradeUpdate(ctx, UpdateInput{LookupInput: l, Updates: 20}) })
			if after := d.number(ctx, cash, found.Trades[0]); sample.Err != nil || after != 1-before {
				t.Errorf("a settlement was %d, and is %d: %+v", before, after, sample)
			}
			doubts += len(sample.Aborts)
		}
		feed(false)
		feed(true)
		update(false) // on the new connection
		update(true)
	}
	if doubts == 0 {
		t.Error("no attempt was repeated")
	}
	d.check(ctx)
}

// holdThird runs a transaction of a session. The server receives the third of its messages only after the
// session has lost its connection and queried the outcome.
func (p *proxy) holdThird(hold bool, run func()) {
	if !hold {
		run()
		return
	}
	const looked = -4 // start-up, preparing the query, the query; its answer has arrived when the next message is sent
	l := &late{deliver: make(chan struct{}), end: make(chan struct{})}
	defer close(l.end)
	p.late.Store(l)
	p.cutAfter(2, false)
	ended := make(chan struct{})
	go func() {
		defer close(l.deliver)
		for p.left.Load() > looked {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	run()
	close(ended)
	<-l.deliver
	p.cutAfter(-1, false)
}

// lossy runs transactions through a proxy that cuts connections.
type lossy struct {
	*database
	proxy               *proxy
	s                   *Session
	in                  *Inputs
	cuts, done, unknown int
}

// round runs one of each transaction that writes, each cut at its n-th message. It reports whether all of them
// had fewer messages.
func (l *lossy) round(ctx context.Context, n int64, answers bool) bool {
	passed := true
	cut := func(run func() mix.Sample) mix.Sample {
		l.proxy.cutAfter(n, answers)
		sample := run()
		if l.proxy.left.Load() <= 0 {
			passed = false
			l.cuts++
		}
		l.proxy.cutAfter(-1, false)
		if sample.Outcome == mix.AlreadyDone {
			l.done++
		}
		return sample
	}
	o := l.in.Order()
	o.RollBack, o.Terms = false, gen.Terms{Type: "TLB", Qty: 100, Limit: 25_00}
	var order OrderResult
	l.sure(cut(func() (sample mix.Sample) { order, sample = l.s.TradeOrder(ctx, o); return sample }))
	if n := l.number(ctx, "SELECT count(*) FROM trade WHERE t_id = $1 AND t_st_id = 'PNDG'", order.TradeID); n != 1 || order.Symbol == "" {
		l.t.Errorf("the order %+v is there %d times", order, n)
	}
	var fed FeedResult
	before := l.number(ctx, "SELECT lt_vol FROM last_trade WHERE lt_s_symb = $1", order.Symbol)
	tape := FeedInput{Tickers: []Ticker{{Symbol: order.Symbol, Price: 25_00, Qty: 10}}}
	l.sure(cut(func() (sample mix.Sample) { fed, sample = l.s.MarketFeed(ctx, tape); return sample }))
	if len(fed.Triggered) != 1 || fed.Triggered[0].TradeID != order.TradeID {
		l.t.Errorf("order %d was not submitted once: %+v", order.TradeID, fed)
	}
	if after := l.number(ctx, "SELECT lt_vol FROM last_trade WHERE lt_s_symb = $1", order.Symbol); after != before+10 {
		l.t.Errorf("the volume rose from %d to %d, by 10", before, after)
	}
	sample := cut(func() (sample mix.Sample) { fed, sample = l.s.MarketFeed(ctx, tape); return sample })
	if sample.Outcome == mix.Unknown { // no order was submitted, so the database does not show
		l.unknown++
	} else {
		l.sure(sample)
		if after := l.number(ctx, "SELECT lt_vol FROM last_trade WHERE lt_s_symb = $1", order.Symbol); after != before+20 {
			l.t.Errorf("the volume rose from %d to %d, by 20", before, after)
		}
	}
	l.sure(cut(func() (sample mix.Sample) {
		_, sample = l.s.TradeResult(ctx, ResultInput{TradeID: order.TradeID, Price: 24_00})
		return sample
	}))
	if n := l.number(ctx, "SELECT count(*) FROM trade WHERE t_id = $1 AND t_st_id = 'CMPT'", order.TradeID); n != 1 {
		l.t.Errorf("trade %d is not complete", order.TradeID)
	}
	update := UpdateInput{Updates: 2}
	for _, update.Frame = range []int{1, 2, 3} {
		update.LookupInput = l.in.lookup(update.Frame)
		update.Trades = update.Trades[:min(2, len(update.Trades))]
		l.sure(cut(func() (sample mix.Sample) { _, sample = l.s.TradeUpdate(ctx, update); return sample }))
	}
	return passed
}

// sure fails the test unless a transaction is reported as committed.
func (l *lossy) sure(sample mix.Sample) {
	l.t.Helper()
	if sample.Err != nil || sample.Outcome != mix.Committed && sample.Outcome != mix.AlreadyDone {
		l.t.Errorf("%s ended as %d: %v", sample.Kind, sample.Outcome, sample.Err)
	}
}
