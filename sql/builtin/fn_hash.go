package builtin

import (
	"github.com/percodb/percodb/sql/pghash"
	"github.com/percodb/percodb/sql/types"
)

// valueHashFuncs declares PostgreSQL's hash functions: of 32 bits, and of 64 bits with a seed. Nothing else here hashes by them.
func valueHashFuncs() []decl {
	var out []decl
	add := func(name, extended, arg string, bind func(*Overload) Func) {
		out = append(out, decl{sig: name + "(" + arg + ") int4", bind: bind}, decl{sig: extended + "(" + arg + ",int8) int8", bind: bind})
	}
	for _, f := range []struct{ name, arg string }{
		{"hashint2", "int2"}, {"hashint4", "int4"}, {"hashint8", "int8"}, {"hashfloat4", "float4"}, {"hashfloat8", "float8"}, {"hashoid", "oid"},
		{"hashchar", "char"}, {"hashname", "name"}, {"hashtext", "text"}, {"hashbpchar", "bpchar"}, {"hashoidvector", "oidvector"}, {"hashtid", "tid"},
		{"hashinet", "inet"}, {"hashmacaddr", "macaddr"}, {"hashmacaddr8", "macaddr8"}, {"hashenum", "anyenum"},
	} {
		add(f.name, f.name+"extended", f.arg, hashFunc)
	}
	for _, f := range []struct{ name, arg string }{
		{"hash_numeric", "numeric"}, {"time_hash", "time"}, {"timetz_hash", "timetz"}, {"timestamp_hash", "timestamp"}, {"interval_hash", "interval"},
		{"uuid_hash", "uuid"}, {"pg_lsn_hash", "pg_lsn"}, {"jsonb_hash", "jsonb"}, {"hash_aclitem", "aclitem"},
		{"hash_array", "anyarray"}, {"hash_range", "anyrange"}, {"hash_multirange", "anymultirange"}, {"hash_record", "record"},
	} {
		add(f.name, f.name+"_extended", f.arg, hashFunc)
	}
	return out
}

// hashFunc binds a hash function for the type of its first argument; a second is the seed.
func hashFunc(o *Overload) Func {
	t := o.Args[0]
	if len(o.Args) == 1 {
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			h, err := pghash.Hash32(a[0], t)
			return types.Int(int64(h)), err
		}
	}
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		h, err := pghash.Hash64(a[0], t, uint64(a[1].Int()))
		return types.Int(int64(h)), err
	}
}
