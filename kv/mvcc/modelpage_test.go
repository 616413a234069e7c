package mvcc

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var smRewrite = flag.Bool("modelpage", false, "put what the model has found into docs/transactions-model.md")

const smPage = "../../docs/transactions-model.md"

// smCheckPage verifies that a table of the page has these rows, or puts them there. The table stands between
// two comments that name it, below its head of two lines.
func smCheckPage(t *testing.T, table, rows string) {
	t.Helper()
	text, err := os.ReadFile(smPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), "<!-- "+table+" -->\n")
	old, after, ok2 := strings.Cut(rest, "<!-- end of "+table+" -->\n")
	head := strings.SplitAfterN(old, "\n", 3)
	if !ok1 || !ok2 || len(head) != 3 {
		t.Fatalf("%s has no table %s", smPage, table)
	}
	switch {
	case head[2] == rows:
	case *smRewrite:
		text := before + "<!-- " + table + " -->\n" + head[0] + head[1] + rows + "<!-- end of " + table + " -->\n" + after
		if err := os.WriteFile(smPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, table %s, is not what the model has found (-modelpage)", smPage, table)
	}
}
