package ast

type (
	// OperatorClass is CREATE OPERATOR CLASS.
	OperatorClass struct {
		Pos
		Name    []string
		Default bool
		Type    TypeName
		Method  string
		Family  []string
		Items   []OperatorItem
	}
	// OperatorFamily is CREATE OPERATOR FAMILY, or ALTER with Action "ADD" or "DROP".
	OperatorFamily struct {
		Pos
		Name   []string
		Method string
		Action string
		Items  []OperatorItem
	}
	// CreateCast is CREATE CAST.
	CreateCast struct {
		Pos
		From, To TypeName
		Function *Object // nil: WITHOUT FUNCTION, or WITH INOUT
		InOut    bool
		Context  string // "", "IMPLICIT", "ASSIGNMENT"
	}
	// CreateTransform is CREATE TRANSFORM.
	CreateTransform struct {
		Pos
		OrReplace bool
		Type      TypeName
		Language  string
		From, To  *Object // FROM SQL and TO SQL WITH FUNCTION
	}
	// CreateConversion is CREATE CONVERSION.
	CreateConversion struct {
		Pos
		Default  bool
		Name     []string
		For, To  string
		Function []string
	}
	// CreateLanguage is CREATE LANGUAGE.
	CreateLanguage struct {
		Pos
		OrReplace   bool
		Trusted     bool
		Name        string
		Handler     []string // nil: an extension
		Inline      []string
		Validator   []string
		NoValidator bool
	}
	// CreateAccessMethod is CREATE ACCESS METHOD. Type is "INDEX" or "TABLE".
	CreateAccessMethod struct {
		Pos
		Name    string
		Type    string
		Handler []string
	}
	// CreateStatistics is CREATE STATISTICS.
	CreateStatistics struct {
		Pos
		IfNotExists bool
		Name        []string
		Kinds       []string
		Items       []IndexColumn
		From        []TableExpr
	}
	// AlterStatistics is ALTER STATISTICS … SET STATISTICS.
	AlterStatistics struct {
		Pos
		IfExists bool
		Name     []string
		Target   string
	}
	// AlterTextSearch is ALTER TEXT SEARCH CONFIGURATION … MAPPING, or ALTER TEXT SEARCH DICTIONARY with Items.
	AlterTextSearch struct {
		Pos
		Name         []string
		Items        []DefItem
		Action       string // "ADD", "ALTER", "DROP"
		IfExists     bool
		Tokens       []string
		Replace      []string // REPLACE
		Dictionaries [][]string
	}
)

// OperatorItem is an item of an operator class or family. Kind is "OPERATOR", "FUNCTION" or "STORAGE".
type OperatorItem struct {
	Pos
	Kind     string
	Number   string
	Operator []string
	Operands []*TypeName // nil: not written
	Search   bool        // FOR SEARCH
	Order    []string    // FOR ORDER BY
	Types    []TypeName  // of FUNCTION, and of a dropped item
	Function *Object
	Storage  *TypeName
}

func (*OperatorClass) statement()      {}
func (*OperatorFamily) statement()     {}
func (*CreateCast) statement()         {}
func (*CreateTransform) statement()    {}
func (*CreateConversion) statement()   {}
func (*CreateLanguage) statement()     {}
func (*CreateAccessMethod) statement() {}
func (*CreateStatistics) statement()   {}
func (*AlterStatistics) statement()    {}
func (*AlterTextSearch) statement()    {}

// Kind returns the kind of the object that changes.
func (x *AlterTextSearch) Kind() string {
	if x.Action == "" {
		return "TEXT SEARCH DICTIONARY"
	}
	return "TEXT SEARCH CONFIGURATION"
}

func (x *OperatorClass) String() string      { return statementString(x) }
func (x *OperatorFamily) String() string     { return statementString(x) }
func (x *CreateCast) String() string         { return statementString(x) }
func (x *CreateTransform) String() string    { return statementString(x) }
func (x *CreateConversion) String() string   { return statementString(x) }
func (x *CreateLanguage) String() string     { return statementString(x) }
func (x *CreateAccessMethod) String() string { return statementString(x) }
func (x *CreateStatistics) String() string   { return statementString(x) }
func (x *AlterStatistics) String() string    { return statementString(x) }
func (x *AlterTextSearch) String() string    { return statementString(x) }
