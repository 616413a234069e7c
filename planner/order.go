package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/collation"
)

// orderKey is one key of an order in which rows arrive or are wanted.
type orderKey struct {
	id               int
	desc, nullsFirst bool
	coll             *collation.Collation
	// fixed: all rows have one value, so that the key may be left out or come anywhere.
	fixed bool
	// noNulls: nullsFirst does not matter.
	noNulls bool
	// unique: no two rows agree in this and all earlier keys, so later keys are irrelevant.
	unique bool
}

// satisfies reports whether rows in order have are also in order want.
func satisfies(have, want []orderKey) bool {
	i, decided := 0, false
next:
	for _, w := range want {
		for i < len(have) && have[i].fixed {
			decided = decided || have[i].unique
			i++
		}
		if decided {
			return true
		}
		for j := range have {
			if have[j].fixed && have[j].id == w.id {
				continue next
			}
		}
		if i == len(have) || have[i].id != w.id || have[i].desc != w.desc || !collation.SameOrder(have[i].coll, w.coll) {
			return false
		}
		if !have[i].noNulls && have[i].nullsFirst != w.nullsFirst {
			return false
		}
		decided = have[i].unique
		i++
	}
	return true
}

// repeated is an order whose rows may now repeat: after a join that finds several rows for one.
func repeated(order []orderKey) []orderKey {
	for i := range order {
		if order[i].unique {
			out := append([]orderKey(nil), order...)
			out[i].unique = false
			return out
		}
	}
	return order
}

// commonPrefix returns the number of keys of want that the order have delivers.
func commonPrefix(have, want []orderKey) int {
	n := len(want)
	for n > 0 && !satisfies(have, want[:n]) {
		n--
	}
	return n
}

func reverseOrder(keys []orderKey) []orderKey {
	out := make([]orderKey, len(keys))
	for i, k := range keys {
		k.desc, k.nullsFirst = !k.desc, !k.nullsFirst
		out[i] = k
	}
	return out
}

// orderOf turns sort keys over columns into an order.
func orderOf(keys []SortKey) []orderKey {
	out := make([]orderKey, len(keys))
	for i, k := range keys {
		out[i] = orderKey{id: k.Expr.(*expr.Column).ID, desc: k.Desc, nullsFirst: k.NullsFirst, coll: k.Expr.Type().Coll}
	}
	return out
}
