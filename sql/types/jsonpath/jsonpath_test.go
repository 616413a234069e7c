package jsonpath

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
)

var paths = []string{
	"$", "strict $.a.b[*]", `lax $."x y"[1, 2 to last]`, `$.a ? (@.b > 1 && !(@.c == "x"))`, "$.**{2 to last}.x", "$.**{last}", "1 + 2 * -$.a",
	"($.a > 1) is unknown", "!(($.a > 1) is unknown) && exists($.b)", "exists($.a)", `$.a like_regex "^b" flag "i"`, `$a starts with $"b c"`, `$.datetime("yyyy")`, "$.a.type().size()",
	"($ + 1).abs()", "1.50e2", "-.5", "$.null.true.to", "-(1 + 2)", "1--2", `"a\u00e4\n\x41"`, "$ ? ((@.a == 1 || @.b == 2) && @.c == 3)", "($.a > 1).type()", "(123).type()", "$[(-1.5).abs()]",
}

// Goal: invariant 1. Method: paths with every kind of node.
func TestPrintedReadsBack(t *testing.T) {
	for _, text := range paths {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := Parse(p.String())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%s prints as %s: %v", text, p, err)
		}
	}
}

// Goal: deep nesting is an error. Method: parentheses, signs and filters.
func TestDepth(t *testing.T) {
	for _, text := range []string{strings.Repeat("(", 100000), strings.Repeat("-", 100000) + "1", "$" + strings.Repeat("?(@", 100000),
		"$" + strings.Repeat(" + 1", 50_000), "$ ? (@ == 1" + strings.Repeat(" && @ == 1", 30_000) + ")"} {
		_, err := Parse(text)
		var e *pgerror.Error
		if !errors.As(err, &e) || e.Code != pgerror.StatementTooComplex {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

// Goal: invariant 2. Method: fuzz.
// Goal: a path is bounded, however long its text: members, subscripts and chains of operators are no way around it. What is accepted can
// be printed and read again.
func TestLength(t *testing.T) {
	for _, text := range []string{"$" + strings.Repeat(".a", 5_000_000), "$" + strings.Repeat("+1", 5_000_000), "$[" + strings.Repeat("1,", 5_000_000) + "1]"} {
		_, err := Parse(text)
		var e *pgerror.Error
		if !errors.As(err, &e) || e.Code != pgerror.StatementTooComplex {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	for _, text := range []string{
		"$" + strings.Repeat(".a", 90_000), "$" + strings.Repeat(" + 1", maxNesting), "$[" + strings.Repeat("1 to 2,", 40_000) + "1]",
		"$ ? (" + strings.Repeat("(", maxNesting-3) + "@ == 1" + strings.Repeat(") is unknown", maxNesting-3) + ")",
		"$ ? (" + strings.Repeat("!(", maxNesting-3) + "@ == 1" + strings.Repeat(")", maxNesting-2),
		strings.Repeat("$[", maxNesting-2) + "1" + strings.Repeat("]", maxNesting-2), strings.Repeat("-(", maxNesting-2) + "$" + strings.Repeat(")", maxNesting-2),
		"$" + strings.Repeat("?(exists(@", maxNesting/2-2) + strings.Repeat("))", maxNesting/2-2),
	} {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%.40s: %v", text, err)
			continue
		}
		printed := p.String()
		again, err := Parse(printed)
		if err != nil || again.String() != printed {
			t.Errorf("%.40s is printed as %.40s, which cannot be read: %v", text, printed, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range paths {
		f.Add(text)
	}
	for _, text := range []string{"", "$.", "@", "last", "00", "1a", `"a`, `"\u`, `"\ud83d"`, "/*", "$.a like_regex \"a\" flag \"z\"", "$[", "\\"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			var e *pgerror.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := Parse(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q prints as %s, and then: %v", text, p, err)
		}
	})
}
