package builtin

import (
	"github.com/percodb/percodb/sql/types"
)

// AdvisoryLock is an advisory lock that a function locks or unlocks.
type AdvisoryLock struct {
	High, Low   uint32 // a key of one number has its halves here
	Pair        bool   // a key of two numbers
	Shared      bool
	Transaction bool // it ends with the transaction
	Try         bool // do not wait for it
}

// advisoryFuncs are the functions of advisory locks, each for keys of one number and of two.
func advisoryFuncs() []decl {
	out := []decl{{sig: "pg_advisory_unlock_all() void", flags: volatile, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
		if env.Session == nil {
			return types.Null, errNoService("advisory locks")
		}
		env.Session.UnlockAllAdvisory(env.Context())
		return types.Text(""), nil
	}}}
	for _, shared := range []bool{false, true} {
		suffix := ""
		if shared {
			suffix = "_shared"
		}
		for _, args := range []string{"(int8)", "(int4,int4)"} {
			pair := args != "(int8)"
			lock := AdvisoryLock{Pair: pair, Shared: shared}
			out = append(out,
				decl{sig: "pg_advisory_lock" + suffix + args + " void", flags: volatile, fn: lockAdvisory(lock)},
				decl{sig: "pg_advisory_unlock" + suffix + args + " bool", flags: volatile, fn: unlockAdvisory(lock)})
			lock.Try = true
			out = append(out, decl{sig: "pg_try_advisory_lock" + suffix + args + " bool", flags: volatile, fn: lockAdvisory(lock)})
			lock.Transaction = true
			out = append(out, decl{sig: "pg_try_advisory_xact_lock" + suffix + args + " bool", flags: volatile, fn: lockAdvisory(lock)})
			lock.Try = false
			out = append(out, decl{sig: "pg_advisory_xact_lock" + suffix + args + " void", flags: volatile, fn: lockAdvisory(lock)})
		}
	}
	return out
}

// key sets the key from the arguments.
func (l AdvisoryLock) key(a []types.Datum) AdvisoryLock {
	if l.Pair {
		l.High, l.Low = uint32(a[0].Int()), uint32(a[1].Int())
	} else {
		l.High, l.Low = uint32(uint64(a[0].Int())>>32), uint32(a[0].Int())
	}
	return l
}

func lockAdvisory(lock AdvisoryLock) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if env.Session == nil {
			return types.Null, errNoService("advisory locks")
		}
		locked, err := env.Session.LockAdvisory(env.Context(), lock.key(a))
		if lock.Try {
			return types.Bool(locked), err
		}
		return types.Text(""), err
	}
}

func unlockAdvisory(lock AdvisoryLock) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if env.Session == nil {
			return types.Null, errNoService("advisory locks")
		}
		return types.Bool(env.Session.UnlockAdvisory(env.Context(), lock.key(a))), nil
	}
}
