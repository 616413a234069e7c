package builtin

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// objectAddress is an object by the numbers of its system table, its own and that of a column.
type objectAddress struct {
	class, id types.OID
	column    int
}

// addressed is what pg_get_object_address takes.
type addressed struct {
	kind        string
	names, args []string
}

// unsupportedKinds are those that pg_get_object_address refuses.
var unsupportedKinds = map[string]bool{
	"view column": true, "materialized view column": true, "composite type": true, "composite type column": true, "index column": true,
	"sequence column": true, "toast table": true, "toast table column": true,
}

func openObjectAddress(env *Env, a []types.Datum) (SetRows, error) {
	q := addressed{kind: a[0].Text()}
	for i, list := range []*[]string{&q.names, &q.args} {
		for _, e := range a[i+1].Array().Elems {
			if e.IsNull() {
				return nil, pgerror.New(pgerror.InvalidParameterValue, "name or argument lists may not contain nulls")
			}
			*list = append(*list, e.Text())
		}
	}
	at, err := newObjectReader(env).address(&q)
	if err != nil {
		return nil, err
	}
	return identityRow("pg_get_object_address", types.Int(int64(at.class)), types.Int(int64(at.id)), types.Int(int64(at.column))), nil
}

// address finds an object by its kind and names.
func (o *objectReader) address(q *addressed) (objectAddress, error) {
	if unsupportedKinds[q.kind] {
		return objectAddress{}, pgerror.New(pgerror.InvalidParameterValue, "unsupported object type \"%s\"", q.kind)
	}
	switch q.kind {
	case "table", "index", "sequence", "view", "materialized view", "foreign table":
		r, err := o.relation(q)
		return objectAddress{1259, r.oid("oid"), 0}, err
	case "table column", "foreign table column":
		return o.column(q)
	case "default value":
		return o.defaultValue(q)
	case "type":
		id, err := o.typeNamed(q)
		return objectAddress{1247, id, 0}, err
	case "function", "procedure", "aggregate":
		id, err := o.env.routineNamed(q)
		return objectAddress{1255, id, 0}, err
	case "operator":
		return o.operator(q)
	case "cast":
		return o.castBetween(q)
	case "table constraint", "trigger", "policy", "rule":
		return o.partOfRelation(q)
	case "domain constraint":
		return o.domainConstraint(q)
	case "operator class", "operator family":
		return o.ofMethod(q)
	case "operator of access method", "function of access method":
		return o.member(q)
	}
	c := classOfKind(q.kind)
	switch {
	case c == nil || c.part:
		return objectAddress{}, pgerror.New(pgerror.InvalidParameterValue, "unrecognized object type \"%s\"", q.kind)
	case c.namespace != "":
		return o.inSchema(c, q)
	}
	if err := q.length("name", len(q.names), 1); err != nil {
		return objectAddress{}, err
	}
	r, err := o.find(c.table, func(r systemRecord) bool { return r.text(c.name) == q.names[0] })
	if err == nil && r == nil {
		err = q.missing(pgerror.UndefinedObject, q.kind, q.names[0])
	}
	return objectAddress{c.oid, r.oid("oid"), 0}, err
}

// length fails unless a list of names or arguments has so many.
func (q *addressed) length(what string, have, want int) error {
	if have == want {
		return nil
	}
	return pgerror.New(pgerror.InvalidParameterValue, "%s list length must be exactly %d", what, want)
}

// atLeast fails if there are fewer names.
func (q *addressed) atLeast(want int) error {
	if len(q.names) >= want {
		return nil
	}
	return pgerror.New(pgerror.InvalidParameterValue, "name list length must be at least %d", want)
}

func (q *addressed) missing(code pgerror.Code, kind, name string) error {
	switch kind {
	case "schema":
		code = pgerror.InvalidSchemaName
	case "database":
		code = pgerror.InvalidCatalogName
	}
	return pgerror.New(code, "%s \"%s\" does not exist", kind, name)
}

// relation finds the relation of a name of one or two parts, of the kind that is asked for.
func (o *objectReader) relation(q *addressed) (systemRecord, error) {
	if err := q.atLeast(1); err != nil {
		return nil, err
	}
	r, err := o.relationNamed(q.names)
	if err != nil {
		return nil, err
	}
	kind, name := relationKind(r.text("relkind")), q.names[len(q.names)-1]
	if kind == q.kind {
		return r, nil
	}
	article := "a "
	if q.kind == "index" {
		article = "an "
	}
	return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not %s", name, article+q.kind)
}

func (o *objectReader) relationNamed(names []string) (systemRecord, error) {
	dotted := strings.Join(names, ".")
	if len(names) > 3 {
		return nil, pgerror.New(pgerror.SyntaxError, "improper relation name (too many dotted names): %s", dotted)
	}
	if len(names) == 3 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cross-database references are not implemented: \"%s\"", dotted)
	}
	id, err := o.env.Catalog.RelationOID(quotedPath(names))
	if err == nil {
		var r systemRecord
		if r, err = o.byOID("pg_class", id); r != nil || err != nil {
			return r, err
		}
	}
	return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", dotted)
}

func quotedPath(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = keyword.QuoteIdent(name)
	}
	return strings.Join(quoted, ".")
}

// column finds the column that the last name is of the relation that the others name.
func (o *objectReader) column(q *addressed) (objectAddress, error) {
	if len(q.names) < 2 {
		return objectAddress{}, pgerror.New(pgerror.SyntaxError, "column name must be qualified")
	}
	table, name := q.names[:len(q.names)-1], q.names[len(q.names)-1]
	r, err := o.relationNamed(table)
	if err != nil {
		return objectAddress{}, err
	}
	a, err := o.find("pg_attribute", func(a systemRecord) bool { return a.oid("attrelid") == r.oid("oid") && a.text("attname") == name })
	if err == nil && a == nil {
		err = pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, strings.Join(table, "."))
	}
	if err != nil {
		return objectAddress{}, err
	}
	return objectAddress{1259, r.oid("oid"), int(a["attnum"].Int())}, nil
}

func (o *objectReader) defaultValue(q *addressed) (objectAddress, error) {
	at, err := o.column(q)
	if err != nil {
		return at, err
	}
	r, err := o.find("pg_attrdef", func(r systemRecord) bool { return r.oid("adrelid") == at.id && int(r["adnum"].Int()) == at.column })
	if err == nil && r == nil {
		err = pgerror.New(pgerror.UndefinedObject, "default value for column \"%s\" of relation \"%s\" does not exist", q.names[len(q.names)-1],
			strings.Join(q.names[:len(q.names)-1], "."))
	}
	return objectAddress{2604, r.oid("oid"), 0}, err
}

// typeNamed finds the type that the only name means.
func (o *objectReader) typeNamed(q *addressed) (types.OID, error) {
	if err := q.length("name", len(q.names), 1); err != nil {
		return 0, err
	}
	return o.env.typeOf(q.names[0])
}

func (e *Env) typeOf(text string) (types.OID, error) {
	t, err := types.ParseTypeName(text, e.Format.Names)
	return t.OID, err
}

// typesOf finds the types that the arguments mean; NONE and "-" are none.
func (e *Env) typesOf(texts []string) (ids []types.OID, err error) {
	for _, text := range texts {
		id := types.OID(0)
		if !strings.EqualFold(text, "none") && text != "-" {
			if id, err = e.typeOf(text); err != nil {
				return nil, err
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// routineNamed finds a function, procedure or aggregate by its name and arguments.
func (e *Env) routineNamed(q *addressed) (types.OID, error) {
	if err := q.atLeast(1); err != nil {
		return 0, err
	}
	if _, err := e.typesOf(q.args); err != nil {
		return 0, err
	}
	text := quotedPath(q.names) + "(" + strings.Join(q.args, ",") + ")"
	d, err := types.ParseText(types.TRegprocedure, text, &e.Format)
	if err == nil {
		return types.OID(d.Int()), nil
	}
	shown := make([]string, len(q.args))
	for i, arg := range q.args {
		id, _ := e.typeOf(arg) // It was found before.
		shown[i] = TypeName(types.Type{OID: id, Mod: -1})
	}
	return 0, pgerror.New(pgerror.UndefinedFunction, "%s %s(%s) does not exist", q.kind, strings.Join(q.names, "."), strings.Join(shown, ", "))
}

func (o *objectReader) operator(q *addressed) (objectAddress, error) {
	if err := q.length("argument", len(q.args), 2); err != nil {
		return objectAddress{}, err
	}
	if err := q.atLeast(1); err != nil {
		return objectAddress{}, err
	}
	operands, err := o.env.typesOf(q.args)
	if err != nil {
		return objectAddress{}, err
	}
	name := q.names[len(q.names)-1]
	r, err := o.find("pg_operator", func(r systemRecord) bool {
		return r.text("oprname") == name && r.oid("oprleft") == operands[0] && r.oid("oprright") == operands[1]
	})
	if err == nil && r == nil {
		err = pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s %s %s", q.args[0], strings.Join(q.names, "."), q.args[1])
	}
	return objectAddress{2617, r.oid("oid"), 0}, err
}

func (o *objectReader) castBetween(q *addressed) (objectAddress, error) {
	if err := q.length("name", len(q.names), 1); err != nil {
		return objectAddress{}, err
	}
	if err := q.length("argument", len(q.args), 1); err != nil {
		return objectAddress{}, err
	}
	ends, err := o.env.typesOf([]string{q.names[0], q.args[0]})
	if err != nil {
		return objectAddress{}, err
	}
	r, err := o.find("pg_cast", func(r systemRecord) bool { return r.oid("castsource") == ends[0] && r.oid("casttarget") == ends[1] })
	if err == nil && r == nil {
		err = pgerror.New(pgerror.UndefinedObject, "cast from type %s to type %s does not exist", TypeName(types.Type{OID: ends[0], Mod: -1}),
			TypeName(types.Type{OID: ends[1], Mod: -1}))
	}
	return objectAddress{2605, r.oid("oid"), 0}, err
}

// partOfRelation finds a constraint, trigger, policy or rule of a relation.
func (o *objectReader) partOfRelation(q *addressed) (objectAddress, error) {
	if len(q.names) < 2 {
		return objectAddress{}, pgerror.New(pgerror.SyntaxError, "must specify relation and object name")
	}
	table, name := q.names[:len(q.names)-1], q.names[len(q.names)-1]
	relation, err := o.relationNamed(table)
	if err != nil {
		return objectAddress{}, err
	}
	kind := strings.TrimPrefix(q.kind, "table ")
	c := classOfKind(kind)
	owner := c.owner
	if owner == "" {
		owner = "conrelid"
	}
	r, err := o.find(c.table, func(r systemRecord) bool { return r.oid(owner) == relation.oid("oid") && r.text(c.name) == name })
	if err == nil && r == nil {
		word := " for relation "
		if kind != "rule" {
			word = " for table "
		}
		err = pgerror.New(pgerror.UndefinedObject, "%s \"%s\"%s\"%s\" does not exist", kind, name, word, relation.text("relname"))
	}
	return objectAddress{c.oid, r.oid("oid"), 0}, err
}

func (o *objectReader) domainConstraint(q *addressed) (objectAddress, error) {
	if err := q.length("name", len(q.names), 1); err != nil {
		return objectAddress{}, err
	}
	if err := q.length("argument", len(q.args), 1); err != nil {
		return objectAddress{}, err
	}
	domain, err := o.env.typeOf(q.names[0])
	if err != nil {
		return objectAddress{}, err
	}
	r, err := o.find("pg_constraint", func(r systemRecord) bool { return r.oid("contypid") == domain && r.text("conname") == q.args[0] })
	if err == nil && r == nil {
		err = pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for domain %s does not exist", q.args[0], q.names[0])
	}
	return objectAddress{2606, r.oid("oid"), 0}, err
}

// inSchema finds an object of a kind whose names are qualified.
func (o *objectReader) inSchema(c *objectClass, q *addressed) (objectAddress, error) {
	if err := q.atLeast(1); err != nil {
		return objectAddress{}, err
	}
	r, err := o.named(c, q.names, func(systemRecord) bool { return true })
	if err == nil && r == nil {
		err = q.missing(pgerror.UndefinedObject, q.kind, strings.Join(q.names, "."))
	}
	return objectAddress{c.oid, r.oid("oid"), 0}, err
}

// named finds the object of a possibly qualified name: in the first schema of the search path that has one.
func (o *objectReader) named(c *objectClass, names []string, is func(systemRecord) bool) (systemRecord, error) {
	name := names[len(names)-1]
	schemas := names[:len(names)-1]
	if len(schemas) == 0 && o.env.Session != nil {
		schemas = o.env.Session.Schemas(true)
	}
	for _, schema := range schemas {
		namespace, err := o.find("pg_namespace", func(r systemRecord) bool { return r.text("nspname") == schema })
		if err != nil {
			return nil, err
		}
		if namespace == nil {
			continue
		}
		r, err := o.find(c.table, func(r systemRecord) bool {
			return r.text(c.name) == name && r.oid(c.namespace) == namespace.oid("oid") && is(r)
		})
		if r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// ofMethod finds an operator class or an operator family of an access method.
func (o *objectReader) ofMethod(q *addressed) (objectAddress, error) {
	if err := q.atLeast(2); err != nil {
		return objectAddress{}, err
	}
	method, err := o.find("pg_am", func(r systemRecord) bool { return r.text("amname") == q.names[0] })
	if err == nil && method == nil {
		err = q.missing(pgerror.UndefinedObject, "access method", q.names[0])
	}
	if err != nil {
		return objectAddress{}, err
	}
	c := classOfKind(q.kind)
	r, err := o.named(c, q.names[1:], func(r systemRecord) bool { return r.oid(c.owner) == method.oid("oid") })
	if err == nil && r == nil {
		err = pgerror.New(pgerror.UndefinedObject, "%s \"%s\" does not exist for access method \"%s\"", q.kind, strings.Join(q.names[1:], "."), q.names[0])
	}
	return objectAddress{c.oid, r.oid("oid"), 0}, err
}

// member finds an operator or a function of an operator family by its number and the types of its operands.
func (o *objectReader) member(q *addressed) (objectAddress, error) {
	if err := q.atLeast(3); err != nil {
		return objectAddress{}, err
	}
	if err := q.length("argument", len(q.args), 2); err != nil {
		return objectAddress{}, err
	}
	last := len(q.names) - 1
	family, err := o.ofMethod(&addressed{kind: "operator family", names: q.names[:last]})
	if err != nil {
		return objectAddress{}, err
	}
	operands, err := o.env.typesOf(q.args)
	if err != nil {
		return objectAddress{}, err
	}
	number, err := strconv.Atoi(q.names[last])
	if err != nil {
		return objectAddress{}, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", "integer", q.names[last])
	}
	c := classOfKind(q.kind)
	columns := [4]string{"amopfamily", "amopstrategy", "amoplefttype", "amoprighttype"}
	if c.table == "pg_amproc" {
		columns = [4]string{"amprocfamily", "amprocnum", "amproclefttype", "amprocrighttype"}
	}
	r, err := o.find(c.table, func(r systemRecord) bool {
		return r.oid(columns[0]) == family.id && int(r[columns[1]].Int()) == number && r.oid(columns[2]) == operands[0] && r.oid(columns[3]) == operands[1]
	})
	if err == nil && r == nil {
		word, _, _ := strings.Cut(q.kind, " ")
		err = pgerror.New(pgerror.UndefinedObject, "%s %d (%s, %s) of operator family %s for access method %s does not exist", word, number, q.args[0],
			q.args[1], strings.Join(q.names[1:last], "."), q.names[0])
	}
	return objectAddress{c.oid, r.oid("oid"), 0}, err
}
