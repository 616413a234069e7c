package pgcatalog

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The operators, casts, operator classes and families that users have defined, as the catalogs show them.

const (
	classPgCast     = 2605
	classPgOpclass  = 2616
	classPgOpfamily = 2753
	classPgAmop     = 2602
	classPgAmproc   = 2603
)

// methodOIDs are the access methods by their names.
var methodOIDs = map[string]uint32{"btree": btreeOID, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}

func operatorRows(s *scan) error {
	err := s.dataRows(pgdata.Operators()).each(builtin.OperatorRows(), col{"oprnamespace", s.systemSchema()}, col{"oprowner", num(ownerOID)})
	if err != nil {
		return err
	}
	for _, d := range s.Operations().Operators() {
		kind := byte('b')
		if !d.Left.Valid() {
			kind = 'l'
		}
		err := s.emit(col{"oid", oid(uint32(d.ID))}, col{"oprname", text(d.Name)}, col{"oprnamespace", oid(schemaOID(s.Resolver, d.Schema))},
			col{"oprowner", oid(d.OwnerOID())}, col{"oprkind", letter(kind)}, col{"oprcanmerge", boolean(d.Merges)}, col{"oprcanhash", boolean(d.Hashes)},
			col{"oprleft", oid(uint32(d.Left.OID))}, col{"oprright", oid(uint32(d.Right.OID))}, col{"oprresult", oid(uint32(d.Ret.OID))},
			col{"oprcom", oid(uint32(d.Commutator))}, col{"oprnegate", oid(uint32(d.Negator))}, col{"oprcode", oid(uint32(d.Function))},
			col{"oprrest", oid(uint32(d.Restrict))}, col{"oprjoin", oid(uint32(d.Join))})
		if err != nil {
			return err
		}
	}
	return nil
}

func castRows(s *scan) error {
	if err := s.dataRows(pgdata.Casts()).each(builtin.CastRows()); err != nil {
		return err
	}
	for _, d := range s.Operations().AllCasts() {
		err := s.emit(col{"oid", oid(uint32(d.ID))}, col{"castsource", oid(uint32(d.From.OID))}, col{"casttarget", oid(uint32(d.To.OID))},
			col{"castfunc", oid(uint32(d.Function))}, col{"castcontext", letter("iae"[d.Context])}, col{"castmethod", letter(d.Method)})
		if err != nil {
			return err
		}
	}
	return nil
}

func opclassRows(s *scan) error {
	if err := s.dataRows(pgdata.OpClasses()).all(col{"opcnamespace", s.systemSchema()}, col{"opcowner", num(ownerOID)}); err != nil {
		return err
	}
	for _, d := range s.Operations().Classes() {
		err := s.emit(col{"oid", oid(uint32(d.ID))}, col{"opcmethod", oid(methodOIDs[d.Method])}, col{"opcname", text(d.Name)},
			col{"opcnamespace", oid(schemaOID(s.Resolver, d.Schema))}, col{"opcowner", oid(d.OwnerOID())}, col{"opcfamily", oid(uint32(d.Family))},
			col{"opcintype", oid(uint32(d.Type.OID))}, col{"opcdefault", boolean(d.Default)}, col{"opckeytype", oid(uint32(d.Key.OID))})
		if err != nil {
			return err
		}
	}
	return nil
}

func opfamilyRows(s *scan) error {
	if err := s.dataRows(pgdata.OpFamilies()).all(col{"opfnamespace", s.systemSchema()}, col{"opfowner", num(ownerOID)}); err != nil {
		return err
	}
	for _, d := range s.Operations().Families() {
		if d.Added() {
			continue
		}
		err := s.emit(col{"oid", oid(uint32(d.ID))}, col{"opfmethod", oid(methodOIDs[d.Method])}, col{"opfname", text(d.Name)},
			col{"opfnamespace", oid(schemaOID(s.Resolver, d.Schema))}, col{"opfowner", oid(d.OwnerOID())})
		if err != nil {
			return err
		}
	}
	return nil
}

func amopRows(s *scan) error {
	if err := s.dataRows(pgdata.AmOps()).each(builtin.AmOpRows()); err != nil {
		return err
	}
	for _, d := range s.Operations().Families() {
		for _, m := range d.Operators {
			purpose := byte('s')
			if m.SortFamily != 0 {
				purpose = 'o'
			}
			err := s.emit(col{"oid", oid(m.OID)}, col{"amopfamily", oid(uint32(d.ID))}, col{"amoplefttype", oid(uint32(m.Left))},
				col{"amoprighttype", oid(uint32(m.Right))}, col{"amopstrategy", num(m.Strategy)}, col{"amoppurpose", letter(purpose)},
				col{"amopopr", oid(uint32(m.Operator))}, col{"amopmethod", oid(methodOIDs[d.Method])}, col{"amopsortfamily", oid(uint32(m.SortFamily))})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func amprocRows(s *scan) error {
	if err := s.dataRows(pgdata.AmProcs()).all(); err != nil {
		return err
	}
	for _, d := range s.Operations().Families() {
		for _, m := range d.Functions {
			err := s.emit(col{"oid", oid(m.OID)}, col{"amprocfamily", oid(uint32(d.ID))}, col{"amproclefttype", oid(uint32(m.Left))},
				col{"amprocrighttype", oid(uint32(m.Right))}, col{"amprocnum", num(m.Number)}, col{"amproc", oid(uint32(m.Function))})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// operationComments calls f with the comments on operators, casts, classes and families of users.
func operationComments(r catalog.Resolver, f func(object uint32, class, sub int, comment string) error) error {
	all := r.Operations()
	for _, d := range all.Operators() {
		comment := d.Comment
		if err := f(uint32(d.ID), classPgOperator, 0, comment); err != nil {
			return err
		}
	}
	for _, d := range all.AllCasts() {
		if err := f(uint32(d.ID), classPgCast, 0, d.Comment); err != nil {
			return err
		}
	}
	for _, d := range all.Classes() {
		if err := f(uint32(d.ID), classPgOpclass, 0, d.Comment); err != nil {
			return err
		}
	}
	for _, d := range all.Families() {
		if err := f(uint32(d.ID), classPgOpfamily, 0, d.Comment); err != nil {
			return err
		}
	}
	return nil
}

// userOperator returns the operator of a user with an OID, nil if there is none.
func (o *Objects) userOperator(id types.OID) *catalog.OperatorDescriptor {
	if r := o.Resolver(); r != nil && id >= types.FirstUserOID {
		return r.Operations().Operator(id)
	}
	return nil
}

// operatorVisible reports whether the search path finds an operator of a user: no schema before its own has one with the same symbol and operands.
func operatorVisible(r catalog.Resolver, d *catalog.OperatorDescriptor) bool {
	for _, schema := range catalog.Path(r) {
		switch {
		case schema == d.Schema:
			return true
		case schema == catalog.SystemSchema:
			if systemOperatorOID(d.Name, d.Left, d.Right) != 0 {
				return false
			}
		case r.Operations().FindOperator(schema, d.Name, d.Left, d.Right) != nil:
			return false
		}
	}
	return false
}

// systemOperatorOID returns the operator of PostgreSQL with a symbol and operands, 0 if there is none.
func systemOperatorOID(symbol string, left, right types.Type) types.OID {
	t := pgdata.Operators()
	for _, row := range operatorsNamed(symbol) {
		if types.OID(t.Number(row, "oprleft")) == left.OID && types.OID(t.Number(row, "oprright")) == right.OID {
			return types.OID(t.OIDs[row])
		}
	}
	return 0
}

// OperatorVisible implements builtin.Catalog.
func (o *Objects) OperatorVisible(id types.OID) (visible, ok bool) {
	r := o.Resolver()
	if row, found := pgdata.Operators().ByOID(uint32(id)); found && builtin.OperatorShown(row) {
		t := pgdata.Operators()
		left, right := types.Type{OID: types.OID(t.Number(row, "oprleft"))}, types.Type{OID: types.OID(t.Number(row, "oprright"))}
		for _, schema := range catalog.Path(r) {
			if schema == catalog.SystemSchema {
				break
			}
			if r.Operations().FindOperator(schema, t.Value(row, "oprname"), left, right) != nil {
				return false, true
			}
		}
		return true, true
	}
	d := o.userOperator(id)
	return d != nil && operatorVisible(r, d), d != nil
}

// userOperatorName is RoutineName for an operator of a user.
func (o *Objects) userOperatorName(id types.OID, withTypes bool) (string, bool) {
	d := o.userOperator(id)
	if d == nil {
		return "", false
	}
	r := o.Resolver()
	name := d.Name
	if !withTypes {
		if found, err := o.operatorOIDs("", name); err != nil || len(found) != 1 || found[0] != id {
			name = keyword.QuoteIdent(d.Schema) + "." + name
		}
		return name, true
	}
	if !operatorVisible(r, d) {
		name = keyword.QuoteIdent(d.Schema) + "." + name
	}
	left := "NONE"
	if d.Left.Valid() {
		left = shownType(r, d.Left)
	}
	return name + "(" + left + "," + shownType(r, d.Right) + ")", true
}

// operatorOIDs returns the operators with a symbol that a schema contains, "" for those that the search path finds.
func (o *Objects) operatorOIDs(schema, symbol string) ([]types.OID, error) {
	if err := o.schemaExists(schema); err != nil {
		return nil, err
	}
	r := o.Resolver()
	path := []string{schema}
	if schema == "" {
		path = []string{catalog.SystemSchema}
		if r != nil {
			path = catalog.Path(r)
		}
	}
	var found []types.OID
	if slices.Contains(path, catalog.SystemSchema) {
		for _, row := range operatorsNamed(symbol) {
			id := types.OID(pgdata.Operators().OIDs[row])
			if visible, _ := o.OperatorVisible(id); visible || schema != "" {
				found = append(found, id)
			}
		}
	}
	if r == nil {
		return found, nil
	}
	for _, d := range r.Operations().Named(symbol) {
		if slices.Contains(path, d.Schema) && (schema != "" || operatorVisible(r, d)) {
			found = append(found, d.OID())
		}
	}
	return found, nil
}

// findOperator returns the operator that a symbol, in a schema or in the search path (""), and operands mean; 0 if there is none.
func (o *Objects) findOperator(schema, symbol string, left, right types.Type) types.OID {
	r := o.Resolver()
	path := []string{schema}
	if schema == "" {
		path = []string{catalog.SystemSchema}
		if r != nil {
			path = catalog.Path(r)
		}
	}
	for _, schema := range path {
		if schema == catalog.SystemSchema {
			if id := systemOperatorOID(symbol, left, right); id != 0 {
				return id
			}
		} else if r != nil {
			if d := r.Operations().FindOperator(schema, symbol, left, right); d != nil {
				return d.OID()
			}
		}
	}
	return 0
}

// FindOperator returns the operator that a name and operands mean, also a shell; 0 if there is none. left is the zero Type for a prefix operator.
func FindOperator(r catalog.Resolver, schema, symbol string, left, right types.Type) types.OID {
	return (&Objects{Resolver: func() catalog.Resolver { return r }}).findOperator(schema, symbol, left, right)
}

// describeCast describes a cast.
func (o *Objects) describeCast(id types.OID) (string, bool) {
	from, to := types.Type{}, types.Type{}
	r := o.Resolver()
	if row, ok := pgdata.Casts().ByOID(uint32(id)); ok {
		t := pgdata.Casts()
		from.OID, to.OID = types.OID(t.Number(row, "castsource")), types.OID(t.Number(row, "casttarget"))
	} else if r == nil {
		return "", false
	} else if d := r.Operations().Cast(id); d != nil {
		from, to = d.From, d.To
	} else {
		return "", false
	}
	from.Mod, to.Mod = -1, -1
	return "cast from " + shownType(r, from) + " to " + shownType(r, to), true
}

// describeClass describes an operator class or family.
func (o *Objects) describeClass(class, id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	if class == classPgOpclass {
		if row, ok := pgdata.OpClasses().ByOID(uint32(id)); ok {
			return "operator class " + pgdata.OpClasses().Value(row, "opcname") + " for access method btree", true
		}
		d := r.Operations().Class(id)
		if d == nil {
			return "", false
		}
		return "operator class " + ClassName(r, d) + " for access method " + d.Method, true
	}
	if row, ok := pgdata.OpFamilies().ByOID(uint32(id)); ok {
		return "operator family " + pgdata.OpFamilies().Value(row, "opfname") + " for access method btree", true
	}
	d := r.Operations().Family(id)
	if d == nil {
		return "", false
	}
	return "operator family " + FamilyName(r, d) + " for access method " + d.Method, true
}

// ClassName returns the name of an operator class, with its schema unless the search path finds it.
func ClassName(r catalog.Resolver, d *catalog.OpClassDescriptor) string {
	if classVisible(r, d) {
		return keyword.QuoteIdent(d.Name)
	}
	return keyword.QuoteIdent(d.Schema) + "." + keyword.QuoteIdent(d.Name)
}

// FamilyName returns the name of an operator family, with its schema unless the search path finds it.
func FamilyName(r catalog.Resolver, d *catalog.OpFamilyDescriptor) string {
	if familyVisible(r, d) {
		return keyword.QuoteIdent(d.Name)
	}
	return keyword.QuoteIdent(d.Schema) + "." + keyword.QuoteIdent(d.Name)
}

func classVisible(r catalog.Resolver, d *catalog.OpClassDescriptor) bool {
	for _, schema := range catalog.Path(r) {
		switch {
		case schema == d.Schema:
			return true
		case schema == catalog.SystemSchema && SystemClass(d.Method, d.Name) >= 0, r.Operations().FindClass(schema, d.Method, d.Name) != nil:
			return false
		}
	}
	return false
}

func familyVisible(r catalog.Resolver, d *catalog.OpFamilyDescriptor) bool {
	for _, schema := range catalog.Path(r) {
		switch {
		case schema == d.Schema:
			return true
		case schema == catalog.SystemSchema && SystemFamily(d.Method, d.Name) != 0, r.Operations().FindFamily(schema, d.Method, d.Name) != nil:
			return false
		}
	}
	return false
}

// SystemClass returns the row of pgdata.OpClasses of PostgreSQL's operator class with a name; -1 if there is none.
func SystemClass(method, name string) int {
	t := pgdata.OpClasses()
	for row := range t.Len() {
		if method == "btree" && t.Value(row, "opcname") == name {
			return row
		}
	}
	return -1
}

// SystemFamily returns PostgreSQL's operator family with a name; 0 if there is none.
func SystemFamily(method, name string) types.OID {
	t := pgdata.OpFamilies()
	for row := range t.Len() {
		if method == "btree" && t.Value(row, "opfname") == name {
			return types.OID(t.OIDs[row])
		}
	}
	return 0
}

// OperatorClassVisible implements builtin.Catalog.
func (o *Objects) OperatorClassVisible(id types.OID, family bool) (visible, ok bool) {
	r := o.Resolver()
	if r == nil {
		return false, false
	}
	if family {
		if _, ok := pgdata.OpFamilies().ByOID(uint32(id)); ok {
			return true, true
		}
		d := r.Operations().Family(id)
		return d != nil && familyVisible(r, d), d != nil
	}
	if _, ok := pgdata.OpClasses().ByOID(uint32(id)); ok {
		return true, true
	}
	d := r.Operations().Class(id)
	return d != nil && classVisible(r, d), d != nil
}

// errNoOperator is the error of a name that means no operator.
func errNoOperator(text string) error {
	return pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s", text)
}

// operations emits the dependencies of operators, casts, classes and families.
func (d *dependencies) operations() error {
	proc := func(id types.OID) object {
		if id < types.FirstUserOID {
			return object{}
		}
		return object{class: classPgProc, id: uint32(id)}
	}
	op := func(id types.OID) object {
		if id < types.FirstUserOID {
			return object{}
		}
		return object{class: classPgOperator, id: uint32(id)}
	}
	for _, o := range d.Operations().Operators() {
		self := object{class: classPgOperator, id: uint32(o.ID)}
		if err := d.all(self, dependsNormal, d.schema(o.Schema), typeObject(o.Left), typeObject(o.Right), typeObject(o.Ret), proc(o.Function)); err != nil {
			return err
		}
	}
	for _, c := range d.Operations().AllCasts() {
		self := object{class: classPgCast, id: uint32(c.ID)}
		if err := d.all(self, dependsNormal, typeObject(c.From), typeObject(c.To), proc(c.Function)); err != nil {
			return err
		}
	}
	for _, c := range d.Operations().Classes() {
		self := object{class: classPgOpclass, id: uint32(c.ID)}
		if err := d.all(self, dependsNormal, d.schema(c.Schema), typeObject(c.Type)); err != nil {
			return err
		}
		if c.Family >= types.FirstUserOID {
			if err := d.on(self, object{class: classPgOpfamily, id: uint32(c.Family)}, dependsAuto); err != nil {
				return err
			}
		}
	}
	for _, f := range d.Operations().Families() {
		self := object{class: classPgOpfamily, id: uint32(f.ID)}
		if !f.Added() {
			if err := d.on(self, d.schema(f.Schema), dependsNormal); err != nil {
				return err
			}
		}
		member := func(class int, id, of uint32, uses object) error {
			row := object{class: class, id: id}
			if of == 0 { // It belongs to the family alone.
				if err := d.on(row, uses, dependsAuto); err != nil {
					return err
				}
				return d.on(row, self, dependsAuto)
			}
			if err := d.on(row, uses, dependsNormal); err != nil {
				return err
			}
			return d.on(row, object{class: classPgOpclass, id: of}, dependsInternal)
		}
		for _, m := range f.Operators {
			if err := member(classPgAmop, m.OID, m.Class, op(m.Operator)); err != nil {
				return err
			}
		}
		for _, m := range f.Functions {
			if err := member(classPgAmproc, m.OID, m.Class, proc(m.Function)); err != nil {
				return err
			}
		}
	}
	return nil
}

// operationComment returns the comment on an operator, a cast, a class or a family of a user; false if it is none of those.
func (o *Objects) operationComment(id types.OID, class string) (comment string, ok bool) {
	r := o.Resolver()
	if r == nil || id < types.FirstUserOID {
		return "", false
	}
	all := r.Operations()
	of := func(name string) bool { return class == "" || class == name }
	if d := all.Operator(id); d != nil && of("pg_operator") {
		return d.Comment, true
	}
	if d := all.Cast(id); d != nil && of("pg_cast") {
		return d.Comment, true
	}
	if d := all.Class(id); d != nil && of("pg_opclass") {
		return d.Comment, true
	}
	if d := all.Family(id); d != nil && of("pg_opfamily") {
		return d.Comment, true
	}
	return "", false
}

// userClass is the operator class of a key if it is one that a user has defined and not the default one of the type, with a space before it.
func userClass(r catalog.Resolver, c *catalog.IndexColumn) string {
	d := r.Operations().Class(types.OID(c.OpClassID))
	if c.OpClassID == 0 || d == nil || d.Default {
		return ""
	}
	return " " + ClassName(r, d)
}
