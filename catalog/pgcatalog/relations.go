package pgcatalog

import (
	"context"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/types"
)

// OIDs of PostgreSQL's own objects that rows refer to.
const (
	ownerOID      = 10   // the role that owns everything
	heapOID       = 2    // access methods
	btreeOID      = 403  //
	tablespaceOID = 1663 // pg_default

	classPgClass     = 1259 // relations, as classoid and classid
	classPgNamespace = 2615
	classPgType      = 1247

	classPgConstraint = 2606
	classPgProc       = 1255
	classPgCollation  = 3456
	classPgOperator   = 2617
	classPgExtension  = 3079
	classPgLanguage   = 2612

	classPgTSConfig   = 3602
	classPgTSDict     = 3600
	classPgTSParser   = 3601
	classPgTSTemplate = 3764
)

// rowsFunctions maps system tables to what computes their rows; those left out are empty.
func rowsFunctions() map[string]func(*scan) error {
	return map[string]func(*scan) error{
		"percodb.locks":                              lockRows,
		"percodb.observer_errors":                    observerErrorRows,
		"percodb.observers":                          observerRows,
		"percodb.oracle":                             oracleRows,
		"percodb.ranges":                             rangeRows,
		"percodb.transactions":                       transactionRows,
		"pg_catalog.pg_inherits":                     inheritRows,
		"pg_catalog.pg_partitioned_table":            partitionedRows,
		"pg_catalog.pg_namespace":                    namespaceRows,
		"pg_catalog.pg_class":                        classRows,
		"pg_catalog.pg_attribute":                    attributeRows,
		"pg_catalog.pg_attrdef":                      attrdefRows,
		"pg_catalog.pg_index":                        indexRows,
		"pg_catalog.pg_constraint":                   constraintRows,
		"pg_catalog.pg_sequence":                     sequenceRows,
		"pg_catalog.pg_description":                  descriptionRows,
		"pg_catalog.pg_depend":                       dependRows,
		"pg_catalog.pg_init_privs":                   initPrivsRows,
		"pg_catalog.pg_type":                         typeRows,
		"pg_catalog.pg_enum":                         enumRows,
		"pg_catalog.pg_range":                        rangeTypeRows,
		"pg_catalog.pg_am":                           amRows,
		"pg_catalog.pg_collation":                    collationRows,
		"pg_catalog.pg_database":                     databaseRows,
		"pg_catalog.pg_stat_database":                statDatabaseRows,
		"pg_catalog.pg_tablespace":                   tablespaceRows,
		"pg_catalog.pg_roles":                        roleRows,
		"pg_catalog.pg_authid":                       authidRows,
		"pg_catalog.pg_auth_members":                 memberRows,
		"pg_catalog.pg_db_role_setting":              roleSettingRows,
		"pg_catalog.pg_group":                        groupRows,
		"pg_catalog.pg_extension":                    extensionRows,
		"pg_catalog.pg_available_extensions":         availableExtensionRows,
		"pg_catalog.pg_available_extension_versions": extensionVersionRows,
		"pg_catalog.pg_user":                         userRows,
		"pg_catalog.pg_shadow":                       shadowRows,
		"pg_catalog.pg_shdescription":                sharedDescriptionRows,
		"pg_catalog.pg_language":                     languageRows,
		"pg_catalog.pg_proc":                         procRows,
		"pg_catalog.pg_operator":                     operatorRows,
		"pg_catalog.pg_cast":                         castRows,
		"pg_catalog.pg_aggregate":                    aggregateRows,
		"pg_catalog.pg_opclass":                      opclassRows,
		"pg_catalog.pg_opfamily":                     opfamilyRows,
		"pg_catalog.pg_amop":                         amopRows,
		"pg_catalog.pg_amproc":                       amprocRows,
		"pg_catalog.pg_settings":                     settingRows,
		"pg_catalog.pg_stat_activity":                activityRows,
		"pg_catalog.pg_locks":                        heldLockRows,
		"pg_catalog.pg_stat_progress_create_index":   indexProgressRows,
		"pg_catalog.pg_stat_ssl":                     sslRows,
		"pg_catalog.pg_stat_gssapi":                  gssRows,
		"pg_catalog.pg_hba_file_rules":               accessRuleRows,
		"pg_catalog.pg_file_settings":                fileSettingRows,
		"pg_catalog.pg_prepared_statements":          preparedRows,
		"pg_catalog.pg_cursors":                      cursorRows,
		"pg_catalog.pg_default_acl":                  defaultACLRows,
		"pg_catalog.pg_parameter_acl":                parameterACLRows,
		"pg_catalog.pg_policy":                       policyRows,
		"pg_catalog.pg_rewrite":                      ruleRows,
		"pg_catalog.pg_trigger":                      triggerRows,
		"pg_catalog.pg_policies":                     policiesRows,
		"pg_catalog.pg_ts_config":                    tsConfigRows,
		"pg_catalog.pg_ts_config_map":                tsConfigMapRows,
		"pg_catalog.pg_ts_dict":                      tsDictRows,
		"pg_catalog.pg_ts_parser":                    tsParserRows,
		"pg_catalog.pg_ts_template":                  tsTemplateRows,
		"pg_catalog.pg_tables":                       tablesRows,
		"pg_catalog.pg_matviews":                     matviewRows,
		"pg_catalog.pg_views":                        viewsRows,
		"pg_catalog.pg_indexes":                      indexesRows,
		"pg_catalog.pg_sequences":                    sequencesRows,

		"information_schema.schemata":                          schemataRows,
		"information_schema.tables":                            infoTableRows,
		"information_schema.table_privileges":                  tablePrivilegeRows,
		"information_schema.column_privileges":                 columnPrivilegeRows,
		"information_schema.role_table_grants":                 roleTableGrantRows,
		"information_schema.role_column_grants":                roleColumnGrantRows,
		"information_schema.usage_privileges":                  usagePrivilegeRows,
		"information_schema.role_usage_grants":                 roleUsageGrantRows,
		"information_schema.enabled_roles":                     enabledRoleRows,
		"information_schema.applicable_roles":                  applicableRoleRows,
		"information_schema.columns":                           infoColumnRows,
		"information_schema.administrable_role_authorizations": administrableRoleRows,
		"information_schema.views":                             infoViewRows,
		"information_schema.sequences":                         infoSequenceRows,
		"information_schema.table_constraints":                 tableConstraintRows,
		"information_schema.key_column_usage":                  keyColumnRows,
		"information_schema.constraint_column_usage":           constraintColumnRows,
		"information_schema.check_constraints":                 checkConstraintRows,
		"information_schema.domains":                           infoDomainRows,
		"information_schema.domain_constraints":                infoDomainConstraintRows,
		"information_schema.domain_udt_usage":                  infoDomainUseRows,
		"information_schema.column_domain_usage":               infoColumnDomainRows,
	}
}

func namespaceRows(s *scan) error {
	names, err := s.Schemas(s.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		o := s.Grants().Schemas[name]
		err := s.emit(col{"oid", oid(schemaOID(s.Resolver, name))}, col{"nspname", text(name)}, col{"nspowner", oid(o.OwnerOID())}, col{"nspacl", types.ACL(o.ACL)})
		if err != nil {
			return err
		}
	}
	return nil
}

// relkind is a relation's letter in pg_class.
func (s *scan) relkind(t *catalog.TableDescriptor) byte {
	switch t.Kind {
	case catalog.KindView:
		return 'v'
	case catalog.KindSequence:
		return 'S'
	case catalog.KindVirtual:
		return s.kinds[t.ID]
	}
	switch {
	case t.Materialized:
		return 'm'
	case t.IsPartitioned():
		return 'p'
	}
	return 'r'
}

// indexKind is the relkind of an index of t.
func indexKind(t *catalog.TableDescriptor) byte {
	if t.IsPartitioned() {
		return 'I'
	}
	return 'i'
}

// partitionBound is relpartbound.
func partitionBound(t *catalog.TableDescriptor) types.Datum {
	if !t.IsPartition() {
		return types.Null
	}
	return text(t.PartitionOf.Bound.Text)
}

func letter(b byte) types.Datum { return types.Text(string(rune(b))) }

func classRows(s *scan) error {
	if err := s.compositeClassRows(); err != nil {
		return err
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		namespace := oid(schemaOID(s.Resolver, t.Schema))
		kind := s.relkind(t)
		indexes := visibleIndexes(t)
		method := 0
		if kind == 'r' || kind == 'm' {
			method = heapOID
		}
		stats, err := s.Stats(s.ctx, t.ID)
		if err != nil {
			return err
		}
		rows, pages := -1.0, 0.0
		if t.StatsVersion != 0 {
			rows = stats.Rows
			pages = float64(estimateBytes(t, stats)/8192 + 1)
		}
		row, _ := t.RowType()
		references, err := catalog.ReferencesToRows(s.ctx, s, t)
		if err != nil {
			return err
		}
		err = s.emit(
			col{"oid", oid(t.OID())}, col{"relname", text(t.Name)}, col{"relnamespace", namespace}, col{"reltype", oid(uint32(row))}, col{"reloftype", oid(uint32(t.OfType))}, col{"relowner", oid(t.OwnerOID())},
			col{"relam", num(method)}, col{"relfilenode", oid(fileOf(kind, t))}, col{"relpages", num(int64(pages))}, col{"reltuples", types.Float(rows)},
			col{"relacl", s.relationACL(t)}, col{"relhasindex", boolean(len(indexes) > 0)}, col{"relpersistence", letter(persistence(t))}, col{"relkind", letter(kind)},
			col{"relnatts", num(attributeCount(t))}, col{"relchecks", num(len(t.Checks))}, col{"relhasrules", boolean(kind == 'v' || kind == 'm')},
			col{"relhastriggers", boolean(len(t.Triggers) > 0 || len(t.ForeignKeys) > 0 || len(references) > 0)},
			col{"relrowsecurity", boolean(t.RowSecurity)}, col{"relforcerowsecurity", boolean(t.ForceRowSecurity)}, col{"reloptions", relationOptions(t)},
			col{"relispopulated", boolean(!t.Materialized || t.Populated)}, col{"relreplident", letter(replident(kind, t))},
			col{"relispartition", boolean(t.IsPartition())}, col{"relpartbound", partitionBound(t)},
			col{"relhassubclass", boolean(t.IsPartitioned() && len(t.Partitioning.Partitions) > 0)},
		)
		if err != nil {
			return err
		}
		for _, ix := range indexes {
			err := s.emit(
				col{"oid", oid(ix.OID)}, col{"relname", text(ix.Name)}, col{"relnamespace", namespace}, col{"relowner", oid(t.OwnerOID())},
				col{"relam", num(methodOID(ix))}, col{"relfilenode", oid(indexFile(t, ix))}, col{"relpages", num(1)}, col{"reltuples", types.Float(max(rows, 0))},
				col{"relpersistence", letter(persistence(t))}, col{"relkind", letter(indexKind(t))}, col{"relnatts", num(len(indexColumnIDs(ix)))},
				col{"relispartition", boolean(ix.Parent != 0)}, col{"relhassubclass", boolean(t.IsPartitioned() && len(t.Partitioning.Partitions) > 0)},
				col{"relispopulated", boolean(true)}, col{"relreplident", letter('n')}, col{"reloptions", textArrayOrNull(ix.Options)},
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fileOf is relfilenode: the number of what stores rows, 0 for a relation that does not.
func fileOf(kind byte, t *catalog.TableDescriptor) uint32 {
	if kind == 'v' || t.IsPartitioned() {
		return 0
	}
	return t.OID()
}

func indexFile(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) uint32 {
	if t.IsPartitioned() {
		return 0
	}
	return ix.OID
}

func replident(kind byte, t *catalog.TableDescriptor) byte {
	if (kind == 'r' || kind == 'm' || kind == 'p') && t.Kind == catalog.KindTable {
		if t.ReplicaIdentity != "" {
			return t.ReplicaIdentity[0]
		}
		return 'd'
	}
	return 'n'
}

func attributeName(c *catalog.ColumnDescriptor) string {
	if c.Expr == nil {
		return c.Name
	}
	e, err := sql.ParseExpr(c.Expr.SQL)
	if name := sql.ExprName(e); err == nil && name != "?column?" {
		return name
	}
	return "expr"
}

func indexColumnIDs(ix *catalog.IndexDescriptor) []uint32 {
	if ix.Inverted != nil {
		ids := make([]uint32, len(ix.Inverted))
		for i := range ids {
			ids[i] = ix.Inverted[i].ColumnID
		}
		return ids
	}
	return append(ix.ElementIDs(), ix.Include...)
}

// indexKey returns the numbers of the columns of an index, 0 for expressions.
func indexKey(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) []int64 {
	ids := indexColumnIDs(ix)
	key := make([]int64, len(ids))
	for i, id := range ids {
		if t.ColumnByID(id).Expr == nil {
			key[i] = int64(id)
		}
	}
	return key
}

func identityLetter(c *catalog.ColumnDescriptor) types.Datum {
	switch c.Identity {
	case "ALWAYS":
		return text("a")
	case "BY DEFAULT":
		return text("d")
	}
	return text("")
}

// boolNumber is 1 for true.
func boolNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// generatedLetter is attgenerated.
func generatedLetter(c *catalog.ColumnDescriptor) types.Datum {
	if c.Generated != "" {
		return text("s")
	}
	return text("")
}

// attrdefOID returns the OID of a column's default, computed from the table and the column. It is unique.
func attrdefOID(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) uint32 {
	return t.OID()<<11 | c.ID&0x7FF | 1<<31
}

func attrdefRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		for i := range t.Columns {
			c := &t.Columns[i]
			if c.Default == "" && c.Generated == "" {
				continue
			}
			err := s.emit(col{"oid", oid(attrdefOID(t, c))}, col{"adrelid", oid(t.OID())}, col{"adnum", num(c.ID)},
				col{"adbin", text(s.printer().defaultText(t, c, false))})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func indexRows(s *scan) error {
	return s.eachIndex(func(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
		var classes, collations, options []int64
		keys := indexKey(t, ix)
		complete := t.BuildOf(ix.OID) == nil
		for i, id := range indexColumnIDs(ix) {
			if ix.Inverted != nil || i < len(ix.Exclude) {
				typ := t.ColumnByID(id).Type
				classes, collations, options = append(classes, operatorClass(typ)), append(collations, collationOf(typ)), append(options, 0)
				continue
			}
			if ix.Exclude != nil || i >= len(ix.Columns) {
				continue
			}
			typ := t.ColumnByID(id).Type
			classes = append(classes, classOf(&ix.Columns[i], typ))
			collations = append(collations, collationOf(ix.Columns[i].KeyType(typ)))
			option := int64(0)
			if ix.Columns[i].Desc {
				option |= 1
			}
			if ix.Columns[i].NullsFirst {
				option |= 2
			}
			options = append(options, option)
		}
		return s.emit(
			col{"indexrelid", oid(ix.OID)}, col{"indrelid", oid(t.OID())}, col{"indnatts", num(len(keys))}, col{"indnkeyatts", num(len(options))},
			col{"indisunique", boolean(isUnique(ix))}, col{"indisprimary", boolean(isPrimary(t, ix))}, col{"indimmediate", boolean(!ix.Deferrable)},
			col{"indnullsnotdistinct", boolean(ix.NullsNotDistinct)}, col{"indisexclusion", boolean(ix.Exclude != nil)},
			col{"indisclustered", boolean(ix.Clustered)}, col{"indisreplident", boolean(ix.ReplicaIdentity)},
			col{"indisvalid", boolean(complete && !ix.Incomplete)}, col{"indisready", boolean(complete)}, col{"indislive", boolean(true)},
			col{"indkey", vector(types.TInt2vector, keys)}, col{"indclass", vector(types.TOidvector, classes)},
			col{"indcollation", vector(types.TOidvector, collations)}, col{"indoption", vector(types.TInt2vector, options)},
			col{"indexprs", s.printer().indexExpressions(t, ix)}, col{"indpred", s.printer().indexPredicate(t, ix)},
		)
	})
}

// constraint is a constraint of a table as clients see it.
type constraint struct {
	oid   uint32
	name  string
	kind  byte // p, u, x, c, f
	index *catalog.IndexDescriptor
	check *catalog.CheckDescriptor
	key   *catalog.ForeignKeyDescriptor
}

// isPrimary reports whether an index is that of the declared primary key.
func isPrimary(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) bool {
	return ix.ID == t.Primary.ID || ix.DeclaredPrimary
}

// isUnique reports whether an index is shown as a unique one.
func isUnique(ix *catalog.IndexDescriptor) bool {
	return ix.Unique || ix.Deferrable && ix.Exclude == nil
}

// deferrable and deferred are those of the constraint.
func (c *constraint) deferrable() bool {
	return c.key != nil && c.key.Deferrable || c.index != nil && c.index.Deferrable
}

func (c *constraint) deferred() bool {
	return c.key != nil && c.key.Deferred || c.index != nil && c.index.Deferred
}

// comment is the constraint's comment.
func (c *constraint) comment() string {
	switch {
	case c.key != nil:
		return c.key.Comment
	case c.check != nil:
		return c.check.Comment
	}
	return c.index.ConstraintComment
}

// constraints lists a table's constraints. Those made by an index have its OID.
func constraints(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor) ([]constraint, error) {
	var all []constraint
	for _, ix := range visibleIndexes(t) {
		if !ix.Constraint {
			continue
		}
		kind := byte('u')
		switch {
		case isPrimary(t, ix):
			kind = 'p'
		case ix.Exclude != nil:
			kind = 'x'
		}
		all = append(all, constraint{oid: ix.OID, name: ix.Name, kind: kind, index: ix})
	}
	for i := range t.Checks {
		all = append(all, constraint{oid: t.Checks[i].OID, name: t.Checks[i].Name, kind: 'c', check: &t.Checks[i]})
	}
	keys, err := foreignKeys(ctx, r, t)
	for _, k := range keys {
		all = append(all, constraint{oid: k.OID, name: k.Name, kind: 'f', key: k})
	}
	return all, err
}

func constraintRows(s *scan) error {
	if err := s.domainConstraintRows(); err != nil {
		return err
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if err := s.triggerConstraintRows(t); err != nil {
			return err
		}
		all, err := constraints(s.ctx, s, t)
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.key != nil {
				if err := s.foreignKeyRow(t, c.key); err != nil {
					return err
				}
				continue
			}
			var keys []int64
			indexOID, noInherit, parent, local, inherited := uint32(0), false, uint32(0), true, false
			binary := types.Null
			if c.index != nil {
				indexOID, noInherit = c.index.OID, !t.IsPartitioned()
				if c.index.Parent != 0 {
					parent, local, inherited = c.index.Parent, false, true
				}
				for _, id := range c.index.ElementIDs() {
					if t.ColumnByID(id).Expr != nil {
						id = 0
					}
					keys = append(keys, int64(id))
				}
			} else {
				keys = checkedColumns(t, c.check)
				binary = text(s.printer().checkText(t, c.check, false))
				noInherit = c.check.NoInherit
				local, inherited = !c.check.Inherited || c.check.Local, c.check.Inherited
			}
			err := s.emit(
				col{"oid", oid(c.oid)}, col{"conname", text(c.name)}, col{"connamespace", oid(schemaOID(s.Resolver, t.Schema))},
				col{"contype", letter(c.kind)}, col{"condeferrable", boolean(c.deferrable())}, col{"condeferred", boolean(c.deferred())}, col{"convalidated", boolean(c.check == nil || !c.check.NotValid)}, col{"conrelid", oid(t.OID())}, col{"conindid", oid(indexOID)},
				col{"confupdtype", text(" ")}, col{"confdeltype", text(" ")}, col{"confmatchtype", text(" ")}, col{"conislocal", boolean(local)}, col{"coninhcount", num(boolNumber(inherited))}, col{"conparentid", oid(parent)},
				col{"connoinherit", boolean(noInherit)}, col{"conkey", int2s(keys)}, col{"conbin", binary},
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func sequenceRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind != catalog.KindSequence {
			return nil
		}
		q := t.Sequence
		return s.emit(col{"seqrelid", oid(t.OID())}, col{"seqtypid", oid(q.Type.OID)}, col{"seqstart", num(q.Start)},
			col{"seqincrement", num(q.Increment)}, col{"seqmax", num(q.Max)}, col{"seqmin", num(q.Min)}, col{"seqcache", num(max(q.Cache, 1))},
			col{"seqcycle", boolean(q.Cycle)})
	})
}

func descriptionRows(s *scan) error {
	describe := func(object uint32, class, sub int, comment string) error {
		if comment == "" {
			return nil
		}
		return s.emit(col{"objoid", oid(object)}, col{"classoid", num(class)}, col{"objsubid", num(sub)}, col{"description", text(comment)})
	}
	err := builtinDescriptions(func(class, object uint32, comment string) error { return describe(object, int(class), 0, comment) })
	if err != nil {
		return err
	}
	if details, ok := s.Resolver.(catalog.SchemaDetails); ok {
		names, err := s.Schemas(s.ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := describe(details.SchemaOID(name), classPgNamespace, 0, details.SchemaComment(name)); err != nil {
				return err
			}
		}
	}
	for _, d := range s.Extensions().All() {
		if err := describe(uint32(d.ID), classPgExtension, 0, d.Comment); err != nil {
			return err
		}
	}
	for _, d := range s.Collations().All() {
		if err := describe(uint32(d.ID), classPgCollation, 0, d.Comment); err != nil {
			return err
		}
	}
	if err := operationComments(s.Resolver, describe); err != nil {
		return err
	}
	for _, d := range s.Routines().All() {
		if err := describe(uint32(d.ID), classPgProc, 0, d.Comment); err != nil {
			return err
		}
	}
	for _, d := range s.TextSearch().All() {
		class := classPgTSConfig
		if d.Type == types.OIDRegdictionary {
			class = classPgTSDict
		}
		if err := describe(uint32(d.ID), class, 0, d.Comment); err != nil {
			return err
		}
	}
	for _, d := range s.Types().All() {
		if err := describe(uint32(d.ID), classPgType, 0, d.Comment); err != nil {
			return err
		}
		for _, c := range d.Checks {
			if err := describe(uint32(c.OID), classPgConstraint, 0, c.Comment); err != nil {
				return err
			}
		}
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if err := describe(t.OID(), classPgClass, 0, t.Comment); err != nil {
			return err
		}
		for i := range t.Columns {
			if err := describe(t.OID(), classPgClass, int(t.Columns[i].ID), t.Columns[i].Comment); err != nil {
				return err
			}
		}
		for _, ix := range visibleIndexes(t) {
			if err := describe(ix.OID, classPgClass, 0, ix.Comment); err != nil {
				return err
			}
		}
		all, err := constraints(s.ctx, s, t)
		if err != nil {
			return err
		}
		for _, c := range all {
			if err := describe(c.oid, classPgConstraint, 0, c.comment()); err != nil {
				return err
			}
		}
		for i := range t.Policies {
			if err := describe(t.Policies[i].OID, classPgPolicy, 0, t.Policies[i].Comment); err != nil {
				return err
			}
		}
		for i := range t.Triggers {
			if err := describe(t.Triggers[i].OID, classPgTrigger, 0, t.Triggers[i].Comment); err != nil {
				return err
			}
		}
		return nil
	})
}

// persistence is relpersistence.
func persistence(t *catalog.TableDescriptor) byte {
	switch {
	case t.Temporary():
		return 't'
	case t.Unlogged:
		return 'u'
	}
	return 'p'
}
