package ast

// routines writes the statements about functions and procedures, and reports whether s is one.
func (p *printer) routines(s Statement) bool {
	switch s := s.(type) {
	case *CreateFunction:
		p.createFunction(s)
	case *AlterFunction:
		p.str("ALTER ")
		p.object(&s.Function)
		p.functionOptions(s.Options)
	case *Do:
		p.str("DO")
		for i := range s.Options {
			p.when(s.Options[i].Kind == "LANGUAGE", " LANGUAGE")
			p.str(" ")
			p.quoted(s.Options[i].Values[0])
		}
	case *CallProcedure:
		p.str("CALL ")
		p.expr(s.Call)
	case *ReturnStatement:
		p.str("RETURN ")
		p.expr(s.Value)
	default:
		return false
	}
	return true
}

func (p *printer) createFunction(s *CreateFunction) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	if s.Procedure {
		p.str("PROCEDURE ")
	} else {
		p.str("FUNCTION ")
	}
	p.idents(s.Name, ".")
	p.str("(")
	p.parameters(s.Params)
	p.str(")")
	switch {
	case s.Table != nil:
		p.str(" RETURNS TABLE (")
		p.parameters(s.Table)
		p.str(")")
	case s.Returns != nil:
		p.str(" RETURNS ")
		p.typeName(s.Returns)
	}
	p.functionOptions(s.Options)
	switch {
	case s.Return != nil:
		p.str(" RETURN ")
		p.expr(s.Return)
	case s.Atomic:
		p.str(" BEGIN ATOMIC ")
		for _, inner := range s.Body {
			p.statement(inner)
			p.str("; ")
		}
		p.str("END")
	}
}

// signature writes the parameters of a routine with their parentheses.
func (p *printer) signature(s *Signature) {
	p.str("(")
	p.when(s.Star, "*")
	p.parameters(s.Params)
	if s.Ordered {
		p.when(len(s.Params) > 0, " ")
		p.str("ORDER BY ")
		p.parameters(s.OrderBy)
	}
	p.str(")")
}

func (p *printer) parameters(list []Parameter) {
	for i := range list {
		a := &list[i]
		p.when(i > 0, ", ")
		p.when(a.Mode != "", a.Mode+" ")
		if a.Name != "" {
			p.ident(a.Name)
			p.str(" ")
		}
		p.typeName(&a.Type)
		if a.Default != nil {
			p.str(" DEFAULT ")
			p.expr(a.Default)
		}
	}
}

func (p *printer) functionOptions(list []FunctionOption) {
	for i := range list {
		o := &list[i]
		p.str(" ")
		switch o.Kind {
		case "AS", "LANGUAGE":
			p.str(o.Kind + " ")
			for j, v := range o.Values {
				p.when(j > 0, ", ")
				p.quoted(v)
			}
		case "TRANSFORM":
			for j := range o.Types {
				p.when(j == 0, "TRANSFORM ")
				p.when(j > 0, ", ")
				p.str("FOR TYPE ")
				p.typeName(&o.Types[j])
			}
		case "COST", "ROWS":
			p.str(o.Kind + " " + o.Values[0])
		case "SUPPORT", "PARALLEL":
			p.str(o.Kind + " ")
			p.idents(o.Values, ".")
		case "SET":
			p.set(o.Set)
		default:
			p.str(o.Kind)
		}
	}
}
