package ast

// xml writes a function for XML.
func (p *printer) xml(x *XML) {
	p.str(x.Function + "(")
	switch x.Function {
	case "XMLCONCAT":
		p.list(x.Args)
	case "XMLELEMENT":
		p.str("NAME ")
		p.ident(x.Name)
		if len(x.Attributes) > 0 {
			p.str(", XMLATTRIBUTES(")
			p.xmlAttributes(x.Attributes)
			p.str(")")
		}
		for _, arg := range x.Args {
			p.str(", ")
			p.expr(arg)
		}
	case "XMLFOREST":
		p.xmlAttributes(x.Attributes)
	case "XMLEXISTS":
		p.operand(x.Args[0])
		p.str(" PASSING ")
		p.operand(x.Args[1])
	case "XMLPARSE":
		p.xmlOption(x.Content)
		p.expr(x.Args[0])
		p.when(x.Preserve, " PRESERVE WHITESPACE")
	case "XMLPI":
		p.str("NAME ")
		p.ident(x.Name)
		if len(x.Args) > 0 {
			p.str(", ")
			p.expr(x.Args[0])
		}
	case "XMLROOT":
		p.expr(x.Args[0])
		p.str(", VERSION ")
		if _, none := x.Args[1].(*Null); none {
			p.str("NO VALUE")
		} else {
			p.expr(x.Args[1])
		}
		p.when(x.Standalone != "", ", STANDALONE "+x.Standalone)
	case "XMLSERIALIZE":
		p.xmlOption(x.Content)
		p.expr(x.Args[0])
		p.str(" AS ")
		p.typeName(&x.Type)
	}
	p.str(")")
}

func (p *printer) xmlOption(content bool) {
	if content {
		p.str("CONTENT ")
	} else {
		p.str("DOCUMENT ")
	}
}

func (p *printer) xmlAttributes(items []SelectItem) {
	for i, item := range items {
		p.when(i > 0, ", ")
		p.expr(item.Expr)
		if item.Aliased {
			p.str(" AS ")
			p.ident(item.Name)
		}
	}
}

func (p *printer) xmlTable(t *XMLTable) {
	p.str("XMLTABLE(")
	for i, ns := range t.Namespaces {
		p.when(i == 0, "XMLNAMESPACES(")
		p.when(i > 0, ", ")
		p.when(!ns.Aliased, "DEFAULT ")
		p.operand(ns.Expr)
		if ns.Aliased {
			p.str(" AS ")
			p.ident(ns.Name)
		}
	}
	p.when(len(t.Namespaces) > 0, "), ")
	p.operand(t.Row)
	p.str(" PASSING ")
	p.operand(t.Document)
	p.str(" COLUMNS ")
	for i := range t.Columns {
		c := &t.Columns[i]
		p.when(i > 0, ", ")
		p.ident(c.Name)
		if c.Type == nil {
			p.str(" FOR ORDINALITY")
			continue
		}
		p.str(" ")
		p.typeName(c.Type)
		if c.Path != nil {
			p.str(" PATH ")
			p.operand(c.Path)
		}
		if c.Default != nil {
			p.str(" DEFAULT ")
			p.operand(c.Default)
		}
		p.when(c.NotNull, " NOT NULL")
	}
	p.str(")")
}
