package audit

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is what has happened.
type Kind string

// The kinds of events.
const (
	Start      Kind = "start"        // the audit log begins
	Stop       Kind = "stop"         // the server ends
	Connect    Kind = "connect"      // a session has begun
	Disconnect Kind = "disconnect"   // it has ended
	Refused    Kind = "login_failed" // a client was not let in
	Suppressed Kind = "login_failed_more"
	Statement  Kind = "statement" // of Class, with its outcome
	Function   Kind = "function"  // a function that changes or ends what is not its session's
	RoleChange Kind = "role"      // a session acts as another role
	Ended      Kind = "transaction"
	Reload     Kind = "reload" // files were loaded again
	Admin      Kind = "admin"  // a request to the admin endpoint
	Lost       Kind = "lost"   // events could not be written
)

// Classes of statements.
const (
	DDL    = "ddl"    // changes of tables, indexes, views, sequences, schemas and observers
	Roles  = "role"   // changes of roles, memberships and privileges
	Acting = "set"    // SET ROLE, SET SESSION AUTHORIZATION and their RESET
	System = "system" // ALTER SYSTEM
)

// Event is a line of the log. Fields that are zero are left out.
type Event struct {
	Time  string `json:"time"` // Write sets it
	Event Kind   `json:"event"`

	Session     uint32 `json:"session,omitempty"` // the number that pg_stat_activity calls pid
	User        string `json:"user,omitempty"`    // as which the client has connected, or wanted to
	Role        string `json:"role,omitempty"`    // as which the session acts, if it is another
	Database    string `json:"database,omitempty"`
	Address     string `json:"address,omitempty"`
	Method      string `json:"method,omitempty"`
	Line        int    `json:"line,omitempty"` // of the rule
	TLS         string `json:"tls,omitempty"`
	Certificate string `json:"certificate,omitempty"` // the client's subject
	Application string `json:"application_name,omitempty"`

	Class       string   `json:"class,omitempty"`
	Command     string   `json:"command,omitempty"` // the tag; of Ended COMMIT or ROLLBACK
	Text        string   `json:"statement,omitempty"`
	Truncated   bool     `json:"truncated,omitempty"` // Text is the beginning of it
	Arguments   []string `json:"arguments,omitempty"`
	Result      string   `json:"result,omitempty"`
	Transaction bool     `json:"in_transaction,omitempty"` // the outcome follows as an event "transaction"

	SQLState string  `json:"sqlstate,omitempty"` // 00000: success
	Message  string  `json:"message,omitempty"`
	Reason   string  `json:"reason,omitempty"` // that the client is not sent
	Seconds  float64 `json:"seconds,omitempty"`
	Path     string  `json:"path,omitempty"`
	Status   int     `json:"status,omitempty"` // of HTTP
	Count    int     `json:"count,omitempty"`
	Since    string  `json:"since,omitempty"`
}

// Success is the SQLSTATE of what succeeded.
const Success = "00000"

const (
	// maxText is the length of the longest text of a statement, in bytes, and maxWord that of other fields that clients choose.
	maxText = 16 << 10
	maxWord = 1 << 10
)

// bound shortens what clients can make long.
func (e *Event) bound() {
	if len(e.Text) > maxText {
		e.Text, e.Truncated = cut(e.Text, maxText), true
	}
	for _, field := range []*string{&e.User, &e.Role, &e.Database, &e.Certificate, &e.Application, &e.Message, &e.Reason, &e.Path} {
		*field = cut(*field, maxWord)
	}
	for i := range e.Arguments {
		e.Arguments[i] = cut(e.Arguments[i], maxWord)
	}
}

// cut returns at most n bytes of text, whole characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}

// stamp writes a time as the log has it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
