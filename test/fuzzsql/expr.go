package fuzzsql

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// scope is what an expression may name.
type scope struct {
	columns []column
	outer   *scope // of the query around
	over    *scope // aggregates may be called over its columns
	windows bool   // window functions may be called over the columns
}

// column is a name, or another expression that stands for itself, with its type.
type column struct {
	name string
	typ  *typ
	expr *tree // instead of the name
	// stored are its values, where not all of the type may be.
	stored []string
}

// value returns a value for a row of the column's table.
func (c column) value(g *gen) string {
	if c.stored != nil {
		return pick(g, c.stored)
	}
	return g.stored(c.typ)
}

// tree is the column in an expression.
func (c column) tree() *tree {
	if c.expr != nil {
		return seq(c.expr.clone())
	}
	return leaf(c.name)
}

// find returns a random column of the type, here or, seldom, around; types that convert to it count now
// and then.
func (s *scope) find(g *gen, t *typ) *tree {
	for at := s; at != nil; at = at.outer {
		if at == s || g.chance(40) {
			var found []column
			for _, c := range at.columns {
				if c.typ == t || g.chance(8) && slices.Contains(t.from, c.typ.oid) {
					found = append(found, c)
				}
			}
			if len(found) > 0 {
				return pick(g, found).tree()
			}
		}
	}
	return nil
}

// anyColumnType returns the type of some column, so that expressions are about the tables.
func (g *gen) anyColumnType(s *scope) *typ {
	if s != nil && len(s.columns) > 0 && g.chance(85) {
		return pick(g, s.columns).typ
	}
	return g.anyType()
}

// sortedColumnType is anyColumnType of types whose values compare.
func (g *gen) sortedColumnType(s *scope) *typ {
	return g.sortedType(func() *typ { return g.anyColumnType(s) })
}

// exprForm makes an expression of a type, or nil if it has none.
type exprForm func(g *gen, t *typ, s *scope, depth int) *tree

var exprForms []weighted[exprForm]

func init() {
	exprForms = []weighted[exprForm]{
		{40, exprCall},
		{5, exprCase},
		{4, exprCoalesce},
		{3, exprNullif},
		{3, exprGreatest},
		{8, exprCast},
		{4, exprScalarSubquery},
		{8, exprAggregate},
		{4, exprArray},
		{2, exprSubscript},
		{30, exprPredicate},
		{3, exprSpecialCall},
		{6, exprUserCall},
		{6, exprWindow},
		{2, exprRangeWindow},
	}
}

// expr makes an expression of a type, at most so deep.
func (g *gen) expr(t *typ, s *scope, depth int) *tree {
	sort, simple := "expr:"+t.sql, "NULL::"+t.sql
	if depth > 0 && !g.chance(20) {
		for range 4 {
			if e := choose(g, exprForms)(g, t, s, depth-1); e != nil {
				if e.sort != "" { // It is a part of another sort already.
					return seq(e).as(sort, simple)
				}
				return e.as(sort, simple)
			}
		}
	}
	if s != nil && !g.chance(20) {
		if c := s.find(g, t); c != nil {
			return c.as(sort, simple)
		}
	}
	return g.literal(t).as(sort, simple)
}

// operands writes an operator's expression, in parentheses mostly: without them the parser's
// precedences decide.
func (g *gen) parens(parts ...any) *tree {
	if g.chance(6) {
		return seq(parts...)
	}
	return seq(append(append([]any{"("}, parts...), ")")...)
}

func exprCall(g *gen, t *typ, s *scope, depth int) *tree {
	list := g.cat.calls[t.oid]
	poly := g.cat.calls0
	n := len(list) + len(poly)
	if n == 0 {
		return nil
	}
	i := g.IntN(n)
	if i < len(list) {
		return g.call(list[i], g.binding(), s, depth)
	}
	sig := poly[i-len(list)]
	b, ok := g.bindingFor(sig, t)
	if !ok {
		return nil
	}
	return g.call(sig, b, s, depth)
}

// call writes a call of a function or operator.
func (g *gen) call(sig *builtin.Signature, b binding, s *scope, depth int) *tree {
	declared := sig.Args
	if slices.ContainsFunc(declared, isRange) {
		b.elem = byOID[rangeTypes[b.over].over]
	}
	for sig.Variadic && len(declared) < 5 && g.chance(50) {
		declared = append(declared[:len(declared):len(declared)], declared[len(declared)-1])
	}
	args := make([]*tree, len(declared))
	for i, at := range declared {
		t := argument(g, at, b)
		if sig.Name == "array_fill" && t.elem != nil {
			args[i] = t.constant(pick(g, []string{"{2}", "{1,3}", "{0}", "{}", "{2,2}", "{-1}"})).as("expr:"+t.sql, "")
			continue
		}
		if smallArguments[sig.Name] && t.elem == nil && (i > 0 || len(declared) == 1) {
			args[i] = t.constant(pick(g, t.stored)).as("expr:"+t.sql, "")
			continue
		}
		args[i] = g.expr(t, s, depth)
	}
	if sig.Kind == builtin.OperatorSignature {
		if len(args) == 1 {
			return g.parens(sig.Name, " ", args[0])
		}
		return g.parens(args[0], " "+sig.Name+" ", args[1])
	}
	least := len(sig.Args)
	return seq(funcName(sig.Name), "(", listOf(", ", least, args...), ")")
}

// reservedFunctions need quotes to be called with parentheses.
var reservedFunctions = map[string]bool{"left": false, "right": false, "char": true, "overlaps": true}

func funcName(name string) string {
	if reservedFunctions[name] {
		return `"` + name + `"`
	}
	return name
}

func exprCase(g *gen, t *typ, s *scope, depth int) *tree {
	var whens []*tree
	boolType := byOID[types.OIDBool]
	if g.chance(30) {
		of := g.anyColumnType(s)
		for range 1 + g.IntN(2) {
			whens = append(whens, seq(" WHEN ", g.expr(of, s, depth-1), " THEN ", g.expr(t, s, depth)))
		}
		return seq("CASE ", g.expr(of, s, depth-1), listOf("", 1, whens...), opt(" ELSE ", g.expr(t, s, depth)), " END")
	}
	for range 1 + g.IntN(3) {
		whens = append(whens, seq(" WHEN ", g.expr(boolType, s, depth), " THEN ", g.expr(t, s, depth)))
	}
	return seq("CASE", listOf("", 1, whens...), opt(" ELSE ", g.expr(t, s, depth)), " END")
}

func (g *gen) exprs(t *typ, s *scope, depth, least, most int) *tree {
	var list []*tree
	for range least + g.IntN(most-least+1) {
		list = append(list, g.expr(t, s, depth))
	}
	return listOf(", ", least, list...)
}

func exprCoalesce(g *gen, t *typ, s *scope, depth int) *tree {
	return seq("COALESCE(", g.exprs(t, s, depth, 1, 3), ")")
}

func exprNullif(g *gen, t *typ, s *scope, depth int) *tree {
	if t.unsorted && !g.chance(3) {
		return nil
	}
	return seq("NULLIF(", g.expr(t, s, depth), ", ", g.expr(t, s, depth), ")")
}

func exprGreatest(g *gen, t *typ, s *scope, depth int) *tree {
	if t.unsorted && !g.chance(3) {
		return nil
	}
	return seq(pick(g, []string{"GREATEST", "LEAST"}), "(", g.exprs(t, s, depth, 1, 3), ")")
}

// castFrom are the types to cast from; other pairs mostly fail, in both servers alike.
func castFrom(g *gen, t *typ) *typ {
	if len(t.from) > 0 && g.chance(60) {
		return byOID[pick(g, t.from)]
	}
	if t.oid == types.OIDText || t.oid == types.OIDVarchar || t.oid == types.OIDBPChar {
		return g.anyType()
	}
	return g.scalar()
}

func exprCast(g *gen, t *typ, s *scope, depth int) *tree {
	if t.elem == nil && g.chance(25) { // With a modifier.
		return seq("CAST(", g.expr(t, s, depth), " AS "+t.declared(g)+")")
	}
	from := castFrom(g, t)
	if _, ok := builtin.FindCast(types.Type{OID: from.oid, Mod: -1}, types.Type{OID: t.oid, Mod: -1}, builtin.Explicit); !ok && !g.chance(3) {
		return nil
	}
	if (from.oid == types.OIDText || from.oid == types.OIDVarchar || from.oid == types.OIDBPChar) && !g.chance(20) && !isText(t) {
		return nil // Text is seldom a value of another type.
	}
	e := g.expr(from, s, depth)
	if g.chance(50) {
		return seq("CAST(", e, " AS "+t.sql+")")
	}
	return seq("(", e, ")::"+t.sql)
}

func isText(t *typ) bool {
	return t.oid == types.OIDText || t.oid == types.OIDVarchar || t.oid == types.OIDBPChar
}

func exprScalarSubquery(g *gen, t *typ, s *scope, depth int) *tree {
	if g.depth >= 3 {
		return nil
	}
	if t.elem != nil && g.chance(50) {
		q, _ := g.query(queryWants{types: []*typ{t.elem}, outer: s, depth: depth, total: true})
		return seq("ARRAY(", q, ")")
	}
	if g.chance(60) || t.unsorted { // An aggregate has one row.
		q := g.aggregateQuery(t, s, depth)
		if q == nil {
			return nil
		}
		return seq("(", q, ")")
	}
	q, _ := g.query(queryWants{types: []*typ{t}, outer: s, depth: depth, total: true, limit: 1})
	return seq("(", q, ")")
}

// exprAggregate calls an aggregate where that is allowed.
func exprAggregate(g *gen, t *typ, s *scope, depth int) *tree {
	if s == nil || s.over == nil {
		return nil
	}
	return g.aggregate(t, s.over, depth)
}

// aggregate calls an aggregate with a result of type t over the columns of s.
func (g *gen) aggregate(t *typ, s *scope, depth int) *tree {
	if g.chance(10) {
		if a := g.orderedSet(t, s, depth); a != nil {
			return a
		}
	}
	list := g.cat.aggregates[t.oid]
	i := g.IntN(len(list) + len(g.cat.aggregates0) + 1)
	if t.oid == types.OIDInt8 && (i == len(list)+len(g.cat.aggregates0) || g.chance(30)) {
		return seq("count(*)", g.filter(s, depth))
	}
	var sig *builtin.Signature
	b := g.binding()
	b.elem = g.anyColumnType(s)
	switch {
	case i < len(list):
		sig = list[i]
	case i < len(list)+len(g.cat.aggregates0):
		sig = g.cat.aggregates0[i-len(list)]
		var ok bool
		if b, ok = g.bindingFor(sig, t); !ok || sig.Args[0].OID == types.OIDAnyArray {
			return nil
		}
	default:
		return nil
	}
	args := make([]*tree, len(sig.Args))
	inexact, unsorted := false, false
	for i, at := range sig.Args {
		at := argument(g, at, b)
		inexact = inexact || at.inexact || at.oid == types.OIDInterval
		unsorted = unsorted || at.unsorted
		args[i] = g.expr(at, &scope{columns: s.columns, outer: s.outer}, min(depth, 2))
	}
	if len(args) == 0 {
		return seq(sig.Name, "(*)", g.filter(s, depth))
	}
	ordered := sig.OrderMatters || inexact && sig.Name != "count" && sig.Name != "min" && sig.Name != "max"
	if ordered {
		return seq(sig.Name, "(", joined(args), " ORDER BY ", g.orderKeys(args, unsorted), ")", g.filter(s, depth))
	}
	distinct := ""
	if g.chance(15) && !unsorted {
		distinct = "DISTINCT "
	}
	return seq(sig.Name, "(", distinct, joined(args), ")", g.filter(s, depth))
}

func joined(list []*tree) *tree { return listOf(", ", len(list), list...) }

// orderKeys order an aggregate's input whole: equal values by their looks.
func (g *gen) orderKeys(args []*tree, unsorted bool) *tree {
	var keys []string
	for _, a := range args {
		if text := a.String(); !isConstant(a) {
			if !unsorted {
				keys = append(keys, text)
			}
			keys = append(keys, "("+text+")::text")
		}
	}
	if len(keys) == 0 {
		return leaf("1::int4")
	}
	return leaf(strings.Join(keys, ", "))
}

func isConstant(t *tree) bool { return t.literal != nil || strings.HasPrefix(t.text, "NULL::") }

func (g *gen) filter(s *scope, depth int) *tree {
	if !g.chance(12) {
		return nil
	}
	return opt(" FILTER (WHERE ", g.expr(byOID[types.OIDBool], &scope{columns: s.columns, outer: s.outer}, min(depth, 2)), ")")
}

func exprArray(g *gen, t *typ, s *scope, depth int) *tree {
	if t.elem == nil {
		return nil
	}
	if g.chance(30) {
		return seq("(", g.expr(t, s, depth), ")"+g.slice())
	}
	if g.chance(15) {
		return seq("ARRAY[[", g.exprs(t.elem, s, depth, 2, 2), "], [", g.exprs(t.elem, s, depth, 2, 2), "]]")
	}
	return seq("ARRAY[", g.exprs(t.elem, s, depth, 0, 3), "]::"+t.sql)
}

func exprSubscript(g *gen, t *typ, s *scope, depth int) *tree {
	if t.elem != nil {
		return nil
	}
	return seq("(", g.expr(byOID[arrayOID(t)], s, depth), ")[", g.expr(byOID[types.OIDInt4], s, depth-1), "]")
}

// What special calls take: patterns, formats and fields, of which a random text is none.
var (
	patterns      = []string{"'a'", "'^[a-c]+$'", "'(.)(.)'", "'\\d+'", "'(\\w)\\1'", "'[[:alpha:]]*'", "'b|o'", "'l{2}'", "'\\mfoo'", "'(?i)HELLO'", "'a.*?c'", "''", "'[^a-z]'", "'(?=o)'", "'x*'"}
	similar       = []string{"'a%'", "'%(b|c)_'", "'[a-z]+'", "'#\"a#\"%'", "'%#\"[0-9]+#\"%'", "'a{2,3}'"}
	dateFormats   = []string{"'YYYY-MM-DD HH24:MI:SS.US'", "'Day, DD Month YYYY BC'", "'FMDay FMDD FMMonth'", "'J Q WW IW IYYY-IDDD'", "'HH12:MI:SS am'", "'CC DDD D W RM rm'", "'SSSS \"text\" TZ'", "'DDth Mon YY'"}
	numberFormats = []string{"'999.99'", "'FM9990.00'", "'S9999'", "'9,999PR'", "'RN'", "'0000V99'", "'9.99EEEE'", "'99th'", "'MI999D9'", "'L999'", "'SG00'"}
	fields        = []string{"'year'", "'month'", "'day'", "'week'", "'quarter'", "'hour'", "'minute'", "'milliseconds'", "'decade'", "'century'", "'millennium'"}
	fieldNames    = []string{"year", "month", "doy", "dow", "isodow", "isoyear", "week", "quarter", "epoch", "second", "microseconds", "hour", "julian", "century", "decade"}
)

// specialCalls are functions with a syntax of their own, by the type of their result.
var specialCalls = []form{
	{types.OIDText, []any{"trim(", types.OIDText, ")"}},
	{types.OIDText, []any{"trim(both ", types.OIDText, " from ", types.OIDText, ")"}},
	{types.OIDText, []any{"trim(leading ", types.OIDText, " from ", types.OIDText, ")"}},
	{types.OIDText, []any{"substring(", types.OIDText, " from ", types.OIDInt4, " for ", types.OIDInt4, ")"}},
	{types.OIDText, []any{"substring(", types.OIDText, ", ", types.OIDInt4, ")"}},
	{types.OIDText, []any{"overlay(", types.OIDText, " placing ", types.OIDText, " from ", types.OIDInt4, ")"}},
	{types.OIDText, []any{"normalize(", types.OIDText, ")"}},
	{types.OIDText, []any{"normalize(", types.OIDText, ", NFKD)"}},
	{types.OIDBool, []any{"(", types.OIDText, " IS NFC NORMALIZED)"}},
	{types.OIDText, []any{"substring(", types.OIDText, " similar ", similar, " escape '#')"}},
	{types.OIDBool, []any{types.OIDText, []string{" SIMILAR TO ", " NOT SIMILAR TO "}, similar}},
	{types.OIDBool, []any{types.OIDText, []string{" ~ ", " !~ ", " ~* ", " !~* "}, patterns}},
	{types.OIDText, []any{"regexp_replace(", types.OIDText, ", ", patterns, ", ", []string{"'<\\1>'", "'\\&\\&'", "''", "'x'"}, ", ", []string{"'g'", "'gi'", "'n'", "''"}, ")"}},
	{types.OIDText, []any{"regexp_substr(", types.OIDText, ", ", patterns, ")"}},
	{types.OIDInt4, []any{"regexp_count(", types.OIDText, ", ", patterns, ")"}},
	{1009, []any{"regexp_match(", types.OIDText, ", ", patterns, ")"}},
	{1009, []any{"regexp_split_to_array(", types.OIDText, ", ", patterns, ")"}},
	{types.OIDBool, []any{types.OIDText, " LIKE ANY (ARRAY[", types.OIDText, ", ", types.OIDText, "])"}},
	{types.OIDText, []any{"to_char(", types.OIDTimestamp, ", ", dateFormats, ")"}},
	{types.OIDText, []any{"to_char(", types.OIDInterval, ", ", dateFormats, ")"}},
	{types.OIDText, []any{"to_char(", types.OIDNumeric, ", ", numberFormats, ")"}},
	{types.OIDText, []any{"to_char(", types.OIDInt4, ", ", numberFormats, ")"}},
	{types.OIDText, []any{"to_char(", types.OIDFloat8, ", ", numberFormats, ")"}},
	{types.OIDTimestamp, []any{"date_trunc(", fields, ", ", types.OIDTimestamp, ")"}},
	{types.OIDInterval, []any{"date_trunc(", fields, ", ", types.OIDInterval, ")"}},
	{types.OIDFloat8, []any{"date_part(", fields, ", ", types.OIDTimestamp, ")"}},
	{types.OIDFloat8, []any{"date_part(", fields, ", ", types.OIDTimetz, ")"}},
	{types.OIDNumeric, []any{"extract(", fieldNames, " from ", types.OIDTimestamp, ")"}},
	{types.OIDNumeric, []any{"extract(", fieldNames, " from ", types.OIDInterval, ")"}},
	{types.OIDNumeric, []any{"extract(", fieldNames, " from ", types.OIDTime, ")"}},
	{types.OIDTimestamp, []any{"date_bin(", []string{"'15 minutes'", "'1 day'", "'7 days'"}, ", ", types.OIDTimestamp, ", '2001-01-01')"}},
	{types.OIDTimetz, []any{types.OIDTimetz, " AT TIME ZONE ", []string{"'UTC'", "'+03'", "interval '-01:30'"}}},
	{types.OIDText, []any{"format(", []string{"'%s|%I|%L'", "'%2$s %1$s %3$10s'", "'%-8s%%%s%s'"}, ", ", types.OIDText, ", ", types.OIDText, ", ", types.OIDInt4, ")"}},
	{types.OIDJSONB, []any{"(", types.OIDJSONB, ")", []string{"['a']", "[0]", "['b'][1]['c']", "[-1]"}}},
	{types.OIDBool, []any{types.OIDJSONB, []string{" @? '$.a'", " @@ '$.a == 1'", " ? 'a'", " ?| ARRAY['a', 'b']", " ?& ARRAY['a', 'b']", " @> '{\"a\": 1}'"}}},
	{types.OIDVarbit, []any{"substring(", types.OIDVarbit, " from ", []string{"1", "2", "0"}, " for ", []string{"2", "4"}, ")"}},
	{types.OIDBytea, []any{"overlay(", types.OIDBytea, " placing ", types.OIDBytea, " from ", []string{"1", "2", "4"}, ")"}},
	{types.OIDInt4, []any{"position(", types.OIDVarbit, " in ", types.OIDVarbit, ")"}},
	{types.OIDInt4, []any{"num_nulls(", types.OIDInt4, ", ", types.OIDText, ", ", types.OIDDate, ")"}},
	{types.OIDInt4, []any{"num_nonnulls(VARIADIC ", types.OIDText, "::text[])"}},
	{types.OIDBool, []any{"ROW(", types.OIDInt4, ", ", types.OIDText, ") IS ", []string{"NULL", "NOT NULL", "DISTINCT FROM ROW(1, 'a')"}}},
	{types.OIDBool, []any{"(", types.OIDDate, ", ", types.OIDDate, ") OVERLAPS (", types.OIDDate, ", ", types.OIDInterval, ")"}},
	{types.OIDInt4, []any{"position(", types.OIDText, " in ", types.OIDText, ")"}},
	{types.OIDNumeric, []any{"extract(year from ", types.OIDDate, ")"}},
	{types.OIDNumeric, []any{"extract(dow from ", types.OIDTimestamp, ")"}},
	{types.OIDNumeric, []any{"extract(epoch from ", types.OIDInterval, ")"}},
	{types.OIDNumeric, []any{"extract(epoch from ", types.OIDTimestamptz, ")"}},
	{types.OIDTimestamp, []any{types.OIDTimestamptz, " AT TIME ZONE 'Europe/Berlin'"}},
	{types.OIDTimestamptz, []any{types.OIDTimestamp, " AT TIME ZONE 'America/New_York'"}},
	{types.OIDText, []any{types.OIDText, ` COLLATE "C"`}},
	{types.OIDBool, []any{"(", types.OIDTimestamp, ", ", types.OIDInterval, ") OVERLAPS (", types.OIDTimestamp, ", ", types.OIDTimestamp, ")"}},
}

func exprSpecialCall(g *gen, t *typ, s *scope, depth int) *tree {
	return g.composed(specialCalls, t, s, depth)
}

// form is an expression of parts: strings, lists of which one is taken, and types of operands.
type form struct {
	ret   types.OID
	parts []any
}

// composed makes an expression of a form with the type as result, nil if there is none.
func (g *gen) composed(forms []form, t *typ, s *scope, depth int) *tree {
	first := g.IntN(len(forms))
	for i := range forms {
		c := forms[(first+i)%len(forms)]
		if c.ret != t.oid {
			continue
		}
		parts := []any{"("}
		for _, p := range c.parts {
			switch p := p.(type) {
			case types.OID:
				parts = append(parts, g.expr(byOID[p], s, depth))
			case []string:
				parts = append(parts, pick(g, p))
			default:
				parts = append(parts, p)
			}
		}
		return seq(append(parts, ")")...)
	}
	return nil
}
