package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/mysql"
)

// TestDumpTables compares what the tables of dumps become with testdata/dump: columns and how their values are written, the
// statements, and what is left out.
func TestDumpTables(t *testing.T) {
	datadriven.RunTest(t, "testdata/dump", func(t *testing.T, d *datadriven.TestData) string {
		o := mysql.DumpOptions{Schema: "shop", ZeroNull: true}
		d.MaybeScanArgs(t, "charset", &o.Charset)
		o.Numeric = d.HasArg("numeric")
		o.Intervals = d.HasArg("interval")
		m, err := mysql.ConvertDumpTable(d.Input, o)
		if err != nil {
			e := asError(t, err)
			return string(e.Code) + ": " + e.Message + "\n" + e.Hint + "\n"
		}
		var b strings.Builder
		for _, c := range m.Columns {
			fmt.Fprintf(&b, "%s: %s → %s, kind %d", c.Name, c.MySQL, c.Type, c.Kind)
			if c.Kind == mysql.Text {
				b.WriteString(" in " + c.Charset)
			}
			if c.NotNull {
				b.WriteString(", not null")
			}
			b.WriteString("\n")
		}
		statements := []string{m.Create}
		for _, k := range m.Keys {
			statements = append(statements, k.Statement)
		}
		for _, q := range append(statements, m.Comments...) {
			b.WriteString(q + "\n")
			if _, err := sql.ParseTree(q); err != nil {
				t.Errorf("%s\ndoes not parse: %v", q, err)
			}
		}
		for _, n := range m.Notices {
			b.WriteString("notice: " + n + "\n")
		}
		for _, l := range m.LeftOut {
			b.WriteString("left out: " + l.What + ": " + l.Why + "\n")
			if l.Statement != "" {
				b.WriteString("  " + l.Statement + "\n")
			}
		}
		return b.String()
	})
}
