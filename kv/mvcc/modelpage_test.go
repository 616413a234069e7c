package mvcc

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var smRewrite = flag.Bool("modelpage", false, "put what the model has found into docs/transactions-model.md")

const smPage = "../../docs/transactions-model.md"

// smPageTable is a table of the page. It stands between two comments that name it, and has a head of two lines.
type smPageTable struct{ before, head, rows, after string }

func smReadPage(t *testing.T, table string) (p smPageTable) {
	t.Helper()
	text, err := os.ReadFile(smPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), "<!-- "+table+" -->\n")
	rows, after, ok2 := strings.Cut(rest, "<!-- end of "+table+" -->\n")
	lines := strings.SplitAfterN(rows, "\n", 3)
	if !ok1 || !ok2 || len(lines) != 3 {
		t.Fatalf("%s has no table %s", smPage, table)
	}
	return smPageTable{before, lines[0] + lines[1], lines[2], after}
}

// smCheckPage verifies that a table of the page has these rows, or writes them.
func smCheckPage(t *testing.T, table, rows string) {
	t.Helper()
	p := smReadPage(t, table)
	switch {
	case p.rows == rows:
	case *smRewrite:
		text := p.before + "<!-- " + table + " -->\n" + p.head + rows + "<!-- end of " + table + " -->\n" + p.after
		if err := os.WriteFile(smPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, table %s, is not what the model has found (-modelpage)", smPage, table)
	}
}

// smCheckWorlds verifies the table of worlds except the numbers, which only a full search computes.
func smCheckWorlds(t *testing.T) {
	t.Helper()
	rows := strings.SplitAfter(smReadPage(t, "worlds").rows, "\n")
	configs := smConfigs(true)
	if len(rows) != len(configs)+2 { // the sum, and what follows the last line
		t.Fatalf("%s has %d rows of %d worlds", smPage, len(rows), len(configs))
	}
	for i := range configs {
		if row := configs[i].row() + " " + configs[i].bounds() + " |"; !strings.HasPrefix(rows[i], row) {
			t.Errorf("%s has not the row %s: search all anew (-model full -modelpage)", smPage, row)
		}
	}
}
