package ast

type (
	// CreateTrigger is CREATE [CONSTRAINT] TRIGGER.
	CreateTrigger struct {
		Pos
		OrReplace  bool
		Constraint bool
		Name       string
		Timing     string // "BEFORE", "AFTER", "INSTEAD OF"
		Events     []TriggerEvent
		Table      TableName
		From       *TableName // of a constraint trigger
		Attributes []string   // "DEFERRABLE", "INITIALLY DEFERRED", …
		Transition []TransitionTable
		ForEach    string // "", "ROW", "STATEMENT"
		When       Expr
		Function   []string
		Args       []string
	}
	// CreateEventTrigger is CREATE EVENT TRIGGER.
	CreateEventTrigger struct {
		Pos
		Name, Event string
		Filters     []EventFilter
		Function    []string
	}
	// CreateRule is CREATE RULE.
	CreateRule struct {
		Pos
		OrReplace bool
		Name      string
		Event     string // "SELECT", "UPDATE", "DELETE", "INSERT"
		Table     TableName
		Where     Expr
		Mode      string      // "", "ALSO", "INSTEAD"
		Actions   []Statement // none: NOTHING
	}
	// CreatePolicy is CREATE POLICY.
	CreatePolicy struct {
		Pos
		Name         string
		Table        TableName
		As           string // "", "permissive", "restrictive"
		For          string // "", "ALL", "SELECT", "INSERT", "UPDATE", "DELETE"
		Roles        []Role
		Using, Check Expr
	}
	// AlterPolicy is ALTER POLICY.
	AlterPolicy struct {
		Pos
		Name         string
		Table        TableName
		Roles        []Role
		Using, Check Expr
	}
)

// TriggerEvent is an event of a trigger: "INSERT", "DELETE", "UPDATE" or "TRUNCATE".
type TriggerEvent struct {
	Kind    string
	Columns []string // UPDATE OF
}

// TransitionTable is an item of REFERENCING.
type TransitionTable struct {
	New, Row bool
	Name     string
}

// EventFilter is an item of WHEN of an event trigger.
type EventFilter struct {
	Variable string
	Values   []string
}

func (*CreateTrigger) statement()      {}
func (*CreateEventTrigger) statement() {}
func (*CreateRule) statement()         {}
func (*CreatePolicy) statement()       {}
func (*AlterPolicy) statement()        {}

func (x *CreateTrigger) String() string      { return statementString(x) }
func (x *CreateEventTrigger) String() string { return statementString(x) }
func (x *CreateRule) String() string         { return statementString(x) }
func (x *CreatePolicy) String() string       { return statementString(x) }
func (x *AlterPolicy) String() string        { return statementString(x) }
