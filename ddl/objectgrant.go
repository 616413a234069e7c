package ddl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// grantable is an object that GRANT names: its name in the catalog, and in messages. typ is the number of a type that users have defined;
// other objects have no descriptor.
type grantable struct {
	name, shown string
	typ         types.OID
	routine     *catalog.RoutineDescriptor // of a user
}

// objectKinds are the kinds of such objects, by the statement's word for them.
var objectKinds = map[string]acl.Kind{
	"FUNCTION": acl.Function, "PROCEDURE": acl.Function, "ROUTINE": acl.Function, "TYPE": acl.Type, "DOMAIN": acl.Type,
	"LANGUAGE": acl.Language, "TABLESPACE": acl.Tablespace, "PARAMETER": acl.Parameter, "LARGE OBJECT": acl.LargeObject,
	"FOREIGN DATA WRAPPER": acl.ForeignDataWrapper, "FOREIGN SERVER": acl.ForeignServer,
}

// objects is GRANT on types and on objects without descriptors.
func (g *granting) objects(ctx context.Context) error {
	kind := objectKinds[g.n.Kind]
	var found []grantable
	for i := range g.n.Objects {
		o, err := g.object(ctx, kind, &g.n.Objects[i])
		if err != nil {
			return err
		}
		found = append(found, o...)
	}
	return g.onObjects(ctx, kind, strings.ToLower(g.n.Kind), found)
}

// functionsOfSchemas is GRANT on ALL FUNCTIONS, PROCEDURES or ROUTINES IN SCHEMA.
func (g *granting) functionsOfSchemas(ctx context.Context) error {
	var found []grantable
	err := g.eachSchema(func(name string) error {
		if g.n.Kind == "ALL PROCEDURES IN SCHEMA" {
			for _, d := range g.r.Routines().All() {
				if d.Schema == name && d.Kind == builtin.ProcedureRoutine {
					found = append(found, grantable{shown: d.Name, routine: d})
				}
			}
			return nil
		}
		for _, d := range g.r.Routines().All() {
			procedure := d.Kind == builtin.ProcedureRoutine
			if d.Schema == name && !(procedure && g.n.Kind == "ALL FUNCTIONS IN SCHEMA") {
				found = append(found, grantable{shown: d.Name, routine: d})
			}
		}
		for _, p := range builtin.Procs() {
			if p.Schema() == name {
				found = append(found, grantable{name: p.Signature, shown: p.Name})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.onObjects(ctx, acl.Function, "function", found)
}

// onObjects changes the privileges on the objects found. word is the kind's in messages.
func (g *granting) onObjects(ctx context.Context, kind acl.Kind, word string, found []grantable) error {
	p, err := g.privileges(kind, word)
	if err != nil {
		return err
	}
	switch kind {
	case acl.Function:
		word = "function"
	case acl.Type: // of domains, too
		word = "type"
	}
	edit := g.access.Grants.EditObjects()
	for _, o := range found {
		if o.typ != 0 {
			if err := g.onType(ctx, o.typ, p); err != nil {
				return err
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.routine != nil {
			if err := g.onRoutine(ctx, o.routine, p); err != nil {
				return err
			}
			continue
		}
		owned := catalog.Owned{ACL: edit.ACL(kind, o.name)}
		list, err := g.onObject(owned, kind, word, o.shown, p)
		if err != nil {
			return err
		}
		if list.Equal(owned.ACL) {
			continue
		}
		err = edit.Set(kind, o.name, list, func() (uint32, error) {
			id, err := g.ch.NewID(ctx)
			return uint32(id), err
		})
		if err != nil {
			return err
		}
	}
	if !edit.Changed {
		return nil
	}
	if err := g.ch.SetObjectGrants(ctx, edit.Objects()); err != nil {
		return err
	}
	return g.look(ctx)
}

// object finds the object that GRANT names; none for a parameter without privileges that REVOKE names.
func (g *granting) object(ctx context.Context, kind acl.Kind, o *ast.Object) ([]grantable, error) {
	missing := func(what, name string) error {
		return pgerror.New(pgerror.UndefinedObject, "%s \"%s\" does not exist", what, name)
	}
	switch kind {
	case acl.Function:
		if d, err := g.userRoutine(ctx, o); d != nil || err != nil {
			return []grantable{{shown: o.Name[len(o.Name)-1], routine: d}}, err
		}
		p, err := g.systemRoutine(o)
		if err != nil {
			return nil, err
		}
		return []grantable{{name: p.Signature, shown: p.Name}}, nil
	case acl.Type:
		found, err := g.namedType(ctx, o)
		return []grantable{found}, err
	case acl.Parameter:
		return g.parameter(strings.Join(o.Name, "."))
	case acl.LargeObject:
		return nil, pgerror.New(pgerror.UndefinedObject, "large object %s does not exist", o.Number)
	case acl.ForeignDataWrapper:
		return nil, missing("foreign-data wrapper", o.Name[0])
	case acl.ForeignServer:
		return nil, missing("server", o.Name[0])
	}
	name := o.Name[0]
	if !slices.Contains(catalog.FixedObjects[kind], name) {
		return nil, missing(strings.ToLower(g.n.Kind), name)
	}
	return []grantable{{name: name, shown: name}}, nil
}

// systemName returns the last part of a name, and whether the system schema may be meant by what stands before it.
func (g *granting) systemName(parts []string) (name string, system bool, err error) {
	name = parts[len(parts)-1]
	if len(parts) == 1 {
		return name, true, nil
	}
	schema := parts[len(parts)-2]
	if _, exists := g.access.Grants.Schemas[schema]; !exists {
		return name, false, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", schema)
	}
	return name, schema == catalog.SystemSchema, nil
}

// userRoutine finds a routine that a user has defined; nil: one of PostgreSQL's own may be meant.
func (g *granting) userRoutine(ctx context.Context, o *ast.Object) (*catalog.RoutineDescriptor, error) {
	if len(g.routinesIn(nameOf(o))) == 0 {
		return nil, nil
	}
	d, err := g.run.routine(ctx, o)
	if absent, ok := err.(*absentRoutine); ok {
		return nil, absent.err
	}
	return d, err
}

// onRoutine changes the privileges on a routine that a user has defined.
func (g *granting) onRoutine(ctx context.Context, d *catalog.RoutineDescriptor, p acl.Privileges) error {
	list, err := g.onObject(d.Owned, acl.Function, d.Kind.String(), d.Name, p)
	if err != nil || list.Equal(d.ACL) {
		return err
	}
	next := d.Clone()
	next.ACL = list
	return g.putRoutine(ctx, next)
}

// systemRoutine finds a function by its name, and its argument types if they are written.
func (g *granting) systemRoutine(o *ast.Object) (*builtin.Proc, error) {
	name, system, err := g.systemName(o.Name)
	if err != nil {
		return nil, err
	}
	var all []*builtin.Proc
	schema := nameOf(o).Schema
	for _, p := range builtin.ProcsNamed(name) {
		if system && p.Schema() == catalog.SystemSchema || p.Schema() == schema || schema == "" && slices.Contains(g.path, p.Schema()) {
			all = append(all, p)
		}
	}
	procedure, word := g.n.Kind == "PROCEDURE", "function"
	if procedure {
		word = "procedure"
	}
	full := strings.Join(o.Name, ".")
	if o.Signature == nil {
		switch {
		case len(all) == 0 || procedure:
			return nil, pgerror.New(pgerror.UndefinedFunction, "could not find a %s named \"%s\"", word, full)
		case len(all) > 1:
			return nil, pgerror.New(pgerror.AmbiguousFunction, "%s name \"%s\" is not unique", strings.ToLower(g.n.Kind), full).
				WithHint("Specify the argument list to select the " + strings.ToLower(g.n.Kind) + " unambiguously.")
		}
		return all[0], nil
	}
	args, err := argumentTypes(o.Signature)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if !slices.EqualFunc(p.Args, args, func(oid types.OID, t types.Type) bool { return oid == t.OID }) {
			continue
		}
		if procedure {
			return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a procedure", builtin.CallSignature(full, args))
		}
		return p, nil
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "%s %s does not exist", word, builtin.CallSignature(full, args))
}

// argumentTypes resolves the types of a signature's input parameters.
func argumentTypes(s *ast.Signature) ([]types.Type, error) {
	var args []types.Type
	for i := range s.Params {
		p := &s.Params[i]
		if p.Mode == "OUT" {
			continue
		}
		t, err := planner.ResolveType(&p.Type, nil)
		if err != nil {
			if e, ok := errors.AsType[*pgerror.Error](err); ok {
				bare := *e
				bare.Position = 0
				err = &bare
			}
			return nil, err
		}
		args = append(args, t.Base())
	}
	return args, nil
}

// parameter finds a parameter. REVOKE does nothing to one on which nothing was granted, whether it exists or not.
func (g *granting) parameter(name string) ([]grantable, error) {
	name = strings.ToLower(name)
	if g.Revoke {
		if g.access.Grants.ObjectACL(acl.Parameter, name) == nil {
			return nil, nil
		}
		return []grantable{{name: name, shown: name}}, nil
	}
	if _, err := g.CheckSetting(name, ""); isUnknownSetting(err) {
		return nil, pgerror.New(pgerror.InvalidName, "invalid parameter name \"%s\"", name)
	}
	return []grantable{{name: name, shown: name}}, nil
}

// objectOID returns the number by which messages about dependencies order an object without a descriptor.
func objectOID(o *catalog.ObjectGrant) types.OID {
	switch o.Kind {
	case acl.Function:
		name, _, _ := strings.Cut(o.Name, "(")
		for _, p := range builtin.ProcsNamed(name) {
			if p.Signature == o.Name {
				return p.OID
			}
		}
	case acl.Type:
		if t, err := types.Lookup(o.Name, nil, 0); err == nil {
			return t.OID
		}
	}
	return types.OID(o.OID)
}

// objectWord names an object without a descriptor as messages about dependencies do.
func objectWord(o *catalog.ObjectGrant) string {
	switch o.Kind {
	case acl.Function:
		name, list, _ := strings.Cut(strings.TrimSuffix(o.Name, ")"), "(")
		var args []types.Type
		for word := range strings.SplitSeq(list, ",") {
			if t, err := types.Lookup(word, nil, 0); err == nil {
				args = append(args, t)
			}
		}
		return "function " + strings.ReplaceAll(builtin.CallSignature(name, args), ", ", ",")
	case acl.Type:
		if t, err := types.Lookup(o.Name, nil, 0); err == nil {
			return "type " + builtin.TypeName(t)
		}
		return "type " + o.Name
	case acl.Language:
		return "language " + o.Name
	case acl.Tablespace:
		return "tablespace " + o.Name
	}
	return "parameter " + o.Name
}
