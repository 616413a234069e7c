package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/catalog"
)

// ExplainJSON is Explain in the form of PostgreSQL's EXPLAIN (FORMAT JSON): the same members for estimates and measurements, with percodb's names of
// nodes, and their arguments in Detail.
func ExplainJSON(p *Plan, opts ExplainOptions, sum *ExplainSummary) (string, error) {
	x := newExplainer(opts)
	root := x.node(p.Root, "")
	for i, c := range p.CTEs {
		n := x.node(c, "InitPlan")
		n.Subplan = fmt.Sprintf("with item %d", i+1)
		root.Plans = append(root.Plans, n)
	}
	for len(x.subs) > 0 {
		sub := x.subs[0]
		x.subs = x.subs[1:]
		kind := "InitPlan"
		if sub.Correlated {
			kind = "SubPlan"
		}
		n := x.node(sub.Plan.(Node), kind)
		n.Subplan = fmt.Sprintf("subquery %d", sub.ID+1)
		root.Plans = append(root.Plans, n)
	}
	out := explainedPlan{Plan: root, ExplainRequests: sum.Requests}
	if sum.Planning > 0 {
		out.Planning = millis(sum.Planning)
	}
	if sum.Execution > 0 {
		out.Execution = millis(sum.Execution)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode([]explainedPlan{out}); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// explainedPlan is a plan in JSON, in PostgreSQL's order of members.
type explainedPlan struct {
	Plan *explainedNode `json:"Plan"`
	*ExplainRequests
	Planning  json.Number `json:"Planning Time,omitempty"`
	Execution json.Number `json:"Execution Time,omitempty"`
}

type explainedNode struct {
	Type     string           `json:"Node Type"`
	Relation string           `json:"Parent Relationship,omitempty"`
	Subplan  string           `json:"Subplan Name,omitempty"`
	Table    string           `json:"Relation Name,omitempty"`
	Schema   string           `json:"Schema,omitempty"`
	Detail   string           `json:"Detail,omitempty"`
	Startup  json.Number      `json:"Startup Cost,omitempty"`
	Cost     json.Number      `json:"Total Cost,omitempty"`
	Rows     json.Number      `json:"Plan Rows,omitempty"`
	Width    json.Number      `json:"Plan Width,omitempty"`
	Time     json.Number      `json:"Actual Total Time,omitempty"`
	Actual   json.Number      `json:"Actual Rows,omitempty"`
	Loops    json.Number      `json:"Actual Loops,omitempty"`
	Note     string           `json:"Note,omitempty"`
	Plans    []*explainedNode `json:"Plans,omitempty"`
}

// node describes a node and those below it. Of costs it has the total ones alone, widths are not estimated.
func (x *explainer) node(n Node, relation string) *explainedNode {
	out := &explainedNode{Relation: relation}
	out.Type, out.Detail, _ = strings.Cut(x.describe(n), " ")
	out.Type = strings.TrimSuffix(out.Type, ":")
	if t := readTable(n); t != nil {
		out.Table, out.Schema = t.Name, t.Schema
	}
	if !x.opts.NoCosts {
		e := n.Estimate()
		out.Startup, out.Cost, out.Width = "0.00", decimal(e.Cost, 2), "0"
		out.Rows = decimal(math.Max(e.Rows, 0), 0)
	}
	switch {
	case x.opts.Actual == nil:
	case n.base().Hidden:
		out.Note = "not shown: row security"
	default:
		a, _ := x.opts.Actual(n)
		out.Actual, out.Loops = decimal(float64(a.Rows), 0), decimal(float64(a.Loops), 0)
		if !x.opts.NoTimes {
			out.Time = millis(a.Time)
		}
		out.Note = a.Note
	}
	for i, c := range x.children(n) {
		out.Plans = append(out.Plans, x.node(c, [...]string{"Outer", "Inner", "Member"}[min(i, 2)]))
	}
	return out
}

// readTable returns the table that a node reads; nil: it reads none.
func readTable(n Node) *catalog.TableDescriptor {
	switch n := n.(type) {
	case *PointGet:
		return n.Table
	case *Scan:
		return n.Table
	case *Append:
		return n.Table
	case *VirtualScan:
		return n.Table
	}
	return nil
}

// decimal writes a number; one that JSON does not have, an estimate beyond all bounds, as the largest.
func decimal(v float64, digits int) json.Number {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		v = math.MaxFloat64
	}
	return json.Number(strconv.FormatFloat(v, 'f', digits, 64))
}

func millis(d time.Duration) json.Number { return decimal(d.Seconds()*1e3, 3) }
