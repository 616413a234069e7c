package ast

type (
	// CreateExtension is CREATE EXTENSION.
	CreateExtension struct {
		Pos
		IfNotExists bool
		Name        string
		Options     []ExtensionOption
	}
	// AlterExtension is ALTER EXTENSION … UPDATE, or ADD and DROP of an object.
	AlterExtension struct {
		Pos
		Name    string
		Version *string // UPDATE TO
		Action  string  // "UPDATE", "ADD", "DROP"
		Object  *Object
	}
	// DataWrapper is CREATE or ALTER FOREIGN DATA WRAPPER.
	DataWrapper struct {
		Pos
		Alter    bool
		Name     string
		Handlers []HandlerOption
		Options  []ForeignOption
	}
	// Server is CREATE or ALTER SERVER.
	Server struct {
		Pos
		Alter       bool
		IfNotExists bool
		Name        string
		Type        *string
		Version     *string
		NoVersion   bool // VERSION NULL
		Wrapper     string
		Options     []ForeignOption
	}
	// UserMapping is CREATE or ALTER USER MAPPING.
	UserMapping struct {
		Pos
		Alter       bool
		IfNotExists bool
		Role        Role
		Server      string
		Options     []ForeignOption
	}
	// CreateForeignTable is CREATE FOREIGN TABLE.
	CreateForeignTable struct {
		Pos
		Table   *CreateTable
		Server  string
		Options []ForeignOption
	}
	// ImportForeignSchema is IMPORT FOREIGN SCHEMA.
	ImportForeignSchema struct {
		Pos
		Schema  string
		Filter  string // "", "LIMIT TO", "EXCEPT"
		Tables  []TableName
		Server  string
		Into    string
		Options []ForeignOption
	}
	// Publication is CREATE PUBLICATION, or ALTER PUBLICATION with Action "ADD", "DROP" or "SET".
	Publication struct {
		Pos
		Action    string
		Name      string
		AllTables bool
		Objects   []PublicationObject
		Options   []DefItem
	}
	// CreateSubscription is CREATE SUBSCRIPTION.
	CreateSubscription struct {
		Pos
		Name         string
		Connection   string
		Publications []string
		Options      []DefItem
	}
	// AlterSubscription is ALTER SUBSCRIPTION. Action is "SET", "SKIP", "CONNECTION", "REFRESH PUBLICATION", "ADD PUBLICATION",
	// "DROP PUBLICATION", "SET PUBLICATION", "ENABLE" or "DISABLE".
	AlterSubscription struct {
		Pos
		Name         string
		Action       string
		Connection   string
		Publications []string
		Options      []DefItem
	}
)

// Relation names a table; Only is ONLY.
type Relation struct {
	TableName
	Only bool
}

// ExtensionOption is SCHEMA name, VERSION 'text' or CASCADE.
type ExtensionOption struct {
	Pos
	Kind, Value string
}

// HandlerOption is HANDLER name, VALIDATOR name, or either with NO in front.
type HandlerOption struct {
	Pos
	Kind string
	Name []string // nil with NO
}

// ForeignOption is an item of OPTIONS. Action is "", "ADD", "SET" or "DROP".
type ForeignOption struct {
	Pos
	Action, Name, Value string
}

// PublicationObject is a table, or a schema whose tables are published (CURRENT_SCHEMA with Current).
type PublicationObject struct {
	Pos
	Schema  string
	Current bool
	Table   *Relation
	Columns []string
	Where   Expr
}

func (*CreateExtension) statement()     {}
func (*AlterExtension) statement()      {}
func (*DataWrapper) statement()         {}
func (*Server) statement()              {}
func (*UserMapping) statement()         {}
func (*CreateForeignTable) statement()  {}
func (*ImportForeignSchema) statement() {}
func (*Publication) statement()         {}
func (*CreateSubscription) statement()  {}
func (*AlterSubscription) statement()   {}

func (x *CreateExtension) String() string     { return statementString(x) }
func (x *AlterExtension) String() string      { return statementString(x) }
func (x *DataWrapper) String() string         { return statementString(x) }
func (x *Server) String() string              { return statementString(x) }
func (x *UserMapping) String() string         { return statementString(x) }
func (x *CreateForeignTable) String() string  { return statementString(x) }
func (x *ImportForeignSchema) String() string { return statementString(x) }
func (x *Publication) String() string         { return statementString(x) }
func (x *CreateSubscription) String() string  { return statementString(x) }
func (x *AlterSubscription) String() string   { return statementString(x) }
