package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// likeSource is what LIKE in CREATE TABLE copies.
type likeSource struct {
	t         *catalog.TableDescriptor
	including map[string]bool // by option: "DEFAULTS"
}

// has reports whether the options include what option names.
func (s *likeSource) has(option string) bool { return s.including[option] }

// likeOptions are those that ALL stands for.
var likeOptions = []string{"COMMENTS", "COMPRESSION", "CONSTRAINTS", "DEFAULTS", "GENERATED", "IDENTITY", "INDEXES", "STATISTICS", "STORAGE"}

// addElements adds the columns of CREATE TABLE, those of LIKE included, in the order in which they are written.
func (b *builder) addElements(ctx context.Context, n *ast.CreateTable) (likes []likeSource, err error) {
	if n.OfType != nil {
		return nil, b.addTypedColumns(ctx, n)
	}
	if len(n.Likes) == 0 {
		for i := range n.Columns {
			if err := b.addColumn(ctx, &n.Columns[i]); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	column, like := 0, 0
	for _, kind := range n.Order {
		switch kind {
		case 'c':
			err = b.addColumn(ctx, &n.Columns[column])
			column++
		case 'l':
			var s likeSource
			if s, err = b.addLike(ctx, &n.Likes[like]); err == nil {
				likes = append(likes, s)
			}
			like++
		}
		if err != nil {
			return nil, err
		}
	}
	return likes, nil
}

// addLike adds the columns of a table, view or composite type.
func (b *builder) addLike(ctx context.Context, n *ast.LikeTable) (likeSource, error) {
	s := likeSource{including: map[string]bool{}}
	for _, o := range n.Options {
		word, option, _ := strings.Cut(o, " ")
		names := []string{option}
		if option == "ALL" {
			names = likeOptions
		}
		for _, name := range names {
			s.including[name] = word == "INCLUDING"
		}
	}
	t, err := b.find(ctx, n.Table)
	if err != nil {
		return s, err
	}
	if t == nil {
		return s, b.addAttributes(n)
	}
	switch t.Kind {
	case catalog.KindTable, catalog.KindView, catalog.KindVirtual:
	default:
		return s, pgerror.New(pgerror.WrongObjectType, "relation %q is invalid in LIKE clause", t.Name).
			WithDetail("This operation is not supported for %ss.", kindWord(t)).At(n.Table.Position())
	}
	if b.access.Relation(t, acl.Select, false) == 0 {
		return s, planner.RelationDenied(t)
	}
	s.t = t
	for i := range t.Columns {
		if from := &t.Columns[i]; !from.Hidden {
			if err := b.copyColumn(ctx, from, &s); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// addAttributes adds the fields of a composite type.
func (b *builder) addAttributes(n *ast.LikeTable) error {
	t := catalog.FindType(b.r, n.Table.Schema, n.Table.Name)
	if !t.IsComposite() {
		return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(n.Table)).At(n.Table.Position())
	}
	for _, f := range t.Def.Fields {
		if err := b.appendColumn(catalog.ColumnDescriptor{Name: f.Name, Type: f.Type}, 0); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) copyColumn(ctx context.Context, from *catalog.ColumnDescriptor, s *likeSource) error {
	col := catalog.ColumnDescriptor{Name: from.Name, Type: from.Type, NotNull: from.NotNull}
	if s.has("COMMENTS") {
		col.Comment = from.Comment
	}
	if s.has("GENERATED") {
		col.Generated = from.Generated // Over columns that have the same names here.
	}
	if s.has("DEFAULTS") && from.Identity == "" {
		col.Default = from.Default
	}
	if from.Sequence != 0 && col.Default != "" { // a serial column's: it names the sequence, but does not own it
		seq, err := b.r.RelationByID(ctx, from.Sequence)
		if err != nil {
			return err
		}
		if seq != nil {
			name := &ast.Literal{Kind: ast.LiteralString, Value: ast.TableName{Schema: seq.Schema, Name: seq.Name}.String(), Slot: -1}
			call := &ast.Call{Name: []string{"nextval"}, Args: []ast.Expr{&ast.Cast{X: name, Type: ast.TypeName{Name: []string{"regclass"}}}}}
			if col.Default, err = b.defaultText(ctx, col.Name, call, col.Type); err != nil {
				return err
			}
		}
	}
	copiesIdentity := from.Identity != "" && s.has("IDENTITY")
	if copiesIdentity {
		col.Identity = from.Identity
	}
	if err := b.appendColumn(col, 0); err != nil || !copiesIdentity {
		return err
	}
	seq, err := b.r.RelationByID(ctx, from.Sequence)
	if err != nil {
		return err
	}
	if err := b.ownSequence(ctx, &b.t.Columns[len(b.t.Columns)-1], nil, 0); err != nil || seq == nil {
		return err
	}
	q := b.sequences[len(b.sequences)-1].Sequence
	q.Start, q.Increment, q.Min, q.Max, q.Cycle, q.Type = seq.Sequence.Start, seq.Sequence.Increment, seq.Sequence.Min, seq.Sequence.Max, seq.Sequence.Cycle, seq.Sequence.Type
	q.First = q.Start
	return nil
}

// addLikeConstraints adds the constraints and indexes that LIKE copies. They come behind those that are written, as in PostgreSQL.
func (b *builder) addLikeConstraints(ctx context.Context, s *likeSource) error {
	if s.t == nil {
		return nil
	}
	if s.has("CONSTRAINTS") {
		for _, check := range s.t.Checks {
			if err := b.copyCheck(ctx, check); err != nil {
				return err
			}
		}
	}
	if !s.has("INDEXES") {
		return nil
	}
	if s.t.HasPrimaryKey() {
		if b.t.PrimaryKey() != nil {
			return multiplePrimaryKeys(b.t.Name)
		}
		ix, err := b.copyIndex(ctx, s, &s.t.Primary, b.t.Primary.ID)
		if err != nil {
			return err
		}
		b.t.Primary = ix
	}
	for i := range s.t.Indexes {
		if s.t.Indexes[i].DeclaredPrimary && b.t.PrimaryKey() != nil {
			return multiplePrimaryKeys(b.t.Name)
		}
		ix, err := b.copyIndex(ctx, s, &s.t.Indexes[i], b.t.NextIndexID)
		if err != nil {
			return err
		}
		b.t.NextIndexID++
		b.t.Indexes = append(b.t.Indexes, ix)
	}
	return nil
}

func (b *builder) copyCheck(ctx context.Context, check catalog.CheckDescriptor) error {
	if constraintNamed(b.t, check.Name) {
		return pgerror.New(pgerror.DuplicateObject, "check constraint %q already exists", check.Name)
	}
	if _, err := b.bindText(ctx, b.t, check.Expr, types.TBool, inCheck); err != nil { // It may name the row of the other table.
		return err
	}
	oid, err := b.ch.NewID(ctx)
	if err != nil {
		return err
	}
	check.OID = uint32(oid)
	b.t.Checks = append(b.t.Checks, check)
	return nil
}

// key names a column of the other table, which may be a computed one, as a key of an index.
func (s *likeSource) key(columnID uint32, class []string) (ast.IndexColumn, error) {
	c := ast.IndexColumn{Name: s.t.ColumnByID(columnID).Name, OpClass: class}
	if x := s.t.ColumnByID(columnID).Expr; x != nil {
		e, err := sql.ParseExpr(x.SQL)
		if err != nil {
			return c, err
		}
		c.Name, c.Expr = "", e
	}
	return c, nil
}

// copyExclusion is copyIndex for an EXCLUDE constraint.
func (b *builder) copyExclusion(ctx context.Context, s *likeSource, from *catalog.IndexDescriptor) (catalog.IndexDescriptor, error) {
	n := &ast.TableConstraint{Kind: ast.Exclude, Method: from.Method, Deferrable: from.Deferrable, Deferred: from.Deferred}
	for _, e := range from.Exclude {
		var class []string
		if e.Class != "" {
			class = []string{e.Class}
		}
		c, err := s.key(e.ColumnID, class)
		if err != nil {
			return catalog.IndexDescriptor{}, err
		}
		n.Exclude = append(n.Exclude, ast.ExcludeElement{IndexColumn: c, Operator: e.Operator})
	}
	if from.Where != nil {
		var err error
		if n.Where, err = sql.ParseExpr(from.Where.SQL); err != nil {
			return catalog.IndexDescriptor{}, err
		}
	}
	for _, id := range from.Include {
		n.Include = append(n.Include, ast.IndexColumn{Name: s.t.ColumnByID(id).Name})
	}
	ix, err := b.newExclusion(ctx, b.t, n, b.taken)
	if err != nil {
		return ix, err
	}
	b.pending[ix.Name] = true
	ix.Options = from.Options
	for i := range ix.Exclude {
		ix.Exclude[i].Coll = from.Exclude[i].Coll
	}
	if s.has("COMMENTS") {
		ix.Comment = from.Comment
	}
	return ix, nil
}

// copyIndex makes an index like that of the other table, with a name of its own.
func (b *builder) copyIndex(ctx context.Context, s *likeSource, from *catalog.IndexDescriptor, id uint32) (catalog.IndexDescriptor, error) {
	if from.Exclude != nil {
		return b.copyExclusion(ctx, s, from)
	}
	n := &ast.CreateIndex{Unique: from.Unique, Method: from.Method}
	var names []string
	addKey := func(columnID uint32, class []string) error {
		c, err := s.key(columnID, class)
		if err != nil {
			return err
		}
		names = appendIndexName(names, &c)
		n.Columns = append(n.Columns, c)
		return nil
	}
	for _, c := range from.Inverted {
		if err := addKey(c.ColumnID, []string{c.Class}); err != nil {
			return catalog.IndexDescriptor{}, err
		}
	}
	for _, key := range from.Columns {
		if from.Inverted != nil {
			break // The column of its terms.
		}
		var class []string
		if key.OpClass != "" {
			class = []string{key.OpClass}
		}
		if d := b.run.r.Operations().Class(types.OID(key.OpClassID)); d != nil {
			class = []string{d.Schema, d.Name}
		}
		if err := addKey(key.ColumnID, class); err != nil {
			return catalog.IndexDescriptor{}, err
		}
	}
	for _, id := range from.Include {
		c := ast.IndexColumn{Name: s.t.ColumnAt(s.t.Ordinal(id)).Name}
		names = appendIndexName(names, &c)
		n.Include = append(n.Include, c)
	}
	if from.Where != nil {
		var err error
		if n.Where, err = sql.ParseExpr(from.Where.SQL); err != nil {
			return catalog.IndexDescriptor{}, err
		}
	}
	switch {
	case id == b.t.Primary.ID, from.DeclaredPrimary:
		n.Name = chooseName(b.t.Name, "", "pkey", b.taken)
	case from.Constraint:
		n.Name = chooseName(b.t.Name, joinColumns(names), "key", b.taken)
	default:
		n.Name = chooseName(b.t.Name, joinColumns(names), "idx", b.taken)
	}
	b.pending[n.Name] = true
	ix, err := b.newIndex(ctx, b.t, n)
	if err != nil {
		return ix, err
	}
	ix.ID, ix.Constraint, ix.Options = id, from.Constraint, from.Options
	ix.NullsNotDistinct, ix.LateKey = from.NullsNotDistinct, from.LateKey
	if s.has("COMMENTS") {
		ix.Comment = from.Comment
	}
	for i := range ix.Columns {
		key := from.Columns[i]
		key.ColumnID = ix.Columns[i].ColumnID
		ix.Columns[i] = key
	}
	return ix, nil
}
