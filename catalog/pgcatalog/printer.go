package pgcatalog

import (
	"context"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// printer writes definitions with the expressions that are parts of them, in a session's formats and with the names that its search path shortens.
type printer struct {
	ctx context.Context
	r   catalog.Resolver
	// expr is that of catalog.SystemView; nil: stored texts are shown as they are.
	expr func(ctx context.Context, r catalog.Resolver, e catalog.StoredExpr, pretty bool) (string, error)
}

func (s *scan) printer() *printer {
	p := &printer{ctx: s.ctx, r: s.Resolver}
	if s.view != nil {
		p.expr = s.view.ExprText
	}
	return p
}

func (o *Objects) printer(r catalog.Resolver) *printer {
	return &printer{ctx: background(), r: r, expr: o.ExprText}
}

// text is a stored expression; otherwise is shown if it cannot be bound, as when an object that it names is damaged.
func (p *printer) text(e catalog.StoredExpr, otherwise string, pretty bool) string {
	if p.expr == nil || e.Text == "" {
		return otherwise
	}
	text, err := p.expr(p.ctx, p.r, e, pretty)
	if err != nil {
		return otherwise
	}
	return text
}

// indexText is an expression or the predicate of an index.
func (p *printer) indexText(t *catalog.TableDescriptor, x *catalog.ExprText, of types.Type, pretty bool) string {
	otherwise := x.Full
	if pretty {
		otherwise = x.Pretty
	}
	return p.text(catalog.StoredExpr{Text: x.SQL, Table: t, Type: of}, otherwise, pretty)
}

func (p *printer) checkText(t *catalog.TableDescriptor, c *catalog.CheckDescriptor, pretty bool) string {
	return p.text(catalog.StoredExpr{Text: c.Expr, Table: t, Type: types.TBool}, c.Expr, pretty)
}

// conditionText is a condition on the rows of a table.
func (p *printer) conditionText(t *catalog.TableDescriptor, condition string) string {
	return p.text(catalog.StoredExpr{Text: condition, Table: t, Type: types.TBool}, condition, false)
}

// whenText is the condition of a trigger.
func (p *printer) whenText(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor, pretty bool) string {
	return p.text(catalog.StoredExpr{Text: g.When, Table: t, Trigger: true, Type: types.TBool}, g.When, pretty)
}

// domainCheckText is the condition of a domain's constraint.
func (p *printer) domainCheckText(of types.Type, c *types.DomainCheck, pretty bool) string {
	return p.text(catalog.StoredExpr{Text: c.Expr, Value: of, Type: types.TBool}, c.Expr, pretty)
}

// defaultText is a column's default as clients see it, or the expression of a generated column. A sequence, which the catalog names by number, comes
// by name.
func (p *printer) defaultText(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor, pretty bool) string {
	if c.Generated != "" {
		return p.text(catalog.StoredExpr{Text: c.Generated, Table: t, Type: c.Type}, c.Generated, pretty)
	}
	return p.valueText(p.storedDefault(c), c.Type, pretty)
}

// storedDefault is a column's default as the catalog stores it, or the expression of a generated column, with the name of a sequence.
func (p *printer) storedDefault(c *catalog.ColumnDescriptor) string {
	stored := c.Default
	if c.Generated != "" {
		stored = c.Generated
	}
	// The sequence of a serial column is named by its number, in the defaults of partitions too.
	before, rest, _ := strings.Cut(stored, "nextval('")
	number, after, ok := strings.Cut(rest, "'::regclass)")
	if id, err := strconv.ParseUint(number, 10, 64); ok && err == nil {
		if seq, err := p.r.RelationByID(p.ctx, id); err == nil && seq != nil {
			stored = before + "nextval(" + builtin.QuoteLiteral(relationName(p.ctx, p.r, seq)) + "::regclass)" + after
		}
	}
	return stored
}

// valueText is an expression of no row that is assigned to something of a type.
func (p *printer) valueText(stored string, of types.Type, pretty bool) string {
	return p.text(catalog.StoredExpr{Text: stored, Type: of}, stored, pretty)
}
