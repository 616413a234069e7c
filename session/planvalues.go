package session

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/types"
)

// execution is a statement with the values of its parameters.
type execution struct {
	statement *sql.Statement
	declared  []types.Type
	params    types.Row
}

// forValues returns the plan of an execution: generic, or one that was made for values of the same bands (planner.Guess). inputs are those of
// generic.
func (m *plans) forValues(ctx context.Context, generic *cachedPlan, e execution, inputs types.Row) (*cachedPlan, error) {
	m.guess = expr.Context{Ctx: ctx, Env: m.env, Inputs: inputs}
	if generic.AsOf || m.tx.changed || len(e.statement.Key) == 0 || m.settings.GenericPlans {
		if generic.TestsHold(&m.guess) {
			return generic, nil
		}
		tree, err := sql.Parse(e.statement, m.meter)
		if err != nil {
			return nil, err
		}
		return m.build(ctx, tree, m.tx.resolver, e.statement.Literals, e.declared, e.params)
	}
	m.valueKey = append(append(m.valueKey[:0], m.keyOf(e.statement.Key, e.declared)...), 4)
	bands := len(m.valueKey)
	m.valueKey = generic.AppendBands(m.valueKey, &m.guess)
	if string(m.valueKey[bands:]) == generic.Bands {
		return generic, nil
	}
	if hit := m.own(m.valueKey); hit != nil {
		if ok, err := hit.holds(ctx, m.tx, m.tx.resolver); ok || err != nil {
			return hit, err
		}
	}
	return m.planForBands(ctx, string(m.valueKey), e)
}

// planForBands finds a plan for values by its key in the server's cache, or makes it.
func (m *plans) planForBands(ctx context.Context, key string, e execution) (*cachedPlan, error) {
	own := m.tx.temporary().Version() != 0
	if !own {
		if c, err := m.sharedFor(ctx, key); c != nil || err != nil {
			return c, err
		}
	}
	tree, err := sql.Parse(e.statement, m.meter)
	if err != nil {
		return nil, err
	}
	c, err := m.build(ctx, tree, m.tx.resolver, e.statement.Literals, e.declared, e.params)
	if err != nil {
		return nil, err
	}
	m.keep(key, c)
	if !own {
		m.shared.keep(key, c.Plan)
	}
	return c, nil
}

// sharedFor returns the plan of the server's cache for a key if it holds.
func (m *plans) sharedFor(ctx context.Context, key string) (*cachedPlan, error) {
	plan, ok := m.find(key)
	if !ok {
		return nil, nil
	}
	c := &cachedPlan{Plan: plan, version: plan.SchemaVersion}
	if ok, err := c.holds(ctx, m.tx, m.tx.resolver); !ok || err != nil {
		return nil, err
	}
	m.keep(key, c)
	return c, nil
}

// valuesPlan is forValues for values that are not in a row of inputs yet.
func (m *plans) valuesPlan(ctx context.Context, generic *cachedPlan, e execution) (*cachedPlan, error) {
	if len(generic.Guesses) == 0 {
		return generic, nil
	}
	inputs, err := planner.Inputs(generic.Plan, e.statement.Literals, e.params, m.env, nil)
	if err != nil {
		return nil, err
	}
	return m.forValues(ctx, generic, e, inputs)
}
