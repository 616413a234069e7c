package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
)

// pollContext counts calls of Err, and is cancelled at the given call.
type pollContext struct {
	context.Context
	polls, cancelAt int // cancelAt 0: never
}

func (c *pollContext) Err() error {
	if c.polls++; c.cancelAt > 0 && c.polls >= c.cancelAt {
		return context.Canceled
	}
	return nil
}

// Goal: planning a long statement draws the memory of the plan as it grows, and each pass asks whether the statement was
// cancelled. Method: bytes and polls are counted, which must be in proportion to the expressions; a cancel at any poll ends
// the planning there; with little memory it fails.
func TestPlanningIsMetered(t *testing.T) {
	const items = 50_000
	numbers := repeatText(items, ",", func(i int) string { return fmt.Sprint(i) })
	for _, c := range []struct {
		name, text string
		passes     int // over the expressions
	}{
		{"IN over a key", "SELECT a FROM t1 WHERE a IN (" + numbers + ")", 3},
		{"NOT IN", "SELECT a FROM t1 WHERE b + 1 NOT IN (" + numbers + ")", 3},
		{"ARRAY", "SELECT a FROM t1 WHERE a = ANY (ARRAY[" + numbers + "])", 3},
		{"VALUES", "INSERT INTO t1 VALUES " + repeatText(items/5, ",", func(i int) string { return fmt.Sprintf("(%d,1,1,1,NULL)", i) }), 3},
		{"FROM VALUES", "SELECT * FROM (VALUES " + repeatText(items/2, ",", func(i int) string { return fmt.Sprintf("(%d,1)", i) }) + ") v", 3},
		{"columns", "SELECT a IN (a" + strings.Repeat(",b", items) + ") FROM t1", 3},
		{"OR", "SELECT a FROM t1 WHERE " + repeatText(items/4, " OR ", func(i int) string { return fmt.Sprintf("a = %d", i) }), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			catalog := newMemCatalog()
			if err := catalog.define(benchSchema); err != nil {
				t.Fatal(err)
			}
			lexer := sql.NewLexer()
			lexer.Reset(c.text)
			st, err := lexer.Next()
			if err != nil {
				t.Fatal(err)
			}
			build := func(ctx context.Context, m *sql.Meter) error {
				m.Begin(ctx)
				tree, err := sql.Parse(st, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = Build(ctx, tree, catalog, &builtin.Env{}, Options{Literals: st.Literals, Meter: m})
				return err
			}
			ctx, m := &pollContext{}, sql.NewMeter(nil)
			if err := build(ctx, m); err != nil {
				t.Fatal(err)
			}
			if want := int64(items/2) * nodeBytes; m.Drawn() < want || m.Drawn() > 4*want {
				t.Errorf("%d bytes are drawn, want %d to %d", m.Drawn(), want, 4*want)
			}
			all := ctx.polls
			if want := int(m.Drawn()/visitedBytes) + (c.passes-1)*items/passedNodes; all < want {
				t.Errorf("%d polls, want %d", all, want)
			}
			for at := 1; at <= all; at += 1 + all/8 {
				ctx := &pollContext{cancelAt: at}
				if err := build(ctx, m); !errors.Is(err, context.Canceled) || ctx.polls > at {
					t.Errorf("cancelled at poll %d of %d: %v after %d polls", at, all, err, ctx.polls)
				}
			}
			account := memory.NewAccount(memory.NewPool("statements", items*nodeBytes/4), 0)
			var exceeded *memory.ExceededError
			if err := build(context.Background(), sql.NewMeter(&account)); !errors.As(err, &exceeded) {
				t.Errorf("with little memory: %v", err)
			}
		})
	}
}
