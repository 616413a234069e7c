// Package entries computes what the indexes of a table hold of a row: the values of the expressions that they index, and whether a partial index
// has an entry for the row at all. Whoever writes or verifies entries does it with this package: executor, ddl, check. Package rowenc then makes
// the keys.
//
// An index's expressions are evaluated only for rows that its predicate admits, as in PostgreSQL.
package entries
