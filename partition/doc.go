// Package partition decides which rows belong to which partition of a table: it compares the bounds of partitions, finds the partition of a
// row, and the partitions that may have rows for which conditions on the partition key hold. Rows are assigned to hash partitions as
// PostgreSQL assigns them.
//
// A Bounds is of one partitioned table; partitions that are partitioned themselves have their own. Bounds are immutable and safe for
// concurrent use.
package partition
