package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
)

// Locks returns the modes in which PostgreSQL locks the relations and indexes that a schema change names, those that r has. Asked before and
// after the statement, it knows those that the statement drops and creates.
func Locks(ctx context.Context, stmt ast.Statement, r catalog.Resolver) ([]catalog.RelationLock, error) {
	l := &lockList{ctx: ctx, r: r}
	switch n := stmt.(type) {
	case *ast.LockTable:
		for i := range n.Tables {
			l.relation(n.Tables[i].TableName, lockModeOf(n.Mode), withParts|withRead)
		}
	case *ast.AlterTable:
		l.alterTable(n)
	case *ast.CreateTable:
		l.createTable(n)
	case *ast.CreateIndex:
		l.relation(n.Table, catalog.ShareLock, withParts)
		if t := l.find(n.Table); t != nil && n.Name != "" {
			l.relation(ast.TableName{Schema: t.Schema, Name: n.Name}, catalog.AccessExclusiveLock, 0)
		}
	case *ast.CreateView:
		l.relation(n.Name, catalog.AccessExclusiveLock, 0)
	case *ast.CreateMaterializedView:
		l.relation(n.Name, catalog.AccessExclusiveLock, withIndexes)
	case *ast.CreateSequence:
		l.relation(n.Name, catalog.AccessExclusiveLock, 0)
	case *ast.RefreshMaterializedView:
		l.relation(n.Name, choose(n.Concurrently, catalog.ExclusiveLock, catalog.AccessExclusiveLock), withIndexes)
	case *ast.Drop:
		l.drop(n)
	case *ast.Truncate:
		for i := range n.Tables {
			l.relation(n.Tables[i].TableName, catalog.AccessExclusiveLock, withParts|withIndexes)
		}
	case *ast.Comment:
		switch n.Kind {
		case "TABLE", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "INDEX":
			l.relation(nameOf(&n.Object), catalog.ShareUpdateExclusiveLock, 0)
		}
	case *ast.Analyze:
		for _, name := range n.Tables {
			l.relation(name, catalog.ShareUpdateExclusiveLock, withParts)
		}
	case *ast.Reindex:
		l.reindex(n)
	case *ast.Cluster:
		if n.Table != nil {
			l.relation(*n.Table, catalog.AccessExclusiveLock, withIndexes)
		}
	case *ast.CreateTrigger:
		l.relation(n.Table, catalog.ShareRowExclusiveLock, withParts)
	case *ast.CreatePolicy:
		l.relation(n.Table, catalog.AccessExclusiveLock, 0)
	case *ast.AlterPolicy:
		l.relation(n.Table, catalog.AccessExclusiveLock, 0)
	}
	return l.locks, l.err
}

func choose[T any](which bool, yes, no T) T {
	if which {
		return yes
	}
	return no
}

// lockList collects the locks of a statement.
type lockList struct {
	ctx   context.Context
	r     catalog.Resolver
	locks []catalog.RelationLock
	err   error
}

// lockScope says what is locked together with a relation.
type lockScope uint8

const (
	withParts   lockScope = 1 << iota // the partitions of a partitioned table
	withIndexes                       // the indexes of a table
	withOwner                         // the table of an index
	withRead                          // the relations that a view reads
)

func (l *lockList) add(locks ...catalog.RelationLock) {
	for _, k := range locks {
		if !slices.Contains(l.locks, k) {
			l.locks = append(l.locks, k)
		}
	}
}

// find returns the relation of that name, nil if there is none.
func (l *lockList) find(name ast.TableName) *catalog.TableDescriptor {
	if l.err != nil {
		return nil
	}
	var t *catalog.TableDescriptor
	t, l.err = l.r.Relation(l.ctx, name.Schema, name.Name)
	return t
}

// relation adds the locks of a relation or an index, if there is one of that name.
func (l *lockList) relation(name ast.TableName, mode catalog.LockMode, scope lockScope) {
	t := l.find(name)
	if t != nil {
		l.table(t, mode, scope)
	}
	if t != nil || l.err != nil {
		return
	}
	var ix *catalog.IndexDescriptor
	if t, ix, l.err = catalog.FindIndex(l.ctx, l.r, name.Schema, name.Name); ix == nil || l.err != nil {
		return
	}
	if l.index(t, ix, mode, scope); scope&withOwner != 0 {
		l.table(t, mode, scope&^withIndexes)
	}
}

func (l *lockList) table(t *catalog.TableDescriptor, mode catalog.LockMode, scope lockScope) {
	if scope&withIndexes != 0 && t.Kind == catalog.KindTable {
		l.add(catalog.LockWithIndexes(nil, t, mode)...)
	} else {
		l.add(catalog.RelationLock{OID: t.OID(), Mode: mode})
	}
	if scope&withParts != 0 {
		l.eachPart(t, func(part *catalog.TableDescriptor) { l.table(part, mode, scope) })
	}
	if scope&withRead == 0 || t.Kind != catalog.KindView {
		return
	}
	for _, id := range t.DependsOn {
		read, err := l.r.RelationByID(l.ctx, id)
		if l.err = err; err != nil {
			return
		}
		if read != nil && (read.Kind == catalog.KindTable && !read.Materialized || read.Kind == catalog.KindView) {
			l.table(read, mode, scope)
		}
	}
}

// index adds the locks of an index, and of its parts with withParts.
func (l *lockList) index(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, mode catalog.LockMode, scope lockScope) {
	l.add(catalog.RelationLock{OID: ix.OID, Mode: mode})
	if scope&withParts == 0 {
		return
	}
	l.eachPart(t, func(part *catalog.TableDescriptor) {
		for i := range part.Indexes {
			if part.Indexes[i].Parent == ix.OID {
				l.index(part, &part.Indexes[i], mode, scope)
			}
		}
	})
}

func (l *lockList) eachPart(t *catalog.TableDescriptor, f func(*catalog.TableDescriptor)) {
	if !t.IsPartitioned() {
		return
	}
	for _, id := range t.Partitioning.Partitions {
		part, err := l.r.RelationByID(l.ctx, id)
		if l.err = err; err != nil {
			return
		}
		if part != nil {
			f(part)
		}
	}
}

func (l *lockList) createTable(n *ast.CreateTable) {
	l.relation(n.Name, catalog.AccessExclusiveLock, withIndexes)
	if n.Parent != nil {
		l.relation(*n.Parent, catalog.AccessExclusiveLock, 0)
	}
	for i := range n.Likes {
		l.relation(n.Likes[i].Table, catalog.AccessShareLock, 0)
	}
	for i := range n.Columns {
		l.parents(n.Columns[i].Constraints)
	}
	l.parents(n.Constraints)
}

// parents adds the locks of the tables to which constraints refer.
func (l *lockList) parents(constraints []ast.TableConstraint) {
	for i := range constraints {
		if ref := constraints[i].References; ref != nil {
			l.relation(ref.Table, catalog.ShareRowExclusiveLock, 0)
		}
	}
}

// drop adds the locks of DROP of relations and indexes: those that a partition and a foreign key belong to as well.
func (l *lockList) drop(n *ast.Drop) {
	if n.Kind == "SCHEMA" {
		return
	}
	for _, name := range n.Names {
		t := l.find(name)
		l.relation(name, catalog.AccessExclusiveLock, withParts|withIndexes|withOwner)
		if t == nil {
			continue
		}
		if t.PartitionOf != nil {
			l.add(catalog.RelationLock{OID: uint32(t.PartitionOf.Parent), Mode: catalog.AccessExclusiveLock})
		}
		for i := range t.ForeignKeys {
			l.add(catalog.RelationLock{OID: uint32(t.ForeignKeys[i].Parent), Mode: catalog.AccessExclusiveLock})
		}
	}
}

func (l *lockList) reindex(n *ast.Reindex) {
	switch n.Kind {
	case "INDEX":
		if t, ix, err := catalog.FindIndex(l.ctx, l.r, n.Name.Schema, n.Name.Name); err != nil || ix == nil {
			l.err = err
		} else {
			l.table(t, catalog.ShareLock, withParts)
			l.index(t, ix, catalog.AccessExclusiveLock, withParts)
		}
	case "TABLE":
		if t := l.find(n.Name); t != nil {
			l.table(t, catalog.AccessExclusiveLock, withIndexes|withParts)
			for i := range l.locks {
				if l.locks[i].OID == t.OID() {
					l.locks[i].Mode = catalog.ShareLock
				}
			}
		}
	}
}

// alterTable adds the locks of ALTER TABLE and its kin: the relation in the strongest mode that one of the commands takes.
func (l *lockList) alterTable(n *ast.AlterTable) {
	t := l.find(n.Name)
	mode := catalog.LockMode(0)
	for _, c := range n.Commands {
		mode = max(mode, l.command(t, c))
	}
	switch _, renames := n.Commands[0].(*ast.RenameTo); {
	case renames && n.Kind == "INDEX" && t == nil:
		mode = catalog.ShareUpdateExclusiveLock
	case n.Kind == "SEQUENCE" && mode < catalog.AccessExclusiveLock:
		mode = catalog.ShareRowExclusiveLock
	case n.Kind == "VIEW" || t != nil && t.Kind == catalog.KindView:
		mode = catalog.AccessExclusiveLock
	}
	scope := withParts
	if c, ok := n.Commands[0].(*ast.TableCommand); ok && c.Bound != nil || n.Only || t == nil {
		scope = 0
	}
	l.relation(n.Name, mode, scope)
}

// command returns the mode in which a command of ALTER TABLE locks the table, and adds the locks of what else it names.
func (l *lockList) command(t *catalog.TableDescriptor, c ast.AlterCommand) catalog.LockMode {
	switch c := c.(type) {
	case *ast.AddColumn:
		l.parents(c.Column.Constraints)
	case *ast.AddConstraint:
		if c.Constraint.Kind == ast.ForeignKey {
			l.parents([]ast.TableConstraint{c.Constraint})
			if !c.Constraint.NotValid {
				l.validated(t, l.find(c.Constraint.References.Table))
			}
			return catalog.ShareRowExclusiveLock
		}
	case *ast.SetSequence:
		return catalog.ShareRowExclusiveLock
	case *ast.SetStorage:
		return l.storage(t, c)
	case *ast.TableCommand:
		return l.tableCommand(t, c)
	}
	return catalog.AccessExclusiveLock
}

func (l *lockList) storage(t *catalog.TableDescriptor, c *ast.SetStorage) catalog.LockMode {
	switch c.Action {
	case "SET", "RESET", "SET STATISTICS", "SET WITHOUT CLUSTER":
		return catalog.ShareUpdateExclusiveLock
	case "CLUSTER ON":
		if t != nil {
			l.relation(ast.TableName{Schema: t.Schema, Name: c.Name}, catalog.ShareUpdateExclusiveLock, 0)
		}
		return catalog.ShareUpdateExclusiveLock
	}
	return catalog.AccessExclusiveLock
}

func (l *lockList) tableCommand(t *catalog.TableDescriptor, c *ast.TableCommand) catalog.LockMode {
	if _, trigger := triggerStates[c.Action]; trigger {
		return catalog.ShareRowExclusiveLock
	}
	switch c.Action {
	case "VALIDATE CONSTRAINT":
		if t == nil {
			return catalog.ShareUpdateExclusiveLock
		}
		if key := t.ForeignKeyNamed(c.Name); key != nil && l.err == nil {
			var parent *catalog.TableDescriptor
			if parent, l.err = l.r.RelationByID(l.ctx, key.Parent); parent != nil {
				l.table(parent, catalog.RowShareLock, 0)
				l.validated(t, parent)
			}
		}
		return catalog.ShareUpdateExclusiveLock
	case "ATTACH PARTITION":
		l.relation(*c.Table, catalog.AccessExclusiveLock, withParts)
		return catalog.ShareUpdateExclusiveLock
	case "DETACH PARTITION":
		l.relation(*c.Table, catalog.AccessExclusiveLock, 0)
	}
	return catalog.AccessExclusiveLock
}

// validated adds the locks of the query that looks for rows of child without a row of parent.
func (l *lockList) validated(child, parent *catalog.TableDescriptor) {
	for _, t := range []*catalog.TableDescriptor{child, parent} {
		if t != nil && t.Kind == catalog.KindTable {
			l.add(catalog.LockWithIndexes(nil, t, catalog.AccessShareLock)...)
		}
	}
}

// lockModeOf returns the mode that LOCK TABLE names; "" is the strongest.
func lockModeOf(words string) catalog.LockMode {
	switch words {
	case "ACCESS SHARE":
		return catalog.AccessShareLock
	case "ROW SHARE":
		return catalog.RowShareLock
	case "ROW EXCLUSIVE":
		return catalog.RowExclusiveLock
	case "SHARE UPDATE EXCLUSIVE":
		return catalog.ShareUpdateExclusiveLock
	case "SHARE":
		return catalog.ShareLock
	case "SHARE ROW EXCLUSIVE":
		return catalog.ShareRowExclusiveLock
	case "EXCLUSIVE":
		return catalog.ExclusiveLock
	}
	return catalog.AccessExclusiveLock
}
