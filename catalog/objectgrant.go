package catalog

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
)

// ObjectGrant is the privileges on an object without a descriptor, which exists in every database: a function, a type, a language, a
// tablespace, or a parameter. Its owner is BootstrapSuperuser.
type ObjectGrant struct {
	Kind acl.Kind
	// Name is a function's signature, as builtin.Overload.Signature returns it; pg_type.typname of a type; the name of another object.
	Name string
	OID  uint32   `json:",omitempty"` // of the row of pg_parameter_acl
	ACL  acl.List // never nil
}

// ObjectACL returns the privileges on an object without a descriptor; nil: those by default.
func (g *Grants) ObjectACL(kind acl.Kind, name string) acl.List {
	return g.objects[objectName{kind, name}]
}

// FixedObjects are the languages and tablespaces that there are.
var FixedObjects = map[acl.Kind][]string{acl.Language: {"sql", "plpgsql"}, acl.Tablespace: {"pg_default", "pg_global"}}

// superuserFunctions are those that PUBLIC may not execute by default.
var superuserFunctions = map[string]bool{"pg_reload_conf()": true}

// EffectiveObjectACL returns the privileges on an object without a descriptor, those by default included.
func (g *Grants) EffectiveObjectACL(kind acl.Kind, name string) acl.List {
	if list := g.ObjectACL(kind, name); list != nil {
		return list
	}
	return InitialACL(kind, name)
}

// InitialACL returns the privileges on an object without a descriptor of which nothing was granted or revoked.
func InitialACL(kind acl.Kind, name string) acl.List {
	if kind == acl.Function && superuserFunctions[name] {
		return acl.List{{Grantee: BootstrapSuperuser, Grantor: BootstrapSuperuser, Rights: acl.Execute}}
	}
	return acl.Default(kind, BootstrapSuperuser)
}

// ObjectEdit is a change of privileges on objects without descriptors.
type ObjectEdit struct {
	grants  Grants // with Objects being changed
	Changed bool
	places  map[objectName]int // in Objects
}

// EditObjects begins a change of Objects. g stays as it is.
func (g *Grants) EditObjects() *ObjectEdit {
	e := &ObjectEdit{grants: *g, places: make(map[objectName]int, len(g.Objects))}
	e.grants.Objects = slices.Clone(g.Objects)
	for i := range g.Objects {
		e.places[objectName{g.Objects[i].Kind, g.Objects[i].Name}] = i
	}
	return e
}

// ACL is Grants.EffectiveObjectACL after what has been set so far.
func (e *ObjectEdit) ACL(kind acl.Kind, name string) acl.List {
	if i, ok := e.places[objectName{kind, name}]; ok {
		return e.grants.Objects[i].ACL
	}
	return e.grants.EffectiveObjectACL(kind, name)
}

// Set replaces the privileges on an object; id returns the OID of a new entry of a parameter.
func (e *ObjectEdit) Set(kind acl.Kind, name string, list acl.List, id func() (uint32, error)) error {
	e.Changed = true
	if i, ok := e.places[objectName{kind, name}]; ok {
		e.grants.Objects[i].ACL = list
		return nil
	}
	o := ObjectGrant{Kind: kind, Name: name, ACL: list}
	if kind == acl.Parameter {
		var err error
		if o.OID, err = id(); err != nil {
			return err
		}
	}
	e.places[objectName{kind, name}] = len(e.grants.Objects)
	e.grants.Objects = append(e.grants.Objects, o)
	return nil
}

// Objects returns the entries. A parameter has one only while its privileges are not those by default.
func (e *ObjectEdit) Objects() []ObjectGrant {
	standard := acl.Default(acl.Parameter, BootstrapSuperuser)
	return slices.DeleteFunc(slices.Clone(e.grants.Objects), func(o ObjectGrant) bool { return o.Kind == acl.Parameter && o.ACL.Equal(standard) })
}

// objectName identifies an object without a descriptor.
type objectName struct {
	kind acl.Kind
	name string
}

// indexObjects makes the index of Objects by name.
func (g *Grants) indexObjects() {
	g.objects = make(map[objectName]acl.List, len(g.Objects))
	for i := range g.Objects {
		o := &g.Objects[i]
		g.objects[objectName{o.Kind, o.Name}] = o.ACL
	}
}

// shared reports whether the object is one of all databases.
func (o *ObjectGrant) shared() bool { return o.Kind == acl.Parameter || o.Kind == acl.Tablespace }

// SetObjectGrants replaces the privileges on objects without descriptors.
func (ch *Change) SetObjectGrants(ctx context.Context, objects []ObjectGrant) error {
	first := spaceOf(FirstDatabase)
	if ch.space() == first {
		return ch.putObjectGrants(ctx, first, objects)
	}
	shared, err := readGrants(ctx, ch.txn, first)
	if err != nil {
		return err
	}
	split := func(list []ObjectGrant, shared bool) (part []ObjectGrant) {
		for _, o := range list {
			if o.shared() == shared {
				part = append(part, o)
			}
		}
		return part
	}
	if err := ch.putObjectGrants(ctx, first, append(split(shared.Objects, false), split(objects, true)...)); err != nil {
		return err
	}
	return ch.putObjectGrants(ctx, ch.space(), split(objects, false))
}

func (ch *Change) putObjectGrants(ctx context.Context, of space, objects []ObjectGrant) error {
	return ch.changeGrants(ctx, of, func(rec *grantsRecord) {
		rec.Objects = objects
		rec.ObjectsVersion++
	})
}

// Object returns which of the privileges the role has on an object without a descriptor.
func (a *Access) Object(kind acl.Kind, name string, want acl.Privileges) acl.Privileges {
	return a.has(a.Grants.EffectiveObjectACL(kind, name), BootstrapSuperuser, want, false)
}
