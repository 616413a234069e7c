package fuzzsql

import (
	"regexp"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// explanation is a difference that is meant.
type explanation struct {
	reason  string
	matches func(d *Difference) bool
}

// explanations are all of them. Each matches as little as its reason covers.
var explanations = []explanation{
	{"percodb says that it does not have a feature, with what to use instead", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "0A000" && d.got.err.Hint != ""
	}},
	{"PostgreSQL evaluates constants while it plans: it fails, percodb does not come to the value", func(d *Difference) bool {
		return d.judged() && isDataError(d.want) && (d.got.err == nil || isDataError(d.got)) && choosesRows.MatchString(d.stmt)
	}},
	{"a strict function of NULL is NULL: whether its other arguments are evaluated is left open", func(d *Difference) bool {
		return d.judged() && strings.Contains(d.stmt, "NULL") && isDataError(d.want) && d.got.err == nil ||
			d.judged() && isDataError(d.got) && d.want.err == nil && slices.ContainsFunc(d.want.rows, func(row []string) bool { return slices.Contains(row, null) })
	}},
	{"an INSERT of several rows with two mistakes: PostgreSQL checks keys and computes values row by row, percodb by groups", func(d *Difference) bool {
		return strings.HasPrefix(d.stmt, "INSERT") && d.got.err != nil && d.want.err != nil &&
			(isDataError(d.got) || strings.HasPrefix(d.got.err.Code, "23")) && (isDataError(d.want) || strings.HasPrefix(d.want.err.Code, "23"))
	}},
	{"percodb finds the expressions of GROUP BY in subqueries, too", func(d *Difference) bool {
		return d.judged() && (d.got.err == nil || isDataError(d.got)) && d.want.err != nil && d.want.err.Code == "42803" &&
			strings.HasPrefix(d.want.err.Message, "subquery uses ungrouped column")
	}},
	{"percodb does not read POSIX time zones with a rule", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "22023" && strings.HasPrefix(d.got.err.Message, "time zone ")
	}},
	{"PostgreSQL describes results after it has folded constants: a CASE or set operation with one branch left has that branch's modifier", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "modifier of column") && (strings.Contains(d.Text, " is -1,") || strings.HasSuffix(d.Text, "want -1")) && (branches.MatchString(d.stmt) || strings.Contains(d.stmt, "FROM made"))
	}},
	{"of equal values that look different, any may stand for them all", func(d *Difference) bool {
		return strings.HasPrefix(d.Text, "rows: value") && collapses.MatchString(d.stmt) && compareRows(d.got.coarse(), d.want.coarse(), false) == ""
	}},
	{"the last digit of a transcendental function, in a text: C's and Go's libraries differ there", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "rows: value") && transcendental.MatchString(d.stmt) && d.onlyLastDigits()
	}},
	{"PostgreSQL gives no position to a subscript that cannot be grouped or sorted by", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "position ") && d.want.err.Position == 0 && strings.HasPrefix(d.want.err.Message, "could not identify an")
	}},
	{"the hash of an enum is that of the OID of its label", func(d *Difference) bool {
		return strings.HasPrefix(d.Text, "rows: value") && strings.Contains(d.stmt, "hash_") && strings.Contains(d.stmt, "mood")
	}},
	{"PostgreSQL divides the least amount of money by -1 on the processor, which has no such result", func(d *Difference) bool {
		return d.judged() && d.want.err != nil && d.want.err.Code == "22P01" && d.got.err != nil && d.got.err.Message == "money out of range"
	}},
	{"percodb changes the rows at which cursors over sorted rows stand", func(d *Difference) bool {
		return d.judged() && d.want.err != nil && d.want.err.Code == "24000" && strings.Contains(d.want.err.Message, "is not a simply updatable scan")
	}},
	{"PostgreSQL's message ends at the zero byte that a \"char\" may be", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "message ") && strings.HasSuffix(d.want.err.Message, `unrecognized weight: "`)
	}},
	{"in which order items of WITH change rows, and their foreign keys are checked, is left open", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.stmt, "WITH m AS (DELETE") && (isForeignKeyViolation(d.got) || isForeignKeyViolation(d.want))
	}},
	{"PostgreSQL makes outer joins inner ones before it looks for rows to lock", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "0A000" && strings.HasSuffix(d.got.err.Message, "nullable side of an outer join")
	}},
	{"a call with two mistakes in its arguments, and a NULL that makes it NULL: whether and in which order they are evaluated is left open", func(d *Difference) bool {
		return d.judged() && isDataError(d.got) && isDataError(d.want) && strings.Contains(d.stmt, "NULL")
	}},
	{"percodb shows where in a definition a mistake is", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "position ") && d.want.err.Position == 0 && strings.HasPrefix(d.stmt, "ALTER TABLE")
	}},
	{"PostgreSQL finds that a strict function of NULL is NULL before it looks for functions that are not immutable", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "42P17" && strings.Contains(d.stmt, "NULL")
	}},
	{"PostgreSQL gives no position to this error", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "position ") && d.want.err.Position == 0 && strings.HasPrefix(d.want.err.Message, "could not determine polymorphic type")
	}},
	{"SQL leaves open which rows and conditions are evaluated: PostgreSQL's plan does not come to the value", func(d *Difference) bool {
		return d.judged() && isDataError(d.got) && d.want.err == nil && choosesConditions.MatchString(d.stmt)
	}},
	{"PostgreSQL reports what a caller of a transition function, or of a flag array, got wrong as internal errors", func(d *Difference) bool {
		return d.judged() && isInternalDataError(d.want) && (d.got.err == nil || isDataError(d.got))
	}},
	{"a statement with two mistakes in values: PostgreSQL folds a subscript before the array, and constants before they are needed", func(d *Difference) bool {
		return d.judged() && isDataError(d.got) && isDataError(d.want) && (strings.Contains(d.stmt, ")[") || strings.Contains(d.stmt, "ts_headline("))
	}},
	{"a change that breaks two constraints: which is reported first depends on the order of rows", func(d *Difference) bool {
		return d.judged() && changes.MatchString(d.stmt) && d.got.err != nil && d.want.err != nil && strings.HasPrefix(d.got.err.Code, "23") && strings.HasPrefix(d.want.err.Code, "23")
	}},
	{"whether an UPDATE that moves a key onto another's meets it depends on the order of rows", func(d *Difference) bool {
		return d.judged() && strings.Contains(d.stmt, "SET id = id + ") && (isUniqueViolation(d.got) || isUniqueViolation(d.want))
	}},
	{"PostgreSQL refuses to lock rows of subqueries without tables; percodb locks those of tables", func(d *Difference) bool {
		return d.judged() && d.want.err != nil && d.want.err.Code == "0A000" && strings.HasPrefix(d.want.err.Message, "FOR ") && strings.Contains(d.stmt, "(SELECT")
	}},
	{"PostgreSQL refuses to lock the rows of a view while it plans the view, which a false condition spares it", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.want.err == nil && d.got.err.Code == "0A000" && strings.HasPrefix(d.got.err.Message, "FOR ") && strings.Contains(d.stmt, "CREATE VIEW")
	}},
	{"the order of rows in ARRAY(SELECT …) without ORDER BY", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "rows: value") && arraySubquery.MatchString(d.stmt)
	}},
	{"the hash of a float whose last digit differs", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "rows: value") && strings.Contains(d.stmt, "hash") && transcendental.MatchString(d.stmt)
	}},
	{"PostgreSQL 15's width_bucket overflows where the bounds are far apart", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "rows: value") && strings.Contains(d.stmt, "width_bucket(") && strings.Contains(d.Text, "-2147483648")
	}},
	{"of two collations that contradict each other, another is named first; PostgreSQL derives some when a value is computed", func(d *Difference) bool {
		return d.judged() && d.want.err != nil && (d.want.err.Code == "42P22" || d.want.err.Code == "42P21")
	}},
	{"a change with two mistakes: PostgreSQL checks keys row by row, percodb after the rows are computed", func(d *Difference) bool {
		return d.judged() && changes.MatchString(d.stmt) && d.got.err != nil && d.want.err != nil &&
			(isDataError(d.got) && strings.HasPrefix(d.want.err.Code, "23") || isDataError(d.want) && strings.HasPrefix(d.got.err.Code, "23"))
	}},
	{"a statement with two mistakes: PostgreSQL reads a literal before it looks for the function around it", func(d *Difference) bool {
		return d.judged() && isDataError(d.want) && d.got.err != nil && slices.Contains([]string{"42883", "42725", "42846", "42702", "42804", "24000", "42601", "0A000"}, d.got.err.Code)
	}},
	{"of several columns that are not grouped, another is named first", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.want.err != nil && d.got.err.Code == "42803" && d.want.err.Code == "42803"
	}},
	{"a strict function of NULL is NULL: PostgreSQL finds that before it looks for set-returning arguments", func(d *Difference) bool {
		return d.judged() && setInSelect.MatchString(d.stmt) && d.got.err == nil && d.want.err == nil &&
			slices.ContainsFunc(d.want.rows, func(row []string) bool { return slices.Contains(row, null) })
	}},
	{"of the result of a comparison function only the sign has a meaning", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "rows: value") && strings.Contains(d.stmt, "cmp(")
	}},
	{"SQL leaves open which rows and conditions are evaluated: plans with and without indexes or parameters differ in the error they meet", func(d *Difference) bool {
		return !d.judged() && (isDataError(d.got) || isDataError(d.want)) &&
			(d.got.err == nil || isDataError(d.got)) && (d.want.err == nil || isDataError(d.want)) && choosesRows.MatchString(d.stmt)
	}},
	{"a statement with two mistakes: PostgreSQL reads literals before it checks GROUP BY", func(d *Difference) bool {
		return d.judged() && isDataError(d.want) && d.got.err != nil && d.got.err.Code == "42803"
	}},
	{"PostgreSQL 15 computes the age of infinity from the numbers that stand for it, in the session's zone", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "rows: value") && (strings.Contains(d.stmt, "age(") && strings.Contains(d.stmt, "infinity") || endlessAge.MatchString(d.Text))
	}},
	{"PostgreSQL 15 wraps around where an interval is out of range", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "22008" && d.got.err.Message == "interval out of range"
	}},
}

var (
	// choosesRows are statements that need not evaluate everything in them: rows may be missing, and
	// conditions decide.
	choosesRows = regexp.MustCompile(`(?s)\b(FROM|UPDATE|WHERE|CASE|COALESCE|AND|OR|SELECT\b.*\bSELECT|INTERSECT|EXCEPT|UNION|LIMIT|FETCH)\b`)
	// branches are expressions and queries that constants cut short.
	branches = regexp.MustCompile(`\b(CASE|COALESCE|UNION|INTERSECT|EXCEPT)\b`)
	// arraySubquery is a subquery whose rows become an array.
	arraySubquery = regexp.MustCompile(`\bARRAY\(\(*(SELECT|WITH)\b`)
	// endlessAge is an age of infinity, which an earlier statement may have stored.
	endlessAge = regexp.MustCompile(`value "-?29\d{4} years`)
	// changes are statements that change rows.
	changes = regexp.MustCompile(`\b(INSERT|UPDATE|DELETE|MERGE)\b`)
	// setInSelect are calls of the set-returning functions that stand in select lists.
	setInSelect    = regexp.MustCompile(`\b(generate_series|unnest|jsonb_array_elements|regexp_split_to_table|generate_subscripts)\(`)
	transcendental = regexp.MustCompile(`(?i)\|\|/|\|/|\^|\b(cbrt|sqrt|exp|ln|log|log10|power|pow|a?(sin|cos|tan|cot)[dh]?|atan2d?)\b`)
	// collapses are statements that show one of several equal values.
	collapses = regexp.MustCompile(`(?i)\b(DISTINCT|GROUP BY|UNION|INTERSECT|EXCEPT|min|max|GREATEST|LEAST|JOIN)\b`)
	// choosesConditions are those whose conditions decide what is evaluated.
	choosesConditions = regexp.MustCompile(`(?s)\b(JOIN|WHERE|HAVING|CASE|COALESCE|AND|OR|SELECT\b.*\bSELECT|INTERSECT|EXCEPT|UNION|LIMIT)\b`)
)

// operandFlags are the weights and the star behind a word of a tsquery, which its order ignores.
var operandFlags = regexp.MustCompile(`':[A-D*]+`)

// coarse is an outcome in which equal values look alike: numerics without trailing zeros, floats without
// negative zero, bpchar without blanks at its end, words of a tsquery without weights.
func (o *outcome) coarse() *outcome {
	out := &outcome{columns: o.columns}
	for _, row := range o.rows {
		row = slices.Clone(row)
		for i, v := range row {
			switch o.columns[i].oid {
			case types.OIDNumeric:
				if strings.Contains(v, ".") {
					row[i] = strings.TrimSuffix(strings.TrimRight(v, "0"), ".")
				}
			case types.OIDFloat4, types.OIDFloat8:
				if v == "-0" {
					row[i] = "0"
				}
			case types.OIDBPChar:
				row[i] = strings.TrimRight(v, " ")
			case types.OIDTSQuery:
				row[i] = operandFlags.ReplaceAllString(v, "'")
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// onlyLastDigits reports whether the rows are alike when texts that are numbers count as floats.
func (d *Difference) onlyLastDigits() bool {
	asFloats := func(o *outcome) *outcome {
		c := *o
		c.columns = slices.Clone(o.columns)
		for i := range c.columns {
			c.columns[i].oid = types.OIDFloat8
		}
		return &c
	}
	return compareRows(asFloats(d.got), asFloats(d.want), false) == ""
}

// judged reports whether PostgreSQL was the other side.
func (d *Difference) judged() bool { return d.Against == "PostgreSQL" }

// isDataError reports whether an outcome is an error about a value, which only its evaluation shows.
func isDataError(o *outcome) bool {
	// What percodb's regular expressions lack shows when a pattern is used.
	return o.err != nil && (isInternalDataError(o) || isQuerySyntax(o) || strings.HasPrefix(o.err.Message, "regular expressions with ") || strings.HasPrefix(o.err.Code, "22") || o.err.Code == "54000" || o.err.Code == "21000" ||
		o.err.Code == "42704" && strings.HasPrefix(o.err.Message, "could not find jsonpath variable") ||
		o.err.Code == "42883" && strings.HasPrefix(o.err.Message, "could not identify a") ||
		o.err.Code == "42P22" && strings.HasPrefix(o.err.Message, "could not determine which collation to use") || // what compares, not what is bound, says so
		o.err.Code == "42804" && strings.HasPrefix(o.err.Message, "cannot compare dissimilar column types") ||
		o.err.Code == "0A000" && (strings.HasPrefix(o.err.Message, "searching for elements in multi") || strings.HasPrefix(o.err.Message, "encoding conversion from ") ||
			strings.HasPrefix(o.err.Message, "unit ") || strings.HasPrefix(o.err.Message, "cannot add NaN") || strings.HasPrefix(o.err.Message, "cannot subtract NaN") || strings.HasPrefix(o.err.Message, "cannot convert ") || strings.HasPrefix(o.err.Message, "timestamps cannot be binned")))
}

// isInternalDataError reports whether an outcome is an error of PostgreSQL about an argument that is reported as an internal one.
func isInternalDataError(o *outcome) bool {
	return o.err != nil && o.err.Code == "XX000" && (strings.Contains(o.err.Message, "-element ") && strings.HasSuffix(o.err.Message, " array") ||
		strings.Contains(o.err.Message, "flag array") || strings.HasPrefix(o.err.Message, "unrecognized weight") || strings.HasPrefix(o.err.Message, "aggregate function called in non-aggregate"))
}

func isUniqueViolation(o *outcome) bool { return o.err != nil && o.err.Code == "23505" }

func isForeignKeyViolation(o *outcome) bool { return o.err != nil && o.err.Code == "23503" }

// isQuerySyntax reports whether an outcome is a syntax error in a value: of a tsquery, a jsonpath, or of the options of ts_headline.
func isQuerySyntax(o *outcome) bool {
	return o.err.Code == "42601" && (strings.HasPrefix(o.err.Message, "invalid Unicode escape") || strings.Contains(o.err.Message, "jsonpath input") || strings.Contains(o.err.Message, "tsquery") || strings.HasPrefix(o.err.Message, "invalid parameter list format"))
}

// explain returns the reason for a difference, "" if there is none.
func explain(d *Difference) string {
	for _, list := range [][]explanation{explanations, pending} {
		for _, e := range list {
			if e.matches(d) {
				return e.reason
			}
		}
	}
	return ""
}

// pending are differences that are mistakes of percodb and not mended yet. An entry goes when its
// mistake does; this list is to be empty.
var pending []explanation
