package ast

type (
	// CreateRole is CREATE ROLE, USER or GROUP.
	CreateRole struct {
		Pos
		Kind    string
		Name    Role
		Options []RoleOption
	}
	// AlterRole is ALTER ROLE or USER with options, or ALTER GROUP with Action "ADD" or "DROP" and Members.
	AlterRole struct {
		Pos
		Kind    string
		Name    Role
		Options []RoleOption
		Action  string
		Members []Role
	}
	// AlterRoleSet is ALTER ROLE|USER name|ALL [IN DATABASE …] SET or RESET.
	AlterRoleSet struct {
		Pos
		Kind     string
		Name     *Role // nil: ALL
		Database string
		Set      *Set
	}
	// Grant is GRANT or REVOKE of privileges on objects.
	Grant struct {
		Pos
		Revoke     bool
		OptionOnly bool        // GRANT OPTION FOR
		Privileges []Privilege // nil: ALL
		Kind       string      // "TABLE", "FUNCTION", "FOREIGN DATA WRAPPER", "TABLES IN SCHEMA" …; in ALTER DEFAULT PRIVILEGES "TABLES" …
		Bare       bool        // TABLE is not written
		Objects    []Object
		Grantees   []Role
		WithOption bool
		GrantedBy  *Role
		Cascade    bool
	}
	// GrantRole is GRANT or REVOKE of roles.
	GrantRole struct {
		Pos
		Revoke    bool
		Only      string // of REVOKE: "ADMIN", "INHERIT" or "SET" OPTION FOR; "": the membership
		Roles     []Privilege
		Grantees  []Role
		Options   []MembershipOption
		GrantedBy *Role
		Cascade   bool
	}
	// AlterDefaultPrivileges is ALTER DEFAULT PRIVILEGES.
	AlterDefaultPrivileges struct {
		Pos
		Options []DefaultPrivilegesOption
		Grant   *Grant
	}
	// OwnedBy is DROP OWNED BY, or REASSIGN OWNED BY with To.
	OwnedBy struct {
		Pos
		Roles   []Role
		To      *Role
		Cascade bool
	}
)

// RoleOption is an option of a role. Name is its words, in upper case: "SUPERUSER", "PASSWORD", "CONNECTION LIMIT", "IN ROLE", …
type RoleOption struct {
	Pos
	Name   string
	Value  *string // of PASSWORD (nil: NULL) and VALID UNTIL
	Number string  // of CONNECTION LIMIT and SYSID
	Roles  []Role
}

// MembershipOption is an option of GRANT of a role: ADMIN, INHERIT or SET.
type MembershipOption struct {
	Pos
	Name   string
	Value  bool
	Option bool // written OPTION, which means TRUE
}

// Privilege is a privilege with its columns, or a role that is granted.
type Privilege struct {
	Pos
	Name    string
	Columns []string
}

// DefaultPrivilegesOption is IN SCHEMA with Schemas or FOR ROLE with Roles.
type DefaultPrivilegesOption struct {
	Pos
	Schemas []string
	Roles   []Role
}

func (*CreateRole) statement()             {}
func (*AlterRole) statement()              {}
func (*AlterRoleSet) statement()           {}
func (*Grant) statement()                  {}
func (*GrantRole) statement()              {}
func (*AlterDefaultPrivileges) statement() {}
func (*OwnedBy) statement()                {}

func (x *CreateRole) String() string             { return statementString(x) }
func (x *AlterRole) String() string              { return statementString(x) }
func (x *AlterRoleSet) String() string           { return statementString(x) }
func (x *Grant) String() string                  { return statementString(x) }
func (x *GrantRole) String() string              { return statementString(x) }
func (x *AlterDefaultPrivileges) String() string { return statementString(x) }
func (x *OwnedBy) String() string                { return statementString(x) }
