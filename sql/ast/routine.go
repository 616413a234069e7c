package ast

type (
	// CreateFunction is CREATE FUNCTION or PROCEDURE.
	CreateFunction struct {
		Pos
		OrReplace bool
		Procedure bool
		Name      []string
		Params    []Parameter
		Returns   *TypeName
		Table     []Parameter // RETURNS TABLE
		Options   []FunctionOption
		Return    Expr        // the body RETURN expression
		Atomic    bool        // the body is BEGIN ATOMIC …
		Body      []Statement // of BEGIN ATOMIC
	}
	// AlterFunction is ALTER FUNCTION, PROCEDURE or ROUTINE with options.
	AlterFunction struct {
		Pos
		Function Object
		Options  []FunctionOption
	}
	// Do is DO.
	Do struct {
		Pos
		Options []FunctionOption // AS and LANGUAGE
	}
	// CallProcedure is CALL.
	CallProcedure struct {
		Pos
		Call *Call
	}
	// ReturnStatement is RETURN in the body of a function.
	ReturnStatement struct {
		Pos
		Value Expr
	}
)

// Signature is what follows the name of a routine: its parameters.
type Signature struct {
	Star    bool // (*)
	Params  []Parameter
	Ordered bool // ORDER BY is written
	OrderBy []Parameter
}

// Parameter is a parameter of a routine.
type Parameter struct {
	Pos
	Mode    string // "", "IN", "OUT", "INOUT", "VARIADIC"
	Name    string
	Type    TypeName
	Default Expr
}

// FunctionOption is an option of a function.
type FunctionOption struct {
	Pos
	// Kind is the option's words: "AS", "LANGUAGE", "TRANSFORM", "WINDOW", "STRICT", "CALLED ON NULL INPUT", "IMMUTABLE",
	// "SECURITY DEFINER", "NOT LEAKPROOF", "COST", "ROWS", "SUPPORT", "SET", "PARALLEL", …
	Kind string
	// ValueAt is where the body begins that AS gives, behind its quote; 0: its characters are not those between the quotes.
	ValueAt Pos
	Values  []string // of AS: one or two strings; of LANGUAGE, COST, ROWS, PARALLEL: one; of SUPPORT: a name
	Types   []TypeName
	Set     *Set
}

func (*CreateFunction) statement()  {}
func (*AlterFunction) statement()   {}
func (*Do) statement()              {}
func (*CallProcedure) statement()   {}
func (*ReturnStatement) statement() {}

func (x *CreateFunction) String() string  { return statementString(x) }
func (x *AlterFunction) String() string   { return statementString(x) }
func (x *Do) String() string              { return statementString(x) }
func (x *CallProcedure) String() string   { return statementString(x) }
func (x *ReturnStatement) String() string { return statementString(x) }
