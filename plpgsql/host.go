package plpgsql

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Host is the session in whose transaction functions are executed. One goroutine's.
type Host interface {
	Env() *builtin.Env
	Meter() *sql.Meter
	// Schema returns the schema under which statements are bound now.
	Schema(ctx context.Context) (catalog.Resolver, error)
	// Epoch is a number that is another one whenever a plan may no longer hold.
	Epoch() uint64
	// Plan plans a query or a change of rows. Command says of other statements.
	Plan(ctx context.Context, tree ast.Statement, opts planner.Options) (Plan, error)
	// Holds reports whether a plan may be used as it is, and checks the privileges that it needs.
	Holds(ctx context.Context, p Plan) (bool, error)
	// Begin begins a statement, which sees what was committed before it if the isolation level and the function permit that.
	Begin(ctx context.Context, readOnly bool) error
	// Run runs a plan to its end, or until it has yielded limit rows; 0: all.
	Run(ctx context.Context, p Plan, params types.Row, limit int, to Sink) (Result, error)
	// CallProcedure executes the plan of a CALL, which yields a row of the output parameters. atomic: the procedure must not end the transaction.
	CallProcedure(ctx context.Context, p Plan, params types.Row, atomic bool, to Sink) error
	// Command runs a statement that has no plan.
	Command(ctx context.Context, tree ast.Statement, to Sink) (Result, error)
	// Open opens a cursor; name "" gives it one.
	Open(ctx context.Context, name string, p Plan, params types.Row, scroll Scroll) (string, error)
	// Columns returns the columns of a cursor. Error: 34000.
	Columns(name string) ([]planner.Column, error)
	// Fetch moves a cursor.
	Fetch(ctx context.Context, name string, f *ast.Fetch, to Sink) (int64, error)
	Close(name string) error
	// Savepoint begins a subtransaction; Release ends it, RollbackTo undoes it and ends it.
	Savepoint(ctx context.Context) error
	Release()
	RollbackTo()
	// EndTransaction commits or rolls back, and begins another transaction, with the modes of this one if chain is set. The cursors of loops
	// stay open.
	EndTransaction(ctx context.Context, commit, chain bool) error
	Notice(n *pgerror.Error)
	// Options returns the session's parameters of the language.
	Options() *Options
	// Explain returns the client's error for err, and whether a handler may catch it.
	Explain(err error) (e *pgerror.Error, catchable bool)
	// Stack are the frames that are being executed.
	Stack() *Stack
}

// Plan is a plan of the Host's.
type Plan interface {
	Planned() *planner.Plan
}

// Scroll is how a cursor may move.
type Scroll struct{ Scroll, NoScroll bool }

// Result is what a statement has done.
type Result struct {
	Verb    string
	Rows    int64
	Columns []planner.Column // of rows that a command yields
}

// Sink takes the rows of a statement.
type Sink interface {
	// Row takes a row, which is valid during the call.
	Row(row types.Row) error
	// Reset drops all rows: the statement runs again.
	Reset()
}

// Stack are the functions and statements that are being executed, for the context of messages.
type Stack struct{ frames []frame }

// frame is an activation, or a statement that one executes.
type frame interface{ contextLine() string }

// maxFrames bounds recursion: PostgreSQL's limit is that of the stack, which as many calls of a small function exhaust.
const maxFrames = 10_000

func (s *Stack) push(f frame) error {
	if len(s.frames) >= maxFrames {
		return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Functions call each other deeper than the server allows.")
	}
	s.frames = append(s.frames, f)
	return nil
}

// Empty reports whether no function is being executed.
func (s *Stack) Empty() bool { return len(s.frames) == 0 }

func (s *Stack) pop() { s.frames = s.frames[:len(s.frames)-1] }

// Context returns the lines of the frames above the first n, innermost first.
func (s *Stack) Context() string { return s.linesBelow(len(s.frames)) }

// linesBelow returns the lines of the first n frames.
func (s *Stack) linesBelow(n int) string {
	var b strings.Builder
	for i := n - 1; i >= 0; i-- {
		line := s.frames[i].contextLine()
		if line == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

// sqlFrame is a statement that a function executes.
type sqlFrame struct {
	kind exprKind
	text string
}

func (f sqlFrame) contextLine() string {
	return [...]string{valueExpr: "SQL expression", assignExpr: "PL/pgSQL assignment", statementExpr: "SQL statement"}[f.kind] + " \"" + f.text + "\""
}

// within adds what a frame says to an error: the line of its context, or that the error's position is in its text.
func (f sqlFrame) within(err error, shift int) error {
	e, ok := err.(*pgerror.Error)
	if !ok {
		return err
	}
	c := *e
	if c.Position > 0 && !c.Complete {
		c.InternalPosition, c.InternalQuery, c.Position = max(c.Position+shift, 1), f.text, 0
		return &c
	}
	return c.InContext("%s", f.contextLine())
}
