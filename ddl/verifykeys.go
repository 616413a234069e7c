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
	bound, err := planner.BindForeignKey(ctx, k, t, r.r, r.Env)
	if err != nil {
		return err
	}
	v := &keyVerifier{r: r, key: bound, ev: expr.Context{Ctx: ctx, Env: r.Env}, seen: map[string]struct{}{}}
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
}

func (v *keyVerifier) add(ctx context.Context, row types.Row) (err error) {
	var null int
	if v.buf, null, err = v.key.ParentKey(v.buf[:0], &v.ev, row); err != nil {
		return err
	}
	switch {
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
		if value == nil {
			return v.violation(v.rows[i], false)
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
	var names, texts []string
	for _, ord := range k.ChildOrdinals {
		names = append(names, k.Child.Columns[ord].Name)
		texts = append(texts, string(types.AppendText(nil, row[ord], k.Child.Columns[ord].Type, &v.r.Env.Format)))
	}
	return e.WithDetail("Key (%s)=(%s) is not present in table %q.", strings.Join(names, ", "), strings.Join(texts, ", "), k.Parent.Name)
}
