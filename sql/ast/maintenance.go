package ast

type (
	// Listen is LISTEN.
	Listen struct {
		Pos
		Channel string
	}
	// Unlisten is UNLISTEN; Channel "" is *.
	Unlisten struct {
		Pos
		Channel string
	}
	// Notify is NOTIFY.
	Notify struct {
		Pos
		Channel string
		Payload *string
	}
	// Checkpoint is CHECKPOINT.
	Checkpoint struct{ Pos }
	// Load is LOAD.
	Load struct {
		Pos
		File string
	}
	// Cluster is CLUSTER.
	Cluster struct {
		Pos
		Options []StorageOption
		Table   *TableName // nil: all
		Index   string
	}
	// Reindex is REINDEX. Kind is "TABLE", "INDEX", "SCHEMA", "SYSTEM" or "DATABASE".
	Reindex struct {
		Pos
		Options      []StorageOption
		Kind         string
		Concurrently bool
		Name         TableName
	}
	// CreateMaterializedView is CREATE MATERIALIZED VIEW.
	CreateMaterializedView struct {
		Pos
		Unlogged    bool
		IfNotExists bool
		Name        TableName
		Columns     []string
		Method      string
		Options     []StorageOption
		Tablespace  string
		Query       *Query
		WithNoData  bool
	}
	// RefreshMaterializedView is REFRESH MATERIALIZED VIEW.
	RefreshMaterializedView struct {
		Pos
		Concurrently bool
		Name         TableName
		WithNoData   bool
	}
	// Database is CREATE DATABASE, or ALTER DATABASE with options.
	Database struct {
		Pos
		Alter   bool
		Name    string
		Options []DatabaseOption
	}
	// AlterDatabaseSet is ALTER DATABASE … SET and RESET, or SET TABLESPACE.
	AlterDatabaseSet struct {
		Pos
		Name       string
		Set        *Set
		Tablespace string
	}
	// CreateTablespace is CREATE TABLESPACE.
	CreateTablespace struct {
		Pos
		Name     string
		Owner    *Role
		Location string
		Options  []StorageOption
	}
	// AlterTablespace is ALTER TABLESPACE … SET or RESET.
	AlterTablespace struct {
		Pos
		Name    string
		Reset   bool
		Options []StorageOption
	}
	// PreparedTransaction is PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED, as Action says.
	PreparedTransaction struct {
		Pos
		Action string
		Name   string
	}
)

// DatabaseOption is an option of a database: Default, or a text or number.
type DatabaseOption struct {
	Pos
	Name    string // "CONNECTION LIMIT", or one word in lower case
	Default bool
	Number  string
	Text    *Text
}

// Word returns the option's value as a word, "" for Default.
func (o *DatabaseOption) Word() string {
	if o.Text != nil {
		return o.Text.Value
	}
	return o.Number
}

func (*Listen) statement()                  {}
func (*Unlisten) statement()                {}
func (*Notify) statement()                  {}
func (*Checkpoint) statement()              {}
func (*Load) statement()                    {}
func (*Cluster) statement()                 {}
func (*Reindex) statement()                 {}
func (*CreateMaterializedView) statement()  {}
func (*RefreshMaterializedView) statement() {}
func (*Database) statement()                {}
func (*AlterDatabaseSet) statement()        {}
func (*CreateTablespace) statement()        {}
func (*AlterTablespace) statement()         {}
func (*PreparedTransaction) statement()     {}

func (x *Listen) String() string                  { return statementString(x) }
func (x *Unlisten) String() string                { return statementString(x) }
func (x *Notify) String() string                  { return statementString(x) }
func (x *Checkpoint) String() string              { return statementString(x) }
func (x *Load) String() string                    { return statementString(x) }
func (x *Cluster) String() string                 { return statementString(x) }
func (x *Reindex) String() string                 { return statementString(x) }
func (x *CreateMaterializedView) String() string  { return statementString(x) }
func (x *RefreshMaterializedView) String() string { return statementString(x) }
func (x *Database) String() string                { return statementString(x) }
func (x *AlterDatabaseSet) String() string        { return statementString(x) }
func (x *CreateTablespace) String() string        { return statementString(x) }
func (x *AlterTablespace) String() string         { return statementString(x) }
func (x *PreparedTransaction) String() string     { return statementString(x) }
