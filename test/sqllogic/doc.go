// Package sqllogic runs sqllogictest files against any server that speaks the
// PostgreSQL wire protocol.
//
// A file is a sequence of records, separated by blank lines, that are run in
// order on one connection. The package reads the classic format of SQLite's
// sqllogictest, so that its corpus of millions of records can be used as it
// is, and a few extensions in which percodb's own tests (testdata/*.slt) are
// written. PostgreSQL 15 is the judge of those: they must pass there first.
//
//	file ──parser──▶ records ──runner──▶ wire ──▶ server
//	                              │        │
//	                              ▼        ▼
//	                           summary ◀─ format, sort, compare
//
// # The classic format
//
//	# A comment, between records only.
//
//	statement ok
//	CREATE TABLE t(a int, b text)
//
//	statement error
//	SELECT * FROM no_such_table
//
//	query IT rowsort label-1
//	SELECT a, b FROM t
//	----
//	1
//	one
//
// A query names one letter for each column: I integer, R real, T text. After
// an optional sort mode (nosort, the default; rowsort; valuesort) comes an
// optional label: all queries of a file with the same label must give the
// same values. Values stand one on a line, row after row, and in place of
// them may stand "30 values hashing to 3c13dee48d9356ae19af2515e05e6b54": the
// MD5 of all values, each followed by a newline, after sorting. The line
// "hash-threshold N" matters to the rewriter only: it writes results of more
// than N values as a hash. "skipif NAME" and "onlyif NAME" before a record
// skip it on, or run it only on, the dialect NAME; "halt" ends the file.
// Lines may end in CRLF.
//
// Values are compared in their text form: NULL is "NULL", the empty string
// "(empty)", R is printed with three decimals, a boolean in an I column is 1
// or 0, and in a T column every byte outside printable ASCII becomes "@".
// Rows sort by their values from left to right, bytewise.
//
// # Extensions
//
//   - "statement error 23505" passes only when the error has this SQLSTATE.
//   - "statement count 3" passes when the command tag reports three rows.
//   - "control resultmode rowwise" makes the queries that follow hold a row on
//     each line, its values joined by " | ", and lets T columns keep their
//     UTF-8 letters (control characters are still "@"). "control resultmode
//     valuewise" goes back to the classic form.
//   - "connection NAME" before a record runs it on another connection of that
//     name, opened when first used; records without it use the first one.
//   - A statement may have "----" and lines of data after it, for COPY … FROM
//     STDIN; COPY … TO STDOUT is a query of one T column, a value each line.
//   - "query ?" asks the rewriter to fill in the column letters.
//
// # Invariants
//
//  1. Each file starts on new connections and without the tables, views and
//     sequences that its own statements create; what it leaves is dropped
//     when it ends. Nothing else in the database is touched.
//  2. A record is known by the line on which it begins, its skipif, onlyif
//     and connection lines included. Reports and exclude files use this line.
//  3. One record is one round trip, of a simple query unless Options.Extended
//     says otherwise: at most one is in flight.
//  4. Every record read is counted once: as passed, failed or skipped.
//     Records after a halt are not read.
//  5. The rewriter fills in results and SQLSTATEs. It never turns a
//     statement that should succeed into one that should fail, or back.
//
// What it does not do: it starts no server, and it does not run files in
// parallel, because they share table names.
package sqllogic
