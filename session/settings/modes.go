package settings

import (
	"fmt"
	"strings"
)

// Isolation is a transaction's level, as the client calls it.
type Isolation uint8

// The levels of SQL. Read uncommitted is read committed under another name, as in PostgreSQL; repeatable read is snapshot
// isolation, and the default.
const (
	RepeatableRead Isolation = iota
	ReadUncommitted
	ReadCommitted
	Serializable
)

func (i Isolation) String() string {
	switch i {
	case ReadUncommitted:
		return "read uncommitted"
	case ReadCommitted:
		return "read committed"
	case Serializable:
		return "serializable"
	}
	return "repeatable read"
}

// PerStatement reports whether each statement has a snapshot of its own.
func (i Isolation) PerStatement() bool { return i == ReadCommitted || i == ReadUncommitted }

// ParseIsolation reads a level's name.
func ParseIsolation(value string) (Isolation, error) {
	v := strings.ToLower(strings.TrimSpace(value))
	for _, level := range []Isolation{Serializable, RepeatableRead, ReadCommitted, ReadUncommitted} {
		if v == level.String() {
			return level, nil
		}
	}
	return 0, fmt.Errorf("available values: serializable, repeatable read, read committed, read uncommitted")
}

// Modes are the characteristics of a transaction.
type Modes struct {
	Isolation  Isolation
	ReadOnly   bool
	Deferrable bool
}

// OnOff returns a Boolean as SHOW prints it.
func OnOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
