package builtin

import (
	"sync"

	"github.com/percodb/percodb/sql/types"
)

// WindowFunc is a window function that is no aggregate, for given argument types.
type WindowFunc struct {
	Name string
	Kind WindowKind
	Args []types.Type // coerce the arguments to these
	Ret  types.Type

	declared *Overload
}

// Signature returns that of the declared function, as Overload.Signature does.
func (f *WindowFunc) Signature() string { return f.declared.Signature() }

// WindowKind is what a window function computes.
type WindowKind uint8

// The kinds of window functions, each named as its function.
const (
	RowNumber WindowKind = iota + 1
	Rank
	DenseRank
	PercentRank
	CumeDist
	Ntile
	Lag
	Lead
	FirstValue
	LastValue
	NthValue
)

// NeedsPartition reports whether the result depends on the size of the whole partition.
func (k WindowKind) NeedsPartition() bool { return k == PercentRank || k == CumeDist || k == Ntile }

type windowOverload struct {
	o    *Overload
	kind WindowKind
}

var windowFuncs = sync.OnceValue(func() map[string][]windowOverload {
	m := map[string][]windowOverload{}
	for _, d := range []struct {
		kind WindowKind
		sigs []string
	}{
		{RowNumber, []string{"row_number() int8"}},
		{Rank, []string{"rank() int8"}},
		{DenseRank, []string{"dense_rank() int8"}},
		{PercentRank, []string{"percent_rank() float8"}},
		{CumeDist, []string{"cume_dist() float8"}},
		{Ntile, []string{"ntile(int4) int4"}},
		{Lag, []string{"lag(anyelement) anyelement", "lag(anyelement,int4) anyelement",
			"lag(anycompatible,int4,anycompatible) anycompatible"}},
		{Lead, []string{"lead(anyelement) anyelement", "lead(anyelement,int4) anyelement",
			"lead(anycompatible,int4,anycompatible) anycompatible"}},
		{FirstValue, []string{"first_value(anyelement) anyelement"}},
		{LastValue, []string{"last_value(anyelement) anyelement"}},
		{NthValue, []string{"nth_value(anyelement,int4) anyelement"}},
	} {
		for _, sig := range d.sigs {
			o := parseSignature(sig)
			m[o.Name] = append(m[o.Name], windowOverload{o, d.kind})
		}
	}
	return m
})

// IsWindowFunc reports whether a window function that is no aggregate has the name.
func IsWindowFunc(name string) bool { return windowFuncs()[name] != nil }

// ResolveWindowFunc finds the overload of a window function that is no aggregate.
//
// Errors: 42883, 42725, 42804 as ResolveFunc.
func ResolveWindowFunc(name string, args []types.Type) (*WindowFunc, error) {
	var candidates []*Overload
	kind := WindowKind(0)
	for _, w := range windowFuncs()[name] {
		kind = w.kind
		if len(w.o.Args) == len(args) {
			candidates = append(candidates, w.o)
		}
	}
	chosen, err := pick(name, candidates, args)
	if err != nil {
		return nil, err
	}
	o, err := chosen.resolved(args)
	if err != nil {
		return nil, err
	}
	return &WindowFunc{Name: name, Kind: kind, Args: o.Args, Ret: o.Ret, declared: chosen}, nil
}
