package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// DROP of operators, casts, operator classes and families, and what depends on them.

// operationSet are operators, casts, operator classes and families.
type operationSet struct {
	operators []*catalog.OperatorDescriptor
	casts     []*catalog.CastDescriptor
	classes   []*catalog.OpClassDescriptor
	families  []*catalog.OpFamilyDescriptor
}

func (s *operationSet) empty() bool {
	return len(s.operators)+len(s.casts)+len(s.classes)+len(s.families) == 0
}

// add adds what s does not have, and reports whether there was something.
func (s *operationSet) add(other operationSet) bool {
	before := len(s.operators) + len(s.casts) + len(s.classes) + len(s.families)
	s.operators, s.casts = union(s.operators, other.operators), union(s.casts, other.casts)
	s.classes, s.families = union(s.classes, other.classes), union(s.families, other.families)
	return len(s.operators)+len(s.casts)+len(s.classes)+len(s.families) > before
}

func union[T comparable](a, b []T) []T {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// shown names the members as messages do.
func (s *operationSet) shown(r *run) (list []string) {
	for _, d := range s.operators {
		list = append(list, r.shownOperator(d))
	}
	for _, d := range s.casts {
		list = append(list, r.shownCast(d))
	}
	for _, d := range s.families {
		list = append(list, "operator family "+pgcatalog.FamilyName(r.r, d)+" for access method "+d.Method)
	}
	for _, d := range s.classes {
		list = append(list, "operator class "+pgcatalog.ClassName(r.r, d)+" for access method "+d.Method)
	}
	return list
}

func (r *run) shownOperator(d *catalog.OperatorDescriptor) string {
	name, _ := r.objects().RoutineName(types.OIDRegoperator, d.OID())
	return "operator " + name
}

func (r *run) shownCast(d *catalog.CastDescriptor) string {
	return "cast from " + r.shownType(d.From) + " to " + r.shownType(d.To)
}

// shownType is a type's name as messages about dependencies have it.
func (r *run) shownType(t types.Type) string {
	if name, ok := r.objects().TypeName(t.OID); ok {
		return name
	}
	return builtin.TypeName(t)
}

func (r *run) objects() *pgcatalog.Objects {
	return &pgcatalog.Objects{Resolver: func() catalog.Resolver { return r.r }}
}

// operationsWhere lists the operators, casts, classes and families that use one of some functions, or a type. A class needs the function by which it
// hashes as soon as rows are divided by it: PostgreSQL would drop that function, and refuse to read the table.
func (r *run) operationsWhere(function func(types.OID) bool, typ func(types.Type) bool) (found operationSet) {
	all := r.r.Operations()
	for _, d := range all.Operators() {
		if d.Function != 0 && function(d.Function) || typ(d.Left) || typ(d.Right) || typ(d.Ret) {
			found.operators = append(found.operators, d)
		}
	}
	for _, d := range all.AllCasts() {
		if d.Function != 0 && function(d.Function) || typ(d.From) || typ(d.To) {
			found.casts = append(found.casts, d)
		}
	}
	for _, d := range all.Classes() {
		hash := all.HashFunction(d.OID())
		if hash != 0 && function(hash) && r.dividesRows(d) || typ(d.Type) || typ(d.Key) || r.classHas(d, func(catalog.FamilyOperator) bool { return false }, func(f catalog.FamilyFunction) bool { return function(f.Function) }) {
			found.classes = append(found.classes, d)
		}
	}
	return found
}

// classHas reports whether a member of a class fulfils a condition.
func (r *run) classHas(d *catalog.OpClassDescriptor, operator func(catalog.FamilyOperator) bool, function func(catalog.FamilyFunction) bool) bool {
	f := r.r.Operations().Family(d.Family)
	return f != nil && (slices.ContainsFunc(f.Operators, func(m catalog.FamilyOperator) bool { return m.Class == uint32(d.ID) && operator(m) }) ||
		slices.ContainsFunc(f.Functions, func(m catalog.FamilyFunction) bool { return m.Class == uint32(d.ID) && function(m) }))
}

// classesOf lists the classes that depend on the operators and families of a set.
func (r *run) classesOf(s operationSet) (found operationSet) {
	for _, d := range r.r.Operations().Classes() {
		has := r.classHas(d, func(m catalog.FamilyOperator) bool {
			return slices.ContainsFunc(s.operators, func(o *catalog.OperatorDescriptor) bool { return o.OID() == m.Operator })
		}, func(catalog.FamilyFunction) bool { return false })
		if has || slices.ContainsFunc(s.families, func(f *catalog.OpFamilyDescriptor) bool { return f.OID() == d.Family }) {
			found.classes = append(found.classes, d)
		}
	}
	return found
}

// onFunctions lists the operations that use routines.
func (r *run) onFunctions(targets []*catalog.RoutineDescriptor) operationSet {
	return r.operationsWhere(func(oid types.OID) bool {
		return slices.ContainsFunc(targets, func(d *catalog.RoutineDescriptor) bool { return d.OID() == oid })
	}, func(types.Type) bool { return false })
}

// operationUses finds what depends on operators, casts, classes and families: other ones among them, and what uses all of these. The lines do not
// name what belongs to a schema that is dropped, nor the relations in it.
func (r *run) operationUses(ctx context.Context, s operationSet, dropped string) (*extensionDropping, error) {
	var lines []string
	classes := r.classesOf(s)
	for _, d := range classes.classes {
		if slices.Contains(s.classes, d) {
			continue
		}
		on := "" // A class is dropped with its family.
		for _, o := range s.operators {
			if r.classHas(d, func(m catalog.FamilyOperator) bool { return m.Operator == o.OID() }, func(catalog.FamilyFunction) bool { return false }) {
				on = r.shownOperator(o)
			}
		}
		if on == "" {
			continue
		}
		one := operationSet{classes: []*catalog.OpClassDescriptor{d}}
		lines = append(lines, one.shown(r)[0]+" depends on "+on)
	}
	all := s
	all.classes = slices.Clone(s.classes)
	all.add(classes)
	found, err := r.boundUses(ctx, func(use builtin.Use) bool {
		return use.Operator != 0 && slices.ContainsFunc(all.operators, func(d *catalog.OperatorDescriptor) bool { return d.OID() == use.Operator }) ||
			use.Cast != 0 && slices.ContainsFunc(all.casts, func(d *catalog.CastDescriptor) bool { return d.OID() == use.Cast })
	}, nil, dropped)
	if err != nil {
		return nil, err
	}
	found.operations = classes
	found.lines = append(lines, found.lines...)
	return found, r.addClassUses(ctx, all.classes, found, dropped)
}

// dropOperationList drops operators, casts, classes and families, with cascade what depends on them as well.
func (r *run) dropOperationList(ctx context.Context, s operationSet, cascade bool) error {
	if s.empty() {
		return nil
	}
	found, err := r.operationUses(ctx, s, "")
	if err != nil {
		return err
	}
	if len(found.lines) > 0 && !cascade {
		shown := s.shown(r)
		e := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", shown[0])
		if len(shown) > 1 {
			e = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
		}
		return e.WithDetail("%s", joinLines(found.lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	r.noticeCascade(dependents(found.lines))
	if err := r.dropDependents(ctx, &found.typeDropping); err != nil {
		return err
	}
	return r.removeOperations(ctx, s)
}

// dependents returns what depends on something, of the lines of a DETAIL.
func dependents(lines []string) []string {
	var list []string
	for _, line := range lines {
		what, _, _ := strings.Cut(line, " depends on ")
		list = append(list, what)
	}
	return list
}

// dropFoundOperations drops operations with what is dropped, as far as they are still there.
func (r *run) dropFoundOperations(ctx context.Context, s operationSet) error {
	all := r.r.Operations()
	var now operationSet
	for _, d := range s.operators {
		if d = all.Operator(d.OID()); d != nil {
			now.operators = append(now.operators, d)
		}
	}
	for _, d := range s.casts {
		if d = all.Cast(d.OID()); d != nil {
			now.casts = append(now.casts, d)
		}
	}
	for _, d := range s.classes {
		if d = all.Class(d.OID()); d != nil {
			now.classes = append(now.classes, d)
		}
	}
	for _, d := range s.families {
		if d = all.Family(d.OID()); d != nil {
			now.families = append(now.families, d)
		}
	}
	if err := r.quiet().dropOperationList(ctx, now, true); err != nil {
		return err
	}
	return r.look(ctx)
}

// removeOperations removes operations on which nothing depends any more, and the links of others to them.
func (r *run) removeOperations(ctx context.Context, s operationSet) error {
	for _, d := range s.casts {
		if err := r.ch.DropCast(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range s.classes {
		if now := r.r.Operations().Class(d.OID()); now != nil {
			if err := r.removeClass(ctx, now); err != nil {
				return err
			}
		}
	}
	for _, d := range s.families {
		if err := r.ch.DropOpFamily(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range s.operators {
		if err := r.removeOperator(ctx, d); err != nil {
			return err
		}
	}
	return r.look(ctx)
}

// removeOperator removes an operator. Operators that name it as theirs forget it, as do families to which it belongs without a class.
func (r *run) removeOperator(ctx context.Context, d *catalog.OperatorDescriptor) error {
	for _, other := range r.r.Operations().Operators() {
		if other.ID == d.ID || other.Commutator != d.OID() && other.Negator != d.OID() {
			continue
		}
		next := other.Clone()
		if next.Commutator == d.OID() {
			next.Commutator = 0
		}
		if next.Negator == d.OID() {
			next.Negator = 0
		}
		if err := r.putOperator(ctx, next); err != nil {
			return err
		}
	}
	err := r.removeMembers(ctx, func(m catalog.FamilyOperator) bool { return m.Operator == d.OID() }, func(catalog.FamilyFunction) bool { return false })
	if err != nil {
		return err
	}
	if err := r.ch.DropOperator(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// removeMembers removes members of families.
func (r *run) removeMembers(ctx context.Context, operator func(catalog.FamilyOperator) bool, function func(catalog.FamilyFunction) bool) error {
	for _, f := range r.r.Operations().Families() {
		next := f.Clone()
		next.Operators, next.Functions = slices.DeleteFunc(next.Operators, operator), slices.DeleteFunc(next.Functions, function)
		if len(next.Operators) == len(f.Operators) && len(next.Functions) == len(f.Functions) {
			continue
		}
		if err := r.putFamily(ctx, next); err != nil {
			return err
		}
	}
	return r.look(ctx)
}

// dropOperators is DROP OPERATOR.
func (r *run) dropOperators(ctx context.Context, n *ast.DropObjects) error {
	var s operationSet
	for i := range n.Objects {
		o := &n.Objects[i]
		d, oid, err := r.findOperator(ctx, o)
		if absent, ok := err.(*absentOperator); ok {
			if !n.IfExists {
				return absent.err
			}
			r.noticeAbsent("%s", absent.notice)
			continue
		}
		name := strings.Join(o.Name, ".")
		switch {
		case err != nil:
			return err
		case d == nil && !r.access.Superuser():
			return mustBeOwner("operator", name)
		case d == nil:
			shown, _ := r.objects().RoutineName(types.OIDRegoperator, oid)
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop operator %s because it is required by the database system", shown)
		case !r.access.Owns(d.OwnerOID()) && !r.access.OwnsSchema(d.Schema):
			return mustBeOwner("operator", name)
		}
		s.add(operationSet{operators: []*catalog.OperatorDescriptor{d}})
	}
	return r.dropOperationList(ctx, s, n.Cascade)
}

// operationsIn lists the operators, classes and families for whose schema and owner a condition holds.
func (r *run) operationsIn(is func(schema string, owner uint32) bool) (found operationSet) {
	all := r.r.Operations()
	for _, d := range all.Operators() {
		if is(d.Schema, d.OwnerOID()) {
			found.operators = append(found.operators, d)
		}
	}
	for _, d := range all.Classes() {
		if is(d.Schema, d.OwnerOID()) {
			found.classes = append(found.classes, d)
		}
	}
	for _, d := range all.Families() {
		if !d.Added() && is(d.Schema, d.OwnerOID()) {
			found.families = append(found.families, d)
		}
	}
	return found
}

// operationsOf lists the operators, classes and families that belong to one of the roles.
func (r *run) operationsOf(roles []uint32) operationSet {
	return r.operationsIn(func(_ string, owner uint32) bool { return slices.Contains(roles, owner) })
}

// passOperations gives operators, classes and families to another role.
func (r *run) passOperations(ctx context.Context, s operationSet, owner uint32) error {
	for _, d := range s.operators {
		next := d.Clone()
		next.Owner = owner
		if err := r.ch.PutOperator(ctx, next); err != nil {
			return err
		}
	}
	for _, d := range s.classes {
		next := d.Clone()
		next.Owner = owner
		if err := r.ch.PutOpClass(ctx, next); err != nil {
			return err
		}
	}
	for _, d := range s.families {
		next := d.Clone()
		next.Owner = owner
		if err := r.ch.PutOpFamily(ctx, next); err != nil {
			return err
		}
	}
	return r.look(ctx)
}

// rewriteStandard is rewriteStored for bodies in SQL's standard form and the defaults of parameters.
func (r *run) rewriteStandard(ctx context.Context, rewrite func(e ast.Expr) (changed bool, _ error)) error {
	var failed error
	changed := false
	visitor := ast.Visitor{Expr: func(e ast.Expr) {
		if failed == nil {
			var part bool
			part, failed = rewrite(e)
			changed = changed || part
		}
	}}
	for _, f := range r.r.Routines().All() {
		next := f.Clone()
		changed = false
		if err := rewriteRoutine(next, visitor); err != nil {
			return err
		}
		if changed && failed == nil {
			if err := r.ch.PutRoutine(ctx, next); err != nil {
				return err
			}
		}
	}
	return failed
}

// operationUse is an operator, a cast or a class that depends on a type, with what depends on it.
type operationUse struct {
	what   string
	array  bool // it has the array type
	id     uint64
	others []string // lines
}

// within lists what depends on the operation, with the reasons if they are asked for.
func (u *operationUse) within(reasons bool) []string {
	if reasons {
		return u.others
	}
	return dependents(u.others)
}

// addTypeOperations adds the operators, casts and classes of a type, and what depends on them.
func (r *run) addTypeOperations(ctx context.Context, found *typeDropping, d *catalog.TypeDescriptor) error {
	of := func(t types.Type) bool {
		return t.OID == types.OID(d.ID) || d.ArrayID != 0 && t.OID == types.OID(d.ArrayID)
	}
	s := r.operationsWhere(func(types.OID) bool { return false }, of)
	found.operations = s
	isArray := func(ts ...types.Type) bool {
		return !slices.ContainsFunc(ts, func(t types.Type) bool { return t.OID == types.OID(d.ID) })
	}
	var ones []operationUse
	var sets []operationSet
	add := func(one operationSet, array bool, id uint64) {
		ones, sets = append(ones, operationUse{what: one.shown(r)[0], array: array, id: id}), append(sets, one)
	}
	for _, o := range s.operators {
		add(operationSet{operators: []*catalog.OperatorDescriptor{o}}, isArray(o.Left, o.Right, o.Ret), o.ID)
	}
	for _, c := range s.casts {
		add(operationSet{casts: []*catalog.CastDescriptor{c}}, isArray(c.From, c.To), c.ID)
	}
	for _, c := range s.classes {
		add(operationSet{classes: []*catalog.OpClassDescriptor{c}}, isArray(c.Type), c.ID)
	}
	for i := range ones {
		uses, err := r.operationUses(ctx, sets[i], "")
		if err != nil {
			return err
		}
		ones[i].others = uses.lines
	}
	found.ofType = ones
	return nil
}

// addOperationUses adds operations that depend on what is dropped, on which on describes, and what depends on them.
func (r *run) addOperationUses(ctx context.Context, found *extensionDropping, s operationSet, on func(*operationSet) string) error {
	found.operations.add(s)
	each := func(one operationSet) error {
		uses, err := r.operationUses(ctx, one, "")
		if err != nil {
			return err
		}
		found.lines = append(append(found.lines, one.shown(r)[0]+" depends on "+on(&one)), uses.lines...)
		return nil
	}
	for _, d := range s.operators {
		if err := each(operationSet{operators: []*catalog.OperatorDescriptor{d}}); err != nil {
			return err
		}
	}
	for _, d := range s.casts {
		if err := each(operationSet{casts: []*catalog.CastDescriptor{d}}); err != nil {
			return err
		}
	}
	for _, d := range s.classes {
		if err := each(operationSet{classes: []*catalog.OpClassDescriptor{d}}); err != nil {
			return err
		}
	}
	return nil
}

// functionOf describes the routine among targets that an operation uses.
func (r *run) functionOf(s *operationSet, targets []*catalog.RoutineDescriptor) string {
	for _, f := range targets {
		one := r.onFunctions([]*catalog.RoutineDescriptor{f})
		if !one.add(*s) {
			return "function " + r.routineSignature(f)
		}
	}
	return ""
}
