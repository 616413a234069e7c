package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// AS OF SYSTEM TIME has a query, or a transaction block, read what was committed up to a time, under the
// schema of that time. The time is judged by the oracle's clock:
//
//	'-10s'                          so long before now; an interval
//	'2024-01-01 12:00', now() - …   a point in time, to its millisecond, all of which is included
//	451234567890123456              a timestamp of the oracle, as percodb's system views show them
//
// A time at or below the safe point, or in the future, is 22023.

const asOfClause = "AS OF SYSTEM TIME"

// asOfPatience is how far ahead of the oracle a time may be, that comes from another clock, to be
// waited for rather than refused.
const asOfPatience = time.Second

// travel is begin for a query AS OF SYSTEM TIME.
func (s *Session) travel(ctx context.Context, x ast.Expr) error {
	if s.inBlock() || s.tx.queried {
		return s.travelAlong(ctx, x)
	}
	if err := s.setAsOf(ctx, x); err != nil {
		return err
	}
	return s.begin(ctx)
}

// travelAlong is travel for a query that shares its transaction with others, which has one time.
func (s *Session) travelAlong(ctx context.Context, x ast.Expr) error {
	if s.tx.asOf == 0 {
		return pgerror.New(pgerror.ActiveSQLTransaction, asOfClause+" of a statement that shares its transaction with others").
			WithHint("Give it to the transaction: BEGIN " + asOfClause + " …").At(int(x.Position()))
	}
	ts, err := s.systemTime(ctx, x)
	if err == nil && ts != s.tx.asOf {
		err = pgerror.New(pgerror.InvalidParameterValue, asOfClause+" is not that of the transaction").
			WithHint("In BEGIN " + asOfClause + " … the time holds for all statements; leave it out here.").At(int(x.Position()))
	}
	if err != nil {
		return err
	}
	return s.begin(ctx)
}

// travelText is travel for the statement of a plan known already: the time is in the text.
func (s *Session) travelText(ctx context.Context, st *sql.Statement) error {
	tree, err := sql.Parse(st)
	if err != nil {
		return err
	}
	q, ok := tree.(*ast.Query)
	if !ok || q.AsOf() == nil {
		return fmt.Errorf("%T has lost its time", tree)
	}
	return s.travel(ctx, q.AsOf())
}

// beginFor is begin for a plan that is about to run, or to be checked. latest: it may read without a snapshot.
func (s *Session) beginFor(ctx context.Context, plan *planner.Plan, st *sql.Statement, latest bool) error {
	if plan.AsOf {
		return s.travelText(ctx, st)
	}
	if latest && s.beginLatest(plan) {
		return nil
	}
	return s.begin(ctx)
}

// resetAsOf clears the read timestamp of the statement before, which had AS OF SYSTEM TIME, for another statement of the
// same pipeline. If something has been read at it, the two cannot share a transaction.
func (s *Session) resetAsOf() error {
	if s.tx.asOf == 0 || s.tx.phase.explicit() {
		return nil
	}
	if s.tx.queried {
		return pgerror.New(pgerror.ActiveSQLTransaction, "a statement cannot share its transaction with one that was "+asOfClause).
			WithHint("Send a Sync between them, or give the time to BEGIN.")
	}
	s.forgetUnused()
	s.tx.asOf, s.tx.fixed = 0, false
	return nil
}

// setAsOf has the transaction, in which nothing has run yet, read at a time.
func (s *Session) setAsOf(ctx context.Context, x ast.Expr) error {
	ts, err := s.systemTime(ctx, x)
	if err != nil {
		return err
	}
	s.forgetUnused()
	s.fixModes()
	s.tx.asOf, s.tx.modes.readOnly = ts, true
	return nil
}

// setAsOfMode is AS OF SYSTEM TIME of BEGIN and SET TRANSACTION.
func (s *Session) setAsOfMode(m *ast.TransactionModes) error {
	at := int(m.AsOf.Position())
	switch {
	case m.ReadOnly != nil && !*m.ReadOnly:
		return pgerror.New(pgerror.SyntaxError, "a transaction "+asOfClause+" is read-only").At(at)
	case s.tx.queried:
		return pgerror.New(pgerror.ActiveSQLTransaction, asOfClause+" must be set before any query").At(at)
	case len(s.tx.savepoints) > 0:
		return pgerror.New(pgerror.ActiveSQLTransaction, asOfClause+" must not be set in a subtransaction").At(at)
	}
	return s.setAsOf(s.ctx, m.AsOf)
}

// systemTime evaluates the expression of AS OF SYSTEM TIME.
func (s *Session) systemTime(ctx context.Context, x ast.Expr) (tso.Timestamp, error) {
	now, err := s.deps.Oracle.Now(ctx)
	if err != nil {
		return 0, err
	}
	ts, err := s.evalTime(ctx, x, now)
	if err != nil {
		return 0, err
	}
	at := int(x.Position())
	if status := s.gcStatus(); ts <= status.SafePoint {
		e := s.belowSafePoint(ts, status.SafePoint)
		return 0, e.WithHint(fmt.Sprintf("History is kept for %v: see ALTER SYSTEM SET percodb.gc_life.", status.Life)).At(at)
	}
	if time.Duration(ts.Physical()-now.Physical())*time.Millisecond > asOfPatience {
		return 0, pgerror.New(pgerror.InvalidParameterValue, asOfClause+" %s lies in the future", s.timeText(ts)).At(at)
	}
	for ts > now { // Other clocks run a little ahead of the oracle's.
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if now, err = s.deps.Oracle.Now(ctx); err != nil {
			return 0, err
		}
	}
	return ts, nil
}

// evalTime turns the expression into a timestamp, without asking whether that is one to be read at.
func (s *Session) evalTime(ctx context.Context, x ast.Expr, now tso.Timestamp) (tso.Timestamp, error) {
	at := int(x.Position())
	if lit, ok := x.(*ast.Literal); ok && lit.Kind == ast.LiteralString {
		if len(lit.Value) > 0 && (lit.Value[0] == '-' || lit.Value[0] == '+') {
			d, err := types.ParseText(types.TInterval, lit.Value, &s.settings.format)
			if err != nil {
				return 0, positioned(err, at)
			}
			return before(now, d.Interval(), at)
		}
		d, err := types.ParseText(types.TTimestamptz, lit.Value, &s.settings.format)
		if err != nil {
			var pg *pgerror.Error
			if errors.As(err, &pg) {
				err = pg.WithHint("Give a point in time, or a negative interval such as '-10s'.")
			}
			return 0, positioned(err, at)
		}
		return s.wallTime(d.Int(), now, at)
	}
	if err := s.begin(ctx); err != nil { // Names of functions are looked up in some schema.
		return 0, err
	}
	bound, err := planner.BindExpr(ctx, x, nil, s.tx.resolver, &s.env, types.Type{}, asOfClause)
	if err != nil {
		return 0, err
	}
	kind := bound.Type().OID
	switch kind {
	case types.OIDInterval, types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDTimestamptz:
	default:
		if bound, err = planner.BindExpr(ctx, x, nil, s.tx.resolver, &s.env, types.TTimestamptz, asOfClause); err != nil {
			return 0, err
		}
	}
	d, err := bound.Eval(&expr.Context{Ctx: ctx, Env: &s.env}, nil)
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
	return s.wallTime(d.Int(), now, at)
}

// wallTime turns a time of the clock into a timestamp. The oracle may be ahead of the clock, after a crash or
// when the clock was set back: the time of this statement, such as now(), includes whatever was acknowledged
// before the statement, and now is above all of that.
func (s *Session) wallTime(micros int64, now tso.Timestamp, at int) (tso.Timestamp, error) {
	ts, err := wholeMillisecond(micros, at)
	if err == nil && micros >= s.env.StmtTime && ts < now {
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

// timeText prints a timestamp of the oracle as the session prints times.
func (s *Session) timeText(ts tso.Timestamp) string {
	micros := builtin.UnixToTimestamp(time.UnixMilli(ts.Physical()))
	return s.settings.format.Text(types.Int(micros), types.TTimestamptz)
}

func (s *Session) belowSafePoint(ts, safePoint tso.Timestamp) *pgerror.Error {
	return pgerror.New(pgerror.InvalidParameterValue, asOfClause+" %s lies before the safe point %s", s.timeText(ts), s.timeText(safePoint)).
		WithDetail("What was before the safe point is no longer kept.")
}

// explainPast says of a name that is not known that it was looked up in the schema of an earlier time.
func (s *Session) explainPast(err error) error {
	var e *pgerror.Error
	if s.tx.asOf == 0 || !errors.As(err, &e) || e.Detail != "" {
		return err
	}
	switch e.Code {
	case pgerror.UndefinedTable, pgerror.UndefinedColumn, pgerror.InvalidSchemaName:
		return e.WithDetail("The schema is that of %s, as "+asOfClause+" asks.", s.timeText(s.tx.asOf))
	}
	return err
}

// explainTooOld names the safe point that has passed the transaction's snapshot.
func (s *Session) explainTooOld(err error) error {
	old, ok := errkind.As[*mvcc.TooOldError](err)
	if !ok {
		return err
	}
	if s.tx.asOf != 0 {
		e := s.belowSafePoint(old.TS, old.SafePoint)
		e.Cause = err
		return e
	}
	e := pgerror.New(pgerror.SnapshotTooOld, "snapshot too old").WithHint("Start the transaction again.").
		WithDetail("The transaction's snapshot is of %s; the safe point of garbage collection, %s, has passed it.", s.timeText(old.TS), s.timeText(old.SafePoint))
	e.Cause = err
	return e
}
