package copydb

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statement makes one object of the schema in the target.
type statement struct {
	object string // its kind and name, unique within the schema
	sql    string
}

// definitions are the statements of a database's schema.
type definitions struct {
	before []statement // that come before the rows
	after  []statement // that come after them: indexes, constraints, triggers, comments
}

// The conditions of the queries below: $1 is an array of the relations that --exclude names.
var fragments = strings.NewReplacer(
	"{users}", `n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'percodb', 'percodb_copy', 'percodb_import')`,
	"{kept}", `NOT c.oid = ANY ($1)`,
	"{table}", `quote_ident(n.nspname) || '.' || quote_ident(c.relname)`,
	"{collation}", `(SELECT ' COLLATE ' || quote_ident(cn.nspname) || '.' || quote_ident(co.collname) FROM pg_collation co JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = %s)`,
	"{sequence}", `' START WITH ' || s.seqstart || ' INCREMENT BY ' || s.seqincrement || ' MINVALUE ' || s.seqmin || ' MAXVALUE ' || s.seqmax || ' CACHE ' || s.seqcache || CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END`,
)

// own is the condition that an object belongs to no extension.
func own(catalog, oid string) string {
	return "NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = '" + catalog + "'::regclass AND e.objid = " + oid + " AND e.deptype = 'e')"
}

func collationOf(column string) string {
	return strings.ReplaceAll(fragments.Replace("{collation}"), "%s", column)
}

// beforeQueries return the statements that come before the rows, each the name of an object and its statement.
var beforeQueries = []string{
	`SELECT 'the schema ' || quote_ident(n.nspname), 'CREATE SCHEMA IF NOT EXISTS ' || quote_ident(n.nspname)
	FROM pg_namespace n WHERE {users} AND ` + own("pg_namespace", "n.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY 1`,

	`SELECT 'the extension ' || quote_ident(x.extname), 'CREATE EXTENSION IF NOT EXISTS ' || quote_ident(x.extname) || ' WITH SCHEMA ' || quote_ident(n.nspname)
	FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace
	WHERE x.extname NOT IN ('plpgsql', 'percodb') AND $1::oid[] IS NOT NULL ORDER BY x.oid`,

	`SELECT 'the collation ' || quote_ident(n.nspname) || '.' || quote_ident(o.collname),
	'CREATE COLLATION ' || quote_ident(n.nspname) || '.' || quote_ident(o.collname) || ' (PROVIDER = ' || CASE o.collprovider WHEN 'i' THEN 'icu' ELSE 'libc' END
	|| CASE WHEN o.colliculocale IS NOT NULL THEN ', LOCALE = ' || quote_literal(o.colliculocale)
		ELSE ', LC_COLLATE = ' || quote_literal(o.collcollate) || ', LC_CTYPE = ' || quote_literal(o.collctype) END
	|| CASE WHEN o.collisdeterministic THEN '' ELSE ', DETERMINISTIC = false' END || ')'
	FROM pg_collation o JOIN pg_namespace n ON n.oid = o.collnamespace
	WHERE {users} AND ` + own("pg_collation", "o.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY o.oid`,

	`SELECT 'the type ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname),
	'CREATE TYPE ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname) || ' AS ENUM (' ||
	COALESCE((SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid), '') || ')'
	FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE t.typtype = 'e' AND {users} AND ` + own("pg_type", "t.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY t.oid`,

	`SELECT 'the type ' || {table}, 'CREATE TYPE ' || {table} || ' AS (' ||
	COALESCE((SELECT string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
		|| COALESCE((SELECT ` + collationOf("a.attcollation") + ` FROM pg_type at WHERE at.oid = a.atttypid AND at.typcollation <> a.attcollation AND a.attcollation <> 0), ''),
		', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '') || ')'
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'c' AND {users} AND {kept} AND ` + own("pg_type", "c.reltype") + ` ORDER BY c.oid`,

	`SELECT 'the domain ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname),
	'CREATE DOMAIN ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname) || ' AS ' || format_type(t.typbasetype, t.typtypmod)
	|| COALESCE((SELECT ` + collationOf("t.typcollation") + ` FROM pg_type bt WHERE bt.oid = t.typbasetype AND bt.typcollation <> t.typcollation AND t.typcollation <> 0), '')
	|| COALESCE(' DEFAULT ' || COALESCE(pg_get_expr(t.typdefaultbin, 'pg_type'::regclass), quote_literal(t.typdefault)), '')
	|| CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
	|| COALESCE((SELECT string_agg(' CONSTRAINT ' || quote_ident(k.conname) || ' ' || replace(pg_get_constraintdef(k.oid), ' NOT VALID', ''), '' ORDER BY k.conname)
		FROM pg_constraint k WHERE k.contypid = t.oid), '')
	FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE t.typtype = 'd' AND {users} AND ` + own("pg_type", "t.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY t.oid`,

	`SELECT 'the type ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname),
	'CREATE TYPE ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname) || ' AS RANGE (SUBTYPE = ' || format_type(r.rngsubtype, NULL)
	|| COALESCE((SELECT ', SUBTYPE_OPCLASS = ' || quote_ident(xn.nspname) || '.' || quote_ident(x.opcname) FROM pg_opclass x JOIN pg_namespace xn ON xn.oid = x.opcnamespace
		WHERE x.oid = r.rngsubopc AND NOT x.opcdefault), '')
	|| COALESCE((SELECT replace(` + collationOf("r.rngcollation") + `, ' COLLATE ', ', COLLATION = ') FROM pg_type st WHERE st.oid = r.rngsubtype AND st.typcollation <> r.rngcollation AND r.rngcollation <> 0), '')
	|| CASE WHEN r.rngsubdiff::oid = 0 THEN '' ELSE ', SUBTYPE_DIFF = ' || r.rngsubdiff::regproc::text END || ')'
	FROM pg_range r JOIN pg_type t ON t.oid = r.rngtypid JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE {users} AND ` + own("pg_type", "t.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY t.oid`,

	`SELECT CASE p.prokind WHEN 'p' THEN 'the procedure ' ELSE 'the function ' END || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')',
	pg_get_functiondef(p.oid)
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE p.prokind <> 'a' AND {users} AND ` + own("pg_proc", "p.oid") + `
	AND NOT EXISTS (SELECT 1 FROM pg_depend i WHERE i.classid = 'pg_proc'::regclass AND i.objid = p.oid AND i.deptype = 'i')
	AND $1::oid[] IS NOT NULL ORDER BY p.oid`,

	`SELECT 'the aggregate ' || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')',
	'CREATE AGGREGATE ' || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || COALESCE(NULLIF(pg_get_function_arguments(p.oid), ''), '*') || ') (SFUNC = ' || g.aggtransfn::regproc
	|| ', STYPE = ' || format_type(g.aggtranstype, NULL) || CASE WHEN g.aggtransspace > 0 THEN ', SSPACE = ' || g.aggtransspace ELSE '' END
	|| CASE WHEN g.aggfinalfn::oid <> 0 THEN ', FINALFUNC = ' || g.aggfinalfn::regproc || CASE WHEN g.aggfinalextra THEN ', FINALFUNC_EXTRA' ELSE '' END ELSE '' END
	|| CASE WHEN g.aggcombinefn::oid <> 0 THEN ', COMBINEFUNC = ' || g.aggcombinefn::regproc ELSE '' END
	|| CASE WHEN g.aggserialfn::oid <> 0 THEN ', SERIALFUNC = ' || g.aggserialfn::regproc || ', DESERIALFUNC = ' || g.aggdeserialfn::regproc ELSE '' END
	|| COALESCE(', INITCOND = ' || quote_literal(g.agginitval), '')
	|| CASE WHEN g.aggmtransfn::oid <> 0 THEN ', MSFUNC = ' || g.aggmtransfn::regproc || ', MINVFUNC = ' || g.aggminvtransfn::regproc || ', MSTYPE = ' || format_type(g.aggmtranstype, NULL)
		|| CASE WHEN g.aggmfinalfn::oid <> 0 THEN ', MFINALFUNC = ' || g.aggmfinalfn::regproc ELSE '' END || COALESCE(', MINITCOND = ' || quote_literal(g.aggminitval), '') ELSE '' END
	|| CASE WHEN g.aggkind = 'h' THEN ', HYPOTHETICAL' ELSE '' END
	|| CASE p.proparallel WHEN 's' THEN ', PARALLEL = SAFE' WHEN 'r' THEN ', PARALLEL = RESTRICTED' ELSE '' END || ')'
	FROM pg_aggregate g JOIN pg_proc p ON p.oid = g.aggfnoid::oid JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE {users} AND ` + own("pg_proc", "p.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY p.oid`,

	`SELECT 'the text search dictionary ' || quote_ident(n.nspname) || '.' || quote_ident(d.dictname),
	'CREATE TEXT SEARCH DICTIONARY ' || quote_ident(n.nspname) || '.' || quote_ident(d.dictname) || ' (TEMPLATE = ' || quote_ident(tn.nspname) || '.' || quote_ident(t.tmplname)
	|| COALESCE(', ' || d.dictinitoption, '') || ')'
	FROM pg_ts_dict d JOIN pg_namespace n ON n.oid = d.dictnamespace JOIN pg_ts_template t ON t.oid = d.dicttemplate JOIN pg_namespace tn ON tn.oid = t.tmplnamespace
	WHERE {users} AND ` + own("pg_ts_dict", "d.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY d.oid`,

	`SELECT 'the text search configuration ' || quote_ident(n.nspname) || '.' || quote_ident(f.cfgname),
	'CREATE TEXT SEARCH CONFIGURATION ' || quote_ident(n.nspname) || '.' || quote_ident(f.cfgname) || ' (PARSER = ' || quote_ident(pn.nspname) || '.' || quote_ident(p.prsname) || ')'
	FROM pg_ts_config f JOIN pg_namespace n ON n.oid = f.cfgnamespace JOIN pg_ts_parser p ON p.oid = f.cfgparser JOIN pg_namespace pn ON pn.oid = p.prsnamespace
	WHERE {users} AND ` + own("pg_ts_config", "f.oid") + ` AND $1::oid[] IS NOT NULL ORDER BY f.oid`,

	`SELECT 'the mapping of ' || m.alias || ' in ' || m.config, 'ALTER TEXT SEARCH CONFIGURATION ' || m.config || ' ADD MAPPING FOR ' || quote_ident(m.alias) || ' WITH ' || m.dictionaries FROM (
		SELECT quote_ident(n.nspname) || '.' || quote_ident(f.cfgname) AS config, (SELECT k.alias FROM ts_token_type(f.cfgparser) k WHERE k.tokid = m.maptokentype) AS alias,
			string_agg(quote_ident(dn.nspname) || '.' || quote_ident(d.dictname), ', ' ORDER BY m.mapseqno) AS dictionaries
		FROM pg_ts_config_map m JOIN pg_ts_config f ON f.oid = m.mapcfg JOIN pg_namespace n ON n.oid = f.cfgnamespace JOIN pg_ts_dict d ON d.oid = m.mapdict JOIN pg_namespace dn ON dn.oid = d.dictnamespace
		WHERE {users} AND ` + own("pg_ts_config", "f.oid") + ` AND $1::oid[] IS NOT NULL GROUP BY n.nspname, f.cfgname, f.cfgparser, m.maptokentype) m ORDER BY 1`,

	`SELECT 'the sequence ' || {table}, 'CREATE SEQUENCE ' || {table} || ' AS ' || format_type(s.seqtypid, NULL) || {sequence}
	FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE {users} AND {kept} AND ` + own("pg_class", "c.oid") + `
	AND NOT EXISTS (SELECT 1 FROM pg_depend i WHERE i.classid = 'pg_class'::regclass AND i.objid = c.oid AND i.deptype = 'i') ORDER BY c.oid`,

	`SELECT 'the table ' || {table}, 'CREATE ' || CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END || 'TABLE ' || {table} || ' (' || concat_ws(', ',
	(SELECT string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
		|| COALESCE((SELECT ` + collationOf("a.attcollation") + ` FROM pg_type at WHERE at.oid = a.atttypid AND at.typcollation <> a.attcollation AND a.attcollation <> 0), '')
		|| CASE WHEN a.attidentity <> '' THEN ' GENERATED ' || CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END || ' AS IDENTITY'
			|| COALESCE((SELECT ' (SEQUENCE NAME ' || quote_ident(sn.nspname) || '.' || quote_ident(sc.relname) || {sequence} || ')'
				FROM pg_depend i JOIN pg_sequence s ON s.seqrelid = i.objid JOIN pg_class sc ON sc.oid = i.objid JOIN pg_namespace sn ON sn.oid = sc.relnamespace
				WHERE i.classid = 'pg_class'::regclass AND i.refclassid = 'pg_class'::regclass AND i.refobjid = c.oid AND i.refobjsubid = a.attnum AND i.deptype = 'i'), '')
		  WHEN a.attgenerated = 's' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED'
		  ELSE COALESCE(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') END
		|| CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, ', ' ORDER BY a.attnum)
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
	(SELECT string_agg('CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid), ', ' ORDER BY k.contype DESC, k.conname)
		FROM pg_constraint k WHERE k.conrelid = c.oid AND (k.contype = 'p' OR k.contype = 'c' AND k.convalidated))) || ')'
	|| COALESCE((SELECT ' INHERITS (' || string_agg(quote_ident(hn.nspname) || '.' || quote_ident(hc.relname), ', ' ORDER BY h.inhseqno) || ')'
		FROM pg_inherits h JOIN pg_class hc ON hc.oid = h.inhparent JOIN pg_namespace hn ON hn.oid = hc.relnamespace WHERE h.inhrelid = c.oid AND NOT c.relispartition), '')
	|| CASE WHEN c.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) ELSE '' END
	|| COALESCE(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY c.oid`,

	`SELECT 'the partition ' || {table}, 'ALTER TABLE ONLY ' || quote_ident(hn.nspname) || '.' || quote_ident(hc.relname) || ' ATTACH PARTITION ' || {table} || ' ' || pg_get_expr(c.relpartbound, c.oid)
	FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class hc ON hc.oid = h.inhparent JOIN pg_namespace hn ON hn.oid = hc.relnamespace
	WHERE c.relkind IN ('r', 'p') AND c.relispartition AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY c.oid`,

	`SELECT CASE c.relkind WHEN 'm' THEN 'the materialized view ' ELSE 'the view ' END || {table},
	'CREATE ' || CASE c.relkind WHEN 'm' THEN 'MATERIALIZED ' ELSE '' END || 'VIEW ' || {table} || COALESCE(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')
	|| ' AS ' || rtrim(pg_get_viewdef(c.oid), ';') || CASE c.relkind WHEN 'm' THEN ' WITH NO DATA' ELSE '' END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('v', 'm') AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY c.oid`,
}

// afterQueries return the statements that come after the rows.
var afterQueries = []string{
	`SELECT 'the sequence of ' || {table} || '.' || quote_ident(a.attname), 'ALTER SEQUENCE ' || quote_ident(sn.nspname) || '.' || quote_ident(sc.relname) || ' OWNED BY ' || {table} || '.' || quote_ident(a.attname)
	FROM pg_depend i JOIN pg_class sc ON sc.oid = i.objid AND sc.relkind = 'S' JOIN pg_namespace sn ON sn.oid = sc.relnamespace
	JOIN pg_class c ON c.oid = i.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.refobjsubid
	WHERE i.classid = 'pg_class'::regclass AND i.refclassid = 'pg_class'::regclass AND i.deptype = 'a' AND {users} AND {kept} ORDER BY sc.oid`,

	// The indexes of partitions come before those of their parents, which take them.
	`SELECT 'the index ' || quote_ident(n.nspname) || '.' || quote_ident(ic.relname), replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
	FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE i.indisvalid AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
	AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY ic.relkind DESC, c.relkind DESC, ic.oid DESC`,

	`SELECT 'the constraint ' || quote_ident(k.conname) || ' of ' || {table}, 'ALTER TABLE ' || {table} || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
	FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE (k.contype IN ('u', 'x') OR k.contype = 'f' AND k.conparentid = 0 OR k.contype = 'c' AND NOT k.convalidated)
	AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY k.contype = 'f', c.relispartition DESC, k.oid DESC`,

	`SELECT 'the statistics ' || quote_ident(n.nspname) || '.' || quote_ident(x.stxname), pg_get_statisticsobjdef(x.oid)
	FROM pg_statistic_ext x JOIN pg_namespace n ON n.oid = x.stxnamespace JOIN pg_class c ON c.oid = x.stxrelid WHERE {users} AND {kept} ORDER BY x.oid`,

	`SELECT 'the trigger ' || quote_ident(t.tgname) || ' of ' || {table}, pg_get_triggerdef(t.oid)
	FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY t.oid`,

	`SELECT 'the state of the trigger ' || quote_ident(t.tgname) || ' of ' || {table},
	'ALTER TABLE ' || {table} || CASE t.tgenabled WHEN 'D' THEN ' DISABLE' WHEN 'R' THEN ' ENABLE REPLICA' ELSE ' ENABLE ALWAYS' END || ' TRIGGER ' || quote_ident(t.tgname)
	FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'O' AND {users} AND {kept} AND ` + own("pg_class", "c.oid") + ` ORDER BY t.oid`,

	`SELECT 'the policy ' || quote_ident(p.polname) || ' of ' || {table}, 'CREATE POLICY ' || quote_ident(p.polname) || ' ON ' || {table} || CASE WHEN p.polpermissive THEN '' ELSE ' AS RESTRICTIVE' END
	|| CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' ELSE '' END
	|| ' TO ' || (SELECT string_agg(CASE r.r WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.r)) END, ', ') FROM unnest(p.polroles) r(r))
	|| COALESCE(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '') || COALESCE(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')
	FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {users} AND {kept} ORDER BY p.oid`,

	`SELECT 'the row security of ' || {table}, 'ALTER TABLE ' || {table} || ' ENABLE ROW LEVEL SECURITY' || CASE WHEN c.relforcerowsecurity THEN ', FORCE ROW LEVEL SECURITY' ELSE '' END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relrowsecurity AND c.relkind IN ('r', 'p') AND {users} AND {kept} ORDER BY c.oid`,

	`SELECT 'the rows of ' || {table}, 'REFRESH MATERIALIZED VIEW ' || {table}
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'm' AND c.relispopulated AND {users} AND {kept} ORDER BY c.oid`,
}

// commentQueries return the comments of all kinds of objects.
var commentQueries = []string{
	comments(`CASE WHEN d.objsubid > 0 THEN 'COLUMN ' || {table} || '.' || quote_ident((SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = d.objsubid))
		ELSE CASE c.relkind WHEN 'v' THEN 'VIEW ' WHEN 'm' THEN 'MATERIALIZED VIEW ' WHEN 'i' THEN 'INDEX ' WHEN 'I' THEN 'INDEX ' WHEN 'S' THEN 'SEQUENCE ' WHEN 'c' THEN 'TYPE ' ELSE 'TABLE ' END || {table} END`,
		"pg_class", `pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace`, "c.oid", "{kept}"),
	comments(`CASE t.typtype WHEN 'd' THEN 'DOMAIN ' ELSE 'TYPE ' END || quote_ident(n.nspname) || '.' || quote_ident(t.typname)`,
		"pg_type", `pg_type t ON t.oid = d.objoid JOIN pg_namespace n ON n.oid = t.typnamespace`, "t.oid", "$1::oid[] IS NOT NULL"),
	comments(`CASE p.prokind WHEN 'p' THEN 'PROCEDURE ' WHEN 'a' THEN 'AGGREGATE ' ELSE 'FUNCTION ' END || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '('
		|| CASE WHEN p.prokind = 'a' THEN COALESCE(NULLIF(pg_get_function_identity_arguments(p.oid), ''), '*') ELSE pg_get_function_identity_arguments(p.oid) END || ')'`,
		"pg_proc", `pg_proc p ON p.oid = d.objoid JOIN pg_namespace n ON n.oid = p.pronamespace`, "p.oid", "$1::oid[] IS NOT NULL"),
	comments(`'CONSTRAINT ' || quote_ident(k.conname) || ' ON ' || {table}`,
		"pg_constraint", `pg_constraint k ON k.oid = d.objoid JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace`, "c.oid", "{kept}"),
	comments(`'CONSTRAINT ' || quote_ident(k.conname) || ' ON DOMAIN ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname)`,
		"pg_constraint", `pg_constraint k ON k.oid = d.objoid JOIN pg_type t ON t.oid = k.contypid JOIN pg_namespace n ON n.oid = t.typnamespace`, "t.oid", "$1::oid[] IS NOT NULL"),
	comments(`'TRIGGER ' || quote_ident(t.tgname) || ' ON ' || {table}`,
		"pg_trigger", `pg_trigger t ON t.oid = d.objoid JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace`, "c.oid", "{kept}"),
	comments(`'POLICY ' || quote_ident(p.polname) || ' ON ' || {table}`,
		"pg_policy", `pg_policy p ON p.oid = d.objoid JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace`, "c.oid", "{kept}"),
	comments(`'SCHEMA ' || quote_ident(n.nspname)`, "pg_namespace", `pg_namespace n ON n.oid = d.objoid`, "n.oid", "n.nspname <> 'public' AND $1::oid[] IS NOT NULL"),
	comments(`'COLLATION ' || quote_ident(n.nspname) || '.' || quote_ident(o.collname)`,
		"pg_collation", `pg_collation o ON o.oid = d.objoid JOIN pg_namespace n ON n.oid = o.collnamespace`, "o.oid", "$1::oid[] IS NOT NULL"),
}

// comments returns the query of the comments of one catalog's objects; object is the object as COMMENT ON names it.
func comments(object, catalog, from, oid, condition string) string {
	return "SELECT 'the comment on ' || m.object, 'COMMENT ON ' || m.object || ' IS ' || quote_literal(m.description) FROM (SELECT " + object + ` AS object, d.description
	FROM pg_description d JOIN ` + from + " WHERE d.classoid = '" + catalog + "'::regclass AND {users} AND " + own(catalog, oid) + " AND " + condition + ") m ORDER BY 1"
}

// unsupportedQuery returns the objects that no statement above makes.
const unsupportedQuery = `
	SELECT 'the foreign table ' || {table}, 'make it in the target' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'f' AND {users} AND {kept}
	UNION ALL SELECT 'the rule ' || quote_ident(r.rulename) || ' of ' || {table}, 'write a trigger instead'
		FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace WHERE r.rulename <> '_RETURN' AND {users} AND {kept}
	UNION ALL SELECT 'the operator ' || quote_ident(n.nspname) || '.' || o.oprname, 'make it in the target' FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE {users} AND {ownoperator}
	UNION ALL SELECT 'the operator class ' || quote_ident(n.nspname) || '.' || quote_ident(o.opcname), 'make it in the target' FROM pg_opclass o JOIN pg_namespace n ON n.oid = o.opcnamespace WHERE {users} AND {ownclass}
	UNION ALL SELECT 'the base type ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname), 'make it in the target' FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE t.typtype = 'b' AND t.typelem = 0 AND {users} AND {owntype}
	UNION ALL SELECT 'the cast from ' || format_type(k.castsource, NULL) || ' to ' || format_type(k.casttarget, NULL), 'make it in the target' FROM pg_cast k WHERE k.oid >= 16384 AND {owncast}
	UNION ALL SELECT 'the event trigger ' || quote_ident(v.evtname), 'make it in the target' FROM pg_event_trigger v WHERE {ownevent}
	UNION ALL SELECT 'the publication ' || quote_ident(p.pubname), 'make it in the target' FROM pg_publication p
	UNION ALL SELECT 'the large object ' || l.oid, 'store it in a column of type bytea' FROM pg_largeobject_metadata l
	ORDER BY 1`

// prepare puts the fragments into a query.
func prepare(query string) string {
	query = strings.NewReplacer("{ownoperator}", own("pg_operator", "o.oid"), "{ownclass}", own("pg_opclass", "o.oid"), "{owntype}", own("pg_type", "t.oid"),
		"{owncast}", own("pg_cast", "k.oid")+" AND NOT EXISTS (SELECT 1 FROM pg_depend i WHERE i.classid = 'pg_cast'::regclass AND i.objid = k.oid AND i.deptype = 'i')", "{ownevent}", own("pg_event_trigger", "v.oid")).Replace(query)
	return fragments.Replace(fragments.Replace(query))
}

// readSchema reads the definitions of a database, without the relations that are excluded.
func readSchema(ctx context.Context, tx querier, kind serverKind, excluded []uint32) (*definitions, error) {
	var d definitions
	after := append(append([]string{}, afterQueries...), commentQueries...)
	if kind == percodb {
		after = append(after, `SELECT 'the observer ' || quote_ident(o.schema_name) || '.' || quote_ident(o.name), o.definition FROM percodb.observers o WHERE $1::oid[] IS NOT NULL ORDER BY 1`)
	}
	for _, part := range []struct {
		queries []string
		to      *[]statement
	}{{beforeQueries, &d.before}, {after, &d.after}} {
		for _, query := range part.queries {
			pairs, err := readPairs(ctx, tx, prepare(query), excluded)
			if err != nil {
				return nil, err
			}
			for _, p := range pairs {
				*part.to = append(*part.to, statement{p[0], p[1]})
			}
		}
	}
	return &d, nil
}

// readUnsupported returns the objects that cannot be copied, each with advice.
func readUnsupported(ctx context.Context, tx querier, excluded []uint32) ([][2]string, error) {
	return readPairs(ctx, tx, prepare(unsupportedQuery), excluded)
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readPairs returns the rows of a query of two texts.
func readPairs(ctx context.Context, tx querier, query string, args ...any) ([][2]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	var pairs [][2]string
	var first, second string
	_, err = pgx.ForEachRow(rows, []any{&first, &second}, func() error {
		pairs = append(pairs, [2]string{first, second})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	return pairs, nil
}
