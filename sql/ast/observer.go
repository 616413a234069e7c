package ast

type (
	// CreateObserver is CREATE [OR REPLACE] OBSERVER. The observer belongs to its table's schema.
	CreateObserver struct {
		Pos
		OrReplace bool
		Name      string
		Table     TableName
		Columns   []ObserverColumn // those whose changes are observed; empty: all
		When      Expr             // over NEW and KEY; nil: every change
		From      string           // "", "NOW", "BEGINNING"
		Options   []ObserverOption
		Body      *ObserverBody // nil: clients consume the changes
	}
	// AlterObserver is ALTER OBSERVER. Change says which of the other fields count.
	AlterObserver struct {
		Pos
		Name    TableName
		Change  ObserverChange
		Options []ObserverOption // of SetObserver
		NewName string           // of RenameObserver
		Owner   *Role            // of OwnObserver
		Where   Expr             // of RetryObserver: over KEY; nil: all keys
	}
	// DropObserver is DROP OBSERVER.
	DropObserver struct {
		Pos
		Names    []TableName
		IfExists bool
		Cascade  bool
	}
	// NotifyObserver is NOTIFY OBSERVER name [WHERE …], a notification without a change of the rows.
	NotifyObserver struct {
		Pos
		Name  TableName
		Where Expr // nil: all rows
	}
	// WaitObserver is WAIT FOR OBSERVER.
	WaitObserver struct {
		Pos
		Name TableName
	}
)

// ObserverChange is what ALTER OBSERVER does.
type ObserverChange uint8

// The changes of ALTER OBSERVER.
const (
	EnableObserver ObserverChange = iota + 1
	DisableObserver
	SetObserver
	RenameObserver
	OwnObserver // OWNER TO
	RetryObserver
)

// ObserverOption is name = value of a list of an observer's options. Value is a word, number or string as text; "" if none is
// written.
type ObserverOption struct {
	Pos
	Name, Value string
}

// ObserverColumn is an observed column.
type ObserverColumn struct {
	Pos
	Name string
}

// ObserverBody is the statements of an observer. Pos is the position of the text's first character, for errors in it: that of
// a character in the text is exact if the constant is dollar-quoted.
type ObserverBody struct {
	Pos
	SQL string
}

func (*CreateObserver) statement() {}
func (*AlterObserver) statement()  {}
func (*DropObserver) statement()   {}
func (*NotifyObserver) statement() {}
func (*WaitObserver) statement()   {}

func (x *CreateObserver) String() string { return statementString(x) }
func (x *AlterObserver) String() string  { return statementString(x) }
func (x *DropObserver) String() string   { return statementString(x) }
func (x *NotifyObserver) String() string { return statementString(x) }
func (x *WaitObserver) String() string   { return statementString(x) }
