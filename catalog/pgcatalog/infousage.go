package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// usageViews are the views of information_schema that show what functions and generated columns use.
func usageViews() map[string]func(s *scan) error {
	return map[string]func(s *scan) error{
		"information_schema.column_column_usage":    columnColumnRows,
		"information_schema.routine_column_usage":   routineColumnRows,
		"information_schema.routine_routine_usage":  routineRoutineRows,
		"information_schema.routine_sequence_usage": routineSequenceRows,
		"information_schema.routine_table_usage":    routineTableRows,
	}
}

// eachRoutineUse calls f with each object that a function of a user uses, in the defaults of its arguments and in a body in SQL's standard form, once.
func (s *scan) eachRoutineUse(f func(names []col, b object) error) error {
	d := &dependencies{scan: s}
	for _, r := range s.Routines().All() {
		var used []object
		for _, p := range r.Routine().Params {
			bs, err := d.uses(nil, catalog.StoredExpr{Text: p.Default, Type: p.Type})
			if err != nil {
				return err
			}
			used = append(used, bs...)
		}
		if r.Standard {
			bs, err := d.uses(nil, catalog.StoredExpr{Routine: r})
			if err != nil {
				return err
			}
			used = append(used, bs...)
		}
		seen := map[object]bool{}
		for _, b := range used {
			if seen[b] {
				continue
			}
			seen[b] = true
			names := append(s.named("specific", r.Schema, builtin.NameWithOID(r.Name, r.OID())), s.named("routine", r.Schema, r.Name)...)
			if err := f(names, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachRelationUse calls f with each relation, or column of one, that a function uses and that a role which the user has owns.
func (s *scan) eachRelationUse(f func(names []col, t *catalog.TableDescriptor, column uint32) error) error {
	return s.eachRoutineUse(func(names []col, b object) error {
		if b.class != classPgClass {
			return nil
		}
		t, err := s.RelationByID(s.ctx, uint64(b.id))
		if err != nil || t == nil || !s.access().Owns(t.OwnerOID()) {
			return err
		}
		return f(names, t, b.sub)
	})
}

func routineColumnRows(s *scan) error {
	return s.eachRelationUse(func(names []col, t *catalog.TableDescriptor, column uint32) error {
		ord := t.Ordinal(column)
		if t.Kind == catalog.KindSequence || ord < 0 {
			return nil
		}
		return s.emit(append(append(names, s.named("table", t.Schema, t.Name)...), col{"column_name", text(t.Columns[ord].Name)})...)
	})
}

func routineTableRows(s *scan) error {
	type pair struct {
		routine string
		table   uint64
	}
	seen := map[pair]bool{}
	return s.eachRelationUse(func(names []col, t *catalog.TableDescriptor, _ uint32) error {
		p := pair{names[2].value.Text(), t.ID}
		if t.Kind == catalog.KindSequence || seen[p] {
			return nil
		}
		seen[p] = true
		return s.emit(append(names, s.named("table", t.Schema, t.Name)...)...)
	})
}

func routineSequenceRows(s *scan) error {
	return s.eachRelationUse(func(names []col, t *catalog.TableDescriptor, _ uint32) error {
		if t.Kind != catalog.KindSequence {
			return nil
		}
		return s.emit(append(names, s.named("sequence", t.Schema, t.Name)...)...)
	})
}

// routineRoutineRows shows the functions that functions call: here those that are called have the names of routines.
func routineRoutineRows(s *scan) error {
	return s.eachRoutineUse(func(names []col, b object) error {
		called := s.Routines().ByOID(types.OID(b.id))
		if b.class != classPgProc || called == nil || called.Kind == builtin.AggregateRoutine || !s.access().Owns(called.OwnerOID()) {
			return nil
		}
		return s.emit(append(names[:3], s.named("routine", called.Schema, builtin.NameWithOID(called.Name, called.OID()))...)...)
	})
}

// columnColumnRows shows the columns that generated columns are computed from.
func columnColumnRows(s *scan) error {
	d := &dependencies{scan: s}
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind != catalog.KindTable || !s.access().Owns(t.OwnerOID()) {
			return nil
		}
		for i := range t.Columns {
			c := &t.Columns[i]
			if c.Generated == "" {
				continue
			}
			bs, err := d.uses(nil, catalog.StoredExpr{Text: c.Generated, Table: t, Type: c.Type})
			if err != nil {
				return err
			}
			for _, b := range bs {
				ord := t.Ordinal(b.sub)
				if b.class != classPgClass || b.id != t.OID() || ord < 0 {
					continue
				}
				err := s.emit(append(s.named("table", t.Schema, t.Name), col{"column_name", text(t.Columns[ord].Name)}, col{"dependent_column", text(c.Name)})...)
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}
