// Package rowenc encodes rows and index entries as keys and values. No other package knows the encoding.
//
//	row             02 | table | index | primary key columns…               → row value
//	entry           02 | table | index | key columns… | primary key columns → entry value
//	unique entry    02 | table | index | key columns…                       → entry value with primary key
//	  with a NULL   02 | table | index | key columns… | primary key columns → entry value with primary key
//
// The order of keys is the order of the index, so a scan of a span of keys is a scan of an index.
// Row and entry values hold columns by id, so that a table may gain and lose columns without its
// rows being rewritten. docs/format/rows.md has the bytes; golden tests pin them.
//
// Invariants:
//
//	I1 cmp(key(a), key(b)) = cmp(a, b) under PostgreSQL's ordering of the type, DESC and NULLS
//	   FIRST/LAST of the index column applied: equal values have equal keys (1.0 and 1.00, 'a' and
//	   'a ' of char(n), 1 month and 30 days).
//	I2 No key of an index is a prefix of another one, and no column's encoding is a prefix of
//	   another value's: kv relies on it.
//	I3 What was encoded is decoded exactly: where a key loses something (the scale of a numeric,
//	   blanks, the sign of zero), the value holds the datum as well.
//	I4 Decoding never panics; bytes that cannot have been written are an error with SQLSTATE XX001.
//
// Other packages: which indexes a statement must write (executor), which it may read (planner), versions and
// timestamps (kv).
package rowenc
