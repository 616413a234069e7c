package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// createDomain is CREATE DOMAIN.
func (r *run) createDomain(ctx context.Context, n *ast.CreateDomain) error {
	d, err := r.newType(ctx, pathName(n.Pos, n.Name), types.Domain)
	if err != nil {
		return err
	}
	def := &n.Column
	if d.Parent, err = planner.ResolveType(&def.Type, r.r); err != nil {
		return err
	}
	info := d.Parent.Info()
	if info == nil || info.Category == types.CategoryPseudo || d.Parent.OID == types.OIDUnknown {
		return pgerror.New(pgerror.DatatypeMismatch, "\"%s\" is not a valid base type for a domain", builtin.TypeName(d.Parent)).At(def.Type.Position())
	}
	if err := r.mayUseType(d.Parent); err != nil {
		return err
	}
	if err := requireLasting(d.Schema, d.Parent); err != nil {
		return err
	}
	if err := requireDomainOptions(def); err != nil {
		return err
	}
	if d.Parent, err = planner.CollateType(d.Parent, def.Collation, r.r, int(def.CollateAt)); err != nil {
		return err
	}
	d.NotNull = def.NotNull
	if d.Parent.IsDomain() {
		d.Default = d.Parent.Def.Default
	}
	if def.Default != nil {
		if d.Default, err = r.defaultText(ctx, d.Name, def.Default, d.Parent); err != nil {
			return err
		}
	}
	for i := range def.Constraints {
		check, err := r.newDomainCheck(ctx, d, &def.Constraints[i])
		if err != nil {
			return err
		}
		d.Checks = append(d.Checks, check)
	}
	sortChecks(d)
	return r.addType(ctx, d)
}

// requireDomainOptions refuses what a domain cannot be declared with.
func requireDomainOptions(def *ast.ColumnDef) error {
	if def.Generated != nil || def.Identity != "" {
		return pgerror.New(pgerror.SyntaxError, "identity and generation are not possible for domains").At(def.Position())
	}
	return nil
}

// sortChecks puts constraints in the order in which they are evaluated.
func sortChecks(d *catalog.TypeDescriptor) {
	slices.SortFunc(d.Checks, func(a, b types.DomainCheck) int { return strings.Compare(a.Name, b.Name) })
}

func checkNamed(d *catalog.TypeDescriptor, name string) int {
	return slices.IndexFunc(d.Checks, func(c types.DomainCheck) bool { return c.Name == name })
}

// constraintWords name the constraints that domains do not have.
var constraintWords = map[ast.ConstraintKind]string{
	ast.PrimaryKey: "primary key", ast.Unique: "unique", ast.ForeignKey: "foreign key", ast.Exclude: "exclusion",
}

// newDomainCheck makes a CHECK constraint of a domain. It binds the expression once, so that an invalid one is refused now.
func (r *run) newDomainCheck(ctx context.Context, d *catalog.TypeDescriptor, c *ast.TableConstraint) (types.DomainCheck, error) {
	none := types.DomainCheck{}
	if c.Kind != ast.Check {
		return none, pgerror.New(pgerror.SyntaxError, "%s constraints not possible for domains", constraintWords[c.Kind]).At(c.Position())
	}
	if slices.Contains(c.Attributes, "NO INHERIT") {
		return none, pgerror.New(invalidObjectDefinition, "check constraints for domains cannot be marked NO INHERIT").At(c.Position())
	}
	if _, err := planner.BindDomainCheck(ctx, c.Check, d.Parent, r.r, r.Env); err != nil {
		return none, err
	}
	name := c.Name
	taken := func(name string) bool { return checkNamed(d, name) >= 0 }
	switch {
	case name == "":
		name = chooseName(d.Name, "", "check", taken)
	case taken(name):
		return none, domainHasConstraint(d, name)
	}
	oid, err := r.ch.NewID(ctx)
	return types.DomainCheck{OID: types.OID(oid), Name: name, Expr: r.pinned(c.Check), NotValid: c.NotValid}, err
}

func domainHasConstraint(d *catalog.TypeDescriptor, name string) *pgerror.Error {
	return pgerror.New(pgerror.DuplicateObject, "constraint \"%s\" for domain \"%s\" already exists", name, d.Name)
}

func noDomainConstraint(d *catalog.TypeDescriptor, name string) *pgerror.Error {
	return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" of domain \"%s\" does not exist", name, d.Name)
}

// domain finds the domain that a statement names, and fails unless the user owns it.
func (r *run) domain(ctx context.Context, name ast.TableName) (*catalog.TypeDescriptor, error) {
	d, t, err := r.userType(ctx, name)
	if row, ok := err.(*rowType); ok {
		return nil, notDomain(row.relation.Name)
	}
	switch {
	case err != nil:
		return nil, err
	case !t.IsDomain():
		return nil, notDomain(builtin.TypeName(t))
	case !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner("type", builtin.TypeName(t))
	}
	return d, nil
}

func notDomain(name string) error {
	return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a domain", name)
}

// alterDomain is ALTER DOMAIN but for what ALTER TYPE has as well.
func (r *run) alterDomain(ctx context.Context, n *ast.AlterDomain) error {
	d, err := r.domain(ctx, pathName(n.Pos, n.Name))
	if err != nil {
		return err
	}
	next := d.Clone()
	switch n.Action {
	case "SET DEFAULT":
		next.Default, err = r.defaultText(ctx, d.Name, n.Default, d.Parent)
	case "DROP DEFAULT":
		next.Default = ""
	case "SET NOT NULL":
		if d.NotNull {
			return nil
		}
		return r.restrictDomain(ctx, d, true, func(next *catalog.TypeDescriptor) error {
			next.NotNull = true
			return nil
		})
	case "DROP NOT NULL":
		next.NotNull = false
	case "ADD":
		return r.addDomainCheck(ctx, d, n.Constraint)
	case "VALIDATE CONSTRAINT":
		return r.validateDomainCheck(ctx, d, n.Old)
	case "DROP CONSTRAINT":
		place := checkNamed(d, n.Old)
		if place < 0 && n.IfExists {
			r.noticeAbsent("constraint %q of domain %q does not exist, skipping", n.Old, d.Name)
			return nil
		}
		if place < 0 {
			return noDomainConstraint(d, n.Old)
		}
		next.Checks = slices.Delete(next.Checks, place, place+1)
	case "RENAME CONSTRAINT":
		place := checkNamed(d, n.Old)
		switch {
		case place < 0:
			return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for domain %s does not exist", n.Old, builtin.TypeName(d.Type()))
		case checkNamed(d, n.New) >= 0:
			return domainHasConstraint(d, n.New)
		}
		next.Checks[place].Name = n.New
		sortChecks(next)
	}
	if err != nil {
		return err
	}
	return r.addType(ctx, next)
}

func (r *run) addDomainCheck(ctx context.Context, d *catalog.TypeDescriptor, c *ast.TableConstraint) error {
	check, err := r.newDomainCheck(ctx, d, c)
	if err != nil {
		return err
	}
	return r.restrictDomain(ctx, d, !c.NotValid, func(next *catalog.TypeDescriptor) error {
		if checkNamed(next, check.Name) >= 0 {
			return domainHasConstraint(next, check.Name)
		}
		next.Checks = append(next.Checks, check)
		sortChecks(next)
		return nil
	})
}

func (r *run) validateDomainCheck(ctx context.Context, d *catalog.TypeDescriptor, name string) error {
	if checkNamed(d, name) < 0 {
		return noDomainConstraint(d, name)
	}
	return r.restrictDomain(ctx, d, true, func(next *catalog.TypeDescriptor) error {
		place := checkNamed(next, name)
		if place < 0 {
			return noDomainConstraint(next, name)
		}
		next.Checks[place].NotValid = false
		return nil
	})
}

// restrictDomain changes the constraints of a domain, of which change makes the next ones. Statements that write values of the domain under
// the old constraints must not commit any more, and with verify the values that are stored must satisfy the new ones.
func (r *run) restrictDomain(ctx context.Context, d *catalog.TypeDescriptor, verify bool, change func(*catalog.TypeDescriptor) error) error {
	tables, err := r.domainTables(ctx, d, verify)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if !r.ch.Created(t.ID) {
			if err := r.ch.Close(ctx, t); err != nil {
				return err
			}
		}
	}
	if r.alone && len(tables) > 0 {
		if err := r.begin(ctx); err != nil {
			return err
		}
		if d = r.r.Types().ByOID(types.OID(d.ID)); d == nil {
			return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
		}
		if tables, err = r.domainTables(ctx, d, verify); err != nil {
			return err
		}
	}
	next := d.Clone()
	if err := change(next); err != nil {
		return err
	}
	for _, t := range tables {
		if !r.alone && !r.ch.Created(t.ID) {
			if err := r.requireUnchanged(ctx, t); err != nil {
				return err
			}
		}
		if verify {
			if err := r.verifyDomain(ctx, t, d, next); err != nil {
				return err
			}
		}
	}
	for _, t := range tables {
		if err := r.ch.Update(ctx, t, t.Clone(), true); err != nil {
			return err
		}
	}
	return r.addType(ctx, next)
}

// overDomain reports whether t is a domain or one that is declared over it, maybe over others.
func overDomain(t types.Type, d *catalog.TypeDescriptor) bool {
	for t.IsDomain() {
		if t.OID == types.OID(d.ID) {
			return true
		}
		t = t.Def.Parent
	}
	return false
}

// holdsDomain reports whether values of t have values of a domain within.
func holdsDomain(t types.Type, d *catalog.TypeDescriptor) bool {
	if overDomain(t, d) {
		return true
	}
	t = t.Underlying()
	if t.IsComposite() {
		return slices.ContainsFunc(t.Def.Fields, func(f types.Field) bool { return holdsDomain(f.Type, d) })
	}
	elem := t.Elem()
	return elem.Valid() && holdsDomain(elem, d)
}

// domainTables lists the tables with columns of a domain, or of one over it. Values within other values cannot be verified.
func (r *run) domainTables(ctx context.Context, d *catalog.TypeDescriptor, verify bool) ([]*catalog.TableDescriptor, error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	var tables []*catalog.TableDescriptor
	for _, t := range all {
		if t.Kind != catalog.KindTable {
			continue
		}
		uses := false
		for i := range t.Columns {
			c := &t.Columns[i]
			if !holdsDomain(c.Type, d) {
				continue
			}
			uses = true
			if verify && !overDomain(c.Type, d) {
				return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot alter type \"%s\" because column \"%s.%s\" uses it", d.Name, t.Name, c.Name)
			}
		}
		if uses {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// verifyDomain fails unless all values of the domain in a table satisfy the constraints that next has and d has not.
func (r *run) verifyDomain(ctx context.Context, t *catalog.TableDescriptor, d, next *catalog.TypeDescriptor) error {
	bound, err := r.newChecks(ctx, d, next)
	if err != nil {
		return err
	}
	ev := r.evaluator(ctx)
	value := make(types.Row, 1)
	return r.scanRows(ctx, t, "checking rows", func(row types.Row) error {
		for i := range t.Columns {
			if !overDomain(t.Columns[i].Type, d) {
				continue
			}
			if next.NotNull && !d.NotNull && row[i].IsNull() {
				return storedViolation(pgerror.NotNullViolation, "column \"%s\" of table \"%s\" contains null values", t, i)
			}
			value[0] = row[i]
			for _, c := range bound {
				ok, err := ev.eval(c, value)
				if err != nil {
					return err
				}
				if !ok.IsNull() && !ok.Bool() {
					return storedViolation(pgerror.CheckViolation, "column \"%s\" of table \"%s\" contains values that violate the new constraint", t, i)
				}
			}
		}
		return nil
	})
}

// newChecks binds the checks of next that are validated in it but not in d.
func (r *run) newChecks(ctx context.Context, d, next *catalog.TypeDescriptor) (bound []expr.Scalar, err error) {
	for _, c := range next.Checks {
		if old := checkNamed(d, c.Name); c.NotValid || old >= 0 && !d.Checks[old].NotValid {
			continue
		}
		e, err := sql.ParseExpr(c.Expr)
		if err != nil {
			return nil, err
		}
		x, err := planner.BindDomainCheck(ctx, e, d.Parent, r.r, r.Env)
		if err != nil {
			return nil, err
		}
		bound = append(bound, x)
	}
	return bound, nil
}

func storedViolation(code pgerror.Code, format string, t *catalog.TableDescriptor, ord int) error {
	e := pgerror.New(code, format, t.Columns[ord].Name, t.Name)
	e.Schema, e.Table, e.Column = t.Schema, t.Name, t.Columns[ord].Name
	return e
}

// commentDomainConstraint is COMMENT ON CONSTRAINT … ON DOMAIN.
func (r *run) commentDomainConstraint(ctx context.Context, n *ast.Comment, text string) error {
	d, err := r.domain(ctx, pathName(n.OnDomain.Pos, n.OnDomain.Name))
	if err != nil {
		return err
	}
	name := n.Name[len(n.Name)-1]
	place := checkNamed(d, name)
	if place < 0 {
		return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for domain %s does not exist", name, builtin.TypeName(d.Type()))
	}
	next := d.Clone()
	next.Checks[place].Comment = text
	return r.addType(ctx, next)
}
