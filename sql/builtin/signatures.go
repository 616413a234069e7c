package builtin

import (
	"maps"
	"slices"

	"github.com/percodb/percodb/sql/types"
)

// SignatureKind is the syntax of a declared signature's calls.
type SignatureKind uint8

// The kinds of signatures.
const (
	FunctionSignature SignatureKind = iota
	OperatorSignature
	AggregateSignature
	SetFunctionSignature
)

// Signature is one declared overload, for tools that list them all. Its types may be polymorphic.
type Signature struct {
	Kind       SignatureKind
	Name       string
	Args       []types.Type // must not be changed
	Ret        types.Type
	Variadic   bool // the last of Args repeats, at least once
	Volatility Volatility
	// OrderMatters is set for aggregates whose result depends on the order of their input.
	OrderMatters bool
}

// Signatures returns every declared function, operator, aggregate and set-returning function, ordered
// by kind and name.
func Signatures() []Signature {
	var out []Signature
	add := func(kind SignatureKind, o *Overload) *Signature {
		out = append(out, Signature{Kind: kind, Name: o.Name, Args: o.Args, Ret: o.Ret, Variadic: o.variadic, Volatility: o.Volatility})
		return &out[len(out)-1]
	}
	for _, list := range []struct {
		kind SignatureKind
		m    overloads
	}{{FunctionSignature, functions()}, {OperatorSignature, operators()}} {
		for _, name := range sortedKeys(list.m) {
			for _, o := range list.m[name] {
				add(list.kind, o)
			}
		}
	}
	for _, name := range sortedKeys(aggregates()) {
		for _, a := range aggregates()[name] {
			add(AggregateSignature, a.o).OrderMatters = a.decl.flags&aggOrdered != 0
		}
	}
	for _, name := range sortedKeys(setFuncs()) {
		for _, s := range setFuncs()[name] {
			add(SetFunctionSignature, s.o)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
