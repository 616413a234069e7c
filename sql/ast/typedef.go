package ast

type (
	// CreateType is CREATE TYPE but for base types, which Define has. Kind is "", "COMPOSITE", "ENUM" or "RANGE".
	CreateType struct {
		Pos
		Name       []string
		Kind       string
		Attributes []ColumnTypeDef
		Labels     []string
		Items      []DefItem
	}
	// CreateDomain is CREATE DOMAIN. Column has the type and the constraints, and no name.
	CreateDomain struct {
		Pos
		Name   []string
		Column ColumnDef
	}
	// AlterEnum is ALTER TYPE … ADD VALUE, or RENAME VALUE with Old.
	AlterEnum struct {
		Pos
		Name        []string
		IfNotExists bool
		Old         *string
		Value       string
		Place       string // "", "BEFORE", "AFTER"
		Neighbour   string
	}
	// AlterType is ALTER TYPE with changes of attributes.
	AlterType struct {
		Pos
		Name    []string
		Changes []AttributeChange
	}
	// RenameAttribute is ALTER TYPE … RENAME ATTRIBUTE.
	RenameAttribute struct {
		Pos
		Name     []string
		From, To string
		Cascade  bool
	}
	// AlterDomain is ALTER DOMAIN; Action is "SET DEFAULT", "DROP DEFAULT", "SET NOT NULL", "DROP NOT NULL", "ADD", "DROP CONSTRAINT",
	// "VALIDATE CONSTRAINT" or "RENAME CONSTRAINT".
	AlterDomain struct {
		Pos
		Name       []string
		Action     string
		Default    Expr
		Constraint *TableConstraint
		IfExists   bool
		Old, New   string // names of constraints
		Cascade    bool
	}
)

// AttributeChange is a change of a composite type: Action is "ADD", "DROP" or "ALTER".
type AttributeChange struct {
	Pos
	Action    string
	Attribute ColumnTypeDef
	IfExists  bool
	Cascade   bool
}

func (*CreateType) statement()      {}
func (*CreateDomain) statement()    {}
func (*AlterEnum) statement()       {}
func (*AlterType) statement()       {}
func (*RenameAttribute) statement() {}
func (*AlterDomain) statement()     {}

func (x *CreateType) String() string      { return statementString(x) }
func (x *CreateDomain) String() string    { return statementString(x) }
func (x *AlterEnum) String() string       { return statementString(x) }
func (x *AlterType) String() string       { return statementString(x) }
func (x *RenameAttribute) String() string { return statementString(x) }
func (x *AlterDomain) String() string     { return statementString(x) }
