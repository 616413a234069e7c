package session

import (
	"context"
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var _ executor.TriggerRunner = (*procedural)(nil)

// eventNames are the values of TG_OP.
var eventNames = map[catalog.TriggerEvents]string{
	catalog.TriggerInsert: "INSERT", catalog.TriggerUpdate: "UPDATE", catalog.TriggerDelete: "DELETE", catalog.TriggerTruncate: "TRUNCATE",
}

// RunTrigger implements executor.TriggerRunner.
func (h *procedural) RunTrigger(ctx context.Context, t *catalog.TableDescriptor, g *planner.Trigger, row types.Type, event catalog.TriggerEvents, old, new types.Datum) (types.Datum, error) {
	r, err := h.Schema(ctx)
	if err != nil {
		return types.Null, err
	}
	d := r.Routines().ByOID(types.OID(g.Function))
	if d == nil {
		return h.builtinTrigger(r, &firing{t, g, row, event, old, new})
	}
	if d.Language != "plpgsql" {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "trigger functions in language %s are not supported", d.Language)
	}
	if d.SecurityDefiner || len(d.Config) > 0 {
		return types.Null, pgerror.Unsupported("a trigger function with SECURITY DEFINER or SET", "Call such a function in the trigger function.")
	}
	h.calls++
	defer func() { h.calls-- }()
	sig := signature(r, d, nil)
	sig.Table = strconv.FormatUint(t.ID, 10)
	code, err := h.code(ctx, d, sig)
	if err != nil {
		return types.Null, err
	}
	defer h.enter()()
	tr := &plpgsql.Trigger{
		Row: row, New: new, Old: old,
		Name: g.Name, When: "AFTER", Level: "STATEMENT", Op: eventNames[event], Table: t, Args: g.Args,
	}
	switch {
	case g.Instead:
		tr.When = "INSTEAD OF"
	case g.Before:
		tr.When = "BEFORE"
	}
	if g.Row {
		tr.Level = "ROW"
	}
	return code.Execute(ctx, h, &plpgsql.Call{Trigger: tr, Atomic: true})
}
