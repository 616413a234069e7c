package ddl

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

const duplicateDatabase pgerror.Code = "42P04"

// disconnectPatience is how long CREATE and DROP DATABASE wait for sessions that are about to end, as PostgreSQL does.
const disconnectPatience = 5 * time.Second

// ofDatabase reports whether a statement creates, drops or alters a database.
func ofDatabase(stmt ast.Statement) bool {
	switch n := stmt.(type) {
	case *ast.Database, *ast.AlterDatabaseSet:
		return true
	case *ast.AlterObject:
		return n.Object.Kind == "DATABASE"
	case *ast.DropObjects:
		return n.Objects[0].Kind == "DATABASE"
	}
	return false
}

// DatabaseAlone names a statement that cannot run inside a transaction block since it creates or drops a database; "" for others.
func DatabaseAlone(stmt ast.Statement) string {
	switch n := stmt.(type) {
	case *ast.Database:
		if !n.Alter {
			return "CREATE DATABASE"
		}
	case *ast.AlterDatabaseSet:
		if n.Set == nil {
			return "ALTER DATABASE SET TABLESPACE"
		}
	case *ast.DropObjects:
		if ofDatabase(n) {
			return "DROP DATABASE"
		}
	}
	return ""
}

// database executes a statement of which ofDatabase is true.
func (r *run) database(ctx context.Context, stmt ast.Statement) (string, error) {
	if what := DatabaseAlone(stmt); what != "" && !r.alone {
		return "", pgerror.New(pgerror.ActiveSQLTransaction, "%s cannot run inside a transaction block", what)
	}
	switch n := stmt.(type) {
	case *ast.Database:
		if n.Alter {
			return "ALTER DATABASE", r.alterDatabase(ctx, n)
		}
		return "CREATE DATABASE", r.createDatabase(ctx, n)
	case *ast.AlterDatabaseSet:
		if n.Set == nil {
			return "ALTER DATABASE", r.moveDatabase(n)
		}
		return "ALTER DATABASE", r.alterRoleSet(ctx, &ast.AlterRoleSet{Pos: n.Pos, Database: n.Name, Set: n.Set})
	case *ast.AlterObject:
		name := nameOf(&n.Object).Name
		if n.Change.Owner != nil {
			return "ALTER DATABASE", r.alterDatabaseOwner(ctx, name, *n.Change.Owner)
		}
		return "ALTER DATABASE", r.renameDatabase(ctx, name, n.Change.Rename)
	}
	return "DROP DATABASE", r.dropDatabase(ctx, stmt.(*ast.DropObjects))
}

// findDatabase returns the database of a name.
func (r *run) findDatabase(name string) (*catalog.DatabaseDescriptor, error) {
	d := r.r.Databases().Named(name)
	if d == nil {
		return nil, pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", name)
	}
	return d, nil
}

// ownDatabase is findDatabase for a change that its owner may make.
func (r *run) ownDatabase(name string) (*catalog.DatabaseDescriptor, error) {
	d, err := r.findDatabase(name)
	if err == nil && !r.access.Owns(d.OwnerOID()) {
		return nil, mustBeOwner("database", name)
	}
	return d, err
}

func (r *run) putDatabase(ctx context.Context, d *catalog.DatabaseDescriptor) error {
	if err := r.ch.PutDatabase(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

func (r *run) mayCreateDatabases() bool {
	role := r.access.Roles.ByOID(r.User)
	return r.access.Superuser() || role != nil && role.CreateDB
}

// createDatabase is CREATE DATABASE.
func (r *run) createDatabase(ctx context.Context, n *ast.Database) error {
	options, err := readDatabaseOptions(n.Options)
	if err != nil {
		return err
	}
	d := &catalog.DatabaseDescriptor{Name: n.Name, Closed: options.closed, Template: options.isTemplate}
	d.Owner = r.User
	d.SetLimit(options.limit)
	if options.owner != "" {
		if d.Owner, err = r.roleOID(ast.Role{Pos: n.Pos, Name: options.owner}); err != nil {
			return err
		}
	}
	if !r.mayCreateDatabases() {
		return denied("permission denied to create database")
	}
	if !r.access.Roles.IsMemberOf(r.User, d.Owner) {
		return denied("must be member of role %q", r.roleName(d.Owner))
	}
	source := r.r.Databases().Named(options.template)
	if source == nil {
		return pgerror.New(pgerror.InvalidCatalogName, "template database %q does not exist", options.template)
	}
	if !source.Template && !r.access.Owns(source.OwnerOID()) {
		return denied("permission denied to copy database %q", source.Name)
	}
	if err := options.checkLocale(source); err != nil {
		return err
	}
	if r.r.Databases().Named(n.Name) != nil {
		return pgerror.New(duplicateDatabase, "database %q already exists", n.Name)
	}
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	d.OID = uint32(id)
	return r.copyDatabase(ctx, source, d)
}

// copyDatabase creates d with what source has.
func (r *run) copyDatabase(ctx context.Context, source, d *catalog.DatabaseDescriptor) error {
	release, others, err := r.Catalog.Database(source.OID).Seclude(ctx, r.ownSessions(source), disconnectPatience)
	if err != nil {
		return err
	}
	r.after = append(r.after, release)
	if others > 0 {
		return inUse("source database", source.Name, others)
	}
	if empty, err := r.Catalog.Database(source.OID).Empty(ctx, r.txn); err != nil || !empty {
		return errorOr(err, pgerror.Unsupported("Copying database "+source.Name+", which has objects", "Create an empty database (TEMPLATE template0), and load pg_dump's output into it."))
	}
	return r.ch.CreateDatabase(ctx, d)
}

// ownSessions is the number of sessions of a database that the statement's own is.
func (r *run) ownSessions(d *catalog.DatabaseDescriptor) int {
	if d.OID == r.Catalog.OID() {
		return 1
	}
	return 0
}

// inUse is the error for a database that sessions use.
func inUse(what, name string, others int) error {
	verb := "There are"
	if others == 1 {
		verb = "There is"
	}
	return pgerror.New(pgerror.ObjectInUse, "%s %q is being accessed by other users", what, name).
		WithDetail("%s %s using the database.", verb, plural.Count(others, "other session"))
}

// dropDatabase is DROP DATABASE. No session can begin to use it from when it is found to be unused to the end of the transaction.
func (r *run) dropDatabase(ctx context.Context, n *ast.DropObjects) error {
	name := nameOf(&n.Objects[0]).Name
	if n.IfExists && r.r.Databases().Named(name) == nil {
		r.noticeAbsent("database %q does not exist, skipping", name)
		return nil
	}
	d, err := r.ownDatabase(name)
	switch {
	case err != nil:
		return err
	case d.Template:
		return pgerror.New(pgerror.WrongObjectType, "cannot drop a template database")
	case d.OID == r.Catalog.OID():
		return pgerror.New(pgerror.ObjectInUse, "cannot drop the currently open database")
	case d.OID == catalog.FirstDatabase:
		return pgerror.Unsupported("DROP DATABASE of the first database", "Drop its schemas.")
	}
	if len(n.Options) > 0 && r.EndSessions != nil {
		if err := r.EndSessions(ctx, d.OID); err != nil {
			return err
		}
	}
	release, others, err := r.Catalog.Database(d.OID).Seclude(ctx, 0, disconnectPatience)
	if err != nil {
		return err
	}
	r.after = append(r.after, release)
	if others > 0 {
		return inUse("database", name, others)
	}
	if err := r.renameInSettings(ctx, name, ""); err != nil {
		return err
	}
	return r.ch.DropDatabase(ctx, d)
}

// alterDatabase is ALTER DATABASE with options.
func (r *run) alterDatabase(ctx context.Context, n *ast.Database) error {
	d, err := r.ownDatabase(n.Name)
	if err != nil {
		return err
	}
	next := d.Clone()
	for i := range n.Options {
		o := &n.Options[i]
		switch o.Name {
		case "CONNECTION LIMIT":
			var limit int
			if limit, err = connectionLimit(o); err == nil {
				next.SetLimit(limit)
			}
		case "allow_connections":
			var allowed bool
			allowed, err = databaseBool(o)
			next.Closed = !allowed
		case "is_template":
			next.Template, err = databaseBool(o)
		default:
			err = unknownDatabaseOption(o)
		}
		if err != nil {
			return err
		}
	}
	if next.Closed && d.OID == r.Catalog.OID() {
		return pgerror.New(pgerror.InvalidParameterValue, "cannot disallow connections for current database")
	}
	return r.putDatabase(ctx, next)
}

// commentDatabase is COMMENT ON DATABASE. That a database does not exist is not an error: dumps of PostgreSQL's older versions had the comment of
// one that may have another name.
func (r *run) commentDatabase(ctx context.Context, name, text string) error {
	if r.r.Databases().Named(name) == nil {
		absent := pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", name)
		absent.Severity = "WARNING"
		r.Report.Notice(absent)
		return nil
	}
	d, err := r.ownDatabase(name)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	return r.putDatabase(ctx, next)
}

// moveDatabase is ALTER DATABASE … SET TABLESPACE.
func (r *run) moveDatabase(n *ast.AlterDatabaseSet) error {
	if _, err := r.ownDatabase(n.Name); err != nil {
		return err
	}
	return databaseTablespace(n.Tablespace)
}

// alterDatabaseOwner is ALTER DATABASE … OWNER TO.
func (r *run) alterDatabaseOwner(ctx context.Context, name string, to ast.Role) error {
	d, err := r.findDatabase(name)
	if err != nil {
		return err
	}
	owner, err := r.roleOID(to)
	if err != nil || owner == d.OwnerOID() {
		return err
	}
	if !r.access.Owns(d.OwnerOID()) {
		return mustBeOwner("database", name)
	}
	if _, err := r.memberRole(to); err != nil {
		return err
	}
	if !r.mayCreateDatabases() {
		return denied("permission denied to change owner of database")
	}
	return r.passDatabase(ctx, d, owner)
}

func (r *run) passDatabase(ctx context.Context, d *catalog.DatabaseDescriptor, owner uint32) error {
	next := d.Clone()
	next.Owned = catalog.Owned{Owner: owner, ACL: d.ACL.WithOwner(d.OwnerOID(), owner)}
	return r.putDatabase(ctx, next)
}

// renameDatabase is ALTER DATABASE … RENAME.
func (r *run) renameDatabase(ctx context.Context, name, to string) error {
	d, err := r.ownDatabase(name)
	switch {
	case err != nil:
		return err
	case !r.mayCreateDatabases():
		return denied("permission denied to rename database")
	case r.r.Databases().Named(to) != nil:
		return pgerror.New(duplicateDatabase, "database %q already exists", to)
	case d.OID == r.Catalog.OID():
		return pgerror.New(pgerror.FeatureNotSupported, "current database cannot be renamed")
	}
	release, others, err := r.Catalog.Database(d.OID).Seclude(ctx, 0, disconnectPatience)
	if err != nil {
		return err
	}
	r.after = append(r.after, release)
	if others > 0 {
		return inUse("database", name, others)
	}
	next := d.Clone()
	next.Name = to
	if err := r.renameInSettings(ctx, name, to); err != nil {
		return err
	}
	return r.putDatabase(ctx, next)
}

// renameInSettings gives the settings of roles in a database its new name; "": they are removed.
func (r *run) renameInSettings(ctx context.Context, name, to string) error {
	renamed := func(list []catalog.RoleSetting) (next []catalog.RoleSetting, changed bool) {
		for _, s := range list {
			if s.Database == name {
				if changed = true; to == "" {
					continue
				}
				s.Database = to
			}
			next = catalog.AddSetting(next, s)
		}
		return next, changed
	}
	if next, changed := renamed(r.roles().Everyone()); changed {
		if err := r.ch.SetEveryone(ctx, next); err != nil {
			return err
		}
	}
	for _, role := range r.roles().All() {
		settings, changed := renamed(role.Settings)
		if !changed {
			continue
		}
		next := role.Clone()
		next.Settings = settings
		if err := r.ch.PutRole(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// databaseOptions are the options of CREATE DATABASE.
type databaseOptions struct {
	owner, template    string
	limit              int
	closed, isTemplate bool
	locales            []ast.DatabaseOption // that name a locale
	icu                bool
}

func readDatabaseOptions(list []ast.DatabaseOption) (databaseOptions, error) {
	options := databaseOptions{template: catalog.Template1Name, limit: -1}
	seen := map[string]bool{}
	for i := range list {
		o := &list[i]
		if seen[o.Name] {
			return options, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(int(o.Pos))
		}
		seen[o.Name] = true
		if err := options.read(o); err != nil {
			return options, err
		}
	}
	return options, nil
}

// read takes one option.
func (d *databaseOptions) read(o *ast.DatabaseOption) (err error) {
	switch o.Name {
	case "owner":
		d.owner = o.Word()
	case "template":
		if !o.Default {
			d.template = o.Word()
		}
	case "encoding":
		return databaseEncoding(o)
	case "locale", "lc_collate", "lc_ctype", "icu_locale":
		if !o.Default {
			d.locales = append(d.locales, *o)
		}
	case "locale_provider":
		switch o.Word() {
		case "libc":
		case "icu":
			d.icu = true
		default:
			return pgerror.New(invalidObjectDefinition, "unrecognized locale provider: %s", o.Word())
		}
	case "CONNECTION LIMIT":
		d.limit, err = connectionLimit(o)
	case "allow_connections":
		var allowed bool
		allowed, err = databaseBool(o)
		d.closed = !allowed
	case "is_template":
		d.isTemplate, err = databaseBool(o)
	case "tablespace":
		if !o.Default {
			return databaseTablespace(o.Word())
		}
	case "strategy":
		if s := strings.ToLower(o.Word()); s != "wal_log" && s != "file_copy" {
			return pgerror.New(pgerror.InvalidParameterValue, "invalid create database strategy %q", o.Word()).
				WithHint(`Valid strategies are "wal_log", and "file_copy".`)
		}
	case "collation_version", "oid":
		return pgerror.Unsupported("Option "+o.Name+" of CREATE DATABASE", "Leave it out.").At(int(o.Pos))
	case "location":
		return pgerror.Unsupported("Option location of CREATE DATABASE", "Leave it out.").At(int(o.Pos))
	default:
		return unknownDatabaseOption(o)
	}
	return err
}

func unknownDatabaseOption(o *ast.DatabaseOption) error {
	return pgerror.New(pgerror.SyntaxError, "option %q not recognized", o.Name).At(int(o.Pos))
}

// checkLocale refuses what a database cannot have: they all order text by its bytes.
func (d *databaseOptions) checkLocale(source *catalog.DatabaseDescriptor) error {
	if d.icu {
		return pgerror.Unsupported("LOCALE_PROVIDER icu of a database", "Give columns a collation of ICU (COLLATE).")
	}
	for i := range d.locales {
		o := &d.locales[i]
		switch strings.ToLower(o.Word()) {
		case "c", "posix", "c.utf-8", "c.utf8":
			continue
		}
		if source.Name != catalog.Template0Name {
			return pgerror.New(pgerror.InvalidParameterValue, "new collation (%s) is incompatible with the collation of the template database (C)", o.Word()).
				WithHint("Use the same collation as in the template database, or use template0 as template.")
		}
		return pgerror.Unsupported(strings.ToUpper(o.Name)+" "+o.Word()+" of a database", "Databases order text by its bytes (C); give columns a collation (COLLATE).").At(int(o.Pos))
	}
	return nil
}

// databaseEncoding checks ENCODING.
func databaseEncoding(o *ast.DatabaseOption) error {
	name := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(o.Word()))
	switch {
	case o.Default, name == "utf8", name == "unicode", o.Number == "6":
		return nil
	}
	return pgerror.Unsupported("ENCODING "+o.Word(), "Databases are encoded in UTF8.").At(int(o.Pos))
}

// databaseTablespace checks the tablespace of a database.
func databaseTablespace(name string) error {
	switch name {
	case "pg_default":
		return nil
	case "pg_global":
		return pgerror.New(pgerror.InvalidParameterValue, "pg_global cannot be used as default tablespace")
	}
	return pgerror.New(pgerror.UndefinedObject, "tablespace %q does not exist", name)
}

func connectionLimit(o *ast.DatabaseOption) (int, error) {
	if o.Default {
		return -1, nil
	}
	limit, err := strconv.ParseInt(o.Number, 10, 32)
	switch {
	case err != nil:
		return 0, pgerror.New(pgerror.SyntaxError, "connection_limit requires an integer value").At(int(o.Pos))
	case limit < -1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid connection limit: %d", limit)
	}
	return int(limit), nil
}

func databaseBool(o *ast.DatabaseOption) (bool, error) {
	switch strings.ToLower(o.Word()) {
	case "true", "on", "1":
		return true, nil
	case "false", "off", "0":
		return false, nil
	}
	return false, pgerror.New(pgerror.SyntaxError, "%s requires a Boolean value", o.Name).At(int(o.Pos))
}
