package mysqlimport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/percodb/percodb/sql/mysql"
)

// maxStatements bounds the text of the statements that a report keeps.
const maxStatements = 32 << 20

// TableReport is a table that was imported.
type TableReport struct {
	Name    string
	Rows    int64
	Columns []mysql.DumpColumn
}

// Report is the result of an import.
type Report struct {
	Tables   []TableReport
	LeftOut  []mysql.LeftOut
	Notices  []string
	Zeros    map[string]int64 // zero dates that were replaced in this run, by column
	Refused  int              // statements after the rows that the server refused
	Resumed  bool
	Complete bool  // all is loaded
	Loaded   int64 // rows of this run; earlier runs have loaded the others
	Bytes    int64 // of the files
	Rows     time.Duration
	Total    time.Duration

	kept int // bytes of statements
}

func (r *Report) leave(l mysql.LeftOut) {
	if r.kept += len(l.Statement); r.kept > maxStatements {
		l.Statement = "-- its text is left out of the report, which is too long"
	}
	r.LeftOut = append(r.LeftOut, l)
}

func (r *Report) addZeros(zeros map[string]int64) {
	for name, n := range zeros {
		if r.Zeros == nil {
			r.Zeros = map[string]int64{}
		}
		r.Zeros[name] += n
	}
}

// fill copies the tables into the report.
func (r *Report) fill(i *importer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, t := range i.mu.order {
		r.Tables = append(r.Tables, TableReport{Name: t.label, Rows: t.rows, Columns: t.Columns})
		for _, n := range t.Notices {
			if !slices.Contains(r.Notices, n) {
				r.Notices = append(r.Notices, n)
			}
		}
	}
}

// Print prints the report: the tables, how types were mapped, and what was left out.
func (r *Report) Print(out io.Writer, verbose bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tCOLUMNS\tROWS")
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%s\t%d\t%d\n", t.Name, len(t.Columns), t.Rows)
	}
	w.Flush()
	fmt.Fprintln(out)
	if verbose {
		r.printColumns(w)
	} else {
		r.printTypes(w)
	}
	w.Flush()
	for _, n := range r.Notices {
		fmt.Fprintln(out, "Note:", n)
	}
	for _, name := range sortedKeys(r.Zeros) {
		fmt.Fprintf(out, "Zero dates replaced in %s: %d\n", name, r.Zeros[name])
	}
	r.printLeftOut(out)
}

func (r *Report) printColumns(w io.Writer) {
	fmt.Fprintln(w, "COLUMN\tMYSQL\tPERCODB")
	for _, t := range r.Tables {
		for _, c := range t.Columns {
			fmt.Fprintf(w, "%s.%s\t%s\t%s\n", t.Name, c.Name, c.MySQL, typeName(c))
		}
	}
}

// printTypes prints each mapping of types once, with the number of its columns.
func (r *Report) printTypes(w io.Writer) {
	count := map[string]int{}
	for _, t := range r.Tables {
		for _, c := range t.Columns {
			count[c.MySQL+"\t"+typeName(c)]++
		}
	}
	fmt.Fprintln(w, "MYSQL\tPERCODB\tCOLUMNS")
	for _, key := range sortedKeys(count) {
		fmt.Fprintf(w, "%s\t%d\n", key, count[key])
	}
}

func typeName(c mysql.DumpColumn) string {
	if c.Type == "" {
		return "left out"
	}
	return c.Type
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (r *Report) printLeftOut(out io.Writer) {
	if len(r.LeftOut) == 0 {
		return
	}
	fmt.Fprintf(out, "\nLeft out:\n")
	for _, l := range r.LeftOut {
		fmt.Fprintf(out, "  %s: %s\n", l.What, l.Why)
	}
	fmt.Fprintf(out, "\nStatements to run later, when the server has what they need:\n")
	for _, l := range r.LeftOut {
		if l.Statement != "" {
			fmt.Fprintf(out, "%s;\n", strings.TrimSuffix(strings.TrimSpace(l.Statement), ";"))
		}
	}
}
