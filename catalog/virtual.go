package catalog

import (
	"context"

	"github.com/percodb/percodb/sql/types"
)

// VirtualRows computes the rows of a system table as of a resolver. It calls yield with each full
// row, which yield must not keep; an error of yield ends it.
type VirtualRows func(ctx context.Context, r Resolver, view SystemView, yield func(types.Row) error) error

// SystemView is what system tables show of the session that reads them and of the server around
// it. A nil SystemView shows nothing.
type SystemView interface {
	User() string
	Database() string
	// Settings lists all settings as the session sees them, by name (pg_settings).
	Settings() []Setting
	// Activity lists the server's sessions (pg_stat_activity).
	Activity() []Activity
}

// Setting is one row of pg_settings.
type Setting struct {
	Name, Value, Unit, Description, Type, Source, Default string
	ReadOnly                                              bool
}

// Activity is one session in pg_stat_activity.
type Activity struct {
	PID                                         uint32
	User, Application, ClientAddr, State, Query string
	ClientPort                                  int
	// Times are microseconds since 2000-01-01 UTC, 0 for none.
	BackendStart, XactStart, QueryStart, StateChange int64
}
