package ast

// Object names an object of any kind, as DROP, COMMENT ON, ALTER and SECURITY LABEL do.
type Object struct {
	Pos
	Kind string // "TABLE", "OPERATOR CLASS", "TEXT SEARCH PARSER", …
	// Name is the possibly qualified name, the symbol last for OPERATOR; none for CAST and USER MAPPING.
	Name      []string
	Signature *Signature  // of FUNCTION, PROCEDURE, ROUTINE and AGGREGATE; nil if not written
	Types     []*TypeName // the operands of OPERATOR (nil: NONE), source and target of CAST, the type of TYPE, DOMAIN and TRANSFORM
	On        []string    // the table of COLUMN's kin: CONSTRAINT, POLICY, RULE, TRIGGER
	OnDomain  *TypeName   // CONSTRAINT … ON DOMAIN
	Using     string      // the access method of OPERATOR CLASS and OPERATOR FAMILY, the language of TRANSFORM
	Number    string      // of LARGE OBJECT
	Role      *Role       // of USER MAPPING, whose server is Using
}

// Role names a role: a word, or one of CURRENT_ROLE, CURRENT_USER and SESSION_USER.
type Role struct {
	Pos
	Name    string
	Keyword bool
}

// DefItem is an item of a list of definitions: name [= value].
type DefItem struct {
	Pos
	Name  string
	Value *DefValue
}

// DefValue is the value of a DefItem: exactly one of its kinds is given.
type DefValue struct {
	Type      *TypeName // a name or a type
	Word      string    // a reserved word, or NONE
	Operator  string
	Qualified bool // as of Unary
	Number    string
	Text      *Text
}

// Text is a string constant.
type Text struct{ Value string }

type (
	// DropObjects is DROP of objects of the kinds that Drop does not have.
	DropObjects struct {
		Pos
		Objects  []Object
		IfExists bool
		Cascade  bool
		Options  []DefItem // of DROP DATABASE
	}
	// AlterObject is a change that objects of many kinds have.
	AlterObject struct {
		Pos
		Object   Object
		IfExists bool
		Change   ObjectChange
	}
	// ObjectChange is the change of an AlterObject: exactly one is asked for.
	ObjectChange struct {
		Pos
		Rename      string // RENAME TO
		Owner       *Role  // OWNER TO
		Schema      string // SET SCHEMA
		NoDepends   bool   // NO DEPENDS ON EXTENSION
		Extension   string // DEPENDS ON EXTENSION
		Definitions []DefItem
		Version     bool   // REFRESH VERSION
		Enabled     string // of EVENT TRIGGER: "ENABLE", "ENABLE ALWAYS", "ENABLE REPLICA", "DISABLE"
	}
	// Comment is COMMENT ON.
	Comment struct {
		Pos
		Object
		Text *string
	}
	// SecurityLabel is SECURITY LABEL.
	SecurityLabel struct {
		Pos
		Provider string
		Object   Object
		Label    *string
	}
	// Define is CREATE of AGGREGATE, OPERATOR, COLLATION, TEXT SEARCH … and of base types: a name with a list of definitions.
	Define struct {
		Pos
		Kind        string
		OrReplace   bool
		IfNotExists bool
		Name        []string
		Signature   *Signature // of AGGREGATE, nil in its old form
		From        []string   // COLLATION … FROM
		Items       []DefItem  // nil: no list
	}
)

func (*DropObjects) statement()   {}
func (*AlterObject) statement()   {}
func (*SecurityLabel) statement() {}
func (*Define) statement()        {}

func (x *DropObjects) String() string   { return statementString(x) }
func (x *AlterObject) String() string   { return statementString(x) }
func (x *SecurityLabel) String() string { return statementString(x) }
func (x *Define) String() string        { return statementString(x) }
