package fuzzsql

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// comparison says what two outcomes must agree in.
type comparison struct {
	ordered  bool // the order of rows is determined
	position bool // positions of errors
	raw      bool // the bytes of binary results
	tag      bool
}

// compare returns how two outcomes differ, "" if they agree. The first word is the kind of difference.
func compare(got, want *outcome, c comparison) string {
	switch {
	case got.lost != "" || want.lost != "":
		if got.lost == want.lost {
			return ""
		}
		return fmt.Sprintf("lost: %q, want %q", got.lost, want.lost)
	case got.err != nil && want.err != nil:
		return compareErrors(got, want, c)
	case got.err != nil:
		return fmt.Sprintf("error %s %q, want %d rows%s", got.err.Code, got.err.Message, len(want.rows), sample(want.rows))
	case want.err != nil:
		return fmt.Sprintf("success with %d rows%s, want error %s %q", len(got.rows), sample(got.rows), want.err.Code, want.err.Message)
	}
	if d := compareColumns(got, want); d != "" {
		return d
	}
	if c.tag && got.tag != want.tag {
		return fmt.Sprintf("tag %q, want %q", got.tag, want.tag)
	}
	if d := compareRows(got, want, c.ordered); d != "" {
		return d
	}
	if c.raw && got.raw != nil && want.raw != nil {
		if d := compareRows(got.bytes(), want.bytes(), false); d != "" {
			return "binary " + d
		}
	}
	return ""
}

// bytes is an outcome of the bytes of binary results; floats, which may differ in the last digit, stay
// texts.
func (o *outcome) bytes() *outcome {
	out := &outcome{columns: o.columns}
	for i, row := range o.raw {
		row = slices.Clone(row)
		for j := range row {
			if o.columns[j].oid >= types.FirstUserOID {
				row[j] = o.rows[i][j] // Arrays have the OIDs of their elements.
			} else if t := byOID[o.columns[j].oid]; t != nil && (t.inexact || t.geometric || t.elem != nil && t.elem.inexact) {
				row[j] = o.rows[i][j]
			} else if t != nil && t.elem != nil && len(row[j]) >= 8 {
				// The second word says that there may be NULLs: PostgreSQL leaves it set when they are cut off.
				row[j] = row[j][:4] + row[j][8:]
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// schemaNames are those of the tests before the names of types: percodb's messages have them, PostgreSQL's only where the search path needs it.
var schemaNames = regexp.MustCompile(`\bfuzzsql_\d+_[a-z]+\.`)

func compareErrors(got, want *outcome, c comparison) string {
	g, w := got.err, want.err
	switch {
	case g.Code != w.Code:
		return fmt.Sprintf("code %s %q, want %s %q", g.Code, g.Message, w.Code, w.Message)
	case schemaNames.ReplaceAllString(g.Message, "") != schemaNames.ReplaceAllString(w.Message, ""):
		return fmt.Sprintf("message %q, want %q", g.Message, w.Message)
	case c.position && g.Position != w.Position:
		return fmt.Sprintf("position %d, want %d, of %q", g.Position, w.Position, w.Message)
	}
	return ""
}

func compareColumns(got, want *outcome) string {
	if len(got.columns) != len(want.columns) {
		return fmt.Sprintf("columns: %d, want %d", len(got.columns), len(want.columns))
	}
	for i, g := range got.columns {
		w := want.columns[i]
		switch {
		case g.oid != w.oid && (g.oid < types.FirstUserOID || w.oid < types.FirstUserOID):
			return fmt.Sprintf("type of column %d is %d, want %d", i+1, g.oid, w.oid)
		case g.name != w.name:
			return fmt.Sprintf("name of column %d is %q, want %q", i+1, g.name, w.name)
		case g.mod != w.mod:
			return fmt.Sprintf("modifier of column %d is %d, want %d", i+1, g.mod, w.mod)
		}
	}
	return ""
}

func compareRows(got, want *outcome, ordered bool) string {
	if len(got.rows) != len(want.rows) {
		return fmt.Sprintf("rows: %d%s, want %d%s", len(got.rows), sample(got.rows), len(want.rows), sample(want.rows))
	}
	g, w := comparable(got.rows, want.rows), comparable(want.rows, got.rows)
	if ordered && compareRows(got, want, false) == "" {
		for i := range g {
			if d := compareRows(&outcome{columns: got.columns, rows: g[i : i+1]}, &outcome{columns: want.columns, rows: w[i : i+1]}, false); d != "" {
				return fmt.Sprintf("order of rows: row %d is %s, want %s", i+1, sample(g[i:i+1]), sample(w[i:i+1]))
			}
		}
		return ""
	}
	slices.SortFunc(g, slices.Compare)
	slices.SortFunc(w, slices.Compare)
	for i := range g {
		for j := range g[i] {
			if !alike(g[i][j], w[i][j], want.columns[j].oid) {
				return fmt.Sprintf("rows: value %s, want %s (row %d, column %d)", show(g[i][j]), show(w[i][j]), i+1, j+1)
			}
		}
	}
	return ""
}

// undecodedMark stands for the values of a column that cannot be compared: either side has binary values of unknown form.
const undecodedMark = "undecoded"

// comparable are rows without the values of columns that cannot be compared with another's, so that their order does not depend on them.
func comparable(rows, others [][]string) [][]string {
	skip := map[int]bool{}
	for _, list := range [][][]string{rows, others} {
		for _, row := range list {
			for i, v := range row {
				if strings.HasPrefix(v, undecoded) {
					skip[i] = true
				}
			}
		}
	}
	rows = slices.Clone(rows)
	for i, row := range rows {
		if len(skip) == 0 {
			break
		}
		rows[i] = slices.Clone(row)
		for at := range skip {
			if rows[i][at] != null {
				rows[i][at] = undecodedMark
			}
		}
	}
	return rows
}

// alike compares values, floats within a few units of the last digit: C's and Go's libraries differ
// there for transcendental functions.
func alike(a, b string, oid types.OID) bool {
	if a == b {
		return true
	}
	within := 0.0
	if t := byOID[oid]; t != nil && t.geometric {
		return alikeGeometry(a, b)
	}
	switch oid {
	case types.OIDFloat8:
		within = 8e-15
	case types.OIDFloat4:
		within = 4e-7
	default:
		return false
	}
	return alikeFloats(a, b, within)
}

// floats are the numbers in the text of a geometric value.
var floats = regexp.MustCompile(`-?(Infinity|NaN|[0-9.]+(e[+-]?[0-9]+)?)`)

// alikeGeometry compares the texts of geometric values: their numbers as floats.
func alikeGeometry(a, b string) bool {
	x, y := floats.FindAllString(a, -1), floats.FindAllString(b, -1)
	if len(x) != len(y) || floats.ReplaceAllString(a, "") != floats.ReplaceAllString(b, "") {
		return false
	}
	for i := range x {
		if x[i] != y[i] && !alikeFloats(x[i], y[i], 8e-15) {
			return false
		}
	}
	return true
}

func alikeFloats(a, b string, within float64) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Signbit(x) == math.Signbit(y) && math.Abs(x-y) <= within*max(math.Abs(x), math.Abs(y))
}

func show(v string) string {
	if v == null {
		return "NULL"
	}
	if len(v) > 120 {
		return fmt.Sprintf("%q… (%d bytes)", v[:100], len(v))
	}
	return strconv.Quote(v)
}

// sample shows the first rows.
func sample(rows [][]string) string {
	if len(rows) == 0 || len(rows) > 4 {
		return ""
	}
	var out []string
	for _, r := range rows {
		var values []string
		for _, v := range r {
			values = append(values, show(v))
		}
		out = append(out, "("+strings.Join(values, ", ")+")")
	}
	return " " + strings.Join(out, " ")
}
