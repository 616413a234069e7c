package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// verifyGroup is the number of parents that are looked up together.
const verifyGroup = 1024

// verifyForeignKey fails unless all rows of t satisfy a foreign key. Both tables are closed.
func (r *run) verifyForeignKey(ctx context.Context, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) error {
	return r.scanReferences(ctx, t, k, nil)
}

// scanReferences is verifyForeignKey, or, with a partition that is leaving, fails if a row of t references one of the partition.
func (r *run) scanReferences(ctx context.Context, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor, l *leaving) error {
	bound, err := planner.BindForeignKey(ctx, k, t, r.r, r.Env)
	if err != nil {
		return err
	}
	v := &keyVerifier{r: r, key: bound, leaving: l, ev: expr.Context{Ctx: ctx, Env: r.Env}, seen: map[string]struct{}{}}
	if err := r.scanRows(ctx, t, "checking foreign key", func(row types.Row) error { return v.add(ctx, row) }); err != nil {
		return err
	}
	return v.lookUp(ctx)
}

// keyVerifier looks for the parents of rows, in groups.
type keyVerifier struct {
	r    *run
	key  *planner.ForeignKey
	ev   expr.Context
	buf  []byte
	keys [][]byte
	rows []types.Row // the values of the foreign key's columns, of keys
	seen map[string]struct{}
	// leaving is the partition whose rows are looked for: one that is found is an error. nil: one that is not found is.
	leaving *leaving
}

func (v *keyVerifier) add(ctx context.Context, row types.Row) (err error) {
	var null int
	if v.buf, null, err = v.key.ParentKey(v.buf[:0], &v.ev, row); err != nil {
		return err
	}
	switch {
	case v.leaving != nil && (null > 0 || !v.leaving.within[v.key.HolderOf(v.buf).ID]):
		return nil
	case null > 0 && v.key.MatchFull && null < len(v.key.Columns):
		return v.violation(row, true)
	case null > 0:
		return nil
	}
	if _, found := v.seen[string(v.buf)]; found {
		return nil
	}
	key := string(v.buf)
	v.seen[key] = struct{}{}
	v.keys = append(v.keys, []byte(key))
	v.rows = append(v.rows, row.Clone())
	if len(v.keys) < verifyGroup {
		return nil
	}
	return v.lookUp(ctx)
}

// lookUp fails unless the parents of the pending keys exist.
func (v *keyVerifier) lookUp(ctx context.Context) error {
	if len(v.keys) == 0 {
		return nil
	}
	reader := v.r.txn
	if v.r.alone { // As in scanRows.
		var err error
		if reader, err = v.r.DB.Begin(ctx); err != nil {
			return err
		}
		defer reader.Close()
	}
	values, err := reader.BatchGet(ctx, v.keys)
	if err != nil {
		return err
	}
	for i, value := range values {
		switch {
		case value == nil && v.leaving == nil:
			return v.violation(v.rows[i], false)
		case value != nil && v.leaving != nil:
			return v.stillReferenced(v.rows[i])
		}
	}
	clear(v.seen)
	v.keys, v.rows = v.keys[:0], v.rows[:0]
	return nil
}

func (v *keyVerifier) violation(row types.Row, mixed bool) error {
	k := v.key
	e := pgerror.New(pgerror.ForeignKeyViolation, "insert or update on table %q violates foreign key constraint %q", k.Child.Name, k.Name)
	e.Schema, e.Table, e.Constraint = k.Child.Schema, k.Child.Name, k.Name
	if mixed {
		return e.WithDetail("MATCH FULL does not allow mixing of null and nonnull key values.")
	}
	return e.WithDetail("Key %s is not present in table %q.", v.keyText(k.Child, k.ChildOrdinals, row), k.Parent.Name)
}

// stillReferenced is the error of a row that references one of the partition that is leaving.
func (v *keyVerifier) stillReferenced(row types.Row) error {
	k := v.key
	child, name := k.Declared.Table, k.Declared.Key.NameAt(v.leaving.partition.ID)
	e := pgerror.New(pgerror.ForeignKeyViolation, "removing partition %q violates foreign key constraint %q", v.leaving.partition.Name, name)
	e.Schema, e.Table, e.Constraint = child.Schema, child.Name, name
	return e.WithDetail("Key %s is still referenced from table %q.", v.keyText(k.Parent, k.ParentOrdinals, row), child.Name)
}

// keyText names columns of t, with the values that a row of the child has.
func (v *keyVerifier) keyText(t *catalog.TableDescriptor, ordinals []int, row types.Row) string {
	var names, texts []string
	for i, ord := range v.key.ChildOrdinals {
		names = append(names, t.Columns[ordinals[i]].Name)
		texts = append(texts, string(types.AppendText(nil, row[ord], v.key.Child.Columns[ord].Type, &v.r.Env.Format)))
	}
	return "(" + strings.Join(names, ", ") + ")=(" + strings.Join(texts, ", ") + ")"
}
