package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/bench/tpce/gen"
)

// indexed is an index to be compared with its table. key is a column that the index contains on any server, so that
// its sum can be computed from the index; other is a column that the index does not contain, so that its sum
// reads the table.
type indexed struct {
	index, table, column, key, other string
	cuts                             []string // literals between which the column's values lie
}

// fewRows is the number of rows from which a server is expected to use an index: it may scan a smaller table
// despite enable_seqscan.
const fewRows = 1000

// rangesPerUnit is the number of ranges into which the accounts and securities of a load unit are divided.
const rangesPerUnit = 20

func indexesOf(g *gen.Generator) []indexed {
	var accounts, symbols, trades []string
	for lu := range g.Scale().LoadUnits() {
		ids := g.Accounts(lu)
		for i := range rangesPerUnit {
			accounts = append(accounts, fmt.Sprint(ids[i*len(ids)/rangesPerUnit]))
		}
	}
	n := g.Scale().LoadUnits() * rangesPerUnit
	for i := range n {
		symbols = append(symbols, "'"+g.Symbol(i*g.Securities()/n)+"'")
		trades = append(trades, fmt.Sprint(1+i*g.MaxTradeID()/n))
	}
	slices.Sort(symbols)
	return []indexed{
		{"i_t_ca_dts", "trade", "t_ca_id", "t_id", "t_qty", accounts},
		{"i_t_symb_dts", "trade", "t_s_symb", "t_id", "t_qty", symbols},
		{"i_h_ca_symb", "holding", "h_ca_id", "h_t_id", "h_qty", accounts},
		{"i_hh_t_id", "holding_history", "hh_t_id", "hh_h_t_id", "hh_after_qty", trades},
		{"i_tr_symb", "trade_request", "tr_s_symb", "tr_t_id", "tr_qty", symbols},
	}
}

// ranges returns predicates of which exactly one holds for each value.
func ranges(column string, cuts []string) []string {
	predicates := []string{column + " < " + cuts[0]}
	for i, cut := range cuts[1:] {
		predicates = append(predicates, fmt.Sprintf("%s >= %s AND %s < %s", column, cuts[i], column, cut))
	}
	return append(predicates, column+" >= "+cuts[len(cuts)-1])
}

// judgeIndexes compares count and sum of each index's entries, range by range, with those of its table.
func judgeIndexes(ctx context.Context, s *subject, r *Result) error {
	// PostgreSQL would scan a small table without its index. Other servers accept the setting or reject it.
	if _, err := s.tx.Exec(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
		return err
	}
	for _, x := range indexesOf(s.gen) {
		if err := s.judgeIndex(ctx, x, r); err != nil {
			return fmt.Errorf("%s: %w", x.index, err)
		}
	}
	_, err := s.tx.Exec(ctx, "SET LOCAL enable_seqscan = on")
	return err
}

func (s *subject) judgeIndex(ctx context.Context, x indexed, r *Result) error {
	columns := []string{"index", "table has", "index has"}
	parts := ranges(x.column, x.cuts)
	query := fmt.Sprintf("SELECT count(*), COALESCE(SUM(%s), 0)::bigint FROM %s WHERE ", x.key, x.table)
	var plan strings.Builder
	err := s.each(ctx, "EXPLAIN "+query+parts[len(parts)/2], nil, func(_, row []string) {
		plan.WriteString(row[0] + "\n")
	})
	if err != nil {
		return err
	}
	if !strings.Contains(plan.String(), x.index) {
		var rows int64
		if err := s.tx.QueryRow(ctx, "SELECT count(*) FROM "+x.table).Scan(&rows); err != nil {
			return err
		}
		if rows < fewRows {
			if r.Note != "" {
				r.Note += "; "
			}
			r.Note += fmt.Sprintf("%s is not compared: for %d rows the server does not use it", x.index, rows)
			return nil
		}
		r.violate(columns, []string{x.index, "not compared", "the server does not use it: " + plan.String()})
		return nil
	}
	var inTable, inIndex [2]int64
	add := func(to *[2]int64, query string) error {
		var n, sum int64
		if err := s.tx.QueryRow(ctx, query).Scan(&n, &sum); err != nil {
			return err
		}
		to[0], to[1] = to[0]+n, to[1]+sum
		return nil
	}
	whole := fmt.Sprintf("SELECT n, s FROM (SELECT count(*) AS n, COALESCE(SUM(%s), 0)::bigint AS s, SUM(%s) AS o FROM %s) x WHERE o IS NOT NULL OR n = 0",
		x.key, x.other, x.table)
	if err := add(&inTable, whole); err != nil {
		return err
	}
	for _, part := range parts {
		if err := add(&inIndex, query+part); err != nil {
			return err
		}
	}
	if inTable != inIndex {
		show := func(v [2]int64) string { return fmt.Sprintf("%d rows, %s adds up to %d", v[0], x.key, v[1]) }
		r.violate(columns, []string{x.index, show(inTable), show(inIndex)})
	}
	return nil
}
