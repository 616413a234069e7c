// Package pgdata contains rows of PostgreSQL 15's system catalogs: the functions, aggregates, operators, casts, btree operator classes and
// types on percodb's types, with PostgreSQL's OIDs. It says what PostgreSQL has, not what percodb can execute: package builtin decides that.
//
//	generate ─▶ pg_proc.tsv, pg_operator.tsv, … ─▶ embedded ─▶ Table, read at first use
//
// Invariants:
//
//	I1 The rows of a table are sorted by OID.
//	I2 A table and its rows refer to the embedded text: reading one copies no strings.
//	I3 percodb's own functions (own.tsv) have the OIDs from FirstOwnOID on, those of extensions (extension.tsv) from FirstExtensionOID on,
//	   each its own for ever.
package pgdata

import (
	_ "embed" // for the tables
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:generate go run ./generate
//go:generate go run ./generate own

// The OIDs of percodb's own functions: a range in which PostgreSQL has none.
const (
	FirstOwnOID = 15000
	LastOwnOID  = 16383
)

// FirstExtensionOID is that of the first function of an extension, behind those of extensions' types (types.FirstExtensionOID).
const FirstExtensionOID = 2_000_010_000

// Null is the value of a field that is NULL.
const Null = `\N`

var (
	//go:embed pg_proc.tsv
	procText string
	//go:embed pg_operator.tsv
	operatorText string
	//go:embed pg_cast.tsv
	castText string
	//go:embed pg_aggregate.tsv
	aggregateText string
	//go:embed pg_opclass.tsv
	opclassText string
	//go:embed pg_opfamily.tsv
	opfamilyText string
	//go:embed pg_amop.tsv
	amopText string
	//go:embed pg_amproc.tsv
	amprocText string
	//go:embed pg_range.tsv
	rangeText string
	//go:embed pg_type.tsv
	typeText string
	//go:embed own.tsv
	ownText string
	//go:embed extension.tsv
	extensionText string
)

// The tables. The keys of Find are the name and the argument types of a function, the name and the argument types of an operator, and the types
// of a cast.
var (
	Procs      = lazily(&procText, 3)
	Operators  = lazily(&operatorText, 4)
	Casts      = lazily(&castText, 3)
	Aggregates = lazily(&aggregateText, 1)
	OpClasses  = lazily(&opclassText, 1)
	OpFamilies = lazily(&opfamilyText, 1)
	AmOps      = lazily(&amopText, 1)
	AmProcs    = lazily(&amprocText, 1)
	Ranges     = lazily(&rangeText, 1)
	Types      = lazily(&typeText, 1)
	// Own has the OIDs of percodb's own functions by their signatures.
	Own = lazily(&ownText, 2)
	// Extension has the OIDs of the functions and operators of extensions by the extension and their signatures: "hstore:akeys(hstore)".
	Extension = lazily(&extensionText, 2)
)

func lazily(text *string, keys int) func() *Table {
	return sync.OnceValue(func() *Table { return decode(*text, keys) })
}

// Table is one catalog. It must not be changed.
type Table struct {
	Columns []string
	// Defaults are the values of the fields that a row leaves out; those that begin with @ name the column with the value.
	Defaults []string
	OIDs     []uint32
	rows     []string
	keys     int // the number of columns of a key, with the OID
	byKey    func() map[string]int32
}

// decode reads a table: a line of columns with their defaults, then a line for each row.
func decode(text string, keys int) *Table {
	header, rest, _ := strings.Cut(text, "\n")
	t := &Table{keys: keys}
	for field := range strings.SplitSeq(header, "\t") {
		name, value, _ := strings.Cut(field, "=")
		t.Columns = append(t.Columns, name)
		t.Defaults = append(t.Defaults, value)
	}
	lines := strings.Count(rest, "\n")
	t.OIDs, t.rows = make([]uint32, 0, lines), make([]string, 0, lines)
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		number, _, _ := strings.Cut(line, "\t")
		oid, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			panic("pgdata: " + err.Error())
		}
		t.OIDs, t.rows = append(t.OIDs, uint32(oid)), append(t.rows, line)
	}
	t.byKey = sync.OnceValue(t.indexKeys)
	return t
}

func (t *Table) indexKeys() map[string]int32 {
	m := make(map[string]int32, len(t.rows))
	for i, line := range t.rows {
		start := strings.IndexByte(line, '\t') + 1
		end := start
		for n := 1; n < t.keys && end <= len(line); n++ {
			if n > 1 {
				end++ // the tab
			}
			if next := strings.IndexByte(line[min(end, len(line)):], '\t'); next >= 0 {
				end += next
			} else {
				end = len(line)
			}
		}
		m[line[start:end]] = int32(i)
	}
	return m
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// ByOID returns the place of the row with an OID; false if there is none.
func (t *Table) ByOID(oid uint32) (int, bool) { return slices.BinarySearch(t.OIDs, oid) }

// Find returns the place of the row whose columns after the OID have the given values; false if there is none.
func (t *Table) Find(key ...string) (int, bool) {
	i, ok := t.byKey()[strings.Join(key, "\t")]
	return int(i), ok
}

// fields returns the fields of a row as they are written, "" for those with the default; it reuses dst.
func (t *Table) fields(i int, dst []string) []string {
	dst = dst[:0]
	for field := range strings.SplitSeq(t.rows[i], "\t") {
		dst = append(dst, field)
	}
	for len(dst) < len(t.Columns) {
		dst = append(dst, "")
	}
	return dst
}

// Column returns the number of a column, which exists.
func (t *Table) Column(name string) int {
	i := slices.Index(t.Columns, name)
	if i < 0 {
		panic("pgdata: no column " + name)
	}
	return i
}

// Value returns the value of one column of a row, Null for NULL.
func (t *Table) Value(i int, column string) string {
	var buf [40]string
	fields := t.fields(i, buf[:])
	return t.value(fields, t.Column(column))
}

func (t *Table) value(fields []string, c int) string {
	v := fields[c]
	if v == "" && c >= t.keys {
		v = t.Defaults[c]
		if name, ok := strings.CutPrefix(v, "@"); ok {
			return t.value(fields, t.Column(name))
		}
	}
	return unescape(v)
}

// Values appends all values of a row to dst, Null for NULL.
func (t *Table) Values(i int, dst []string) []string {
	var buf [40]string
	fields := t.fields(i, buf[:])
	for c := range t.Columns {
		dst = append(dst, t.value(fields, c))
	}
	return dst
}

// Number returns the value of a column that contains an OID or another number.
func (t *Table) Number(i int, column string) uint32 {
	n, err := strconv.ParseUint(t.Value(i, column), 10, 32)
	if err != nil {
		panic("pgdata: " + err.Error())
	}
	return uint32(n)
}
