package ast

// catalogObjects writes the statements about operators, casts, languages and their kin, and reports whether s is one.
func (p *printer) catalogObjects(s Statement) bool {
	switch s := s.(type) {
	case *OperatorClass:
		p.str("CREATE OPERATOR CLASS ")
		p.idents(s.Name, ".")
		p.when(s.Default, " DEFAULT")
		p.str(" FOR TYPE ")
		p.typeName(&s.Type)
		p.str(" USING ")
		p.ident(s.Method)
		if s.Family != nil {
			p.str(" FAMILY ")
			p.idents(s.Family, ".")
		}
		p.str(" AS ")
		p.operatorItems(s.Items)
	case *OperatorFamily:
		p.createOrAlter(s.Action != "", "OPERATOR FAMILY ")
		p.idents(s.Name, ".")
		p.str(" USING ")
		p.ident(s.Method)
		if s.Action != "" {
			p.str(" " + s.Action + " ")
			p.operatorItems(s.Items)
		}
	case *CreateCast:
		p.createCast(s)
	case *CreateTransform:
		p.createTransform(s)
	case *CreateConversion:
		p.str("CREATE ")
		p.when(s.Default, "DEFAULT ")
		p.str("CONVERSION ")
		p.idents(s.Name, ".")
		p.str(" FOR ")
		p.quoted(s.For)
		p.str(" TO ")
		p.quoted(s.To)
		p.str(" FROM ")
		p.idents(s.Function, ".")
	case *CreateLanguage:
		p.createLanguage(s)
	case *CreateAccessMethod:
		p.str("CREATE ACCESS METHOD ")
		p.ident(s.Name)
		p.str(" TYPE " + s.Type + " HANDLER ")
		p.idents(s.Handler, ".")
	case *CreateStatistics:
		p.createStatistics(s)
	case *AlterStatistics:
		p.str("ALTER STATISTICS ")
		p.when(s.IfExists, "IF EXISTS ")
		p.idents(s.Name, ".")
		p.str(" SET STATISTICS " + s.Target)
	case *AlterTextSearch:
		p.alterTextSearch(s)
	default:
		return false
	}
	return true
}

func (p *printer) operatorItems(items []OperatorItem) {
	for i := range items {
		p.when(i > 0, ", ")
		o := &items[i]
		p.str(o.Kind + " ")
		if o.Storage != nil {
			p.typeName(o.Storage)
			continue
		}
		p.str(o.Number)
		if o.Operator != nil {
			p.str(" ")
			p.operatorPath(o.Operator)
		}
		if o.Operands != nil {
			p.operands(o.Operands)
		}
		p.typeList(o.Types)
		if o.Function != nil {
			p.str(" ")
			p.objectName(o.Function)
		}
		p.when(o.Search, " FOR SEARCH")
		if o.Order != nil {
			p.str(" FOR ORDER BY ")
			p.idents(o.Order, ".")
		}
	}
}

// typeList writes (type, …), nothing for none.
func (p *printer) typeList(types []TypeName) {
	for i := range types {
		p.when(i == 0, " (")
		p.when(i > 0, ", ")
		p.typeName(&types[i])
	}
	p.when(len(types) > 0, ")")
}

func (p *printer) createCast(s *CreateCast) {
	p.str("CREATE CAST (")
	p.typeName(&s.From)
	p.str(" AS ")
	p.typeName(&s.To)
	switch {
	case s.Function != nil:
		p.str(") WITH FUNCTION ")
		p.objectName(s.Function)
	case s.InOut:
		p.str(") WITH INOUT")
	default:
		p.str(") WITHOUT FUNCTION")
	}
	p.when(s.Context != "", " AS "+s.Context)
}

func (p *printer) createTransform(s *CreateTransform) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.str("TRANSFORM FOR ")
	p.typeName(&s.Type)
	p.str(" LANGUAGE ")
	p.ident(s.Language)
	p.str(" (")
	if s.From != nil {
		p.str("FROM SQL WITH FUNCTION ")
		p.objectName(s.From)
	}
	if s.To != nil {
		p.when(s.From != nil, ", ")
		p.str("TO SQL WITH FUNCTION ")
		p.objectName(s.To)
	}
	p.str(")")
}

func (p *printer) createLanguage(s *CreateLanguage) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.when(s.Trusted, "TRUSTED ")
	p.str("LANGUAGE ")
	p.ident(s.Name)
	clause := func(word string, name []string) {
		if name != nil {
			p.str(word)
			p.idents(name, ".")
		}
	}
	clause(" HANDLER ", s.Handler)
	clause(" INLINE ", s.Inline)
	clause(" VALIDATOR ", s.Validator)
	p.when(s.NoValidator, " NO VALIDATOR")
}

func (p *printer) createStatistics(s *CreateStatistics) {
	p.str("CREATE STATISTICS ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.idents(s.Name, ".")
	p.columns(s.Kinds)
	p.str(" ON ")
	for i := range s.Items {
		p.when(i > 0, ", ")
		p.indexColumn(&s.Items[i])
	}
	p.str(" FROM ")
	p.tables(s.From)
}

func (p *printer) alterTextSearch(s *AlterTextSearch) {
	if s.Items != nil {
		p.str("ALTER TEXT SEARCH DICTIONARY ")
		p.idents(s.Name, ".")
		p.str(" ")
		p.definitions(s.Items)
		return
	}
	p.str("ALTER TEXT SEARCH CONFIGURATION ")
	p.idents(s.Name, ".")
	p.str(" " + s.Action + " MAPPING")
	p.when(s.IfExists, " IF EXISTS")
	if s.Tokens != nil {
		p.str(" FOR ")
		p.idents(s.Tokens, ", ")
	}
	if s.Replace != nil {
		p.str(" REPLACE ")
		p.idents(s.Replace, ".")
	}
	for i, d := range s.Dictionaries {
		p.when(i == 0, " WITH ")
		p.when(i > 0, ", ")
		p.idents(d, ".")
	}
}
