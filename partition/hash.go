package partition

import (
	"github.com/percodb/percodb/sql/pghash"
	"github.com/percodb/percodb/sql/types"
)

// Seed is PostgreSQL's HASH_PARTITION_SEED, the second argument of the functions that hash keys.
const Seed = 0x7A5B22367996DCFD

// hasher returns PostgreSQL's extended hash function of a type, which can be hashed, with the partition seed.
func hasher(t types.Type) func(types.Datum) uint64 {
	return func(d types.Datum) uint64 {
		h, err := pghash.Hash64(d, t, Seed)
		if err != nil {
			panic("BUG: the key of a hash partition: " + err.Error())
		}
		return h
	}
}

// hashRow is PostgreSQL's compute_partition_hash_value.
func hashRow(hashers []func(types.Datum) uint64, key []types.Datum) uint64 {
	var h uint64
	for i, d := range key {
		if !d.IsNull() {
			h ^= hashers[i](d) + 0x49a0f4dd15e5a8e3 + h<<54 + h>>7
		}
	}
	return h
}
