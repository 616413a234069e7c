package wire_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Goal: pgx learns a composite type and its array type from the catalog, and reads and writes their values in binary form.
func TestCompositeValues(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	execAll(t, conn, "drop table if exists composite_t", "drop type if exists wire_pair",
		"create type wire_pair as (a int, b text)", "create table composite_t (id int, p wire_pair, ps wire_pair[])")
	for _, name := range []string{"wire_pair", "_wire_pair"} {
		typ, err := conn.LoadType(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		conn.TypeMap().RegisterType(typ)
	}
	type pair struct {
		A *int32
		B *string
	}
	one, x := int32(1), "x, \"y\""
	values := []pair{{&one, &x}, {nil, &x}, {&one, nil}}
	for i, v := range values {
		if _, err := conn.Exec(ctx, "insert into composite_t values ($1, $2, $3)", i, v, values[:i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		rows, err := conn.Query(ctx, "select p, ps from composite_t order by id", mode)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; rows.Next(); i++ {
			var p pair
			var ps []pair
			if err := rows.Scan(&p, &ps); err != nil {
				t.Fatal(err)
			}
			if !samePair(p.A, values[i].A) || !samePair(p.B, values[i].B) || len(ps) != i {
				t.Errorf("%v, row %d: %+v, %d elements", mode, i, p, len(ps))
			}
		}
		if rows.Err() != nil {
			t.Error(rows.Err())
		}
	}
	wantRows(t, conn, "(1,\"x, \"\"y\"\"\")", "select p::text from composite_t where id = 0")
	execAll(t, conn, "drop table composite_t", "drop type wire_pair")
}

func samePair[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
