package pgdata

import (
	"strings"
)

// empty is a field that is the empty string although the default is another value.
const empty = `\e`

var (
	escapes   = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`)
	unescapes = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", empty, "")
)

func escape(v string) string {
	if v == Null {
		return v
	}
	return escapes.Replace(v)
}

func unescape(v string) string {
	if v == Null || strings.IndexByte(v, '\\') < 0 {
		return v
	}
	return unescapes.Replace(v)
}

// Encode writes a table: the names of its columns with their most frequent values, which rows leave out, then the rows. The first columns, as
// many as keys, have no default.
func Encode(columns []string, rows [][]string, keys int) string {
	var b strings.Builder
	defaults := make([]string, len(columns))
	for c, name := range columns {
		if c > 0 {
			b.WriteByte('\t')
		}
		b.WriteString(name)
		if c >= keys {
			defaults[c] = frequent(columns, rows, c, keys)
			b.WriteString("=" + escape(defaults[c]))
		}
	}
	b.WriteByte('\n')
	for _, row := range rows {
		fields := make([]string, len(row))
		last := keys
		for c, v := range row {
			fields[c] = escape(v)
			if c < keys {
				continue
			}
			name, same := strings.CutPrefix(defaults[c], "@")
			switch {
			case same && v == row[1] && name == columns[1], v == defaults[c]:
				fields[c] = ""
			case v == "":
				fields[c] = empty
			}
			if fields[c] != "" {
				last = c + 1
			}
		}
		b.WriteString(strings.Join(fields[:last], "\t") + "\n")
	}
	return b.String()
}

// frequent returns the most frequent value of a column, or "@name" if more rows have the value of the column after the key.
func frequent(columns []string, rows [][]string, c, keys int) string {
	counts := map[string]int{}
	same := 0
	for _, row := range rows {
		counts[row[c]]++
		if row[c] == row[1] {
			same++
		}
	}
	best := ""
	for v, n := range counts {
		if n > counts[best] || n == counts[best] && v < best {
			best = v
		}
	}
	if keys > 1 && same > counts[best] {
		return "@" + columns[1]
	}
	return best
}
