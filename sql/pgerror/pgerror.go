// Package pgerror is the error a client sees: the fields of PostgreSQL's ErrorResponse.
package pgerror

import "fmt"

// Code is a SQLSTATE.
type Code string

// The SQLSTATEs percodb answers with (PostgreSQL 15, appendix A).
const (
	SuccessfulCompletion        Code = "00000"
	Warning                     Code = "01000"
	ConnectionFailure           Code = "08006"
	ProtocolViolation           Code = "08P01"
	TxnResolutionUnknown        Code = "08007"
	FeatureNotSupported         Code = "0A000"
	CardinalityViolation        Code = "21000"
	DataException               Code = "22000"
	StringDataRightTruncation   Code = "22001"
	StringDataLengthMismatch    Code = "22026"
	NumericValueOutOfRange      Code = "22003"
	NullValueNotAllowed         Code = "22004"
	InvalidDatetimeFormat       Code = "22007"
	DatetimeFieldOverflow       Code = "22008"
	InvalidTimeZoneDisplacement Code = "22009"
	SubstringError              Code = "22011"
	DivisionByZero              Code = "22012"
	InvalidFrameOffset          Code = "22013"
	InvalidNtileArgument        Code = "22014"
	IntervalFieldOverflow       Code = "22015"
	InvalidNthValueArgument     Code = "22016"
	InvalidEscapeCharacter      Code = "22019"
	CharacterNotInRepertoire    Code = "22021"
	InvalidParameterValue       Code = "22023"
	InvalidEscapeSequence       Code = "22025"
	ArraySubscriptError         Code = "2202E"
	ZeroLengthCharacterString   Code = "2200F"
	InvalidRowCountInLimit      Code = "2201W"
	InvalidRowCountInOffset     Code = "2201X"
	InvalidSQLJSONDatetime      Code = "22031"
	InvalidSQLJSONSubscript     Code = "22033"
	NonNumericSQLJSONItem       Code = "22036"
	SingletonSQLJSONRequired    Code = "22038"
	SQLJSONArrayNotFound        Code = "22039"
	SQLJSONMemberNotFound       Code = "2203A"
	SQLJSONNumberNotFound       Code = "2203B"
	SQLJSONObjectNotFound       Code = "2203C"
	InvalidTextRepresentation   Code = "22P02"
	InvalidBinaryRepresentation Code = "22P03"
	BadCopyFileFormat           Code = "22P04"
	UntranslatableCharacter     Code = "22P05"
	NonstandardEscape           Code = "22P06"
	NotNullViolation            Code = "23502"
	ForeignKeyViolation         Code = "23503"
	UniqueViolation             Code = "23505"
	ExclusionViolation          Code = "23P01"
	CheckViolation              Code = "23514"
	ActiveSQLTransaction        Code = "25001"
	ReadOnlySQLTransaction      Code = "25006"
	NoActiveSQLTransaction      Code = "25P01"
	TransactionTimeout          Code = "25P04"
	InFailedSQLTransaction      Code = "25P02"
	InvalidSQLStatementName     Code = "26000"
	InvalidGrantor              Code = "0L000"
	InvalidGrantOperation       Code = "0LP01"
	InvalidAuthorization        Code = "28000"
	InvalidPassword             Code = "28P01"
	DependentObjectsStillExist  Code = "2BP01"
	InvalidCursorName           Code = "34000"
	InvalidCursorState          Code = "24000"
	InvalidSavepoint            Code = "3B001"
	InvalidCatalogName          Code = "3D000"
	InvalidSchemaName           Code = "3F000"
	SerializationFailure        Code = "40001"
	StatementCompletionUnknown  Code = "40003"
	DeadlockDetected            Code = "40P01"
	SyntaxError                 Code = "42601"
	InsufficientPrivilege       Code = "42501"
	CannotCoerce                Code = "42846"
	Grouping                    Code = "42803"
	InvalidForeignKey           Code = "42830"
	InvalidName                 Code = "42602"
	NameTooLong                 Code = "42622"
	ReservedName                Code = "42939"
	DatatypeMismatch            Code = "42804"
	IndeterminateDatatype       Code = "42P18"
	WindowingError              Code = "42P20"
	WrongObjectType             Code = "42809"
	UndefinedColumn             Code = "42703"
	UndefinedFunction           Code = "42883"
	UndefinedTable              Code = "42P01"
	UndefinedParameter          Code = "42P02"
	UndefinedObject             Code = "42704"
	DuplicateColumn             Code = "42701"
	DuplicateCursor             Code = "42P03"
	DuplicatePreparedStatement  Code = "42P05"
	DuplicateTable              Code = "42P07"
	InvalidTermination          Code = "2D000"
	DuplicateAlias              Code = "42712"
	AmbiguousAlias              Code = "42P09"
	DuplicateObject             Code = "42710"
	AmbiguousColumn             Code = "42702"
	AmbiguousFunction           Code = "42725"
	InvalidColumnReference      Code = "42P10"
	InvalidColumnDefinition     Code = "42611"
	InvalidFunctionDefinition   Code = "42P13"
	InvalidTableDefinition      Code = "42P16"
	InvalidCursorDefinition     Code = "42P11"
	WithCheckOption             Code = "44000"
	InsufficientResources       Code = "53000"
	DiskFull                    Code = "53100"
	OutOfMemory                 Code = "53200"
	TooManyConnections          Code = "53300"
	ConfigurationLimitExceeded  Code = "53400"
	ProgramLimitExceeded        Code = "54000"
	StatementTooComplex         Code = "54001"
	TooManyColumns              Code = "54011"
	TooManyArguments            Code = "54023"
	ObjectNotInPrerequisite     Code = "55000"
	ObjectInUse                 Code = "55006"
	CantChangeRuntimeParam      Code = "55P02"
	LockNotAvailable            Code = "55P03"
	QueryCanceled               Code = "57014"
	AdminShutdown               Code = "57P01"
	CrashShutdown               Code = "57P02"
	CannotConnectNow            Code = "57P03"
	IdleInTransactionTimeout    Code = "25P03"
	IdleSessionTimeout          Code = "57P05"
	IOError                     Code = "58030"
	UndefinedFile               Code = "58P01"
	SnapshotTooOld              Code = "72000"
	ConfigFileError             Code = "F0000"
	InternalError               Code = "XX000"
	DataCorrupted               Code = "XX001"
)

// Error carries the fields of an ErrorResponse. Position counts characters from 1 in the
// statement's text (0: none). Errors are values: a function that adds a field returns a new one
// only where the error may be shared.
type Error struct {
	Code       Code
	Message    string
	Detail     string
	Hint       string
	Position   int
	Schema     string
	Table      string
	Column     string
	DataType   string
	Constraint string
	Where      string // lines of context, the innermost first
	// InternalPosition is a position in InternalQuery, a text that the client has not sent as it is.
	InternalPosition int
	InternalQuery    string
	// Severity is that of a notice; "" leaves it to the code.
	Severity string
	// Complete: Where has all lines already, and InContext adds none.
	Complete bool
	Cause    error // what lies below; not sent
}

// New makes an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Unsupported makes a 0A000 error with a hint of what to use instead.
func Unsupported(what, hint string) *Error {
	return &Error{Code: FeatureNotSupported, Message: what + " is not supported", Hint: hint}
}

// At sets the position and returns e.
func (e *Error) At(position int) *Error {
	if e.Position == 0 {
		e.Position = position
	}
	return e
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(hint string) *Error { e.Hint = hint; return e }

// WithDetail sets the detail and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// InContext adds a line of context around those that there are, and returns e.
func (e *Error) InContext(format string, args ...any) *Error {
	if e.Complete {
		return e
	}
	if e.Where != "" {
		e.Where += "\n"
	}
	e.Where += fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string { return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code) }
func (e *Error) Unwrap() error { return e.Cause }

// SQLState returns the code as text, as pgx's errors do.
func (e *Error) SQLState() string { return string(e.Code) }
