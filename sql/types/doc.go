// Package types implements percodb's SQL types and their values: what PostgreSQL keeps in pg_type and in the input,
// output, send and receive functions of each type.
//
//	          ParseText, ParseBinary                 Compare, Equal, Hash
//	client  ───────────────────────▶  Datum (+ Type) ─────────────────────▶ planner, executor
//	        ◀───────────────────────
//	          AppendText, AppendBinary
//
// A Type is an OID and a modifier; Lookup returns one for a written name and Type.String writes it as PostgreSQL's
// format_type does. A Datum is one value and does not contain its type: every function here takes both. The type
// determines the Kind of its datums (KindOf).
//
// Invariants:
//  1. A Datum is 24 bytes and immutable; what it points to (bytes, numeric, interval, array, record)
//     never changes after the datum is made.
//  2. Compare is a total order per type: the order of PostgreSQL's default btree operator class in
//     the C collation. Equal(a, b) is Compare(a, b) == 0, and implies Hash(a) == Hash(b); this holds
//     across smallint, integer, bigint and oid, whose datums are interchangeable.
//  3. ParseText(AppendText(d)) and ParseBinary(AppendBinary(d)) give d back, for every type whose
//     Format loses nothing.
//  4. A numeric's exponent is never positive; its display scale is -Exponent (NaN and ±Infinity
//     have none).
//  5. Times are microseconds, dates are days, both from 2000-01-01; timestamptz counts from
//     2000-01-01 00:00 UTC. The extremes of int64 (timestamps) and int32 (dates) are ±infinity.
//  6. Whatever a client may send, the parsers return a *pgerror.Error and never panic.
//
// The package evaluates no operators, casts and functions: package builtin does.
package types
