package ddl

import (
	"cmp"
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/pghash"
	"github.com/percodb/percodb/sql/types"
)

// ALTER, DROP and COMMENT ON OPERATOR CLASS and FAMILY, and what uses classes.

// ofOperations reports whether a kind of objects is one of operators, casts, operator classes and families.
func ofOperations(kind string) bool {
	switch kind {
	case "OPERATOR", "CAST", "OPERATOR CLASS", "OPERATOR FAMILY":
		return true
	}
	return false
}

// hashes reports whether PostgreSQL has a default hash class for a type.
func hashes(t types.Type) bool { return pghash.Hashable(t) }

// alterOperations is ALTER OPERATOR [CLASS|FAMILY] with a change that objects of many kinds have.
func (r *run) alterOperations(ctx context.Context, n *ast.AlterObject) error {
	switch n.Object.Kind {
	case "OPERATOR":
		return r.alterOperator(ctx, n)
	case "OPERATOR CLASS":
		return r.alterClass(ctx, n)
	}
	return r.alterFamilyObject(ctx, n)
}

// dropOperations is DROP of operators, casts, operator classes and families.
func (r *run) dropOperations(ctx context.Context, n *ast.DropObjects) error {
	switch n.Objects[0].Kind {
	case "OPERATOR":
		return r.dropOperators(ctx, n)
	case "CAST":
		return r.dropCasts(ctx, n)
	}
	var s operationSet
	for i := range n.Objects {
		o := &n.Objects[i]
		one, err := r.droppedClass(ctx, o)
		if absent, ok := err.(*absentOperator); ok {
			if !n.IfExists {
				return absent.err
			}
			r.noticeAbsent("%s", absent.notice)
			continue
		}
		if err != nil {
			return err
		}
		s.add(one)
	}
	return r.dropOperationList(ctx, s, n.Cascade)
}

// droppedClass finds an operator class or family that the user may drop.
//
// Errors: *absentOperator.
func (r *run) droppedClass(ctx context.Context, o *ast.Object) (s operationSet, err error) {
	name := strings.Join(o.Name, ".")
	owner, schema, kind := uint32(0), "", strings.ToLower(o.Kind)
	if o.Kind == "OPERATOR CLASS" {
		d, err := r.findClass(ctx, o.Name, o.Using)
		if err != nil {
			return s, err
		}
		if d != nil {
			s.classes = append(s.classes, d)
			owner, schema = d.OwnerOID(), d.Schema
		}
	} else {
		f, err := r.findFamily(ctx, o.Name, o.Using)
		if err != nil {
			return s, err
		}
		if d := f.own; d != nil {
			s.families = append(s.families, d)
			owner, schema = d.OwnerOID(), d.Schema
		}
	}
	switch {
	case s.empty() && !r.access.Superuser():
		return s, mustBeOwner(kind, o.Using+"."+name)
	case s.empty():
		return s, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s %s for access method %s because it is required by the database system",
			kind, ast.QuoteIdent(o.Name[len(o.Name)-1]), o.Using)
	case !r.access.Owns(owner) && !r.access.OwnsSchema(schema):
		return s, mustBeOwner(kind, o.Using+"."+name)
	}
	return s, nil
}

// findClass finds an operator class; nil for one of PostgreSQL.
//
// Errors: *absentOperator.
func (r *run) findClass(ctx context.Context, path []string, method string) (*catalog.OpClassDescriptor, error) {
	name, schemas, err := r.classSchemas(ctx, path, method)
	if err != nil {
		return nil, err
	}
	for _, schema := range schemas {
		if d := r.r.Operations().FindClass(schema, method, name.Name); d != nil {
			return d, nil
		}
		if schema == catalog.SystemSchema && systemClassName(method, name.Name) {
			return nil, nil
		}
	}
	e := pgerror.New(pgerror.UndefinedObject, "operator class %q does not exist for access method %q", strings.Join(path, "."), method)
	return nil, &absentOperator{e, e.Message + ", skipping"}
}

// systemClassName reports whether PostgreSQL has an operator class of a name for a method. Those of hash have the names of btree's.
func systemClassName(method, name string) bool {
	if method != "btree" && method != "hash" {
		return false
	}
	rows := pgdata.OpClasses()
	for row := range rows.Len() {
		if rows.Value(row, "opcname") == name && (method == "btree" || hashes(types.Type{OID: types.OID(rows.Number(row, "opcintype")), Mod: -1})) {
			return true
		}
	}
	return false
}

// ownedClass finds an operator class that the user may change.
func (r *run) ownedClass(ctx context.Context, o *ast.Object) (*catalog.OpClassDescriptor, error) {
	d, err := r.findClass(ctx, o.Name, o.Using)
	if absent, ok := err.(*absentOperator); ok {
		return nil, absent.err
	}
	name := strings.Join(o.Name, ".")
	switch {
	case err != nil:
		return nil, err
	case d == nil && !r.access.Superuser(), d != nil && !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner("operator class", name)
	case d == nil:
		return nil, pgerror.Unsupported("Changing the operator class "+name, "It is part of percodb.")
	}
	return d, nil
}

// ownedFamily finds an operator family that the user may change.
func (r *run) ownedFamily(ctx context.Context, o *ast.Object) (*catalog.OpFamilyDescriptor, error) {
	f, err := r.familyNamed(ctx, o.Name, o.Using)
	name := strings.Join(o.Name, ".")
	switch {
	case err != nil:
		return nil, err
	case f.own == nil && !r.access.Superuser(), f.own != nil && !r.access.Owns(f.own.OwnerOID()):
		return nil, mustBeOwner("operator family", name)
	case f.own == nil:
		return nil, pgerror.Unsupported("Changing the operator family "+name, "It is part of percodb.")
	}
	return f.own, nil
}

// alterClass is ALTER OPERATOR CLASS.
func (r *run) alterClass(ctx context.Context, n *ast.AlterObject) error {
	d, err := r.ownedClass(ctx, &n.Object)
	if err != nil {
		return err
	}
	next := d.Clone()
	changes, err := r.changeObject(ctx, n, &next.Schema, &next.Name, &next.Owned)
	if err != nil || !changes {
		return err
	}
	if (next.Schema != d.Schema || next.Name != d.Name) && r.r.Operations().FindClass(next.Schema, next.Method, next.Name) != nil {
		return classTaken("class", next.Name, next.Method, next.Schema)
	}
	if err := r.ch.PutOpClass(ctx, next); err != nil {
		return err
	}
	return r.look(ctx)
}

// alterFamilyObject is ALTER OPERATOR FAMILY with a change that objects of many kinds have.
func (r *run) alterFamilyObject(ctx context.Context, n *ast.AlterObject) error {
	d, err := r.ownedFamily(ctx, &n.Object)
	if err != nil {
		return err
	}
	next := d.Clone()
	changes, err := r.changeObject(ctx, n, &next.Schema, &next.Name, &next.Owned)
	if err != nil || !changes {
		return err
	}
	if (next.Schema != d.Schema || next.Name != d.Name) && r.r.Operations().FindFamily(next.Schema, next.Method, next.Name) != nil {
		return classTaken("family", next.Name, next.Method, next.Schema)
	}
	return r.putFamily(ctx, next)
}

func classTaken(kind, name, method, schema string) error {
	return pgerror.New(pgerror.DuplicateObject, "operator %s %q for access method %q already exists in schema %q", kind, name, method, schema)
}

// changeObject applies RENAME TO, OWNER TO or SET SCHEMA, and reports whether something changes.
func (r *run) changeObject(ctx context.Context, n *ast.AlterObject, schema, name *string, owned *catalog.Owned) (bool, error) {
	switch {
	case n.Change.Owner != nil:
		owner, err := r.newOwner(*n.Change.Owner, owned.OwnerOID(), *schema)
		if err != nil || owner == 0 {
			return false, err
		}
		owned.Owner = owner
		return true, nil
	case n.Change.Schema != "":
		moves, err := r.newSchema(ctx, *schema, n.Change.Schema, *name)
		*schema = n.Change.Schema
		return moves, err
	}
	*name = n.Change.Rename
	return true, r.mayCreateIn(*schema)
}

// commentClass is COMMENT ON OPERATOR CLASS.
func (r *run) commentClass(ctx context.Context, o *ast.Object, text string) error {
	d, err := r.ownedClass(ctx, o)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	if err := r.ch.PutOpClass(ctx, next); err != nil {
		return err
	}
	return r.look(ctx)
}

// commentFamily is COMMENT ON OPERATOR FAMILY.
func (r *run) commentFamily(ctx context.Context, o *ast.Object, text string) error {
	d, err := r.ownedFamily(ctx, o)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	return r.putFamily(ctx, next)
}

// addClassUses adds the indexes and partitioned tables whose keys have one of some operator classes.
func (r *run) addClassUses(ctx context.Context, classes []*catalog.OpClassDescriptor, found *extensionDropping, dropped string) error {
	if len(classes) == 0 {
		return nil
	}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	class := func(keys []catalog.IndexColumn) *catalog.OpClassDescriptor {
		for i := range keys {
			for _, d := range classes {
				if keys[i].OpClassID == uint32(d.ID) {
					return d
				}
			}
		}
		return nil
	}
	for _, t := range all {
		if t.Kind != catalog.KindTable || t.Schema == dropped {
			continue
		}
		uses := typeUses{relation: t}
		add := func(what string, d *catalog.OpClassDescriptor, use typeUse) {
			use.what = what
			found.lines = append(found.lines, what+" depends on operator class "+pgcatalog.ClassName(r.r, d)+" for access method "+d.Method)
			uses.uses = append(uses.uses, use)
		}
		if t.Partitioning != nil {
			if d := class(t.Partitioning.Keys); d != nil {
				add(r.describe(ctx, t), d, typeUse{relation: true})
			}
		}
		for i := range t.Indexes {
			if d := class(t.Indexes[i].Columns); d != nil {
				add("index "+t.Indexes[i].Name, d, typeUse{index: t.Indexes[i].OID})
			}
		}
		if len(uses.uses) > 0 {
			found.others = append(found.others, uses)
		}
	}
	return nil
}

// removeClass removes an operator class with its members.
func (r *run) removeClass(ctx context.Context, d *catalog.OpClassDescriptor) error {
	of := uint32(d.ID)
	err := r.removeMembers(ctx, func(m catalog.FamilyOperator) bool { return m.Class == of }, func(m catalog.FamilyFunction) bool { return m.Class == of })
	if err != nil {
		return err
	}
	if err := r.ch.DropOpClass(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// putFamily stores a family. What users have added to one of PostgreSQL has no record once it is empty.
func (r *run) putFamily(ctx context.Context, d *catalog.OpFamilyDescriptor) error {
	var err error
	if d.Added() && len(d.Operators)+len(d.Functions) == 0 {
		err = r.ch.DropOpFamily(ctx, d)
	} else {
		err = r.ch.PutOpFamily(ctx, d)
	}
	if err != nil {
		return err
	}
	return r.look(ctx)
}

// keyClass finds the operator class of a key. class and byBytes are those of operatorClass; user is the OID of one that a user has defined.
func (r *run) keyClass(ctx context.Context, method string, path []string, t types.Type, place keyPlace) (class string, byBytes bool, user uint32, err error) {
	of := cmp.Or(method, "btree")
	d := r.defaultUserClass(of, t)
	if len(path) > 0 && classMethods[of] != (classMethod{}) {
		d, err = r.findClass(ctx, path, of)
		if absent, ok := err.(*absentOperator); ok {
			d, err = nil, nil
			if len(path) > 1 && path[0] != catalog.SystemSchema && r.r.Extensions().In(path[0]) == 0 {
				return "", false, 0, absent.err
			}
		}
		if err != nil {
			return "", false, 0, err
		}
	}
	if d == nil {
		class, byBytes, err = operatorClass(method, path, t)
		return class, byBytes, 0, err
	}
	if c, ok := builtin.FindCast(t.Underlying(), d.Type, builtin.Implicit); t.OID != d.Type.OID && !(ok && c.NoOp()) {
		return "", false, 0, pgerror.New(pgerror.DatatypeMismatch, "operator class %q does not accept data type %s", strings.Join(path, "."), builtin.TypeName(t))
	}
	if of == "hash" {
		if place.clause == inPartitionKey && r.r.Operations().HashFunction(d.OID()) == 0 {
			return "", false, 0, pgerror.New(invalidObjectDefinition, "operator class %q of access method %s is missing support function %d for type %s", d.Name, d.Method, 2, builtin.TypeName(t))
		}
		return "", false, uint32(d.ID), nil
	}
	byBytes, ok := keyOrder(r.r.Operations().CompareFunction(d.OID()), d.Type)
	if !ok {
		return "", false, 0, pgerror.Unsupported("An index or partitions in the order of operator class "+d.Name,
			"Keys are ordered as the type's values are: make an index on an expression that has the order.")
	}
	return "", byBytes, uint32(d.ID), nil
}

// defaultUserClass returns the class that a user has made the default one of exactly a type, nil if none has.
func (r *run) defaultUserClass(method string, t types.Type) *catalog.OpClassDescriptor {
	for _, d := range r.r.Operations().Classes() {
		if d.Default && d.Method == method && d.Type.OID == t.Underlying().OID {
			return d
		}
	}
	return nil
}

// keyOrder reports whether keys of a type can be in the order of a function that compares values: in that of the values, or byBytes.
func keyOrder(compare types.OID, t types.Type) (byBytes, ok bool) {
	procs, classes := pgdata.AmProcs(), pgdata.OpClasses()
	for row := range procs.Len() {
		if procs.Value(row, "amprocnum") != "1" || types.OID(procs.Number(row, "amproc")) != compare {
			continue
		}
		for c := range classes.Len() {
			if classes.Number(c, "opcfamily") != procs.Number(row, "amprocfamily") || classes.Number(c, "opcintype") != procs.Number(row, "amproclefttype") {
				continue
			}
			name := classes.Value(c, "opcname")
			if !accepts(types.OID(classes.Number(c, "opcintype")), name, t) {
				continue
			}
			if strings.HasSuffix(name, "_pattern_ops") {
				return true, true
			}
			if classes.Value(c, "opcdefault") == "t" {
				return false, true
			}
		}
	}
	return false, false
}
