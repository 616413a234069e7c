// Package pgcatalog is the system tables that PostgreSQL's clients read, pg_catalog and
// information_schema, as relations whose rows are computed from the catalog's descriptors.
//
//	columns.txt ─▶ Tables() ─▶ catalog.Options.System ─▶ resolvers find them as KindVirtual
//	                  └─ rows functions over a catalog.Resolver
//	Objects ─▶ builtin.Env.Catalog: regclass, pg_get_indexdef, pg_table_is_visible, …
//
// Columns, their types and their order are PostgreSQL 15's, so that psql's and drivers' queries bind;
// what percodb has nothing of (triggers, policies, extensions, …) is an empty table.
//
// Invariants:
//
//	I1 Rows follow the resolver, and with it the reader's snapshot.
//	I2 OIDs are stable: a relation's is its id, an index's and a check's was given at creation, a
//	   system object's is PostgreSQL's own.
//	I3 A column's attnum is its id, in every table and in RowDescription. Ids that no column has are dropped columns in
//	   pg_attribute.
//
// Not here: what a session alone knows (settings, activity), which comes with catalog.SystemView.
package pgcatalog
