package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// pathName is the last two parts of a written name.
func pathName(pos ast.Pos, path []string) ast.TableName {
	return nameOf(&ast.Object{Pos: pos, Name: path})
}

// createType is CREATE TYPE.
func (r *run) createType(ctx context.Context, n *ast.CreateType) error {
	switch n.Kind {
	case "COMPOSITE":
		return r.createComposite(ctx, n)
	case "RANGE":
		return r.createRange(ctx, n)
	}
	d, err := r.newType(ctx, pathName(n.Pos, n.Name), types.Enum)
	if err != nil {
		return err
	}
	var last []byte
	for _, label := range n.Labels {
		if err := requireLabel(label); err != nil {
			return err
		}
		if labelNamed(d, label) >= 0 {
			return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"").
				WithDetail("Key (enumtypid, enumlabel)=(%d, %s) already exists.", d.ID, label)
		}
		last = types.EnumPosition(last, nil)
		if err := r.appendLabel(ctx, d, types.EnumLabel{Name: label, Position: last, Order: float32(len(d.Labels) + 1)}); err != nil {
			return err
		}
	}
	return r.addType(ctx, d)
}

func (r *run) appendLabel(ctx context.Context, d *catalog.TypeDescriptor, l types.EnumLabel) error {
	oid, err := r.ch.NewID(ctx)
	l.OID = types.OID(oid)
	d.Labels = append(d.Labels, l)
	return err
}

// newType makes the descriptor of a type that is about to be created.
func (r *run) newType(ctx context.Context, name ast.TableName, kind types.DefinedKind) (*catalog.TypeDescriptor, error) {
	schema, err := r.permanentSchema(ctx, name)
	if err != nil {
		return nil, err
	}
	d := &catalog.TypeDescriptor{Kind: kind, Schema: schema, Name: name.Name, Owned: catalog.Owned{Owner: r.User}}
	if d.ACL, err = r.access.Grants.Initial(r.access.Roles, r.User, acl.Type, r.schemaID(schema)); err != nil {
		return nil, err
	}
	if err := r.freeTypeName(ctx, schema, name.Name); err != nil {
		return nil, err
	}
	if d.ArrayName, err = r.arrayTypeName(schema, name.Name); err != nil {
		return nil, err
	}
	if d.ID, err = r.ch.NewID(ctx); err != nil {
		return nil, err
	}
	d.ArrayID, err = r.ch.NewID(ctx)
	return d, err
}

func (r *run) addType(ctx context.Context, d *catalog.TypeDescriptor) error {
	if err := r.ch.PutType(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// typeNameTaken reports whether a type of that name exists in the schema, row types included.
func (r *run) typeNameTaken(schema, name string) bool {
	return catalog.FindType(r.r, schema, name).Valid()
}

// requireNoExtensionType fails if an extension that is installed in the schema has a type of the name.
func (r *run) requireNoExtensionType(schema, name string) error {
	if t := catalog.FindType(r.r, schema, name); t.Valid() && t.Def == nil {
		return pgerror.New(pgerror.DuplicateObject, "type %q already exists", name)
	}
	return nil
}

// freeTypeName fails if a type has the name. An array type that was named automatically gets another name instead: that of a row type by
// itself (catalog.Types).
func (r *run) freeTypeName(ctx context.Context, schema, name string) error {
	if err := r.requireNoExtensionType(schema, name); err != nil {
		return err
	}
	found := r.r.Types().Named(schema, name)
	if found.IsArray() {
		d := r.r.Types().ByOID(found.OID).Clone()
		if d.Relation != nil {
			return nil
		}
		var err error
		if d.ArrayName, err = r.arrayTypeName(schema, d.Name); err != nil {
			return err
		}
		return r.addType(ctx, d)
	}
	if !found.Valid() {
		return nil
	}
	return pgerror.New(pgerror.DuplicateObject, "type %q already exists", name)
}

// requireNoType fails if the name of a new relation is that of a type.
func (r *run) requireNoType(ctx context.Context, schema, name string) error {
	if err := r.requireNoExtensionType(schema, name); err != nil {
		return err
	}
	found := r.r.Types().Named(schema, name)
	switch {
	case !found.Valid():
		return nil
	case found.IsArray():
		return r.freeTypeName(ctx, schema, name)
	}
	if found.IsComposite() {
		return relationExists(name)
	}
	return pgerror.New(pgerror.DuplicateObject, "type %q already exists", name).
		WithHint("A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.")
}

// arrayTypeName chooses the name of an array type: underscores before the name, as many as it takes.
func (r *run) arrayTypeName(schema, name string) (string, error) {
	for under := "_"; len(under) < maxNameBytes; under += "_" {
		chosen := under + clipRunes(name, maxNameBytes-len(under))
		if !r.typeNameTaken(schema, chosen) {
			return chosen, nil
		}
	}
	return "", pgerror.New(pgerror.DuplicateObject, "could not form array type name for type %q", name)
}

func requireLabel(label string) error {
	if len(label) > maxNameBytes {
		return pgerror.New(pgerror.InvalidName, "invalid enum label \"%s\"", label).WithDetail("Labels must be %d bytes or less.", maxNameBytes)
	}
	return nil
}

func labelNamed(d *catalog.TypeDescriptor, name string) int {
	return slices.IndexFunc(d.Labels, func(l types.EnumLabel) bool { return l.Name == name })
}

// userType finds the user-defined type that ALTER TYPE, DROP TYPE and COMMENT name; the descriptor is nil for
// PostgreSQL's own. The name of a relation is *rowType.
func (r *run) userType(ctx context.Context, name ast.TableName) (*catalog.TypeDescriptor, types.Type, error) {
	if err := r.useSchema(name); err != nil {
		return nil, types.Type{}, err
	}
	if name.Schema != "" {
		if ok, err := r.r.SchemaExists(ctx, name.Schema); err != nil || !ok {
			return nil, types.Type{}, errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Schema))
		}
	}
	written := ast.TypeName{Name: []string{name.Name}}
	if name.Schema != "" {
		written.Name = []string{name.Schema, name.Name}
	}
	t, err := planner.ResolveType(&written, r.r)
	if err != nil {
		return nil, types.Type{}, err
	}
	d := r.r.Types().ByOID(t.OID)
	if d != nil && d.Relation != nil && !t.IsArray() {
		return nil, types.Type{}, &rowType{d.Relation}
	}
	return d, t, nil
}

// rowType is an error that userType returns for the name of a relation's row type.
type rowType struct{ relation *catalog.TableDescriptor }

func (e *rowType) Error() string { return "row type of " + e.relation.Name }

const useAlterTable = "Use ALTER TABLE instead."

// alteredType finds the type of an ALTER TYPE that the user may change.
func (r *run) alteredType(ctx context.Context, name ast.TableName) (*catalog.TypeDescriptor, error) {
	d, t, err := r.userType(ctx, name)
	if row, ok := err.(*rowType); ok {
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is a table's row type", row.relation.Name).WithHint(useAlterTable)
	}
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied: %s is a system type", builtin.TypeName(t))
	case !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner("type", builtin.TypeName(t))
	case t.IsArray():
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot alter array type %s", builtin.TypeName(t)).
			WithHint("You can alter type " + builtin.TypeName(d.Type()) + ", which will alter the array type as well.")
	}
	return d, nil
}

// alterEnum is ALTER TYPE … ADD VALUE and RENAME VALUE.
func (r *run) alterEnum(ctx context.Context, n *ast.AlterEnum) error {
	d, t, err := r.userType(ctx, pathName(n.Pos, n.Name))
	if row, ok := err.(*rowType); ok {
		return notEnum(row.relation.Name)
	}
	switch {
	case err != nil:
		return err
	case d == nil || !t.IsEnum():
		return notEnum(builtin.TypeName(t))
	case !r.access.Owns(d.OwnerOID()):
		return mustBeOwner("type", builtin.TypeName(t))
	}
	if err := requireLabel(n.Value); err != nil {
		return err
	}
	next := d.Clone()
	exists := labelNamed(d, n.Value) >= 0
	if n.Old != nil {
		place := labelNamed(d, *n.Old)
		switch {
		case place < 0:
			return pgerror.New(pgerror.InvalidParameterValue, "\"%s\" is not an existing enum label", *n.Old)
		case exists:
			return pgerror.New(pgerror.DuplicateObject, "enum label \"%s\" already exists", n.Value)
		}
		next.Labels[place].Name = n.Value
		return r.renameLabel(ctx, next, *n.Old, n.Value)
	}
	if exists {
		if n.IfNotExists {
			r.notice(pgerror.DuplicateObject, "enum label \"%s\" already exists, skipping", n.Value)
			return nil
		}
		return pgerror.New(pgerror.DuplicateObject, "enum label \"%s\" already exists", n.Value)
	}
	place := len(d.Labels)
	if n.Place != "" {
		if place = labelNamed(d, n.Neighbour); place < 0 {
			return pgerror.New(pgerror.InvalidParameterValue, "\"%s\" is not an existing enum label", n.Neighbour)
		}
		if n.Place == "AFTER" {
			place++
		}
	}
	var before, after []byte
	if place > 0 {
		before = d.Labels[place-1].Position
	}
	if place < len(d.Labels) {
		after = d.Labels[place].Position
	}
	oid, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	next.Labels = slices.Insert(next.Labels, place, types.EnumLabel{
		OID: types.OID(oid), Name: n.Value, Position: types.EnumPosition(before, after), Added: catalog.AddedNow,
	})
	orderLabel(next.Labels, place)
	return r.addType(ctx, next)
}

// orderLabel gives the label at a place its Order: half way between its neighbours'. If no number is left there, all are numbered anew.
func orderLabel(labels []types.EnumLabel, place int) {
	l := &labels[place]
	switch {
	case len(labels) == 1:
		l.Order = 1
	case place == 0:
		l.Order = labels[1].Order - 1
	case place == len(labels)-1:
		l.Order = labels[place-1].Order + 1
	default:
		before, after := labels[place-1].Order, labels[place+1].Order
		if l.Order = (before + after) / 2; l.Order == before || l.Order == after {
			for i := range labels {
				labels[i].Order = float32(i + 1)
			}
		}
	}
}

func notEnum(name string) error {
	return pgerror.New(pgerror.WrongObjectType, "%s is not an enum", name)
}

// alterTypeObject is ALTER TYPE … RENAME TO, OWNER TO and SET SCHEMA.
func (r *run) alterTypeObject(ctx context.Context, n *ast.AlterObject) error {
	written := n.Object.Types[0]
	if n.Object.Kind == "DOMAIN" {
		if _, err := r.domain(ctx, pathName(written.Pos, written.Name)); err != nil {
			return err
		}
	}
	d, err := r.alteredType(ctx, pathName(written.Pos, written.Name))
	if err != nil {
		return err
	}
	switch {
	case n.Change.Owner != nil:
		return r.changeOwner(&d.Owned, d.Schema, *n.Change.Owner, func(owner uint32) error { return r.passType(ctx, d, owner) })
	case n.Change.Rename != "":
		return r.moveType(ctx, d, d.Schema, n.Change.Rename)
	case n.Change.Schema != "":
		return r.setTypeSchema(ctx, d, n.Change.Schema)
	}
	return pgerror.Unsupported("ALTER TYPE with these properties", "They are those of base types, which percodb does not have.").At(n.Position())
}

// passType gives a type to another role.
func (r *run) passType(ctx context.Context, d *catalog.TypeDescriptor, owner uint32) error {
	if m := r.multirangeOf(d); m != nil {
		if err := r.passType(ctx, m, owner); err != nil {
			return err
		}
	}
	next := d.Clone()
	next.Owned = d.GivenTo(owner)
	return r.addType(ctx, next)
}

func (r *run) setTypeSchema(ctx context.Context, d *catalog.TypeDescriptor, schema string) error {
	if err := r.requireSchema(ctx, schema, ast.TableName{Schema: schema, Name: d.Name}); err != nil {
		return err
	}
	if err := r.mayCreateIn(schema); err != nil {
		return err
	}
	if schema == d.Schema {
		return nil
	}
	return r.moveType(ctx, d, schema, d.Name)
}

// moveType gives a type another name or schema, in the expressions that are stored as well.
func (r *run) moveType(ctx context.Context, d *catalog.TypeDescriptor, schema, name string) error {
	if schema == d.Schema {
		if err := r.mayCreateIn(schema); err != nil && !r.access.Superuser() {
			return err
		}
	}
	if r.typeNameTaken(schema, name) && schema != d.Schema {
		return pgerror.New(pgerror.DuplicateObject, "type %q already exists in schema %q", name, schema)
	}
	if err := r.freeTypeName(ctx, schema, name); err != nil {
		return err
	}
	next := r.r.Types().ByOID(types.OID(d.ID)).Clone()
	next.Schema, next.Name = schema, name
	var err error
	if next.ArrayName, err = r.arrayTypeName(schema, name); err != nil {
		return err
	}
	if err := r.rewriteUses(ctx, castsChanged(d, func(c *ast.Cast) { c.Type.Name = []string{schema, name} })); err != nil {
		return err
	}
	if err := r.addType(ctx, next); err != nil {
		return err
	}
	return r.reprintIndexes(ctx, typeDependency(next))
}

// renameLabel stores a type with a renamed label, which stored expressions name as well.
func (r *run) renameLabel(ctx context.Context, next *catalog.TypeDescriptor, from, to string) error {
	if err := r.rewriteUses(ctx, castsChanged(next, func(c *ast.Cast) { renamedInLiteral(c, from, to) })); err != nil {
		return err
	}
	if err := r.addType(ctx, next); err != nil {
		return err
	}
	return r.reprintIndexes(ctx, typeDependency(next))
}

// commentType is COMMENT ON TYPE.
func (r *run) commentType(ctx context.Context, name ast.TableName, text string) error {
	d, t, err := r.userType(ctx, name)
	if row, ok := err.(*rowType); ok {
		return pgerror.Unsupported("COMMENT ON TYPE of a table", "Comment on table "+row.relation.Name+".").At(name.Position())
	}
	if err != nil {
		return err
	}
	if d == nil || !r.access.Owns(d.OwnerOID()) {
		return mustBeOwner("type", builtin.TypeName(t))
	}
	next := d.Clone()
	next.Comment = text
	return r.addType(ctx, next)
}
