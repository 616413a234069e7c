package txn

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Trade-Lookup and Trade-Update.
const (
	lookupTrade = `SELECT t.t_id, t.t_bid_price, t.t_exec_name, t.t_is_cash, tt.tt_is_mrkt, t.t_trade_price
FROM trade t JOIN trade_type tt ON tt.tt_id = t.t_tt_id WHERE t.t_id = `
	lookupSettlement   = `SELECT se_t_id, se_amt, se_cash_due_date, se_cash_type FROM settlement WHERE se_t_id = `
	lookupCash         = `SELECT ct_t_id, ct_amt, ct_dts, ct_name FROM cash_transaction WHERE ct_t_id = `
	lookupHistory      = `SELECT th_t_id, th_dts, th_st_id FROM trade_history WHERE th_t_id = `
	sqlLookupTrades    = lookupTrade + `ANY($1)`
	sqlLookupTrade     = lookupTrade + `$1`
	sqlLookupSettles   = lookupSettlement + `ANY($1)`
	sqlLookupSettle    = lookupSettlement + `$1`
	sqlLookupCashes    = lookupCash + `ANY($1)`
	sqlLookupCash      = lookupCash + `$1`
	sqlLookupHistories = lookupHistory + `ANY($1) ORDER BY th_t_id, th_dts`
	sqlLookupHistory   = lookupHistory + `$1 ORDER BY th_dts`
	sqlLookupByAccount = `SELECT t_id, t_bid_price, t_exec_name, t_is_cash, t_trade_price FROM trade
WHERE t_ca_id = $1 AND t_dts >= $2 AND t_dts <= $3 ORDER BY t_dts ASC, t_id ASC LIMIT 20`
	sqlLookupBySymbol = `SELECT t_id, t_ca_id, t_exec_name, t_is_cash, t_trade_price, t_qty, t_dts, t_tt_id FROM trade
WHERE t_s_symb = $1 AND t_dts >= $2 AND t_dts <= $3 ORDER BY t_dts ASC, t_id ASC LIMIT 20`
	sqlLookupFirst = `SELECT t_id FROM trade WHERE t_ca_id = $1 AND t_dts >= $2 ORDER BY t_dts ASC, t_id ASC LIMIT 1`
	sqlLookupLots  = `SELECT hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty FROM holding_history
WHERE hh_h_t_id IN (SELECT hh_h_t_id FROM holding_history WHERE hh_t_id = $1) LIMIT 20`

	sqlUpdateName = `UPDATE trade SET t_exec_name = CASE WHEN t_exec_name LIKE '% X %' THEN replace(t_exec_name, ' X ', ' ')
ELSE replace(t_exec_name, ' ', ' X ') END WHERE t_id = $1`
	sqlUpdateSettlement = `UPDATE settlement SET se_cash_type = $2 WHERE se_t_id = $1`
	sqlUpdateBySymbol   = `SELECT t.t_id, t.t_ca_id, t.t_exec_name, t.t_is_cash, t.t_trade_price, t.t_qty, s.s_name, t.t_dts, t.t_tt_id, tt.tt_name
FROM trade t JOIN trade_type tt ON tt.tt_id = t.t_tt_id JOIN security s ON s.s_symb = t.t_s_symb
WHERE t.t_s_symb = $1 AND t.t_dts >= $2 AND t.t_dts <= $3 ORDER BY t.t_dts ASC, t.t_id ASC LIMIT 20`
	sqlUpdateCash       = `UPDATE cash_transaction SET ct_name = $2 WHERE ct_t_id = $1`
	sqlUpdateLookName   = `SELECT 1 FROM trade WHERE t_id = $1 AND t_exec_name = $2`
	sqlUpdateLookSettle = `SELECT 1 FROM settlement WHERE se_t_id = $1 AND se_cash_type = $2`
	sqlUpdateLookCash   = `SELECT 1 FROM cash_transaction WHERE ct_t_id = $1 AND ct_name = $2`
)

// found is a trade that a lookup has found, with its details.
type found struct {
	id         int64
	cash       bool
	name       string // of the person who traded
	settlement string // se_cash_type
	text       string // ct_name
}

// lookup is one attempt at a Trade-Lookup or Trade-Update.
type lookup struct {
	*Session
	in     LookupInput
	trades []found
}

// TradeLookup reads trades of the past.
func (s *Session) TradeLookup(ctx context.Context, in LookupInput) (LookupResult, mix.Sample) {
	var out LookupResult
	sample := s.perform(ctx, work{kind: mix.TradeLookup, try: func(ctx context.Context) error {
		l := lookup{Session: s, in: in}
		s.frame.begin(s.beginRead())
		if in.Frame == 4 {
			var err error
			out, err = l.lots(ctx)
			return err
		}
		if err := l.find(ctx, sqlLookupBySymbol); err != nil {
			return err
		}
		seen := l.details()
		if err := s.finishRead(ctx); err != nil {
			return err
		}
		out = LookupResult{Trades: l.ids()}
		return l.check(seen)
	}})
	return out, sample
}

// find reads the trades of frames 1 to 3, without their details.
func (l *lookup) find(ctx context.Context, bySymbol string) error {
	f, in := &l.frame, l.in
	var t found
	add := func() { l.trades = append(l.trades, t) }
	switch in.Frame {
	case 1:
		l.names(add, &t)
	case 2:
		f.each(sqlLookupByAccount, []any{in.Account, in.From, in.To}, []any{&t.id, nil, &t.name, &t.cash, nil}, add)
	default:
		into := []any{&t.id, nil, &t.name, &t.cash, nil, nil, nil, nil, nil, nil}
		if bySymbol == sqlLookupBySymbol {
			into = into[:8]
		}
		f.each(bySymbol, []any{in.Symbol, in.From, in.To}, into, add)
	}
	if err := f.send(ctx); err != nil {
		return err
	}
	if in.Frame == 1 && len(l.trades) != len(in.Trades) {
		return unexpected("of the trades %v there are %d", in.Trades, len(l.trades))
	}
	return nil
}

// names adds the queries of frame 1.
func (l *lookup) names(add func(), t *found) {
	into := []any{&t.id, nil, &t.name, &t.cash, nil, nil}
	if !l.set.LookupLoop {
		l.frame.each(sqlLookupTrades, []any{l.in.Trades}, into, add)
		return
	}
	for _, id := range l.in.Trades {
		l.frame.each(sqlLookupTrade, []any{id}, into, add)
	}
}

func (l *lookup) ids() []int64 {
	ids := make([]int64, len(l.trades))
	for i, t := range l.trades {
		ids[i] = t.id
	}
	return ids
}

// details are the numbers of detail rows of the trades. They are set when the frame is sent.
type details struct{ settlements, cash, history int }

// details adds the queries for settlement, cash transaction and history of the trades found.
func (l *lookup) details() *details {
	seen := &details{}
	if len(l.trades) == 0 {
		return seen
	}
	ids := l.ids()
	var cash []int64
	for _, t := range l.trades {
		if t.cash {
			cash = append(cash, t.id)
		}
	}
	var id int64
	var text string
	into := []any{&id, nil, nil, &text}
	settled := func() { seen.settlements++; l.trade(id).settlement = text }
	paid := func() { seen.cash++; l.trade(id).text = text }
	past := func() { seen.history++ }
	f := &l.frame
	if !l.set.LookupLoop {
		f.each(sqlLookupSettles, []any{ids}, into, settled)
		if len(cash) > 0 {
			f.each(sqlLookupCashes, []any{cash}, into, paid)
		}
		f.each(sqlLookupHistories, []any{ids}, []any{nil, nil, nil}, past)
		return seen
	}
	for _, t := range l.trades {
		f.each(sqlLookupSettle, []any{t.id}, into, settled)
		if t.cash {
			f.each(sqlLookupCash, []any{t.id}, into, paid)
		}
		f.each(sqlLookupHistory, []any{t.id}, []any{nil, nil, nil}, past)
	}
	return seen
}

// trade returns the found trade with an id, or a dummy if the server's answer contains an unknown id.
func (l *lookup) trade(id int64) *found {
	for i := range l.trades {
		if l.trades[i].id == id {
			return &l.trades[i]
		}
	}
	return &found{}
}

// check compares the details with the trades: the trades of the load are all complete.
func (l *lookup) check(seen *details) error {
	var cash int
	for _, t := range l.trades {
		if t.cash {
			cash++
		}
	}
	n := len(l.trades)
	if seen.settlements != n || seen.cash != cash || seen.history < 2*n || seen.history > 3*n {
		return unexpected("%d trades, %d of them in cash, have the details %+v", n, cash, *seen)
	}
	return nil
}

// lots is frame 4: the history of every lot that an account's first trade from a time on has changed.
func (l *lookup) lots(ctx context.Context) (LookupResult, error) {
	var out LookupResult
	f := &l.frame
	var id int64
	f.each(sqlLookupFirst, []any{l.in.Account, l.in.From}, []any{&id}, func() { out.Trades = append(out.Trades, id) })
	if err := f.send(ctx); err != nil {
		return out, err
	}
	if len(out.Trades) > 0 {
		f.skim(&out.Rows, sqlLookupLots, id)
	}
	return out, l.finishRead(ctx)
}

// TradeUpdate changes trades of the past: the name of the trader, the type of settlement, or the description of the
// cash transaction.
func (s *Session) TradeUpdate(ctx context.Context, in UpdateInput) (UpdateResult, mix.Sample) {
	var out UpdateResult
	var witness change
	var doubted []change // of attempts that may still commit
	sample := s.perform(ctx, work{kind: mix.TradeUpdate,
		try: func(ctx context.Context) error {
			s.frame.begin(s.beginOrder())
			if written, err := s.anyWritten(ctx, doubted); written || err != nil {
				return cmp.Or(err, errAlreadyDone)
			}
			out, witness = UpdateResult{}, change{}
			l := lookup{Session: s, in: in.LookupInput}
			if in.Frame == 1 {
				return l.rename(ctx, in.Updates, &out, &witness)
			}
			return l.reword(ctx, in.Updates, &out, &witness)
		},
		look: func(ctx context.Context) (bool, error) {
			if witness.sql == "" {
				return true, nil // nothing was changed
			}
			committed, err := s.exists(ctx, witness.sql, witness.id, witness.value)
			if err == nil && !committed {
				doubted = append(doubted, witness)
			}
			return committed, err
		},
	})
	return out, sample
}

// anyWritten searches, in the current transaction, for values written by attempts whose COMMIT was not
// answered. If there are none, that is final: the attempts wrote the rows that this transaction is about to write.
func (s *Session) anyWritten(ctx context.Context, doubted []change) (bool, error) {
	for _, c := range doubted {
		var found bool
		s.frame.maybe(&found, c.sql, []any{c.id, c.value}, nil)
		if err := s.frame.send(ctx); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// change is a value that a transaction has written, and the query that finds it.
type change struct {
	sql   string
	id    int64
	value string
}

// rename is frame 1: it changes the names of the traders, and then reads the trades.
func (l *lookup) rename(ctx context.Context, updates int, out *UpdateResult, witness *change) error {
	for _, id := range l.in.Trades[:min(updates, len(l.in.Trades))] {
		l.frame.change(sqlUpdateName, id)
		out.Updated++
	}
	if err := l.find(ctx, ""); err != nil {
		return err
	}
	out.Trades = l.ids()
	if out.Updated > 0 {
		*witness = change{sqlUpdateLookName, l.in.Trades[0], l.trade(l.in.Trades[0]).name}
	}
	return l.commitSeen(ctx)
}

// commitSeen reads the details of the trades, and commits.
func (l *lookup) commitSeen(ctx context.Context) error {
	seen := l.details()
	l.frame.commit()
	if err := l.frame.send(ctx); err != nil {
		return err
	}
	return l.check(seen)
}

// reword is frames 2 and 3: it reads trades and their details, and changes the settlements (2) or the text of
// the cash transactions (3).
func (l *lookup) reword(ctx context.Context, updates int, out *UpdateResult, witness *change) error {
	if err := l.find(ctx, sqlUpdateBySymbol); err != nil {
		return err
	}
	out.Trades = l.ids()
	seen := l.details()
	if err := l.frame.send(ctx); err != nil {
		return err
	}
	if err := l.check(seen); err != nil {
		return err
	}
	ordered := slices.SortedFunc(slices.Values(l.trades), func(a, b found) int { return cmp.Compare(a.id, b.id) })
	for _, t := range ordered {
		if out.Updated == updates || l.in.Frame == 3 && !t.cash {
			continue
		}
		out.Updated++
		written := change{sqlUpdateLookSettle, t.id, otherCashType(t.settlement)}
		if l.in.Frame == 3 {
			written = change{sqlUpdateLookCash, t.id, otherText(t.text)}
			l.frame.change(sqlUpdateCash, t.id, written.value)
		} else {
			l.frame.change(sqlUpdateSettlement, t.id, written.value)
		}
		if witness.sql == "" {
			*witness = written
		}
	}
	return l.commitSeen(ctx)
}

// otherCashType returns the other name of a type of settlement.
func otherCashType(name string) string {
	switch name {
	case "Cash Account":
		return "Cash"
	case "Cash":
		return "Cash Account"
	case "Margin":
		return "Margin Account"
	}
	return "Margin"
}

// otherText toggles the capital letter of "shares" in a description.
func otherText(text string) string {
	if strings.Contains(text, " shares of ") {
		return strings.Replace(text, " shares of ", " Shares of ", 1)
	}
	return strings.Replace(text, " Shares of ", " shares of ", 1)
}
