package fuzzsql

import "context"

// way is a way to run a unit on percodb.
type way struct {
	name  string
	place place
	// run runs one statement.
	run func(ctx context.Context, c *conn, stmt *tree) *outcome
	// prologue are statements of a block around a query; they change nothing that it sees.
	prologue func(w *world) []string
	// queriesOnly is set when changes cannot run by the way.
	queriesOnly bool
	// commits is set where changes that commit run: on one way of each place.
	commits bool
	// moved texts are not the statement's own: positions differ.
	moved bool
}

// place is a set of the tables on a server.
type place string

const (
	plain   place = "plain"   // without secondary indexes
	indexed place = "indexed" // with them, and with statistics
	small   place = "small"   // with indexes, on a server with pages and groups of two rows
	judge   place = "judge"   // PostgreSQL
)

// ways are all ways; the first is the reference.
var ways = []way{
	{name: "simple", place: plain, run: runSimple, commits: true},
	{name: "indexed", place: indexed, run: runSimple, commits: true},
	{name: "small groups", place: small, run: runSimple, commits: true},
	{name: "extended, binary", place: plain, run: runBinary},
	{name: "prepared and repeated", place: indexed, run: runPrepared, queriesOnly: true},
	{name: "parameters", place: indexed, run: runParameters, moved: true},
	{name: "cursor", place: indexed, run: runCursor, queriesOnly: true, moved: true, prologue: func(*world) []string { return []string{"BEGIN"} }},
	{name: "over written rows", place: indexed, run: runSimple, queriesOnly: true, prologue: rewritten},
	{name: "over written rows, small groups", place: small, run: runSimple, queriesOnly: true, prologue: rewritten},
}

func runSimple(ctx context.Context, c *conn, stmt *tree) *outcome {
	return c.simple(ctx, stmt.String())
}

func runBinary(ctx context.Context, c *conn, stmt *tree) *outcome {
	return c.extended(ctx, stmt.String(), nil, true)
}

func runPrepared(ctx context.Context, c *conn, stmt *tree) *outcome {
	return c.prepared(ctx, stmt.String(), 3)
}

func runParameters(ctx context.Context, c *conn, stmt *tree) *outcome {
	text, values := stmt.withParameters()
	return c.extended(ctx, text, values, false)
}

// runCursor fetches the rows in parts.
func runCursor(ctx context.Context, c *conn, stmt *tree) *outcome {
	if o := c.simple(ctx, "DECLARE fuzz CURSOR FOR "+stmt.String()); o.err != nil || o.lost != "" {
		return o
	}
	var all *outcome
	for _, fetch := range []string{"FETCH 1 FROM fuzz", "FETCH 3 FROM fuzz", "FETCH ALL FROM fuzz"} {
		o := c.simple(ctx, fetch)
		if o.err != nil || o.lost != "" {
			return o
		}
		if all == nil {
			all = o
		} else {
			all.rows = append(all.rows, o.rows...)
		}
	}
	return all
}

// rewritten begins a block in which the transaction has written every row anew, and has deleted and got
// back what a savepoint kept.
func rewritten(w *world) []string {
	stmts := []string{"BEGIN"}
	for _, t := range w.tables {
		if w.references() {
			stmts = append(stmts, "UPDATE "+t.name+" SET id = id")
			continue
		}
		stmts = append(stmts, "UPDATE "+t.name+" SET id = id", "SAVEPOINT s", "DELETE FROM "+t.name+" WHERE id % 2 = 0", "ROLLBACK TO SAVEPOINT s")
	}
	return stmts
}
