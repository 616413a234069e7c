package builtin

import (
	"crypto/rand"

	"github.com/google/uuid"

	"github.com/percodb/percodb/sql/types"
)

// uuidOsspFuncs declares the functions of uuid-ossp.
func uuidOsspFuncs() []decl {
	out := []decl{
		{sig: "uuid_nil() uuid", fn: constant(uuidDatum(uuid.Nil))},
		{sig: "uuid_ns_dns() uuid", fn: constant(uuidDatum(uuid.NameSpaceDNS))},
		{sig: "uuid_ns_url() uuid", fn: constant(uuidDatum(uuid.NameSpaceURL))},
		{sig: "uuid_ns_oid() uuid", fn: constant(uuidDatum(uuid.NameSpaceOID))},
		{sig: "uuid_ns_x500() uuid", fn: constant(uuidDatum(uuid.NameSpaceX500))},
		{sig: "uuid_generate_v1() uuid", flags: volatile, fn: newUUID(uuid.NewUUID)},
		{sig: "uuid_generate_v1mc() uuid", flags: volatile, fn: newUUID(newMulticast)},
		{sig: "uuid_generate_v4() uuid", flags: volatile, fn: newUUID(uuid.NewRandom)},
	}
	for name, hash := range map[string]func(uuid.UUID, []byte) uuid.UUID{"uuid_generate_v3": uuid.NewMD5, "uuid_generate_v5": uuid.NewSHA1} {
		out = append(out, decl{sig: name + "(uuid,text) uuid", fn: fn2(func(space, name types.Datum) (types.Datum, error) {
			return uuidDatum(hash(uuid.UUID(space.Bytes()), name.Bytes())), nil
		})})
	}
	return out
}

func uuidDatum(u uuid.UUID) types.Datum { return types.Bytes(u[:]) }

func newUUID(f func() (uuid.UUID, error)) Func {
	return func(*Env, []types.Datum) (types.Datum, error) {
		u, err := f()
		if err != nil {
			return types.Null, err
		}
		return uuidDatum(u), nil
	}
}

// newMulticast returns a UUID of version 1 with a random multicast address for that of the machine.
func newMulticast() (uuid.UUID, error) {
	u, err := uuid.NewUUID()
	if err == nil {
		_, err = rand.Read(u[10:])
		u[10] |= 0x03 // multicast, and assigned locally
	}
	return u, err
}
