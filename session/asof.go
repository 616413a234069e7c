package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// A query, or a transaction block, with AS OF SYSTEM TIME reads what was committed up to a time, under the schema of that
// time. The oracle's clock decides what the present is:
//
//	'-10s'                          so long before now; an interval
//	'2024-01-01 12:00', now() - …   a point in time, to its millisecond, all of which is included
//	451234567890123456              a timestamp of the oracle, as percodb's system views show them
//
// A time at or below the safe point, or in the future, is 22023.

const asOfClause = "AS OF SYSTEM TIME"

// asOfMaxWait is how far ahead of the oracle a time of another clock may be: the statement waits for it. A later time is refused.
const asOfMaxWait = time.Second

// timeTravel begins transactions of statements AS OF SYSTEM TIME.
type timeTravel struct {
	tx         *transaction
	oracle     tso.Oracle
	collection *collection
	env        *builtin.Env
	settings   *settings.Settings
	meter      *sql.Meter
}

// begin is transaction.begin for a query AS OF SYSTEM TIME.
func (v *timeTravel) begin(ctx context.Context, x ast.Expr) error {
	if v.tx.phase.shared() || v.tx.queried {
		return v.beginShared(ctx, x)
	}
	if err := v.set(ctx, x); err != nil {
		return err
	}
	return v.tx.begin(ctx)
}

// beginShared is begin for a query that shares its transaction with others; all of them read at the same time.
func (v *timeTravel) beginShared(ctx context.Context, x ast.Expr) error {
	if v.tx.asOf == 0 {
		return pgerror.New(pgerror.ActiveSQLTransaction, asOfClause+" of a statement that shares its transaction with others").
			WithHint("Give it to the transaction: BEGIN " + asOfClause + " …").At(int(x.Position()))
	}
	ts, err := v.timestamp(ctx, x)
	if err == nil && ts != v.tx.asOf {
		err = pgerror.New(pgerror.InvalidParameterValue, asOfClause+" is not that of the transaction").
			WithHint("In BEGIN " + asOfClause + " … the time holds for all statements; leave it out here.").At(int(x.Position()))
	}
	if err != nil {
		return err
	}
	return v.tx.begin(ctx)
}

// beginText is begin for a statement whose plan is cached: its time is in the text.
func (v *timeTravel) beginText(ctx context.Context, st *sql.Statement) error {
	tree, err := sql.Parse(st, v.meter)
	if err != nil {
		return err
	}
	q, ok := tree.(*ast.Query)
	if !ok || q.AsOf() == nil {
		return fmt.Errorf("the plan reads at a time, the text is a %T without", tree)
	}
	return v.begin(ctx, q.AsOf())
}

// beginFor is transaction.begin for a plan that is about to run, or to be checked. latest: it may read without a snapshot.
func (v *timeTravel) beginFor(ctx context.Context, plan *planner.Plan, st *sql.Statement, latest bool) error {
	if plan.AsOf {
		return v.beginText(ctx, st)
	}
	if latest && v.tx.beginLatest(plan) {
		return nil
	}
	return v.tx.begin(ctx)
}

// reset clears the read timestamp of the previous statement AS OF SYSTEM TIME for another statement of the same pipeline.
// If rows have been read at it, the two cannot share a transaction.
func (v *timeTravel) reset() error {
	t := v.tx
	if t.asOf == 0 || t.phase.explicit() {
		return nil
	}
	if t.queried {
		return pgerror.New(pgerror.ActiveSQLTransaction, "a statement cannot share its transaction with one that was "+asOfClause).
			WithHint("Send a Sync between them, or give the time to BEGIN.")
	}
	t.forgetUnused()
	t.asOf, t.fixed = 0, false
	return nil
}

// set makes the transaction, in which nothing has run yet, read at a time.
func (v *timeTravel) set(ctx context.Context, x ast.Expr) error {
	ts, err := v.timestamp(ctx, x)
	if err != nil {
		return err
	}
	v.tx.forgetUnused()
	v.tx.fixModes()
	v.tx.asOf, v.tx.modes.ReadOnly = ts, true
	return nil
}

// setMode is AS OF SYSTEM TIME of BEGIN and SET TRANSACTION.
func (v *timeTravel) setMode(ctx context.Context, m *ast.TransactionModes) error {
	at := int(m.AsOf.Position())
	switch {
	case m.ReadOnly != nil && !*m.ReadOnly:
		return pgerror.New(pgerror.SyntaxError, "a transaction "+asOfClause+" is read-only").At(at)
	case v.tx.queried:
		return pgerror.New(pgerror.ActiveSQLTransaction, asOfClause+" must be set before any query").At(at)
	case len(v.tx.savepoints) > 0:
		return pgerror.New(pgerror.ActiveSQLTransaction, asOfClause+" must not be set in a subtransaction").At(at)
	}
	return v.set(ctx, m.AsOf)
}

// timestamp evaluates the expression of AS OF SYSTEM TIME.
func (v *timeTravel) timestamp(ctx context.Context, x ast.Expr) (tso.Timestamp, error) {
	now, err := v.oracle.Now(ctx)
	if err != nil {
		return 0, err
	}
	ts, err := v.eval(ctx, x, now)
	if err != nil {
		return 0, err
	}
	at, format := int(x.Position()), &v.settings.Format
	if status := v.collection.status(); ts <= status.SafePoint {
		e := belowSafePoint(ts, status.SafePoint, format)
		return 0, e.WithHint(fmt.Sprintf("History is kept for %v: see ALTER SYSTEM SET percodb.gc_life.", status.Life)).At(at)
	}
	if time.Duration(ts.Physical()-now.Physical())*time.Millisecond > asOfMaxWait {
		return 0, pgerror.New(pgerror.InvalidParameterValue, asOfClause+" %s lies in the future", timeText(ts, format)).At(at)
	}
	for ts > now { // Other clocks run a little ahead of the oracle's.
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if now, err = v.oracle.Now(ctx); err != nil {
			return 0, err
		}
	}
	return ts, nil
}

// eval turns the expression into a timestamp, which need not be one that can be read at.
func (v *timeTravel) eval(ctx context.Context, x ast.Expr, now tso.Timestamp) (tso.Timestamp, error) {
	at := int(x.Position())
	if lit, ok := x.(*ast.Literal); ok && lit.Kind == ast.LiteralString {
		return parseTime(lit.Value, now, v.env.StmtTime, &v.settings.Format, at)
	}
	if err := v.tx.begin(ctx); err != nil { // Names of functions are looked up in some schema.
		return 0, err
	}
	bound, err := planner.BindExpr(ctx, x, nil, v.tx.resolver, v.env, types.Type{}, asOfClause)
	if err != nil {
		return 0, err
	}
	kind := bound.Type().OID
	switch kind {
	case types.OIDInterval, types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDTimestamptz:
	default:
		if bound, err = planner.BindExpr(ctx, x, nil, v.tx.resolver, v.env, types.TTimestamptz, asOfClause); err != nil {
			return 0, err
		}
	}
	d, err := bound.Eval(&expr.Context{Ctx: ctx, Env: v.env}, nil)
	switch {
	case err != nil:
		return 0, err
	case d.IsNull():
		return 0, pgerror.New(pgerror.InvalidParameterValue, asOfClause+" is null").At(at)
	case kind == types.OIDInterval:
		return before(now, d.Interval(), at)
	case kind == types.OIDInt2 || kind == types.OIDInt4 || kind == types.OIDInt8:
		if d.Int() <= 0 {
			return 0, pgerror.New(pgerror.InvalidParameterValue, asOfClause+" is not a timestamp of the oracle").At(at)
		}
		return tso.Timestamp(d.Int()), nil
	}
	return wallTime(d.Int(), now, v.env.StmtTime, at)
}

// parseTime reads a string: an interval if it has a sign, else a point in time.
func parseTime(text string, now tso.Timestamp, statement int64, format *types.Format, at int) (tso.Timestamp, error) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		d, err := types.ParseText(types.TInterval, text, format)
		if err != nil {
			return 0, positioned(err, at)
		}
		return before(now, d.Interval(), at)
	}
	d, err := types.ParseText(types.TTimestamptz, text, format)
	if err != nil {
		var pg *pgerror.Error
		if errors.As(err, &pg) {
			err = pg.WithHint("Give a point in time, or a negative interval such as '-10s'.")
		}
		return 0, positioned(err, at)
	}
	return wallTime(d.Int(), now, statement, at)
}

// wallTime turns a time of the clock into a timestamp. The oracle may be ahead of the clock, after a crash or when the clock
// was set back: the time of this statement, such as now(), includes whatever was acknowledged before the statement, and now
// is above all of that.
func wallTime(micros int64, now tso.Timestamp, statement int64, at int) (tso.Timestamp, error) {
	ts, err := wholeMillisecond(micros, at)
	if err == nil && micros >= statement && ts < now {
		ts = now
	}
	return ts, err
}

func positioned(err error, at int) error {
	var pg *pgerror.Error
	if errors.As(err, &pg) {
		return pg.At(at)
	}
	return err
}

// before returns the timestamp that lies an interval, which must be negative, from now.
func before(now tso.Timestamp, by types.Interval, at int) (tso.Timestamp, error) {
	wall := time.UnixMilli(now.Physical()).UTC()
	then := wall.AddDate(0, int(by.Months), int(by.Days)).Add(time.Duration(by.Micros) * time.Microsecond)
	if !then.Before(wall) {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "the interval of "+asOfClause+" must be negative").
			WithHint("'-10s' is ten seconds ago.").At(at)
	}
	return wholeMillisecond(builtin.UnixToTimestamp(then), at)
}

// unixOfEpoch is the epoch of SQL's timestamps, 2000-01-01, in milliseconds of Unix time.
const unixOfEpoch = 946_684_800_000

// wholeMillisecond returns the last timestamp that the oracle gives within a point in time's millisecond.
func wholeMillisecond(micros int64, at int) (tso.Timestamp, error) {
	ms := micros/1000 + unixOfEpoch
	if micros < 0 && micros%1000 != 0 {
		ms-- // towards the past, on both sides of the epoch
	}
	if !types.TimestampFinite(micros) || ms <= 0 || ms >= 1<<45 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, asOfClause+" is out of range").At(at)
	}
	return tso.FromPhysical(ms+1) - tso.Tick, nil
}

// timeText prints the time of a timestamp of the oracle.
func timeText(ts tso.Timestamp, format *types.Format) string {
	micros := builtin.UnixToTimestamp(time.UnixMilli(ts.Physical()))
	return format.Text(types.Int(micros), types.TTimestamptz)
}

func belowSafePoint(ts, safePoint tso.Timestamp, format *types.Format) *pgerror.Error {
	return pgerror.New(pgerror.InvalidParameterValue, asOfClause+" %s lies before the safe point %s", timeText(ts, format), timeText(safePoint, format)).
		WithDetail("What was before the safe point is no longer kept.")
}
