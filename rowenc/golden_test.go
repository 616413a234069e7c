package rowenc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// goldenTypes are the column types of golden tables, by name.
var goldenTypes = map[string]types.Type{
	"int": types.TInt4, "bool": types.TBool, "float": types.TFloat8, "text": types.TText, "bytea": types.TBytea,
	"char": types.TBPChar, "numeric": types.TNumeric, "interval": types.TInterval, "date": types.TDate, "uuid": types.TUUID,
	"array": types.TInt4.ArrayOf(),
}

// Goal: the bytes on disk do not change by accident. Method: transcripts of keys and values, after
// docs/format/rows.md.
//
//	column TYPE [desc] [nullsfirst]    lines of values → encoding in a key
//	datum TYPE                         lines of values → encoding on its own
//	row COLUMN:TYPE… pk=N… [unique=N…] [index=N…] [include=N…] [missing=N=VALUE]
//	                                   lines of rows → all keys and values
func TestGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/golden.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "column":
			typ := goldenTypes[d.CmdArgs[0].Key]
			for _, line := range strings.Split(d.Input, "\n") {
				key, err := appendOrdered(nil, typ, goldenDatum(t, typ, line), d.HasArg("desc"), d.HasArg("nullsfirst"))
				fmt.Fprintf(&out, "%s: % x%s\n", line, key, errText(err))
			}
		case "datum":
			typ := goldenTypes[d.CmdArgs[0].Key]
			for _, line := range strings.Split(d.Input, "\n") {
				b, err := EncodeDatum(goldenDatum(t, typ, line))
				fmt.Fprintf(&out, "%s: % x%s\n", line, b, errText(err))
			}
		case "row":
			table := goldenTable(t, d)
			for _, line := range strings.Split(d.Input, "\n") {
				out.WriteString(goldenRow(t, table, line))
			}
		}
		return out.String()
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func goldenDatum(t *testing.T, typ types.Type, text string) types.Datum {
	t.Helper()
	text = strings.TrimSpace(text)
	if text == "NULL" {
		return types.Null
	}
	text = strings.Trim(text, "'")
	d, err := types.ParseText(typ, text, &types.Format{})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

// goldenTable makes a table with column ids 1, 2, … and index ids 1 (primary), 2 (unique), 3.
func goldenTable(t *testing.T, d *datadriven.TestData) *catalog.TableDescriptor {
	t.Helper()
	table := &catalog.TableDescriptor{ID: 16384, Primary: catalog.IndexDescriptor{ID: 1, Unique: true}}
	columns := func(arg datadriven.CmdArg) (cols []catalog.IndexColumn) {
		for _, v := range arg.Vals {
			var id uint32
			fmt.Sscan(v, &id)
			cols = append(cols, catalog.IndexColumn{ColumnID: id})
		}
		return cols
	}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "pk":
			table.Primary.Columns = columns(arg)
		case "unique":
			table.Indexes = append(table.Indexes, catalog.IndexDescriptor{ID: 2, Unique: true, Columns: columns(arg)})
		case "index":
			table.Indexes = append(table.Indexes, catalog.IndexDescriptor{ID: 3, Columns: columns(arg)})
		case "include":
			for _, c := range columns(arg) {
				ix := &table.Indexes[len(table.Indexes)-1]
				ix.Include = append(ix.Include, c.ColumnID)
			}
		case "missing":
			missing, err := EncodeDatum(types.Decimal(apd.New(15, -1)))
			if err != nil {
				t.Fatal(err)
			}
			table.Columns[len(table.Columns)-1].Missing = missing
		default:
			// A number before the type sets the column's id.
			col := catalog.ColumnDescriptor{ID: uint32(len(table.Columns) + 1), Name: arg.Key, Type: goldenTypes[arg.Key]}
			if len(arg.Vals) > 0 {
				fmt.Sscan(arg.Vals[0], &col.ID)
			}
			table.Columns = append(table.Columns, col)
		}
	}
	return table
}

func goldenRow(t *testing.T, table *catalog.TableDescriptor, line string) string {
	t.Helper()
	var out strings.Builder
	fields := strings.Split(line, ",")
	row := make(types.Row, len(table.Columns))
	for i := range row {
		row[i] = goldenDatum(t, table.Columns[i].Type, fields[i])
	}
	print := func(ix *catalog.IndexDescriptor, value []byte, err error) {
		key, _, keyErr := AppendKey(nil, table, ix, row)
		fmt.Fprintf(&out, "index %d: % x → % x%s%s\n", ix.ID, key, value, errText(keyErr), errText(err))
	}
	value, err := AppendRow(nil, table, row)
	print(&table.Primary, value, err)
	for i := range table.Indexes {
		value, err := AppendEntry(nil, table, &table.Indexes[i], row)
		print(&table.Indexes[i], value, err)
	}
	return out.String()
}
