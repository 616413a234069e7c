package builtin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// objectIdentity is an object as pg_identify_object names it. schema and name are quoted, "" for none. names and args are what
// pg_get_object_address takes. exists: the object does.
type objectIdentity struct {
	kind, schema, name, identity string
	names, args                  []string
	exists                       bool
}

// on makes the identity of what belongs to a relation.
func (i *objectIdentity) on(name string, relation *objectIdentity) {
	i.identity = keyword.QuoteIdent(name) + " on " + relation.identity
	i.names = append(slices.Clone(relation.names), name)
}

// identify finds an object by the numbers of its system table, its own and that of a column.
func (o *objectReader) identify(class, id types.OID, column int) (objectIdentity, error) {
	at := slices.IndexFunc(objectClasses, func(c objectClass) bool { return c.oid == class })
	if at < 0 {
		return objectIdentity{}, unrecognizedClass(class)
	}
	c := &objectClasses[at]
	found := objectIdentity{kind: c.kind}
	r, err := o.byOID(c.table, id)
	if err != nil || r == nil {
		return found, err
	}
	found.exists = true
	if c.namespace != "" && r.oid(c.namespace) != 0 {
		schema, err := o.schemaName(r.oid(c.namespace))
		if err != nil {
			return found, err
		}
		found.schema = keyword.QuoteIdent(schema)
		found.names = append(found.names, schema)
	}
	if c.name != "" && c.unique {
		found.name = keyword.QuoteIdent(r.text(c.name))
		found.names = append(found.names, r.text(c.name))
	}
	found.identity = found.name
	if found.schema != "" {
		found.identity = found.schema + "." + found.name
	}
	if c.part {
		err = o.identifyPart(c, r, column, &found)
	}
	return found, err
}

// identifyPart completes the identity of an object that has more than a name.
func (o *objectReader) identifyPart(c *objectClass, r systemRecord, column int, i *objectIdentity) (err error) {
	switch c.kind {
	case "relation":
		i.kind = relationKind(r.text("relkind"))
		if column == 0 {
			return nil
		}
		a, err := o.find("pg_attribute", func(a systemRecord) bool {
			return a.oid("attrelid") == r.oid("oid") && int(a["attnum"].Int()) == column
		})
		if err != nil || a == nil {
			i.exists = false
			return err
		}
		i.kind += " column"
		i.identity += "." + keyword.QuoteIdent(a.text("attname"))
		i.names = append(i.names, a.text("attname"))
	case "type":
		i.identity, err = o.typeName(r.oid("oid"))
		i.names = []string{i.identity}
	case "routine":
		i.kind = routineKind(r.text("prokind"))
		if i.args, err = o.typeNames(oidsOf(r["proargtypes"])); err != nil {
			return err
		}
		i.identity = i.schema + "." + keyword.QuoteIdent(r.text("proname")) + "(" + strings.Join(i.args, ",") + ")"
		i.names = append(i.names, r.text("proname"))
	case "operator":
		operands := []types.OID{r.oid("oprleft"), r.oid("oprright")}
		if i.args, err = o.typeNames(operands); err != nil {
			return err
		}
		if operands[0] == 0 {
			i.args = i.args[1:]
		}
		shown := i.args
		if operands[0] == 0 {
			shown = append([]string{"NONE"}, i.args...)
		}
		i.identity = i.schema + "." + r.text("oprname") + "(" + strings.Join(shown, ",") + ")"
		i.names = append(i.names, r.text("oprname"))
	case "cast":
		ends, err := o.typeNames([]types.OID{r.oid("castsource"), r.oid("casttarget")})
		if err != nil {
			return err
		}
		i.identity, i.names, i.args = "("+ends[0]+" AS "+ends[1]+")", ends[:1], ends[1:]
	case "constraint":
		return o.identifyConstraint(r, i)
	case "trigger", "policy", "rule":
		relation, err := o.identify(1259, r.oid(c.owner), 0)
		i.on(r.text(c.name), &relation)
		return err
	case "default value":
		relation, err := o.identify(1259, r.oid("adrelid"), int(r["adnum"].Int()))
		i.identity, i.names = "for "+relation.identity, relation.names
		return err
	case "operator class", "operator family":
		method, err := o.byOID("pg_am", r.oid(c.owner))
		if err != nil || method == nil {
			return err
		}
		i.identity += " USING " + keyword.QuoteIdent(method.text("amname"))
		i.names = append([]string{method.text("amname")}, i.names...)
	case "operator of access method":
		return o.identifyMember(r, "amopfamily", "amopstrategy", "operator", []types.OID{r.oid("amoplefttype"), r.oid("amoprighttype")}, i)
	case "function of access method":
		return o.identifyMember(r, "amprocfamily", "amprocnum", "function", []types.OID{r.oid("amproclefttype"), r.oid("amprocrighttype")}, i)
	}
	return err
}

func (o *objectReader) identifyConstraint(r systemRecord, i *objectIdentity) error {
	name := r.text("conname")
	if table := r.oid("conrelid"); table != 0 {
		i.kind = "table constraint"
		relation, err := o.identify(1259, table, 0)
		i.on(name, &relation)
		return err
	}
	i.kind = "domain constraint"
	domain, err := o.typeName(r.oid("contypid"))
	i.identity, i.names, i.args = keyword.QuoteIdent(name)+" on "+domain, []string{domain}, []string{name}
	return err
}

// identifyMember completes the identity of an operator or a function of an operator family.
func (o *objectReader) identifyMember(r systemRecord, family, number, word string, operands []types.OID, i *objectIdentity) error {
	of, err := o.identify(2753, r.oid(family), 0)
	if err != nil {
		return err
	}
	if i.args, err = o.typeNames(operands); err != nil {
		return err
	}
	n := strconv.FormatInt(r[number].Int(), 10)
	i.identity = word + " " + n + " (" + strings.Join(i.args, ", ") + ") of " + of.identity
	i.names = append(slices.Clone(of.names), n)
	return nil
}

// describeByName is pg_describe_object of what the catalog does not describe: objects that have no more than a name, and those of access methods.
func (o *objectReader) describeByName(class, id types.OID) (string, bool, error) {
	i, err := o.identify(class, id, 0)
	if err != nil || !i.exists {
		return "", false, err
	}
	name := i.name
	switch i.kind {
	case "operator class", "operator family":
		return i.kind + " " + name + " for access method " + keyword.QuoteIdent(i.names[0]), true, nil
	case "operator of access method", "function of access method":
		return o.describeMember(&i, id)
	case "cast":
		from, to := strings.TrimPrefix(i.names[0], "pg_catalog."), strings.TrimPrefix(i.args[0], "pg_catalog.")
		return "cast from " + from + " to " + to, true, nil
	case "text search parser", "text search template", "conversion", "statistics object":
		if i.schema != "pg_catalog" && i.schema != "public" {
			name = i.identity
		}
	}
	return i.kind + " " + name, true, nil
}

// describeMember describes an operator or a function of an operator family.
func (o *objectReader) describeMember(i *objectIdentity, id types.OID) (string, bool, error) {
	word, _, _ := strings.Cut(i.kind, " ")
	table, column, kind := "pg_amop", "amopopr", types.OIDRegoperator
	if word == "function" {
		table, column, kind = "pg_amproc", "amproc", types.OIDRegprocedure
	}
	r, err := o.byOID(table, id)
	if err != nil || r == nil {
		return "", false, err
	}
	name, _ := o.env.Catalog.RoutineName(kind, r.oid(column))
	family, last := i.names[len(i.names)-2], len(i.names)-1
	return word + " " + i.names[last] + " (" + strings.Join(i.args, ", ") + ") of operator family " + keyword.QuoteIdent(family) + " for access method " +
		keyword.QuoteIdent(i.names[0]) + ": " + name, true, nil
}

// identityRow makes the result of pg_identify_object or pg_identify_object_as_address.
func identityRow(function string, values ...types.Datum) SetRows {
	var fields []types.Type
	for _, c := range outColumns(function) {
		fields = append(fields, c.Type)
	}
	return &sliceRows{[]types.Datum{types.NewRecord(fields, values)}}
}

func orNull(text string, ok bool) types.Datum {
	if !ok {
		return types.Null
	}
	return types.Text(text)
}

func openIdentifyObject(env *Env, a []types.Datum) (SetRows, error) {
	i, err := newObjectReader(env).identify(oidArg(a[0]), oidArg(a[1]), int(a[2].Int()))
	if err != nil {
		return nil, err
	}
	return identityRow("pg_identify_object", types.Text(i.kind), orNull(i.schema, i.exists && i.schema != ""), orNull(i.name, i.exists && i.name != ""),
		orNull(i.identity, i.exists)), nil
}

func openIdentifyAddress(env *Env, a []types.Datum) (SetRows, error) {
	i, err := newObjectReader(env).identify(oidArg(a[0]), oidArg(a[1]), int(a[2].Int()))
	if err != nil {
		return nil, err
	}
	list := func(texts []string) types.Datum {
		if !i.exists {
			return types.Null
		}
		elems := make([]types.Datum, len(texts))
		for i, text := range texts {
			elems[i] = types.Text(text)
		}
		return textArray(elems)
	}
	return identityRow("pg_identify_object_as_address", types.Text(i.kind), list(i.names), list(i.args)), nil
}
