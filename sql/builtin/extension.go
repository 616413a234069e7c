package builtin

import (
	"slices"
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// Extension is a set of functions, operators and types that statements find once CREATE EXTENSION has installed it in a schema. What it
// consists of is declared as PostgreSQL's own functions are; its casts and its types' methods are not looked up by name, and need no
// installation.
type Extension struct {
	Name    string
	Version string // the one version there is
	Comment string
	// Schema is the one in which it must be, "" for any.
	Schema string
	// Types are those that it has, without their array types.
	Types []types.OID

	source     Sources
	functions  func() []decl
	operators  func() []decl
	sets       func() []setDecl
	aggregates func() []aggDecl
}

// extensionList are the extensions by name. Their places in the list are not stored.
var extensionList = sync.OnceValue(func() []*Extension {
	list := []*Extension{
		{Name: "btree_gin", Version: "1.3", Comment: "support for indexing common datatypes in GIN"},
		{Name: "btree_gist", Version: "1.7", Comment: "support for indexing common datatypes in GiST"},
		{Name: "citext", Version: "1.6", Comment: "data type for case-insensitive character strings", Types: []types.OID{types.OIDCitext},
			functions: citextFuncs, operators: citextOps, sets: citextSets, aggregates: citextAggs},
		{Name: "plpgsql", Version: "1.0", Comment: "PL/pgSQL procedural language", Schema: systemSchema},
		{Name: "pg_trgm", Version: "1.6", Comment: "text similarity measurement and index searching based on trigrams",
			functions: trgmFuncs, operators: trgmOps},
		{Name: "fuzzystrmatch", Version: "1.1", Comment: "determine similarities and distance between strings", functions: fuzzyFuncs},
		{Name: "hstore", Version: "1.8", Comment: "data type for storing sets of (key, value) pairs", Types: []types.OID{types.OIDHstore},
			functions: hstoreFuncs, operators: hstoreOps, sets: hstoreSets},
		{Name: "intarray", Version: "1.5", Comment: "functions, operators, and index support for 1-D arrays of integers",
			functions: intarrayFuncs, operators: intarrayOps},
		{Name: "ltree", Version: "1.2", Comment: "data type for hierarchical tree-like structures",
			Types: []types.OID{types.OIDLtree, types.OIDLquery, types.OIDLtxtquery}, functions: ltreeFuncs, operators: ltreeOps},
		{Name: "pgcrypto", Version: "1.3", Comment: "cryptographic functions", functions: pgcryptoFuncs, sets: pgcryptoSets},
		{Name: "unaccent", Version: "1.1", Comment: "text search dictionary that removes accents", functions: unaccentFuncs},
		{Name: "uuid-ossp", Version: "1.1", Comment: "generate universally unique identifiers (UUIDs)", functions: uuidOsspFuncs},
	}
	slices.SortFunc(list, func(a, b *Extension) int { return strings.Compare(a.Name, b.Name) })
	for i, e := range list {
		e.source = System << (i + 1)
	}
	return list
})

// Extensions returns the extensions that there are, by name. The slice must not be changed.
func Extensions() []*Extension { return extensionList() }

// ExtensionNamed returns the extension with a name, nil if there is none.
func ExtensionNamed(name string) *Extension {
	for _, e := range extensionList() {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Source returns the set that contains the extension alone.
func (e *Extension) Source() Sources { return e.source }

// Sources is a set of where functions and operators come from: PostgreSQL itself, and extensions.
type Sources uint32

// System is PostgreSQL itself: what is in pg_catalog.
const System Sources = 1

func (s Sources) has(e *Extension) bool { return s&e.source != 0 }

// extensionObjects are the functions and operators of all extensions, built when the first statement may mean one and only read
// afterwards.
var extensionObjects = sync.OnceValue(func() *extensionSet {
	set := &extensionSet{functions: overloads{}, operators: overloads{}, sets: map[string][]setOverload{}, aggregates: map[string][]aggOverload{}}
	for _, e := range extensionList() {
		set.add(e)
	}
	set.add(informationSchema)
	return set
})

type extensionSet struct {
	functions, operators overloads
	sets                 map[string][]setOverload
	aggregates           map[string][]aggOverload
}

func (s *extensionSet) add(e *Extension) {
	for _, list := range []struct {
		of       func() []decl
		to       overloads
		operator bool
	}{{e.functions, s.functions, false}, {e.operators, s.operators, true}} {
		if list.of == nil {
			continue
		}
		for _, d := range list.of() {
			o := d.overload()
			o.ext, o.operator = e, list.operator
			list.to[o.Name] = append(list.to[o.Name], o)
		}
	}
	if e.sets != nil {
		for _, d := range e.sets() {
			o := (&decl{sig: d.sig, flags: d.flags}).overload()
			o.ext = e
			s.sets[o.Name] = append(s.sets[o.Name], setOverload{o, &d})
		}
	}
	if e.aggregates != nil {
		for name, list := range declareAggregates(e.aggregates()) {
			for _, a := range list {
				a.o.ext = e
			}
			s.aggregates[name] = append(s.aggregates[name], list...)
		}
	}
}

// FuncName is a function's name as a statement has it, and where the function may come from.
type FuncName struct {
	Schema string // "": the statement names none
	Name   string
	From   Sources
	// User are the routines of users with the name, those of schemas that are searched before others first.
	User []UserRoutine
	// Casts are those that users have defined, nil for none.
	Casts *Casts
}

// UserRoutine is a routine of a user that a name may mean.
type UserRoutine struct {
	*Routine
	// Place is that of its schema in the search path; System that of pg_catalog, after which PostgreSQL's own are found.
	Place, System int
}

// SystemFunc names a function of PostgreSQL itself.
func SystemFunc(name string) FuncName { return FuncName{Name: name, From: System} }

// String returns the name as messages have it.
func (f FuncName) String() string {
	if f.Schema == "" {
		return f.Name
	}
	return f.Schema + "." + f.Name
}

// system returns the name if PostgreSQL's own functions are among those that it may mean, else "".
func (f FuncName) system() string {
	if f.From&System == 0 {
		return ""
	}
	return f.Name
}

// IsWindow reports whether the name may mean a window function that is no aggregate.
func (f FuncName) IsWindow() bool { return IsWindowFunc(f.system()) }

// IsOrderedSet reports whether the name may mean an aggregate WITHIN GROUP.
func (f FuncName) IsOrderedSet() bool { return IsOrderedSet(f.system()) }

// overloads returns the functions with the name.
func (f FuncName) overloads() []*Overload {
	return withExtensions(functionsNamed(f.system()), f.From, func(s *extensionSet) []*Overload { return s.functions[f.Name] }, (*Overload).itself)
}

func (o *Overload) itself() *Overload     { return o }
func (s setOverload) overload() *Overload { return s.o }
func (a aggOverload) overload() *Overload { return a.o }
func (f FuncName) setFuncs() []setOverload {
	return withExtensions(setFuncs()[f.system()], f.From, func(s *extensionSet) []setOverload { return s.sets[f.Name] }, setOverload.overload)
}

func (f FuncName) aggregates() []aggOverload {
	return withExtensions(aggregates()[f.system()], f.From, func(s *extensionSet) []aggOverload { return s.aggregates[f.Name] }, aggOverload.overload)
}

// withExtensions adds to PostgreSQL's own declarations those of the extensions among the sources, unless they have the same arguments as one
// of PostgreSQL's, which come first.
func withExtensions[T any](own []T, from Sources, named func(*extensionSet) []T, overload func(T) *Overload) []T {
	if from&^System == 0 {
		return own
	}
	all := slices.Clip(own)
next:
	for _, d := range named(extensionObjects()) {
		if !from.has(overload(d).ext) {
			continue
		}
		for _, have := range own {
			if slices.Equal(overload(have).Args, overload(d).Args) {
				continue next
			}
		}
		all = append(all, d)
	}
	return all
}

// operatorsNamed returns the operators with a name.
func operatorsNamed(op string, from Sources) []*Overload {
	var own []*Overload
	if from&System != 0 {
		own = operators()[op]
	}
	return withExtensions(own, from, func(s *extensionSet) []*Overload { return s.operators[op] }, (*Overload).itself)
}

// Use is a function, an operator or a type of an extension, or a routine that a user has defined, that something depends on.
type Use struct {
	Extension  string
	Kind, Name string   // as messages about dependencies have them: "function", "f(text,integer)"
	Routine    *Routine // of a user
	TextSearch uint32   // the OID of a text search object of a user
	// Operator and Cast are the OIDs of an operator and a cast of a user.
	Operator, Cast types.OID
	// From and To are the types of a conversion through the text form, for which nobody has defined a cast.
	From, To types.OID
}

// Use returns what the overload is of an extension; the zero Use if it is of none.
func (o *Overload) Use() Use {
	d := o.declared
	if d == nil || d.user == nil && (d.ext == nil || d.ext == informationSchema) {
		return Use{}
	}
	name := strings.ReplaceAll(CallSignature(d.Name, d.Args), ", ", ",")
	switch {
	case d.user != nil:
		return Use{Kind: d.user.Kind.String(), Name: name, Routine: d.user}
	case d.operator && len(d.Args) == 1:
		return Use{Extension: d.ext.Name, Kind: "operator", Name: d.Name + "(NONE," + TypeName(d.Args[0]) + ")"}
	case d.operator:
		return Use{Extension: d.ext.Name, Kind: "operator", Name: name}
	}
	return Use{Extension: d.ext.Name, Kind: "function", Name: name}
}

// Use returns what the function is of an extension, as Overload.Use does.
func (f *SetFunc) Use() Use { return f.declared.Use() }

// Use returns what the aggregate is of an extension, as Overload.Use does.
func (a *Aggregate) Use() Use { return a.declared.Use() }

// Use returns the zero Use: extensions have no window functions.
func (f *WindowFunc) Use() Use { return Use{} }

// Use returns the cast of a user, else the zero Use: who uses a cast of an extension uses its type.
func (c *Cast) Use() Use { return Use{Cast: c.User()} }

// TypeUse returns what a type, or the type of an array's elements, is of an extension; the zero Use if it is of none.
func TypeUse(t types.Type) Use {
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	if m := t.Methods(); m != nil && m.Extension != "" {
		return Use{Extension: m.Extension, Kind: "type", Name: TypeName(t)}
	}
	return Use{}
}

// objects calls f with each function and operator of the extension, of the kind that pg_proc has: f, a, o for an operator, s for a function
// that returns a set.
func (e *Extension) objects(f func(kind byte, o *Overload)) {
	set := extensionSet{functions: overloads{}, operators: overloads{}, sets: map[string][]setOverload{}, aggregates: map[string][]aggOverload{}}
	set.add(e)
	for _, name := range sortedKeys(set.functions) {
		for _, o := range set.functions[name] {
			f('f', o)
		}
	}
	for _, name := range sortedKeys(set.sets) {
		for _, s := range set.sets[name] {
			f('s', s.o)
		}
	}
	for _, name := range sortedKeys(set.aggregates) {
		for _, a := range set.aggregates[name] {
			f('a', a.o)
		}
	}
	for _, name := range sortedKeys(set.operators) {
		for _, o := range set.operators[name] {
			f('o', o)
		}
	}
}

// extensionSignature names a function or operator of an extension among those of all.
func (o *Overload) extensionSignature() string {
	kind := ""
	if o.operator {
		kind = "operator "
	}
	return o.ext.Name + ":" + kind + SignatureOf(o.Name, o.Args)
}

// ExtensionSignatures returns the names of all functions and operators of extensions, in order.
func ExtensionSignatures() []string {
	var out []string
	for _, e := range extensionList() {
		e.objects(func(_ byte, o *Overload) { out = append(out, o.extensionSignature()) })
	}
	slices.Sort(out)
	return out
}

// extensionProcs are the functions of extensions by the extension, by OID.
var extensionProcs = sync.OnceValue(func() map[*Extension][]*Proc {
	m := map[*Extension][]*Proc{}
	for _, e := range extensionList() {
		e.objects(func(kind byte, o *Overload) {
			row, ok := pgdata.Extension().Find(o.extensionSignature())
			if !ok || kind == 'o' {
				return // A test requires that each has an OID.
			}
			p := &Proc{OID: types.OID(pgdata.Extension().OIDs[row]), Name: o.Name, Kind: kind, Args: o.procArgs(), Ret: o.Ret.OID,
				Signature: o.declaredSignature(), row: -1, own: o, set: kind == 's'}
			if p.set {
				p.Kind = 'f'
			}
			m[e] = append(m[e], p)
		})
		slices.SortFunc(m[e], func(a, b *Proc) int { return int(a.OID) - int(b.OID) })
	}
	return m
})

// Procs returns the functions of the extension by OID. The slice must not be changed.
func (e *Extension) Procs() []*Proc { return extensionProcs()[e] }

// Extension returns the extension that the function is of, nil if it is of none.
func (p *Proc) Extension() *Extension {
	if p.own == nil || p.own.ext == informationSchema {
		return nil
	}
	return p.own.ext
}

// extensionProcByOID returns the function of an extension with an OID, nil if there is none.
func extensionProcByOID(oid types.OID) *Proc {
	for _, list := range extensionProcs() {
		for _, p := range list {
			if p.OID == oid {
				return p
			}
		}
	}
	return nil
}
