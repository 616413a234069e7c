// Package fuzzsql makes random tables and statements from a seed, runs them on percodb in several ways
// and on PostgreSQL 15, and reports every difference, shrunk to the fewest tables, rows and clauses.
//
//	go test ./test/fuzzsql                                        # percodb alone: its ways against each other
//	PERCODB_TEST_PG_DSN=… go test ./test/fuzzsql -v -seed 7 -duration 10m
//
// PostgreSQL's database needs percodb's locale: createdb -T template0 --lc-collate=C --lc-ctype=C.UTF-8.
//
// A seed makes a world (world.go): tables, rows and indexes. Statements over it are trees (tree.go)
// that know what of them may be left out, so that minimise.go shrinks every clause without knowing it.
// Each statement runs by ways of ways.go, of which the seed draws one or two beside the reference: simple and extended protocol, text and binary results,
// with and without indexes, prepared and repeated, with parameters, in a block over rows the block has
// written, with small pages and groups. The first way is the reference: the others must agree with it,
// and it with PostgreSQL where there is one. compare.go says what agreement is, known.go lists the
// differences that are meant, each with its reason.
//
// To grow: a type is an entry of types.go; an operator, function or aggregate comes from
// builtin.Signatures by itself; a form of expression is an entry of exprForms; a clause has a file of
// its own, clause_*.go or statement_*.go; a path of execution is an entry of ways.
//
// Invariants: the same seed makes the same statements, whatever the servers answer; no statement may
// end in XX000, a panic, a lost connection or beyond its time, on any way.
package fuzzsql
