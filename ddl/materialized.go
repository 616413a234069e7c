package ddl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// A materialized view is a table that keeps a query, as views do, and the rows that the query had when it was last refreshed.
//
// REFRESH gives the table new storage and fills it in the same transaction: readers have the rows of their snapshots. REFRESH
// CONCURRENTLY leaves the storage and writes the rows that differ. Both run the query as the owner of the materialized view.

// Execution is a statement that runs within a schema change.
type Execution struct {
	Txn *percolator.Txn
	// Resolver is the schema under which the statement runs, PlanUnder that under which it is planned; nil: Resolver.
	Resolver, PlanUnder catalog.Resolver
	// As is the role that the statement runs as; 0: the session's.
	As        uint32
	Statement ast.Statement
	// Guard takes the tables that the statement changes; nil: they are those of the schema change.
	Guard *catalog.Guard
	// Params are the values of its parameters.
	Params Params
}

// Params are the values of a statement's parameters.
type Params struct {
	Types  []types.Type
	Values types.Row
}

func (r *run) createMaterializedView(ctx context.Context, n *ast.CreateMaterializedView) (string, error) {
	const tag = "CREATE MATERIALIZED VIEW"
	switch {
	case n.Unlogged:
		return "", pgerror.New(pgerror.FeatureNotSupported, "materialized views cannot be unlogged")
	case n.Query.With.Modifies():
		return "", pgerror.New(pgerror.FeatureNotSupported, "materialized views must not use data-modifying statements in WITH")
	case n.Method != "" && n.Method != "heap":
		return "", pgerror.New(pgerror.UndefinedObject, "access method %q does not exist", n.Method)
	}
	schema, err := r.newRelationSchema(ctx, n.Name, ast.Permanent)
	if err != nil {
		return "", err
	}
	taken, err := r.nameTaken(ctx, schema, n.Name.Name)
	if err != nil {
		return "", err
	}
	if taken {
		if !n.IfNotExists {
			return "", relationExists(n.Name.Name).At(n.Name.Position())
		}
		r.notice(pgerror.DuplicateTable, "relation %q already exists, skipping", n.Name.Name)
		return tag, nil
	}
	if err := r.requireNoType(ctx, schema, n.Name.Name); err != nil {
		return "", err
	}
	b, err := r.newBuilder(ctx, schema, n.Name.Name)
	if err != nil {
		return "", err
	}
	if err := tableOptions(b.t, n.Options); err != nil {
		return "", err
	}
	if err := r.describeMaterializedView(ctx, b.t, n); err != nil {
		return "", err
	}
	if err := b.create(ctx); err != nil {
		return "", err
	}
	if n.WithNoData {
		return tag, nil
	}
	rows, err := r.fill(ctx, b.t)
	if err != nil {
		return "", err
	}
	return "SELECT " + formatInt(rows), nil
}

// describeMaterializedView fills in columns, query and dependencies.
func (r *run) describeMaterializedView(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateMaterializedView) error {
	cols, err := r.queryColumns(ctx, n.Query)
	if err != nil {
		return err
	}
	if len(n.Columns) > len(cols) {
		return pgerror.New(pgerror.SyntaxError, "too many column names were specified")
	}
	if err := r.describeView(ctx, t, &ast.CreateView{Pos: n.Pos, Name: n.Name, Columns: n.Columns, Query: n.Query}); err != nil {
		return err
	}
	for _, id := range t.DependsOn {
		used, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if used != nil && used.Temporary() {
			return pgerror.New(pgerror.FeatureNotSupported, "materialized views must not use temporary tables or views")
		}
	}
	t.Materialized, t.Populated = true, !n.WithNoData
	return nil
}

// mayRefresh checks REFRESH MATERIALIZED VIEW.
func (r *run) mayRefresh(ctx context.Context, n *ast.RefreshMaterializedView) error {
	t, err := r.find(ctx, n.Name)
	if err != nil || t == nil {
		return err
	}
	return r.mustOwn(t)
}

func (r *run) refreshMaterializedView(ctx context.Context, n *ast.RefreshMaterializedView) error {
	t, err := r.mustFind(ctx, n.Name)
	if err != nil {
		return err
	}
	switch {
	case !t.Materialized:
		return pgerror.New(pgerror.FeatureNotSupported, "%q is not a materialized view", t.Name)
	case n.Concurrently && !t.Populated:
		return pgerror.New(pgerror.FeatureNotSupported, "CONCURRENTLY cannot be used when the materialized view is not populated")
	case n.Concurrently && n.WithNoData:
		return pgerror.New(pgerror.SyntaxError, "%s and %s options cannot be used together", "CONCURRENTLY", "WITH NO DATA")
	}
	if n.Concurrently {
		return r.refreshConcurrently(ctx, t)
	}
	if !r.ch.Created(t.ID) {
		if err := r.ch.Close(ctx, t); err != nil {
			return err
		}
	}
	if r.alone {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	if t, err = r.r.RelationByID(ctx, t.ID); err != nil {
		return err
	}
	if t == nil || !t.Materialized {
		return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(n.Name)).At(n.Name.Position())
	}
	next := t.Clone()
	next.Populated = !n.WithNoData
	if err := r.replaceStorage(ctx, t, next); err != nil || n.WithNoData {
		return err
	}
	_, err = r.fill(ctx, next)
	return duplicatesInIndex(err)
}

// fill inserts the rows of a materialized view's query.
func (r *run) fill(ctx context.Context, t *catalog.TableDescriptor) (int64, error) {
	q, err := queryOf(t)
	if err != nil {
		return 0, err
	}
	_, n, err := r.runAsOwner(ctx, t, &ast.Insert{Table: ast.TableName{Schema: t.Schema, Name: t.Name}, Query: q})
	if err == nil {
		r.guard.Writes(t, n) // For statistics.
	}
	return n, err
}

func queryOf(t *catalog.TableDescriptor) (*ast.Query, error) {
	stmt, err := sql.ParseStatement(t.ViewQuery)
	if err != nil {
		return nil, err
	}
	q, ok := stmt.(*ast.Query)
	if !ok {
		return nil, pgerror.New(pgerror.InternalError, "the query of %q is a %T", t.Name, stmt)
	}
	return q, nil
}

// runAsOwner runs a statement as the owner of a materialized view, whose rows it may change.
func (r *run) runAsOwner(ctx context.Context, t *catalog.TableDescriptor, stmt ast.Statement) ([]types.Row, int64, error) {
	writable := t.Clone()
	writable.Materialized = false
	return r.Exec(ctx, Execution{Txn: r.txn, Resolver: r.r, PlanUnder: replaced{r.r, writable}, As: t.OwnerOID(), Statement: stmt})
}

// duplicatesInIndex words the error of a unique index as that of building it.
func duplicatesInIndex(err error) error {
	var e *pgerror.Error
	if !errors.As(err, &e) || e.Code != pgerror.UniqueViolation {
		return err
	}
	c := *e
	c.Message = fmt.Sprintf("could not create unique index %q", e.Constraint)
	c.Detail = strings.Replace(e.Detail, " already exists.", " is duplicated.", 1)
	return &c
}

// refreshConcurrently compares the rows of the query with those that there are, by the columns of a unique index, and writes the differences.
func (r *run) refreshConcurrently(ctx context.Context, t *catalog.TableDescriptor) error {
	i := slices.IndexFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return identifiesRows(t, &ix) })
	if i < 0 {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot refresh materialized view \"%s.%s\" concurrently", keyword.QuoteIdent(t.Schema), keyword.QuoteIdent(t.Name)).
			WithHint("Create a unique index with no WHERE clause on one or more columns of the materialized view.")
	}
	d := newDifference(t, &t.Indexes[i])
	stmt, err := sql.ParseStatement(d.statement())
	if err != nil {
		return err
	}
	_, n, err := r.runAsOwner(ctx, t, stmt)
	if err == nil {
		r.guard.Writes(t, n)
		return nil
	}
	var e *pgerror.Error
	if !errors.As(err, &e) || e.Code != pgerror.UniqueViolation {
		return err
	}
	if stmt, err = sql.ParseStatement(d.duplicates()); err != nil {
		return err
	}
	rows, _, err := r.runAsOwner(ctx, t, stmt)
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return e
	}
	return pgerror.New(pgerror.CardinalityViolation, "new data for materialized view %q contains duplicate rows without any null columns", t.Name).
		WithDetail("Row: %s", rows[0][0].Text())
}

// identifiesRows reports whether an index is unique over all rows, by columns and not by expressions.
func identifiesRows(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) bool {
	return ix.Unique && ix.State == catalog.IndexPublic && ix.Where == nil &&
		!slices.ContainsFunc(ix.Columns, func(c catalog.IndexColumn) bool { return t.Ordinal(c.ColumnID) >= len(t.Columns) })
}

// difference makes the statements of REFRESH CONCURRENTLY. The rows of the query are those of new, the rows that there are those of old.
type difference struct {
	t       *catalog.TableDescriptor
	columns []string // quoted
	key     []string // those of the unique index
	same    string   // a row of new is one of old
	full    string   // a row of new has no NULL
}

func newDifference(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) *difference {
	d := &difference{t: t}
	var same, full []string
	for _, c := range ix.Columns {
		name := keyword.QuoteIdent(t.Columns[t.Ordinal(c.ColumnID)].Name)
		d.key = append(d.key, name)
		same = append(same, "new."+name+" = old."+name)
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Hidden {
			continue
		}
		name := keyword.QuoteIdent(c.Name)
		d.columns = append(d.columns, name)
		cast := ""
		if !exactlyEqual(c.Type) {
			cast = "::text"
		}
		same = append(same, "new."+name+cast+" IS NOT DISTINCT FROM old."+name+cast)
		full = append(full, "new."+name+" IS NOT NULL")
	}
	d.same, d.full = strings.Join(same, " AND "), strings.Join(full, " AND ")
	return d
}

// exactlyEqual reports whether equal values of a type are identical. Others are compared by their texts.
func exactlyEqual(t types.Type) bool {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDOid, types.OIDBool, types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz,
		types.OIDUUID, types.OIDBytea, types.OIDText, types.OIDVarchar, types.OIDName:
		return true
	}
	return false
}

func (d *difference) table() string {
	return keyword.QuoteIdent(d.t.Schema) + "." + keyword.QuoteIdent(d.t.Name)
}

// statement deletes the rows of old that are not in new, then inserts those of new that are not in old. A row of new whose key another
// row of new has is inserted, too, so that the unique index refuses it.
func (d *difference) statement() string {
	list := strings.Join(d.columns, ", ")
	return "WITH new (" + list + ") AS MATERIALIZED (" + d.t.ViewQuery + ")," +
		" numbered AS MATERIALIZED (SELECT new.*, row_number() OVER (PARTITION BY " + strings.Join(d.key, ", ") + ") FROM new)," +
		" gone AS (DELETE FROM " + d.table() + " AS old WHERE NOT EXISTS (SELECT FROM numbered AS new WHERE " + d.same + ") RETURNING 1)" +
		" INSERT INTO " + d.table() + " (" + list + ") SELECT " + list + " FROM numbered AS new" +
		" WHERE (SELECT count(*) FROM gone) >= 0 AND (row_number > 1 OR NOT EXISTS (SELECT FROM " + d.table() + " AS old WHERE " + d.same + "))"
}

// duplicates selects a row that the query has twice.
func (d *difference) duplicates() string {
	list := strings.Join(d.columns, ", ")
	return "WITH new (" + list + ") AS (" + d.t.ViewQuery + ")" +
		" SELECT ROW(" + list + ")::text FROM new WHERE " + d.full + " GROUP BY 1 HAVING count(*) > 1 LIMIT 1"
}
