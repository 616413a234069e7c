package catalog

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/percodb/percodb/percolator"
)

// formatVersion is the layout of the catalog's keys and values: docs/format/catalog.md.
const (
	formatVersion = "8"
	// formatWithoutOperators is the layout before, in which users defined no operators, casts and operator classes. An older server would not find
	// the operators of expressions, and would divide rows among hash partitions by another function.
	formatWithoutOperators = "7"
	// formatWithoutPartitionedKeys is the layout before that, in which no foreign key referenced a partitioned table, and no index was
	// built while its table was written. An older server would look for the referenced rows in the partitioned table itself, would not check what
	// changes in its partitions, and would not note the rows that it changes while an index is built.
	formatWithoutPartitionedKeys = "6"
	// formatWithoutDatabases is the layout before that, of a store with one database, in which all unique keys were checked as rows are written, NULLs were
	// distinct in them, and no table had partitions. An older server would let clients of all databases into that one, would not check keys later, make
	// other keys of indexes in which NULLs are equal, and store any row in a partition, or in a partitioned table itself.
	formatWithoutDatabases = "5"
	// formatWithoutKeys is the layout before that, in which no table had foreign keys or generated columns, and indexes had columns of all rows as keys. An older server would
	// not obey them, or not maintain other indexes.
	formatWithoutKeys = "4"
	// formatWithoutCollations is the layout before that, in which all keys of indexes ordered text by its bytes. An older server would not find
	// keys that are ordered otherwise.
	formatWithoutCollations = "3"
	// formatWithoutPolicies is the layout before that. What was added since has keys and fields of its own: policies, types that users make,
	// row types as types of columns, privileges of functions, types and parameters, settings of the database, json values. An older server
	// would not obey them.
	formatWithoutPolicies = "2"
	// formatWithoutRoles is the layout before that, in which every name was a superuser's.
	formatWithoutRoles = "1"
)

// schemaRecord is the value of a schema's key.
type schemaRecord struct {
	ID      uint64
	Comment string `json:",omitempty"`
	Owned
}

// decode reads the JSON value of key into v.
func decode(key, value []byte, v any) error {
	if err := json.Unmarshal(value, v); err != nil {
		return &CorruptionError{Key: key, Detail: err.Error()}
	}
	return nil
}

// encode is the inverse of decode. The types of this package cannot fail to be encoded.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// getNumber reads a decimal counter; absent is 0.
func getNumber(ctx context.Context, r percolator.Reader, key []byte) (uint64, error) {
	value, err := r.Get(ctx, key)
	if err != nil || value == nil {
		return 0, err
	}
	return parseNumber(key, value)
}

func parseNumber(key, value []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return 0, &CorruptionError{Key: key, Detail: err.Error()}
	}
	return n, nil
}

func putNumber(w percolator.Writer, key []byte, n uint64) error {
	return w.Put(key, strconv.AppendUint(nil, n, 10))
}
