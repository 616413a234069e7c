package fuzzsql

import (
	"regexp"
	"strings"
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
		return d.judged() && strings.Contains(d.stmt, "NULL") && (isDataError(d.want) && d.got.err == nil || isDataError(d.got) && d.want.err == nil)
	}},
	{"an INSERT of several rows with two mistakes: PostgreSQL checks keys and computes RETURNING row by row, percodb by groups", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.stmt, "INSERT") && d.got.err != nil && d.want.err != nil &&
			(isDataError(d.got) || strings.HasPrefix(d.got.err.Code, "23")) && (isDataError(d.want) || strings.HasPrefix(d.want.err.Code, "23"))
	}},
	{"percodb finds the expressions of GROUP BY in subqueries, too", func(d *Difference) bool {
		return d.judged() && d.got.err == nil && d.want.err != nil && d.want.err.Code == "42803" &&
			strings.HasPrefix(d.want.err.Message, "subquery uses ungrouped column")
	}},
	{"percodb does not read POSIX time zones with a rule", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "22023" && strings.HasPrefix(d.got.err.Message, "time zone ")
	}},
	{"PostgreSQL gives no position to this error", func(d *Difference) bool {
		return d.judged() && strings.HasPrefix(d.Text, "position ") && d.want.err.Position == 0 && strings.HasPrefix(d.want.err.Message, "could not determine polymorphic type")
	}},
	{"SQL leaves open which rows and conditions are evaluated: PostgreSQL's plan does not come to the value", func(d *Difference) bool {
		return d.judged() && isDataError(d.got) && d.want.err == nil && choosesConditions.MatchString(d.stmt)
	}},
	{"SQL leaves open which rows and conditions are evaluated: plans with and without indexes or parameters differ in the error they meet", func(d *Difference) bool {
		return !d.judged() && (isDataError(d.got) || isDataError(d.want)) &&
			(d.got.err == nil || isDataError(d.got)) && (d.want.err == nil || isDataError(d.want)) && choosesRows.MatchString(d.stmt)
	}},
	{"a statement with two mistakes: PostgreSQL reads literals before it checks GROUP BY", func(d *Difference) bool {
		return d.judged() && isDataError(d.want) && d.got.err != nil && d.got.err.Code == "42803"
	}},
	{"PostgreSQL 15 wraps around where an interval is out of range", func(d *Difference) bool {
		return d.judged() && d.got.err != nil && d.got.err.Code == "22008" && d.got.err.Message == "interval out of range" && d.want.err == nil
	}},
}

var (
	// choosesRows are statements that need not evaluate everything in them: rows may be missing, and
	// conditions decide.
	choosesRows = regexp.MustCompile(`(?s)\b(FROM|UPDATE|WHERE|CASE|COALESCE|AND|OR|SELECT\b.*\bSELECT|INTERSECT|EXCEPT|UNION|LIMIT)\b`)
	// choosesConditions are those whose conditions decide what is evaluated.
	choosesConditions = regexp.MustCompile(`(?s)\b(JOIN|WHERE|HAVING|CASE|COALESCE|AND|OR|SELECT\b.*\bSELECT|INTERSECT|EXCEPT|UNION|LIMIT)\b`)
)

// judged reports whether PostgreSQL was the other side.
func (d *Difference) judged() bool { return d.Against == "PostgreSQL" }

// isDataError reports whether an outcome is an error about a value, which only its evaluation shows.
func isDataError(o *outcome) bool {
	return o.err != nil && (strings.HasPrefix(o.err.Code, "22") || o.err.Code == "54000" || o.err.Code == "21000" ||
		o.err.Code == "0A000" && (strings.HasPrefix(o.err.Message, "cannot convert ") || strings.HasPrefix(o.err.Message, "timestamps cannot be binned")))
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
var pending = []explanation{
	{"pending: row locks that PostgreSQL refuses", func(d *Difference) bool {
		return d.judged() && d.want.err != nil && d.want.err.Code == "0A000" && strings.HasPrefix(d.want.err.Message, "FOR ")
	}},
}
