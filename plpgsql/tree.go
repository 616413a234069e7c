package plpgsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// Mode is how a parameter passes its value, as in pg_proc.proargmodes.
type Mode byte

// The modes of parameters.
const (
	In       Mode = 'i'
	Out      Mode = 'o'
	InOut    Mode = 'b'
	Variadic Mode = 'v'
	Table    Mode = 't'
)

// reads reports whether a caller gives a value.
func (m Mode) reads() bool { return m == In || m == InOut || m == Variadic }

// writes reports whether the parameter is part of the result.
func (m Mode) writes() bool { return m == Out || m == InOut || m == Table }

// Param is a parameter of a function.
type Param struct {
	Name string // "": it is named by its number alone
	Mode Mode
	Type types.Type
}

// Signature is what a function is to its callers.
type Signature struct {
	Name     string // without parameters; it qualifies their names
	Context  string // as CONTEXT lines name the function: f(integer,text)
	Params   []Param
	Returns  types.Type
	Set      bool   // it returns a set
	Proc     bool   // it is a procedure
	Trigger  bool   // it is a trigger function
	ReadOnly bool   // it is not volatile
	Table    string // identifies the table of a trigger, since the rows of each have another shape
}

// Key identifies the types of the signature.
func (s *Signature) Key() string {
	var b strings.Builder
	for i := range s.Params {
		fmt.Fprintf(&b, "%d/%d,", s.Params[i].Type.OID, s.Params[i].Type.Mod)
	}
	fmt.Fprintf(&b, "%d/%s", s.Returns.OID, s.Table)
	return b.String()
}

// UsesDefinedTypes reports whether variables or the result have types that users define.
func (f *Function) UsesDefinedTypes() bool {
	return f.Signature.Returns.Def != nil || slices.ContainsFunc(f.vars, func(v *variable) bool { return v.typ.Def != nil })
}

// Inline is the signature of the code of DO.
func Inline() *Signature {
	return &Signature{Name: inlineName, Context: inlineName, Returns: types.TVoid}
}

const inlineName = "inline_code_block"

// Function is a parsed function. Immutable.
type Function struct {
	Signature *Signature
	Source    string
	vars      []*variable
	body      *block
	found     int   // the variable FOUND
	params    []int // the variables of the parameters, in order
	result    int   // the variable of the only output parameter; -1: none, or several
	outs      []int // the variables of the output parameters
	new, old  int   // the rows of a trigger; 0: it is none
	exprs     int   // how many expressions it has
	resolve   Conflict
	inline    bool
	// strictParams: errors of INTO STRICT show the parameters.
	strictParams bool
}

// Conflict says what a name means that both a variable and a column have.
type Conflict uint8

const (
	conflictError Conflict = iota
	preferVariable
	preferColumn
)

// variable is a variable as it is declared.
type variable struct {
	name     string
	line     int
	typ      types.Type
	record   bool // of a composite type, or of type record: it may have fields
	constant bool
	notNull  bool
	def      *expression
	cursor   *cursorDecl // a bound cursor; nil: it is none
}

// any reports whether the variable takes rows of all shapes.
func (v *variable) any() bool { return v.record && v.typ.OID == types.OIDRecord }

type cursorDecl struct {
	query  *expression
	params []int // variables
	names  []string
	scroll scrolling
}

// scrolling is SCROLL or NO SCROLL.
type scrolling uint8

const (
	scrollUnset scrolling = iota
	scrollYes
	scrollNo
)

// expression is an SQL expression or statement.
type expression struct {
	id    int    // among those of its function
	text  string // as PostgreSQL quotes it in errors
	kind  exprKind
	names *name
	query ast.Statement // parsed
	// cursor: it is the query of a cursor, which WHERE CURRENT OF may name.
	cursor bool
	// refused is why percodb does not run the statement; nil: it does.
	refused error
	// target is of an assignment: what is assigned to.
	target *target
	// shift is what the position in text of an error differs by from that in the query that was parsed.
	shift int
}

type exprKind uint8

const (
	valueExpr     exprKind = iota // SQL expression
	assignExpr                    // PL/pgSQL assignment
	statementExpr                 // SQL statement
)

// target is a place that is assigned to.
type target struct {
	variable int
	field    string     // of a record; "": the variable
	path     []ast.Step // within the value
	list     []*target  // several; variable is meaningless then
	offset   int
}

type stmt interface{ at() *place }

// place is where a statement is.
type place struct{ line int }

func (p *place) at() *place { return p }

type (
	block struct {
		place
		label    string
		vars     []int // declared, in order
		body     []stmt
		handlers []*handler
		// state and message are the variables SQLSTATE and SQLERRM of its handlers.
		state, message int
	}
	handler struct {
		line       int
		conditions []condition
		body       []stmt
	}
	assignStmt struct {
		place
		value *expression
	}
	ifStmt struct {
		place
		arms []arm
		els  []stmt
	}
	arm struct {
		line int
		cond *expression
		body []stmt
	}
	caseStmt struct {
		place
		operand *expression // nil: a searched CASE
		value   int         // the variable of operand
		arms    []arm
		els     []stmt
		hasElse bool
	}
	loopStmt struct {
		place
		label string
		body  []stmt
	}
	whileStmt struct {
		place
		label string
		cond  *expression
		body  []stmt
	}
	forIntStmt struct {
		place
		label        string
		variable     int
		from, to, by *expression // by may be nil
		reverse      bool
		body         []stmt
	}
	forQueryStmt struct {
		place
		label string
		into  *target
		query *expression // of rows, or of the text of EXECUTE
		// dynamic: query computes a text; using are its parameters.
		dynamic bool
		using   []*expression
		body    []stmt
	}
	forCursorStmt struct {
		place
		label    string
		cursor   int
		args     []*expression
		variable int
		body     []stmt
	}
	forEachStmt struct {
		place
		label string
		into  *target
		slice int
		array *expression
		body  []stmt
	}
	exitStmt struct {
		place
		exit  bool // or CONTINUE
		label string
		cond  *expression
	}
	returnStmt struct {
		place
		value    *expression
		variable int // the result, if value is nil; -1: there is none
	}
	returnNextStmt struct {
		place
		value    *expression
		variable int
	}
	returnQueryStmt struct {
		place
		query   *expression
		dynamic bool
		using   []*expression
	}
	performStmt struct {
		place
		query *expression
	}
	callStmt struct {
		place
		query *expression
		do    bool
	}
	executeStmt struct {
		place
		query  *expression
		into   *target
		strict bool
		using  []*expression
	}
	sqlStmt struct {
		place
		query  *expression
		into   *target
		strict bool
	}
	diagStmt struct {
		place
		stacked bool
		items   []diagItem
	}
	diagItem struct {
		into *target
		kind string
	}
	raiseStmt struct {
		place
		again   bool // RAISE alone
		level   string
		cond    string // its name or SQLSTATE; "": none
		message string
		hasText bool
		params  []*expression
		options []raiseOption
	}
	raiseOption struct {
		kind  string
		value *expression
	}
	assertStmt struct {
		place
		cond, message *expression
	}
	openStmt struct {
		place
		cursor  int
		scroll  scrolling
		query   *expression
		dynamic bool
		using   []*expression
		args    []*expression
		bound   bool
	}
	fetchStmt struct {
		place
		move      bool
		cursor    int
		into      *target
		direction string
		count     *expression // nil: n
		n         int64
		all       bool
		many      bool
	}
	closeStmt struct {
		place
		cursor int
	}
	endTxnStmt struct {
		place
		commit bool
		chain  bool
	}
	nullStmt struct{ place }
)

// kindOf names a statement in CONTEXT lines.
func kindOf(s stmt) string {
	switch s := s.(type) {
	case *block:
		return "statement block"
	case *assignStmt:
		return "assignment"
	case *ifStmt:
		return "IF"
	case *caseStmt:
		return "CASE"
	case *loopStmt:
		return "LOOP"
	case *whileStmt:
		return "WHILE"
	case *forIntStmt:
		return "FOR with integer loop variable"
	case *forQueryStmt:
		if s.dynamic {
			return "FOR over EXECUTE statement"
		}
		return "FOR over SELECT rows"
	case *forCursorStmt:
		return "FOR over cursor"
	case *forEachStmt:
		return "FOREACH over array"
	case *exitStmt:
		if s.exit {
			return "EXIT"
		}
		return "CONTINUE"
	case *returnStmt:
		return "RETURN"
	case *returnNextStmt:
		return "RETURN NEXT"
	case *returnQueryStmt:
		return "RETURN QUERY"
	case *raiseStmt:
		return "RAISE"
	case *assertStmt:
		return "ASSERT"
	case *executeStmt:
		return "EXECUTE"
	case *diagStmt:
		if s.stacked {
			return "GET STACKED DIAGNOSTICS"
		}
		return "GET DIAGNOSTICS"
	case *openStmt:
		return "OPEN"
	case *fetchStmt:
		if s.move {
			return "MOVE"
		}
		return "FETCH"
	case *closeStmt:
		return "CLOSE"
	case *performStmt:
		return "PERFORM"
	case *callStmt:
		if s.do {
			return "DO"
		}
		return "CALL"
	case *endTxnStmt:
		if s.commit {
			return "COMMIT"
		}
		return "ROLLBACK"
	}
	return "SQL statement"
}
