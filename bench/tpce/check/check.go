// Package check checks whether a TPC-E-like database is consistent, after its load or after runs.
//
// Every condition relates tables that one transaction writes, so a partially applied transaction violates one:
//
//	broker ── trade ── settlement ── cash_transaction ── customer_account
//	             │  └─ trade_history, trade_request
//	             └─ holding_history ── holding ── holding_summary
//
// C0 holds for the tables to which no transaction adds rows: they have the rows of the load. C1 to C10
// are queries that return the violating rows (queries.go). C11 compares balances with those of the
// generator plus the run's bookings. C12 compares indexes with their tables. C13 and C14 compare the
// database with what the server acknowledged to the runs that kept a journal (journal.go).
//
// Invariants:
//
//  1. All conditions are evaluated on one snapshot. C0 to C12 hold in every snapshot, so writers may
//     continue during the check.
//  2. A condition that cannot be evaluated, because the server fails, does not prevent the evaluation of the others.
//  3. C12 inspects the server's plan. A query that would not use the index is a finding or, for a table
//     of a few rows, a note: an index that was not read is not reported as correct.
//
// Brokers' counters are expected in the broker's row, where the specification keeps them, unless tpce_meta says
// otherwise. The database alone does not show whether acknowledged transactions are missing: that needs a journal.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/schema"
)

// sampleRows is the number of violating rows kept for each condition.
const sampleRows = 5

// Options select what to check.
type Options struct {
	URL string
	// Only are the conditions to check, by id; all if empty.
	Only []string
	// Journal is a directory with the journals of runs; C13 and C14 are omitted if "".
	Journal string
	// Done, if not nil, is called with each result when it is complete.
	Done func(Result)
}

// Result is the result of one condition.
type Result struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Violations int64      `json:"violations"`
	Columns    []string   `json:"columns,omitempty"` // of Sample
	Sample     [][]string `json:"sample,omitempty"`  // the first violating rows
	Note       string     `json:"note,omitempty"`    // what was compared
	Error      string     `json:"error,omitempty"`   // why the condition could not be evaluated
	Seconds    float64    `json:"seconds"`
}

// violate records a row that violates the condition.
func (r *Result) violate(columns []string, row []string) {
	r.Violations++
	if len(r.Sample) < sampleRows {
		r.Columns = columns
		r.Sample = append(r.Sample, row)
	}
}

// Report is the result of checking a database.
type Report struct {
	Loaded  load.Settings `json:"loaded"`
	Results []Result      `json:"results"`
	Seconds float64       `json:"seconds"`
}

// Violations returns the number of violating rows of all conditions.
func (r Report) Violations() int64 {
	var n int64
	for _, result := range r.Results {
		n += result.Violations
	}
	return n
}

// condition is a condition and the function that evaluates it.
type condition struct {
	id, title string
	judge     func(ctx context.Context, s *subject, r *Result) error
	journal   bool // needs a journal
}

// subject is the database under check.
type subject struct {
	tx       pgx.Tx
	gen      *gen.Generator
	loaded   load.Loaded
	evidence *evidence // nil without a journal
}

func conditions() []condition {
	all := []condition{
		{id: "C0", title: "tables that do not grow have the rows of the load", judge: judgeCounts},
		{id: "C1+C2", title: "brokers count the completed trades of their accounts, and add up their commissions", judge: judgeBrokers},
	}
	for _, f := range findings() {
		all = append(all, condition{id: f.id, title: f.title, judge: f.judge})
	}
	return append(all,
		condition{id: "C11", title: "a balance is the first one and the cash booked since", judge: judgeBalances},
		condition{id: "C12", title: "indexes hold what their tables hold", judge: judgeIndexes},
		condition{id: "C13", title: "what the server acknowledged is there, and nothing else", judge: judgeJournal, journal: true},
		condition{id: "C14", title: "volumes are what Market-Feeds have added", judge: judgeVolume, journal: true})
}

// IDs returns the ids of all conditions.
func IDs() []string {
	var ids []string
	for _, c := range conditions() {
		ids = append(ids, c.id)
	}
	return ids
}

// Run checks a database. The error says which conditions could not be evaluated, and why; the report contains
// the others. A violated condition is not an error.
func Run(ctx context.Context, o Options) (Report, error) {
	for _, id := range o.Only {
		if !slices.Contains(IDs(), id) {
			return Report{}, fmt.Errorf("no condition %q: there are %v", id, IDs())
		}
		if o.Journal == "" && slices.ContainsFunc(conditions(), func(c condition) bool { return c.id == id && c.journal }) {
			return Report{}, errNoJournal
		}
	}
	conn, err := pgx.Connect(ctx, o.URL)
	if err != nil {
		return Report{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var report Report
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	var judged error
	err = pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		report, judged = judge(ctx, tx, o)
		return judged
	})
	return report, cmp.Or(judged, err)
}

// judge checks the database in the transaction's snapshot.
func judge(ctx context.Context, tx pgx.Tx, o Options) (Report, error) {
	began := time.Now()
	var report Report
	s := &subject{tx: tx}
	var err error
	if s.loaded, err = load.Read(ctx, tx.Conn()); err != nil {
		return report, err
	}
	report.Loaded = s.loaded.Settings
	if s.gen, err = gen.New(s.loaded.Settings.Scale); err != nil {
		return report, err
	}
	if o.Journal != "" {
		if s.evidence, err = gather(o.Journal, s.loaded.Identity); err != nil {
			return report, err
		}
	}
	var failed []error
	for _, c := range conditions() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.id) || c.journal && s.evidence == nil {
			continue
		}
		result := Result{ID: c.id, Title: c.title}
		start := time.Now()
		if err := s.apart(ctx, func() error { return c.judge(ctx, s, &result) }); err != nil {
			result.Error = err.Error()
			failed = append(failed, fmt.Errorf("%s: %w", c.id, err))
		}
		result.Seconds = time.Since(start).Seconds()
		report.Results = append(report.Results, result)
		if o.Done != nil {
			o.Done(result)
		}
		if ctx.Err() != nil || tx.Conn().IsClosed() {
			break // no more conditions can be evaluated
		}
	}
	report.Seconds = time.Since(began).Seconds()
	return report, errors.Join(failed...)
}

// apart runs f in a savepoint, so that the transaction and its snapshot survive a failing statement.
func (s *subject) apart(ctx context.Context, f func() error) error {
	return pgx.BeginFunc(ctx, s.tx, func(pgx.Tx) error { return f() })
}

// each calls f with every row of a query, as text; NULL is "NULL".
func (s *subject) each(ctx context.Context, query string, args []any, f func(columns, row []string)) error {
	rows, err := s.tx.Query(ctx, query, append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var columns []string
	for rows.Next() {
		if columns == nil {
			for _, d := range rows.FieldDescriptions() {
				columns = append(columns, d.Name)
			}
		}
		row := make([]string, len(columns))
		for i, v := range rows.RawValues() {
			if row[i] = string(v); v == nil {
				row[i] = "NULL"
			}
		}
		f(columns, row)
	}
	return rows.Err()
}

func (f finding) judge(ctx context.Context, s *subject, r *Result) error {
	var args []any
	if f.afterLoad {
		args = append(args, s.loaded.MaxTradeID)
	}
	return s.each(ctx, f.query, args, r.violate)
}

func judgeCounts(ctx context.Context, s *subject, r *Result) error {
	for t := range schema.Count {
		if s.loaded.Settings.Scale.Rule(t).Grows {
			continue
		}
		want := fmt.Sprint(s.loaded.Rows[t])
		err := s.each(ctx, "SELECT count(*) FROM "+t.String(), nil, func(_, row []string) {
			if row[0] != want {
				r.violate([]string{"table", "rows", "loaded"}, []string{t.String(), row[0], want})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
