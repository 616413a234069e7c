package builtin

import (
	"maps"
	"slices"
	"sync"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// registered is a declared function.
type registered struct {
	kind byte // prokind
	set  bool
	o    *Overload
}

// registeredFuncs returns every function that is declared by its own name.
func registeredFuncs() []registered {
	var out []registered
	for _, list := range functions() {
		for _, o := range list {
			out = append(out, registered{'f', false, o})
		}
	}
	for _, list := range setFuncs() {
		for _, s := range list {
			out = append(out, registered{'f', true, s.o})
		}
	}
	for _, m := range []map[string][]aggOverload{aggregates(), orderedSets()} {
		for _, list := range m {
			for _, a := range list {
				out = append(out, registered{'a', false, a.o})
			}
		}
	}
	for _, list := range windowFuncs() {
		for _, w := range list {
			out = append(out, registered{'w', false, w.o})
		}
	}
	informationSchema.objects(func(kind byte, o *Overload) { out = append(out, registered{'f', kind == 's', o}) })
	for name, h := range hypothetical {
		out = append(out, registered{'a', false, hypotheticalOverload(name, h.ret)})
	}
	return out
}

// procArgs returns the argument types of a declaration as pg_proc has them.
func (o *Overload) procArgs() []types.OID {
	args := make([]types.OID, len(o.Args))
	for i, t := range o.Args {
		if o.variadic && i == len(o.Args)-1 && t.OID != types.OIDAny {
			t = t.ArrayOf()
		}
		args[i] = t.OID
	}
	return args
}

// procRow returns the row of pgdata.Procs of a declared function, and whether the function leaves out arguments that have defaults there.
func (o *Overload) procRow() (row int, short, ok bool) {
	args := o.procArgs()
	if args, differs := otherArgs[o.declaredSignature()]; differs {
		row, ok = pgdata.Procs().Find(o.Name, args)
		return row, false, ok
	}
	if row, ok = pgdata.Procs().Find(o.Name, oidList(args)); ok {
		return row, false, true
	}
	for _, row := range procDefaults()[o.Name] {
		all := parseOIDList(pgdata.Procs().Value(row, "proargtypes"))
		missing := len(all) - len(args)
		if missing > 0 && missing <= int(pgdata.Procs().Number(row, "pronargdefaults")) && slices.Equal(all[:len(args)], args) {
			return row, true, true
		}
	}
	return 0, false, false
}

// otherArgs are the argument types in pg_proc of functions that are declared with others: jsonb_delete(jsonb, VARIADIC text[]) takes at least two
// texts, since there is one that takes a single text.
var otherArgs = map[string]string{"jsonb_delete(jsonb,text,text)": "3802 1009"}

// procDefaults are the rows of functions with defaults, by name.
var procDefaults = sync.OnceValue(func() map[string][]int {
	m := map[string][]int{}
	t := pgdata.Procs()
	for row := range t.Len() {
		if t.Value(row, "pronargdefaults") != "0" {
			name := t.Value(row, "proname")
			m[name] = append(m[name], row)
		}
	}
	return m
})

// keywordFuncs are declared for keywords of the grammar. They cannot be called by their names.
var keywordFuncs = map[string]bool{
	"current_catalog": true, "current_date": true, "current_role": true, "current_time": true, "current_timestamp": true, "localtime": true,
	"localtimestamp": true, "user": true,
}

// OwnSignatures returns the signatures of the functions that PostgreSQL does not have, in order.
func OwnSignatures() []string {
	var out []string
	for _, r := range registeredFuncs() {
		if _, _, ok := r.o.procRow(); !ok && !keywordFuncs[r.o.Name] {
			out = append(out, r.o.declaredSignature())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// procSelection collects the functions of a procSet.
type procSelection struct {
	shown map[int]string // the signatures of rows of pgdata.Procs
	short map[string]int // the rows of declarations that leave out arguments, by their signatures
	own   []*Proc
}

func buildProcs() *procSet {
	s := &procSelection{shown: map[int]string{}, short: map[string]int{}}
	for _, r := range registeredFuncs() {
		s.declared(r)
	}
	set := &procSet{byName: map[string][]*Proc{}, bySignature: map[string]*Proc{}}
	set.operators, set.casts = selectOperators(), selectCasts()
	s.references(pgdata.Operators(), set.operators, "oprcode", "oprrest", "oprjoin")
	s.references(pgdata.Casts(), set.casts, "castfunc")
	s.references(pgdata.Types(), rowsOf(pgdata.Types()), "typsubscript", "typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze")
	s.references(pgdata.Ranges(), rowsOf(pgdata.Ranges()), "rngcanonical", "rngsubdiff")
	s.references(pgdata.AmProcs(), rowsOf(pgdata.AmProcs()), "amproc")
	set.amops = selectAmOps(set.operators)
	s.aggregates()
	for _, oid := range rowlessFuncs {
		s.referenced(oid)
	}
	s.references(pgdata.Procs(), slices.Collect(maps.Keys(s.shown)), "prosupport")
	s.synonyms()
	set.procs = s.procs()
	for _, p := range set.procs {
		set.byName[p.Name] = append(set.byName[p.Name], p)
		set.bySignature[p.Signature] = p
	}
	for signature, row := range s.short {
		set.bySignature[signature] = set.byOID(types.OID(pgdata.Procs().OIDs[row]))
	}
	return set
}

// rowlessFuncs are functions to which only rows refer that are not in the tables of pgdata: the handlers of heap and btree, the validators of
// the languages internal and sql, the input and output of domains and enums, the parser and the templates of full-text search, and trigger functions, among
// them those of foreign keys.
var rowlessFuncs = []uint32{3, 330, 1291, 1644, 1645, 1646, 1647, 1648, 1649, 1650, 1651, 1652, 1653, 1654, 1655, 2246, 2248, 2597, 2598, 3506, 3507, 3532, 3533, 3752, 3753,
	3717, 3718, 3719, 3720, 3721, 3725, 3726, 3728, 3729, 3731, 3732, 3740, 3741, 13148, 13149}

// declared adds a function that is declared by its name.
func (s *procSelection) declared(r registered) {
	signature := r.o.declaredSignature()
	if row, short, ok := r.o.procRow(); short {
		s.referenced(pgdata.Procs().OIDs[row])
		s.short[signature] = row
		return
	} else if ok {
		s.shown[row] = signature
		return
	}
	row, ok := pgdata.Own().Find(signature)
	if !ok {
		return // A test requires that every function has an OID.
	}
	s.own = append(s.own, &Proc{
		OID: types.OID(pgdata.Own().OIDs[row]), Name: r.o.Name, Kind: r.kind, Args: r.o.procArgs(), Ret: r.o.Ret.OID,
		Signature: signature, row: -1, own: r.o, set: r.set,
	})
}

// referenced adds a function that a row of another catalog refers to; 0 is none.
func (s *procSelection) referenced(oid uint32) {
	row, ok := pgdata.Procs().ByOID(oid)
	if !ok || s.shown[row] != "" {
		return
	}
	name, args := pgdata.Procs().Value(row, "proname"), parseOIDList(pgdata.Procs().Value(row, "proargtypes"))
	s.shown[row] = SignatureOf(name, typesOf(args))
}

func typesOf(oids []types.OID) []types.Type {
	out := make([]types.Type, len(oids))
	for i, oid := range oids {
		out[i] = types.Type{OID: oid, Mod: -1}
	}
	return out
}

// references adds the functions that columns of a table refer to.
func (s *procSelection) references(t *pgdata.Table, rows []int, columns ...string) {
	for _, row := range rows {
		for _, column := range columns {
			s.referenced(t.Number(row, column))
		}
	}
}

// aggregates adds the functions of which aggregates consist.
func (s *procSelection) aggregates() {
	t := pgdata.Aggregates()
	var rows []int
	for row, oid := range t.OIDs {
		if proc, ok := pgdata.Procs().ByOID(oid); ok && s.shown[proc] != "" {
			rows = append(rows, row)
		}
	}
	s.references(t, rows, "aggtransfn", "aggfinalfn", "aggcombinefn", "aggserialfn", "aggdeserialfn", "aggmtransfn", "aggminvtransfn", "aggmfinalfn")
}

// implementation is what functions that do the same have in common; empty for those that are written in SQL, and for aggregates.
func implementation(row int) string {
	t := pgdata.Procs()
	if t.Value(row, "prolang") != "12" || t.Value(row, "prokind") != "f" {
		return ""
	}
	return t.Value(row, "prosrc") + " " + t.Value(row, "proargtypes")
}

// synonyms adds the functions that do the same as one that there is: numeric_exp is exp, textlen is length.
func (s *procSelection) synonyms() {
	t := pgdata.Procs()
	known := map[string]bool{}
	for row := range s.shown {
		known[implementation(row)] = true
	}
	for row, oid := range t.OIDs {
		if what := implementation(row); what != "" && known[what] {
			s.referenced(oid)
		}
	}
}

func (s *procSelection) procs() []*Proc {
	t := pgdata.Procs()
	all := s.own
	for row, signature := range s.shown {
		all = append(all, &Proc{
			OID: types.OID(t.OIDs[row]), Name: t.Value(row, "proname"), Kind: t.Value(row, "prokind")[0], Args: parseOIDList(t.Value(row, "proargtypes")),
			Ret: types.OID(t.Number(row, "prorettype")), Signature: signature, row: row,
		})
	}
	slices.SortFunc(all, func(a, b *Proc) int { return int(a.OID) - int(b.OID) })
	return all
}

func rowsOf(t *pgdata.Table) []int {
	rows := make([]int, t.Len())
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// selectOperators returns the rows of the operators that are declared.
func selectOperators() []int {
	var rows []int
	for name, list := range operators() {
		for _, o := range list {
			if row, ok := operatorRow(name, o.Args); ok {
				rows = append(rows, row)
			}
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// operatorRow returns the row of pgdata.Operators of an operator with one or two arguments.
func operatorRow(name string, args []types.Type) (int, bool) {
	left := types.OID(0)
	if len(args) == 2 {
		left = args[0].OID
	}
	return pgdata.Operators().Find(name, formatOID(left), formatOID(args[len(args)-1].OID))
}

// selectCasts returns the rows of the casts that there are. A cast of a type to itself applies a modifier.
func selectCasts() []int {
	t := pgdata.Casts()
	var rows []int
	for row := range t.Len() {
		from, to := types.OID(t.Number(row, "castsource")), types.OID(t.Number(row, "casttarget"))
		if _, ok := castTable()[castKey{from, to}]; ok || from == to {
			rows = append(rows, row)
		}
	}
	return rows
}

// selectAmOps returns the rows of the members of operator families whose operators are among the given ones.
func selectAmOps(operators []int) []int {
	t := pgdata.AmOps()
	var rows []int
	for row := range t.Len() {
		if op, ok := pgdata.Operators().ByOID(t.Number(row, "amopopr")); ok && slices.Contains(operators, op) {
			rows = append(rows, row)
		}
	}
	return rows
}
