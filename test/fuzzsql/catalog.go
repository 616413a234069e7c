package fuzzsql

import (
	"slices"
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// catalog are the operators, functions and aggregates to call, by the type of their result.
type catalog struct {
	calls      map[types.OID][]*builtin.Signature // functions and operators
	aggregates map[types.OID][]*builtin.Signature
	// polymorphic have the result type of an argument.
	calls0      []*builtin.Signature
	aggregates0 []*builtin.Signature
}

// notCalled are functions whose results are not promised, or are about the server; names that end in _
// are prefixes.
var notCalled = []string{
	"pg_", "has_", "obj_", "col_", "shobj_", "to_reg", "current_", "session_", "inet_client_", "inet_server_", "txid_", "row_security_",
	"version", "getdatabaseencoding", "format_type", "user", "now", "localtime", "localtimestamp", "timeofday", "random", "setseed",
	"transaction_timestamp", "statement_timestamp", "clock_timestamp", "gen_random_uuid", "hashenum", "hashenumextended", "nextval", "currval", "lastval", "setval", "set_config",
	// PostgreSQL knows these as syntax only, or percodb declares them for its own use.
	"like_escape", "convert_from", "convert_to",
	"date_add", "date_subtract", // of PostgreSQL 16
	"jsonb_populate_", "json_populate_", // of records alone
}

// special are functions that are not written as a call in PostgreSQL, or whose arguments no parameter may stand for.
var special = map[string]bool{"extract": true, "position": true, "overlay": true, "overlaps": true, "trim": true, "substring": true, "normalize": true}

// smallArguments are functions that can make values as long as their integers say.
var smallArguments = map[string]bool{
	"repeat": true, "lpad": true, "rpad": true, "factorial": true, "^": true, "power": true, "pow": true, "exp": true, "generate_series": true,
	"array_fill": true, "to_char": true, "<<": true,
}

var loadCatalog = sync.OnceValue(func() *catalog {
	c := &catalog{calls: map[types.OID][]*builtin.Signature{}, aggregates: map[types.OID][]*builtin.Signature{}}
	all := builtin.Signatures()
	for i := range all {
		s := &all[i]
		if s.Volatility == builtin.Volatile || excluded(s.Name) || !known(s) {
			continue
		}
		by, poly := c.calls, &c.calls0
		switch s.Kind {
		case builtin.AggregateSignature:
			by, poly = c.aggregates, &c.aggregates0
		case builtin.SetFunctionSignature:
			continue // clause_from.go calls them
		}
		if s.Kind == builtin.FunctionSignature {
			if _, err := types.Lookup(s.Name, nil, 0); err == nil {
				continue // casts have a form of their own
			}
			if special[s.Name] || s.Name == "age" && len(s.Args) == 1 {
				continue
			}
		}
		if s.Ret.IsPolymorphic() {
			*poly = append(*poly, s)
		} else {
			by[s.Ret.OID] = append(by[s.Ret.OID], s)
		}
	}
	return c
})

func excluded(name string) bool {
	if strings.HasSuffix(name, "cmp") {
		return true // Only the sign of its results has a meaning.
	}
	return slices.ContainsFunc(notCalled, func(n string) bool {
		return name == n || strings.HasSuffix(n, "_") && strings.HasPrefix(name, n)
	})
}

// known reports whether all types of a signature are in our table.
func known(s *builtin.Signature) bool {
	for _, t := range append(slices.Clone(s.Args), s.Ret) {
		if byOID[t.OID] == nil && !t.IsPolymorphic() && t.OID != types.OIDAny {
			return false
		}
	}
	return true
}

// binding is what the polymorphic types of a signature stand for.
type binding struct {
	elem *typ
	over types.OID // the range type; elem is what it is over where a signature has both
}

// binding draws types for a signature whose result says nothing of them.
func (g *gen) binding() binding {
	return binding{elem: g.scalar(), over: pick(g, sortedKeys(rangeTypes))}
}

// bindingFor draws types for a signature whose polymorphic result is to be t; false if it cannot be.
func (g *gen) bindingFor(sig *builtin.Signature, t *typ) (binding, bool) {
	b := g.binding()
	switch sig.Ret.OID {
	case types.OIDAnyArray, types.OIDAnyCompatibleArray:
		b.elem = t.elem
		return b, t.elem != nil
	case types.OIDAnyRange, types.OIDAnyCompatibleRange:
		b.over = t.oid
		_, ok := rangeTypes[t.oid]
		return b, ok
	case types.OIDAnyMultirange, types.OIDAnyCompatibleMultirange:
		for _, oid := range sortedKeys(rangeTypes) {
			if rangeTypes[oid].multi == t.oid {
				b.over = oid
				return b, true
			}
		}
		return b, false
	case types.OIDAnyEnum:
		return b, t.oid == oidMood
	}
	b.elem = t
	if !slices.ContainsFunc(sig.Args, isRange) {
		return b, t.elem == nil
	}
	for _, oid := range sortedKeys(rangeTypes) {
		if rangeTypes[oid].over == t.oid {
			b.over = oid
			return b, true
		}
	}
	return b, false
}

func isRange(t types.Type) bool {
	switch t.OID {
	case types.OIDAnyRange, types.OIDAnyMultirange, types.OIDAnyCompatibleRange, types.OIDAnyCompatibleMultirange:
		return true
	}
	return false
}

// argument is the type of an argument that is declared as t.
func argument(g *gen, t types.Type, b binding) *typ {
	switch t.OID {
	case types.OIDAnyArray, types.OIDAnyCompatibleArray:
		return byOID[arrayOID(b.elem)]
	case types.OIDAny:
		return g.anyType()
	case types.OIDAnyRange, types.OIDAnyCompatibleRange:
		return byOID[b.over]
	case types.OIDAnyMultirange, types.OIDAnyCompatibleMultirange:
		return byOID[rangeTypes[b.over].multi]
	case types.OIDAnyEnum:
		return byOID[oidMood]
	}
	if t.IsPolymorphic() {
		return b.elem
	}
	return byOID[t.OID]
}

func arrayOID(t *typ) types.OID {
	if isUserType(t.oid) {
		return t.oid + userArrays
	}
	return types.Type{OID: t.oid, Mod: -1}.ArrayOf().OID
}
