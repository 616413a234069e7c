package txn

import (
	"context"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

// Session is one connection to a server, made anew when it is lost. It is not for concurrent use.
type Session struct {
	url string
	set *Settings
	gen *gen.Generator
}

// Open connects to a server that holds the database of a generator. Close the session after use.
func Open(ctx context.Context, url string, set *Settings, g *gen.Generator) (*Session, error) {
	return &Session{url: url, set: set, gen: g}, set.Validate()
}

// Close ends the connection.
func (s *Session) Close(ctx context.Context) {}

// TradeOrder enters an order.
func (s *Session) TradeOrder(ctx context.Context, in OrderInput) (OrderResult, mix.Sample) {
	panic("soon")
}

// TradeResult completes an order that was executed.
func (s *Session) TradeResult(ctx context.Context, in ResultInput) (ResultOutput, mix.Sample) {
	panic("soon")
}

// MarketFeed writes prices, and submits the limit orders they let go.
func (s *Session) MarketFeed(ctx context.Context, in FeedInput) (FeedResult, mix.Sample) {
	panic("soon")
}

// TradeStatus lists the latest trades of an account.
func (s *Session) TradeStatus(ctx context.Context, in StatusInput) (StatusResult, mix.Sample) {
	panic("soon")
}

// CustomerPosition lists what a customer owns.
func (s *Session) CustomerPosition(ctx context.Context, in PositionInput) (PositionResult, mix.Sample) {
	panic("soon")
}

// BrokerVolume adds up the open orders of brokers in a sector.
func (s *Session) BrokerVolume(ctx context.Context, in VolumeInput) (VolumeResult, mix.Sample) {
	panic("soon")
}

// MarketWatch compares what a list of securities is worth with a day in the past.
func (s *Session) MarketWatch(ctx context.Context, in WatchInput) (WatchResult, mix.Sample) {
	panic("soon")
}

// SecurityDetail reads everything about a security.
func (s *Session) SecurityDetail(ctx context.Context, in DetailInput) (DetailResult, mix.Sample) {
	panic("soon")
}

// TradeLookup reads trades of the past.
func (s *Session) TradeLookup(ctx context.Context, in LookupInput) (LookupResult, mix.Sample) {
	panic("soon")
}

// TradeUpdate changes trades of the past.
func (s *Session) TradeUpdate(ctx context.Context, in UpdateInput) (UpdateResult, mix.Sample) {
	panic("soon")
}

// DataMaintenance changes a table that no other transaction does.
func (s *Session) DataMaintenance(ctx context.Context, in MaintenanceInput) (MaintenanceResult, mix.Sample) {
	panic("soon")
}

// CleanUp cancels what an earlier run has left open: pending orders, and submitted trades with ids from first
// on. It runs in transactions of up to 200 trades each.
func (s *Session) CleanUp(ctx context.Context, first int64) (CleanupResult, mix.Sample) {
	panic("soon")
}

// AggregateBroker adds up to 500 rows of broker_delta to their broker. It returns how many there were.
func (s *Session) AggregateBroker(ctx context.Context, broker int64) (int64, mix.Sample) {
	panic("soon")
}

// Customer draws and runs a transaction of the kinds that customers ask for, Trade-Order aside.
func (s *Session) Customer(ctx context.Context, kind mix.Kind, in *Inputs) mix.Sample { panic("soon") }

// Rejected is a statement that a server did not take.
type Rejected struct {
	Name string // of the transaction and the statement: "TR5 trade"
	SQL  string
	Err  error
}

// Probe runs every statement once, in transactions that are rolled back, and returns those that the server
// rejects. The error says that it could not be asked.
func Probe(ctx context.Context, url string) ([]Rejected, error) { panic("soon") }
