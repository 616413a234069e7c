// Package inverted is what an inverted (GIN) index knows of values: the terms that a value has, and which terms a row must have for a condition to
// hold. Both are pure functions of an operator class. An entry of such an index is a term with the key of a row; packages entries and executor
// write and read them.
//
// A search finds a superset of the rows for which its condition is true: the condition is tested for each of them.
package inverted
