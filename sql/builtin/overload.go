package builtin

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// Func evaluates one call.
type Func func(env *Env, args []types.Datum) (types.Datum, error)

// Volatility is when two calls with equal arguments give equal results.
type Volatility uint8

// The volatilities, as PostgreSQL's provolatile.
const (
	Immutable Volatility = iota // always
	Stable                      // within a statement
	Volatile                    // never
)

// Overload is one function or operator for given argument types. Those that resolution returns have no polymorphic
// types, and as many Args as the call has arguments.
type Overload struct {
	Name       string
	Args       []types.Type // coerce the arguments to these
	Ret        types.Type
	Strict     bool // NULL for a NULL argument, without a call
	Volatility Volatility
	Fn         Func
	// Undetermined: it fails, since the collation of its arguments could not be derived (UndeterminedCall).
	Undetermined bool

	// Call is the call of a routine that a user has defined; nil: it is none.
	Call *RoutineCall

	// Operator is the operator of a user that the overload evaluates; nil: the call means the function, or an operator of PostgreSQL.
	Operator *Operator

	user     *Routine             // the declaration of such a routine
	declared *Overload            // as declared, with polymorphic types
	operator bool                 // an operator, which a function evaluates
	variadic bool                 // the last of the declared Args repeats at least once
	ext      *Extension           // nil: of PostgreSQL itself
	bind     func(*Overload) Func // returns Fn for the resolved types; nil: Fn is set
}

// flags of a declaration.
type flags uint8

const (
	nonStrict flags = 1 << iota
	stable
	volatile
)

// decl declares an overload: its signature is "name(argtypes) rettype" with internal type names and
// "variadic any" for a repeated last argument.
type decl struct {
	sig   string
	fn    Func
	flags flags
	bind  func(*Overload) Func
}

// parseSignature parses a declaration's signature, which is part of the program: a mistake panics.
func parseSignature(sig string) *Overload {
	open := strings.LastIndexByte(sig, '(')
	end := strings.LastIndexByte(sig, ')')
	if open < 0 || end < open {
		panic("builtin: signature " + sig)
	}
	o := &Overload{Name: sig[:open], Ret: mustType(strings.TrimSpace(sig[end+1:]))}
	o.declared = o
	if list := sig[open+1 : end]; list != "" {
		for arg := range strings.SplitSeq(list, ",") {
			arg = strings.TrimSpace(arg)
			if rest, ok := strings.CutPrefix(arg, "variadic "); ok {
				o.variadic, arg = true, rest
			}
			o.Args = append(o.Args, mustType(arg))
		}
	}
	return o
}

// Signature returns the name and the declared argument types of the function, by the types' internal names: "lower(text)". It
// identifies a function among all of them, and of an operator it is that of its function. "" for what is no function of its own: a cast in a
// call's form.
func (o *Overload) Signature() string {
	if o.declared == nil || o.declared.user != nil { // A routine of a user has privileges of its own.
		return ""
	}
	if o.declared.operator {
		return operatorFunction(o.declared)
	}
	return o.declaredSignature()
}

func (o *Overload) declaredSignature() string { return SignatureOf(o.declared.Name, o.declared.Args) }

// SignatureOf returns the signature of a function.
func SignatureOf(name string, args []types.Type) string {
	var b strings.Builder
	b.WriteString(name + "(")
	for i, t := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.Info().Name)
	}
	b.WriteByte(')')
	return b.String()
}

func mustType(name string) types.Type {
	name, isArray := strings.CutSuffix(name, "[]")
	dims := 0
	if isArray {
		dims = 1
	}
	t, err := types.Lookup(name, nil, dims)
	if of := types.InExtensions(name); of.Valid() {
		t, err = of, nil
		if isArray {
			t = of.ArrayOf()
		}
	}
	if err != nil {
		panic(fmt.Sprintf("builtin: type %q: %v", name, err))
	}
	return t
}

func (d *decl) overload() *Overload {
	o := parseSignature(d.sig)
	o.Fn, o.bind = d.fn, d.bind
	o.Strict = d.flags&nonStrict == 0
	switch {
	case d.flags&volatile != 0:
		o.Volatility = Volatile
	case d.flags&stable != 0:
		o.Volatility = Stable
	}
	return o
}

// overloads are declared functions or operators by name.
type overloads map[string][]*Overload

func (m overloads) add(lists ...[]decl) {
	for _, list := range lists {
		for i := range list {
			o := list[i].overload()
			m[o.Name] = append(m[o.Name], o)
		}
	}
}
