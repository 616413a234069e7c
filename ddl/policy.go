package ddl

import (
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// policyCommands are the commands of policies by their words.
var policyCommands = map[string]catalog.PolicyCommand{
	"": catalog.PolicyAll, "ALL": catalog.PolicyAll, "SELECT": catalog.PolicySelect, "INSERT": catalog.PolicyInsert,
	"UPDATE": catalog.PolicyUpdate, "DELETE": catalog.PolicyDelete,
}

// createPolicy is CREATE POLICY.
func (r *run) createPolicy(ctx context.Context, n *ast.CreatePolicy) error {
	p := catalog.PolicyDescriptor{Name: n.Name, Command: policyCommands[n.For], Restrictive: n.As == "restrictive"}
	switch {
	case (p.Command == catalog.PolicySelect || p.Command == catalog.PolicyDelete) && n.Check != nil:
		return pgerror.New(pgerror.SyntaxError, "WITH CHECK cannot be applied to SELECT or DELETE")
	case p.Command == catalog.PolicyInsert && n.Using != nil:
		return pgerror.New(pgerror.SyntaxError, "only WITH CHECK expression allowed for INSERT")
	}
	var err error
	if p.Roles, err = r.policyRoles(n.Roles); err != nil {
		return err
	}
	t, err := r.policyTable(ctx, n.Table)
	if err != nil {
		return err
	}
	if err := r.setPolicy(ctx, t, &p, n.Using, n.Check); err != nil {
		return err
	}
	if t.PolicyNamed(p.Name) != nil {
		return policyExists(p.Name, t)
	}
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	p.OID = uint32(id)
	next := t.Clone()
	next.Policies = append(next.Policies, p)
	sortPolicies(next)
	return r.update(ctx, t, next, false)
}

func sortPolicies(t *catalog.TableDescriptor) {
	slices.SortFunc(t.Policies, func(a, b catalog.PolicyDescriptor) int { return cmp.Compare(a.Name, b.Name) })
}

func policyExists(name string, t *catalog.TableDescriptor) error {
	return pgerror.New(pgerror.DuplicateObject, "policy %q for table %q already exists", name, t.Name)
}

func noPolicy(name string, t *catalog.TableDescriptor) error {
	return pgerror.New(pgerror.UndefinedObject, "policy %q for table %q does not exist", name, t.Name)
}

// policyTable finds the table of a policy, which must be the user's.
func (r *run) policyTable(ctx context.Context, name ast.TableName) (*catalog.TableDescriptor, error) {
	t, err := r.mustFind(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := r.mustOwn(t); err != nil {
		return nil, err
	}
	if t.Kind != catalog.KindVirtual && t.Kind != catalog.KindTable {
		return nil, pgerror.New(pgerror.WrongObjectType, "%q is not a table", t.Name)
	}
	return t, requireTable(t, name)
}

// policyRoles returns the OIDs of the roles that a policy concerns.
func (r *run) policyRoles(names []ast.Role) ([]uint32, error) {
	var all []uint32
	for _, name := range names {
		if !name.Keyword && name.Name == "public" {
			if len(names) > 1 {
				r.Report.Notice(pgerror.New(pgerror.Warning, "ignoring specified roles other than PUBLIC").
					WithHint("All roles are members of the PUBLIC role."))
			}
			return []uint32{catalog.PublicRole}, nil
		}
		oid, err := r.roleOID(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, oid) {
			all = append(all, oid)
		}
	}
	if len(all) == 0 {
		all = append(all, catalog.PublicRole)
	}
	return all, nil
}

// setPolicy sets the conditions of a policy that are given, and the relations that they read.
func (r *run) setPolicy(ctx context.Context, t *catalog.TableDescriptor, p *catalog.PolicyDescriptor, using, check ast.Expr) error {
	set := func(dst *string, e ast.Expr) error {
		if e == nil {
			return nil
		}
		if err := planner.CheckPolicy(ctx, e, t, r.r, r.Env); err != nil {
			return err
		}
		if err := r.pinPolicy(ctx, e, nil); err != nil {
			return err
		}
		*dst = r.pinned(e)
		return nil
	}
	if err := set(&p.Using, using); err != nil {
		return err
	}
	if err := set(&p.Check, check); err != nil {
		return err
	}
	p.DependsOn = nil
	for _, text := range []string{p.Using, p.Check} {
		if err := r.pinPolicyText(ctx, text, &p.DependsOn); err != nil {
			return err
		}
	}
	return nil
}

// pinPolicy fixes the meaning of the names of relations in a policy's condition, and adds them to dependsOn.
func (r *run) pinPolicy(ctx context.Context, e ast.Expr, dependsOn *[]uint64) error {
	uses := &catalog.TableDescriptor{}
	q := &ast.Query{Body: &ast.Select{Columns: []ast.SelectItem{{Expr: e}}}}
	if err := r.pinRelations(ctx, q, uses); err != nil {
		return err
	}
	if dependsOn == nil {
		return nil
	}
	for _, id := range uses.DependsOn {
		if !slices.Contains(*dependsOn, id) {
			*dependsOn = append(*dependsOn, id)
		}
	}
	return nil
}

// alterPolicy is ALTER POLICY, the renaming apart.
func (r *run) alterPolicy(ctx context.Context, n *ast.AlterPolicy) error {
	roles, err := r.policyRoles(n.Roles)
	if err != nil {
		return err
	}
	t, err := r.policyTable(ctx, n.Table)
	if err != nil {
		return err
	}
	next := t.Clone()
	p := next.PolicyNamed(n.Name)
	changed := catalog.PolicyDescriptor{}
	if p != nil {
		changed = *p
	}
	if err := r.setPolicy(ctx, t, &changed, n.Using, n.Check); err != nil {
		return err
	}
	switch {
	case p == nil:
		return noPolicy(n.Name, t)
	case (p.Command == catalog.PolicySelect || p.Command == catalog.PolicyDelete) && n.Check != nil:
		return pgerror.New(pgerror.SyntaxError, "only USING expression allowed for SELECT, DELETE")
	case p.Command == catalog.PolicyInsert && n.Using != nil:
		return pgerror.New(pgerror.SyntaxError, "only WITH CHECK expression allowed for INSERT")
	}
	if n.Roles != nil {
		changed.Roles = roles
	}
	*p = changed
	return r.update(ctx, t, next, false)
}

// renamePolicy is ALTER POLICY … RENAME TO.
func (r *run) renamePolicy(ctx context.Context, n *ast.AlterObject) error {
	name := onTable(&n.Object)
	if n.IfExists {
		t, err := r.find(ctx, name)
		if err != nil {
			return err
		}
		if t == nil {
			r.noticeAbsent("relation %q does not exist, skipping", name.Name)
			return nil
		}
	}
	t, err := r.policyTable(ctx, name)
	if err != nil {
		return err
	}
	next := t.Clone()
	p := next.PolicyNamed(n.Object.Name[0])
	switch {
	case t.PolicyNamed(n.Change.Rename) != nil:
		return policyExists(n.Change.Rename, t)
	case p == nil:
		return noPolicy(n.Object.Name[0], t)
	}
	p.Name = n.Change.Rename
	sortPolicies(next)
	return r.update(ctx, t, next, false)
}

// onTable is the name of the table of a policy.
func onTable(o *ast.Object) ast.TableName {
	name := ast.TableName{Pos: o.Pos, Name: o.On[len(o.On)-1]}
	if len(o.On) > 1 {
		name.Schema = o.On[len(o.On)-2]
	}
	return name
}

// dropPolicy is DROP POLICY.
func (r *run) dropPolicy(ctx context.Context, n *ast.DropObjects) error {
	o := &n.Objects[0]
	name := onTable(o)
	t, err := r.find(ctx, name)
	if err != nil {
		return err
	}
	if t == nil && n.IfExists {
		return r.noticeAbsentRelation(ctx, name)
	}
	if t, err = r.mustFind(ctx, name); err != nil {
		return err
	}
	next := t.Clone()
	next.Policies = slices.DeleteFunc(next.Policies, func(p catalog.PolicyDescriptor) bool { return p.Name == o.Name[0] })
	if len(next.Policies) == len(t.Policies) {
		if n.IfExists {
			r.noticeAbsent("policy %q for relation %q does not exist, skipping", o.Name[0], t.Name)
			return nil
		}
		return noPolicy(o.Name[0], t)
	}
	if !r.access.Owns(t.OwnerOID()) {
		return mustBeOwner("relation", t.Name)
	}
	return r.update(ctx, t, next, false)
}

// noticeAbsentRelation reports that a relation, or its schema, does not exist.
func (r *run) noticeAbsentRelation(ctx context.Context, name ast.TableName) error {
	if name.Schema != "" {
		if ok, err := r.r.SchemaExists(ctx, name.Schema); err != nil {
			return err
		} else if !ok {
			r.noticeAbsent("schema %q does not exist, skipping", name.Schema)
			return nil
		}
	}
	r.noticeAbsent("relation %q does not exist, skipping", name.Name)
	return nil
}

// commentPolicy is COMMENT ON POLICY.
func (r *run) commentPolicy(ctx context.Context, o *ast.Object, text string) error {
	t, err := r.mustFind(ctx, onTable(o))
	if err != nil {
		return err
	}
	next := t.Clone()
	p := next.PolicyNamed(o.Name[0])
	if p == nil {
		return noPolicy(o.Name[0], t)
	}
	if !r.access.Owns(t.OwnerOID()) {
		return mustBeOwner("relation", t.Name)
	}
	p.Comment = text
	return r.update(ctx, t, next, false)
}

// alterRowSecurity is ENABLE, DISABLE, FORCE and NO FORCE ROW LEVEL SECURITY.
func (r *run) alterRowSecurity(ctx context.Context, t *catalog.TableDescriptor, action string) error {
	next := t.Clone()
	switch action {
	case "ENABLE ROW LEVEL SECURITY":
		next.RowSecurity = true
	case "DISABLE ROW LEVEL SECURITY":
		next.RowSecurity = false
	case "FORCE ROW LEVEL SECURITY":
		next.ForceRowSecurity = true
	case "NO FORCE ROW LEVEL SECURITY":
		next.ForceRowSecurity = false
	default:
		return pgerror.New(pgerror.InternalError, "command %s of ALTER TABLE", action)
	}
	return r.update(ctx, t, next, false)
}
