// Package check judges whether a TPC-E-like database is consistent, after its load or after runs.
//
// Every condition ties tables together that one transaction writes, so a transaction of which only a
// part is there breaks one:
//
//	broker ── trade ── settlement ── cash_transaction ── customer_account
//	             │  └─ trade_history, trade_request
//	             └─ holding_history ── holding ── holding_summary
//
// C0 holds for the tables that no transaction adds rows to: they have the rows of the load. C1 to C10
// are queries that return what breaks them (queries.go). C11 compares balances with those of the
// generator and what the run has booked. C12 compares what indexes hold with their tables. C13 and C14
// compare the database with what it acknowledged to the runs that kept a journal (journal.go).
//
// Invariants:
//
//  1. All conditions are judged on one snapshot. Writers are not disturbed, but C0 to C12 hold between
//     transactions only, so any snapshot will do.
//  2. A condition that cannot be judged, because the server fails, does not keep the others from being judged.
//  3. C12 asks the server for its plan, and a query that would not use the index is a finding, or, of a table
//     of a few rows, a note: nothing is called whole that was not looked at.
//
// Brokers' counters are judged as the transactions are meant to keep them, in the broker's row itself.
// Whether acknowledged transactions are there at all cannot be seen in the database alone.
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

// sampleRows is how many of the rows that break a condition are kept.
const sampleRows = 5

// Options say what to check.
type Options struct {
	URL string
	// Only are the conditions to check, by id; all if empty.
	Only []string
	// Journal is a directory with the journals of runs; C13 and C14 are not judged if "".
	Journal string
	// Done, if not nil, is told of each result as soon as it is there.
	Done func(Result)
}

// Result is what was found of one condition.
type Result struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Violations int64      `json:"violations"`
	Columns    []string   `json:"columns,omitempty"` // of Sample
	Sample     [][]string `json:"sample,omitempty"`  // the first of the rows that break it
	Note       string     `json:"note,omitempty"`    // what was compared
	Error      string     `json:"error,omitempty"`   // why the condition could not be judged
	Seconds    float64    `json:"seconds"`
}

// violate notes a row that breaks the condition.
func (r *Result) violate(columns []string, row []string) {
	r.Violations++
	if len(r.Sample) < sampleRows {
		r.Columns = columns
		r.Sample = append(r.Sample, row)
	}
}

// Report is what was found of a database.
type Report struct {
	Loaded  load.Settings `json:"loaded"`
	Results []Result      `json:"results"`
	Seconds float64       `json:"seconds"`
}

// Violations returns the number of rows that break a condition.
func (r Report) Violations() int64 {
	var n int64
	for _, result := range r.Results {
		n += result.Violations
	}
	return n
}

// condition is one that can be judged.
type condition struct {
	id, title string
	judge     func(ctx context.Context, s *subject, r *Result) error
	journal   bool // judged by a journal
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

// Run checks a database. The error says which conditions could not be judged, and why; the others are in the
// report all the same. That a condition is broken is no error.
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

// judge checks the database as the transaction sees it.
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
			break // nothing more can be judged
		}
	}
	report.Seconds = time.Since(began).Seconds()
	return report, errors.Join(failed...)
}

// apart runs f so that the transaction, and its snapshot, outlive a statement that fails.
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
