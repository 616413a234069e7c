package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// Rejected is a statement that a server rejected.
type Rejected struct {
	Name string // of the transaction
	SQL  string
	Err  error
}

// Probe runs every statement once, in transactions that are rolled back, and returns those that the server rejects. The
// error means that the server could not be queried. The tables must exist; their contents do not matter.
func Probe(ctx context.Context, url string) ([]Rejected, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var rejected []Rejected
	for _, p := range probes() {
		err := try(ctx, conn, p)
		var pg *pgconn.PgError
		switch {
		case err == nil || errors.As(err, &pg) && strings.HasPrefix(pg.Code, "23"): // a violated constraint means that the statement was understood
		case conn.IsClosed() || pg == nil && ctx.Err() != nil:
			return rejected, err
		default:
			rejected = append(rejected, Rejected{Name: p.name, SQL: p.sql, Err: err})
		}
	}
	return rejected, nil
}

// try runs one statement in a transaction, with its prerequisites, and rolls everything back.
func try(ctx context.Context, conn *pgx.Conn, p probe) (err error) {
	begin := "BEGIN"
	if strings.HasPrefix(p.sql, "BEGIN") {
		begin = p.sql
	}
	if _, err := conn.Exec(ctx, begin); err != nil {
		return err
	}
	defer func() {
		if _, undo := conn.Exec(ctx, "ROLLBACK"); err == nil {
			err = undo
		}
	}()
	if begin == p.sql {
		return nil
	}
	for _, q := range p.needs {
		if _, err := conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	rows, err := conn.Query(ctx, p.sql, p.args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// probe is a statement with values for its parameters.
type probe struct {
	name  string
	sql   string
	args  []any
	needs []string
}

// probes returns every statement that the sessions send.
func probes() []probe {
	var all []probe
	add := func(name, sql string, args ...any) { all = append(all, probe{name: name, sql: sql, args: args}) }
	const id, symbol = int64(1) << 60, "NONE"
	now, ids := time.Date(2005, 1, 3, 9, 0, 0, 0, time.UTC), []int64{id, id + 1}
	for _, begin := range [...]string{beginCommitted, beginCommittedRead, beginRepeatable, beginRepeatableRead, beginSerial, beginSerialRead} {
		add("BEGIN", begin)
	}
	probeOrder(add, id, symbol, now)
	probeResult(add, id, symbol, now)
	add("Market-Feed", sqlFeedPrice, symbol, "25.00", 100, now)
	add("Market-Feed", sqlFeedRequests, symbol, "25.00")
	add("Market-Feed", sqlFeedSubmit, id, now)
	add("Market-Feed", sqlFeedTake, id)
	add("Market-Feed", sqlFeedHistory, id, now)
	add("Market-Feed", sqlFeedLookOrder, id, now)
	add("Market-Feed", sqlFeedLookAtPrice, symbol, now)
	add("Trade-Status", sqlStatusTrades, id)
	add("Trade-Status", sqlStatusCustomer, id)
	add("Customer-Position", sqlPositionByTaxID, symbol)
	add("Customer-Position", sqlPositionCustomer, id)
	add("Customer-Position", sqlPositionAccounts, id)
	add("Customer-Position", sqlPositionHistory, id)
	add("Broker-Volume", sqlVolume, "Energy", []string{"a", "b"})
	probeMarket(add, id, symbol, now)
	probeLookup(add, id, symbol, now, ids)
	probeUpkeep(add, id, symbol, now)
	for _, sql := range [...]string{sqlOrderID, sqlResultBrokerDelta, sqlBrokerDeltas, sqlBrokerTaken} {
		p := probe{name: "--trade-ids=sequence, --broker-writes=side-table", sql: sql, needs: schema.CreateForRun(id)}
		switch sql {
		case sqlResultBrokerDelta:
			p.args = []any{id, id, "1.00"}
		case sqlBrokerDeltas:
			p.args = []any{id}
		case sqlBrokerTaken:
			p.args = []any{id, ids}
		}
		all = append(all, p)
	}
	return all
}

type adder func(name, sql string, args ...any)

func probeOrder(add adder, id int64, symbol string, now time.Time) {
	const name = "Trade-Order"
	add(name, sqlOrderAccount, id)
	add(name, sqlOrderPermission, id, symbol, symbol, symbol)
	add(name, sqlOrderBySymbol, symbol)
	add(name, sqlOrderByCompany, symbol, "COMMON")
	add(name, sqlOrderType, "TMB")
	add(name, sqlSummary, id, symbol)
	add(name, sqlLotsFIFO, id, symbol)
	add(name, sqlLotsLIFO, id, symbol)
	add(name, sqlTaxRates, id)
	add(name, sqlOrderCharges, 1, "TMB", "NYSE", 100)
	add(name, sqlBalance, id)
	add(name, sqlOrderAssets, id)
	add(name, sqlOrderTrade, id, now, "SBMT", "TMB", true, symbol, 100, "25.00", id, "A B", "1.00", "1.00", false)
	add(name, sqlOrderRequest, id, "TLB", symbol, 100, "25.00", id)
	add(name, sqlHistory, id, now, "SBMT")
	add(name, sqlOrderExists, id)
}

func probeResult(add adder, id int64, symbol string, now time.Time) {
	const name = "Trade-Result"
	add(name, sqlResultTrade, id)
	add(name, sqlResultAccount, id)
	add(name, sqlResultAccountLock, id)
	add(name, sqlSummaryInsert, id, symbol, 100)
	add(name, sqlSummaryUpdate, id, symbol, 100)
	add(name, sqlSummaryDelete, id, symbol)
	add(name, sqlLotHistory, id, id, 0, 100)
	add(name, sqlLotUpdate, id, 100)
	add(name, sqlLotDelete, id)
	add(name, sqlLotInsert, id, id, symbol, now, "25.00", 100)
	add(name, sqlResultTax, id, "1.00")
	add(name, sqlResultRate, symbol, id, "TMB", 100)
	add(name, sqlResultComplete, id, "1.00", now, "25.00")
	add(name, sqlResultCompleteTax, id, "1.00", now, "25.00", "1.00")
	add(name, sqlResultBroker, id, "1.00")
	add(name, sqlResultSettlement, id, "Margin", now, "1.00")
	add(name, sqlResultBalance, id, "-1.00")
	add(name, sqlResultCash, id, now, "1.00", "text")
}

func probeMarket(add adder, id int64, symbol string, now time.Time) {
	add("Market-Watch", sqlWatchList, id, now)
	add("Market-Watch", sqlWatchAccount, id, now)
	add("Market-Watch", sqlWatchIndustry, symbol, 1, 5000, now)
	add("Market-Watch", sqlWatchSymbols, id)
	add("Market-Watch", sqlWatchAccountSymbols, id)
	add("Market-Watch", sqlWatchIndustrySymbols, symbol, 1, 5000)
	add("Market-Watch", sqlWatchPrice, symbol)
	add("Market-Watch", sqlWatchShares, symbol)
	add("Market-Watch", sqlWatchClose, symbol, now)
	const name = "Security-Detail"
	add(name, sqlDetail, symbol)
	add(name, sqlDetailCompetitors, id)
	add(name, sqlDetailFinancial, id)
	add(name, sqlDetailDays, symbol, now, 5)
	add(name, sqlDetailLast, symbol)
	add(name, sqlDetailHeadlines, id)
	add(name, sqlDetailNews, id)
}

func probeLookup(add adder, id int64, symbol string, now time.Time, ids []int64) {
	const name = "Trade-Lookup"
	for _, sql := range [...]string{sqlLookupTrades, sqlLookupSettles, sqlLookupCashes, sqlLookupHistories} {
		add(name, sql, ids)
	}
	for _, sql := range [...]string{sqlLookupTrade, sqlLookupSettle, sqlLookupCash, sqlLookupHistory, sqlLookupLots} {
		add(name, sql, id)
	}
	add(name, sqlLookupByAccount, id, now, now)
	add(name, sqlLookupBySymbol, symbol, now, now)
	add(name, sqlLookupFirst, id, now)
	const update = "Trade-Update"
	add(update, sqlUpdateName, id)
	add(update, sqlUpdateSettlement, id, "Cash")
	add(update, sqlUpdateBySymbol, symbol, now, now)
	add(update, sqlUpdateCash, id, "text")
	add(update, sqlUpdateLookName, id, "A X B")
	add(update, sqlUpdateLookSettle, id, "Cash")
	add(update, sqlUpdateLookCash, id, "text")
}

func probeUpkeep(add adder, id int64, symbol string, now time.Time) {
	const name = "Data-Maintenance"
	add(name, sqlKeepPermission, id)
	add(name, sqlKeepPermissionSet, id, symbol, "1111")
	add(name, sqlKeepAddressOf, id)
	add(name, sqlKeepAddressOfCo, id)
	add(name, sqlKeepAddressSet, id, "Apt. 1000")
	add(name, sqlKeepCompany, id)
	add(name, sqlKeepCompanySet, id, "A+")
	add(name, sqlKeepCustomer, id)
	add(name, sqlKeepCustomerSet, id, "a@mail.example")
	add(name, sqlKeepTax, id)
	add(name, sqlKeepTaxSet, id, "US1", "US2")
	add(name, sqlKeepDaily, symbol, 3, -1)
	add(name, sqlKeepExchange)
	add(name, sqlKeepExchangeSet, "NYSE", "text")
	add(name, sqlKeepFinancial, id)
	add(name, sqlKeepFinancialSet, id, 1)
	add(name, sqlKeepNews, id)
	add(name, sqlKeepSecurity, symbol)
	add(name, sqlKeepRate, "US1")
	add(name, sqlKeepRateSet, "US1", "US1 tax")
	add(name, sqlKeepWatched, id)
	add(name, sqlKeepUnwatched, id, symbol)
	add(name, sqlKeepWatchSet, id, symbol, symbol)
	const clean = "Trade-Cleanup"
	add(clean, sqlCleanPending)
	add(clean, sqlCleanSubmitted, id)
	add(clean, sqlCleanTrade, id, now)
	add(clean, sqlCleanHistory, id, now)
	add(clean, sqlCleanCancelled, id, now)
	add("Broker-Aggregation", sqlBrokerAdd, id, "1.00", 1)
}
