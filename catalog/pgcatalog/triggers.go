package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// What system tables and functions show of triggers.

func (s *scan) eachTrigger(f func(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		for i := range t.Triggers {
			if err := f(t, &t.Triggers[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// triggerType is pg_trigger.tgtype.
func triggerType(g *catalog.TriggerDescriptor) int64 {
	n := int64(0)
	for _, bit := range []struct {
		set   bool
		value int64
	}{
		{g.Row, 1}, {g.Before && !g.Instead, 2}, {g.Instead, 64}, {g.Events&catalog.TriggerInsert != 0, 4}, {g.Events&catalog.TriggerDelete != 0, 8},
		{g.Events&catalog.TriggerUpdate != 0, 16}, {g.Events&catalog.TriggerTruncate != 0, 32},
	} {
		if bit.set {
			n |= bit.value
		}
	}
	return n
}

func triggerRows(s *scan) error {
	if err := s.each(s.keyTriggerRows); err != nil {
		return err
	}
	return s.eachTrigger(func(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor) error {
		columns := make([]int64, len(g.Columns))
		for i, id := range g.Columns {
			columns[i] = int64(id)
		}
		var args []byte
		for _, a := range g.Args {
			args = append(append(args, a...), 0)
		}
		return s.emit(col{"oid", oid(g.OID)}, col{"tgrelid", oid(t.OID())}, col{"tgparentid", oid(g.Inherited)}, col{"tgname", text(g.Name)},
			col{"tgfoid", oid(uint32(g.Function))}, col{"tgtype", types.Int(triggerType(g))}, col{"tgenabled", letter(byte(g.State))},
			col{"tgisinternal", boolean(false)}, col{"tgconstrrelid", oid(uint32(0))}, col{"tgconstrindid", oid(uint32(0))}, col{"tgconstraint", oid(g.ConstraintOID)},
			col{"tgdeferrable", boolean(g.Deferrable)}, col{"tginitdeferred", boolean(g.Deferred)}, col{"tgnargs", types.Int(int64(len(g.Args)))},
			col{"tgattr", vector(types.TInt2vector, columns)}, col{"tgargs", types.Bytes(args)}, col{"tgqual", optional(s.printer().whenText(t, g, false))},
			col{"tgoldtable", optional(g.OldTable)}, col{"tgnewtable", optional(g.NewTable)})
	})
}

// triggerEventWords are the words of events, in the order of pg_get_triggerdef.
var triggerEventWords = []struct {
	event catalog.TriggerEvents
	word  string
}{
	{catalog.TriggerInsert, "INSERT"}, {catalog.TriggerDelete, "DELETE"}, {catalog.TriggerUpdate, "UPDATE"}, {catalog.TriggerTruncate, "TRUNCATE"},
}

// TriggerDefinition implements builtin.Catalog.
func (o *Objects) TriggerDefinition(id types.OID, pretty bool) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	all, err := r.Relations(background())
	if err != nil {
		return "", false
	}
	for _, t := range all {
		for i := range t.Triggers {
			if g := &t.Triggers[i]; g.OID == uint32(id) {
				return o.printer(r).triggerDefinition(t, g, pretty), true
			}
		}
	}
	return "", false
}

// triggerConstraintRows are those of pg_constraint for the constraint triggers of a table.
func (s *scan) triggerConstraintRows(t *catalog.TableDescriptor) error {
	for i := range t.Triggers {
		g := &t.Triggers[i]
		if g.ConstraintOID == 0 {
			continue
		}
		err := s.emit(
			col{"oid", oid(g.ConstraintOID)}, col{"conname", text(g.Name)}, col{"connamespace", oid(schemaOID(s.Resolver, t.Schema))},
			col{"contype", letter('t')}, col{"condeferrable", boolean(g.Deferrable)}, col{"condeferred", boolean(g.Deferred)},
			col{"convalidated", boolean(true)}, col{"conrelid", oid(t.OID())}, col{"confupdtype", text(" ")}, col{"confdeltype", text(" ")},
			col{"confmatchtype", text(" ")}, col{"conislocal", boolean(true)}, col{"connoinherit", boolean(true)},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// triggerInfoRows are those of information_schema.triggers: one for each event.
func triggerInfoRows(s *scan) error {
	type group struct {
		event  catalog.TriggerEvents
		row    bool
		timing string
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if len(t.Triggers) == 0 || !s.changes(t) {
			return nil
		}
		order := map[group]int64{}
		for i := range t.Triggers {
			g := &t.Triggers[i]
			for _, w := range triggerEventWords {
				if g.Events&w.event == 0 || w.event == catalog.TriggerTruncate {
					continue
				}
				at := group{w.event, g.Row, triggerTiming(g)}
				order[at]++
				if err := s.triggerInfoRow(t, g, w.word, order[at]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *scan) triggerInfoRow(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor, event string, order int64) error {
	condition := types.Null
	if g.When != "" && s.access().Owns(t.OwnerOID()) {
		condition = text(s.printer().whenText(t, g, false))
	}
	return s.emit(
		col{"trigger_catalog", text(s.database())}, col{"trigger_schema", text(t.Schema)}, col{"trigger_name", text(g.Name)},
		col{"event_manipulation", text(event)}, col{"event_object_catalog", text(s.database())}, col{"event_object_schema", text(t.Schema)},
		col{"event_object_table", text(t.Name)}, col{"action_order", types.Int(order)}, col{"action_condition", condition},
		col{"action_statement", text(triggerAction(s.Resolver, g))}, col{"action_orientation", text(map[bool]string{true: "ROW", false: "STATEMENT"}[g.Row])},
		col{"action_timing", text(triggerTiming(g))},
		col{"action_reference_old_table", optional(g.OldTable)}, col{"action_reference_new_table", optional(g.NewTable)},
	)
}

// triggerColumnRows are those of information_schema.triggered_update_columns.
func triggerColumnRows(s *scan) error {
	return s.eachTrigger(func(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor) error {
		for _, id := range g.Columns {
			if !s.changes(t) {
				return nil
			}
			err := s.emit(
				col{"trigger_catalog", text(s.database())}, col{"trigger_schema", text(t.Schema)}, col{"trigger_name", text(g.Name)},
				col{"event_object_catalog", text(s.database())}, col{"event_object_schema", text(t.Schema)}, col{"event_object_table", text(t.Name)},
				col{"event_object_column", text(columnName(t, id))},
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// triggerDefinition is the statement that makes a trigger. pretty leaves out what the search path makes superfluous.
func (p *printer) triggerDefinition(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor, pretty bool) string {
	r := p.r
	var b strings.Builder
	b.WriteString("CREATE ")
	if g.Constraint {
		b.WriteString("CONSTRAINT ")
	}
	b.WriteString("TRIGGER " + keyword.QuoteIdent(g.Name))
	b.WriteString(" " + triggerTiming(g) + " ")
	first := true
	for _, w := range triggerEventWords {
		if g.Events&w.event == 0 {
			continue
		}
		if !first {
			b.WriteString(" OR ")
		}
		first = false
		b.WriteString(w.word)
		if w.event == catalog.TriggerUpdate {
			for i, column := range g.Columns {
				b.WriteString([]string{" OF ", ", "}[min(i, 1)] + keyword.QuoteIdent(columnName(t, column)))
			}
		}
	}
	b.WriteString(" ON ")
	if !pretty || !visibleRelation(r, t) {
		b.WriteString(keyword.QuoteIdent(t.Schema) + ".")
	}
	b.WriteString(keyword.QuoteIdent(t.Name))
	if g.Constraint {
		b.WriteString(map[bool]string{true: " DEFERRABLE", false: " NOT DEFERRABLE"}[g.Deferrable])
		b.WriteString(map[bool]string{true: " INITIALLY DEFERRED", false: " INITIALLY IMMEDIATE"}[g.Deferred])
	}
	if g.OldTable != "" || g.NewTable != "" {
		b.WriteString(" REFERENCING")
	}
	if g.OldTable != "" {
		b.WriteString(" OLD TABLE AS " + keyword.QuoteIdent(g.OldTable))
	}
	if g.NewTable != "" {
		b.WriteString(" NEW TABLE AS " + keyword.QuoteIdent(g.NewTable))
	}
	b.WriteString(map[bool]string{true: " FOR EACH ROW", false: " FOR EACH STATEMENT"}[g.Row])
	if g.When != "" {
		b.WriteString(" WHEN (" + p.whenText(t, g, pretty) + ")")
	}
	b.WriteString(" " + triggerAction(r, g))
	return b.String()
}

// triggerTiming is when a trigger is executed.
func triggerTiming(g *catalog.TriggerDescriptor) string {
	switch {
	case g.Instead:
		return "INSTEAD OF"
	case g.Before:
		return "BEFORE"
	}
	return "AFTER"
}

// triggerAction is what a trigger does, as the statement that makes it says.
func triggerAction(r catalog.Resolver, g *catalog.TriggerDescriptor) string {
	var b strings.Builder
	b.WriteString("EXECUTE FUNCTION " + functionName(r, types.OID(g.Function)) + "(")
	for i, a := range g.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", "''") + "'")
	}
	b.WriteString(")")
	return b.String()
}

// functionName is the name of a function, qualified where the search path does not find it.
func functionName(r catalog.Resolver, id types.OID) string {
	d := r.Routines().ByOID(id)
	if d == nil {
		if p := builtin.ProcByOID(id); p != nil {
			return p.Name
		}
		return "-"
	}
	for _, schema := range catalog.Path(r) {
		for _, other := range r.Routines().Named(d.Name) {
			if other.Schema == schema && len(other.InputTypes()) == 0 {
				if other == d {
					return keyword.QuoteIdent(d.Name)
				}
				return keyword.QuoteIdent(d.Schema) + "." + keyword.QuoteIdent(d.Name)
			}
		}
	}
	return keyword.QuoteIdent(d.Schema) + "." + keyword.QuoteIdent(d.Name)
}

func visibleRelation(r catalog.Resolver, t *catalog.TableDescriptor) bool {
	found, err := r.Relation(background(), "", t.Name)
	return err == nil && found != nil && found.ID == t.ID
}

// triggerComment is the comment of a trigger.
func (o *Objects) triggerComment(id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	all, err := r.Relations(background())
	if err != nil {
		return "", false
	}
	for _, t := range all {
		for i := range t.Triggers {
			if t.Triggers[i].OID == uint32(id) {
				return t.Triggers[i].Comment, t.Triggers[i].Comment != ""
			}
		}
	}
	return "", false
}
