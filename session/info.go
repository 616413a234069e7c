package session

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

var _ builtin.SessionInfo = (*info)(nil)

// identity is who a session is and where. Immutable.
type identity struct {
	key                     CancelKey
	user, database, version string // user: the role that has connected, as it was called then
	role                    uint32 // its OID
	databaseOID             uint32
	started                 time.Time
	client                  Client
}

// info answers SQL functions about the session.
type info struct {
	*identity
	settings *settings.Settings
	tx       *transaction
	acting   *principal
	backends backends
	audit    *auditor

	notifications *notifications
	procedural    *procedural
}

func (i *info) User() string         { return i.acting.name(i.acting.current) }
func (i *info) SessionUser() string  { return i.acting.name(i.acting.session) }
func (i *info) Database() string     { return i.database }
func (i *info) PID() int32           { return int32(i.key.PID) }
func (i *info) ClientAddr() net.Addr { return i.client.Addr }
func (i *info) ServerAddr() net.Addr { return i.client.Local }
func (i *info) ServerStart() int64   { return builtin.UnixToTimestamp(i.started) }

func (i *info) TriggerDepth() int { return i.procedural.triggers }

func (i *info) Version() string {
	return fmt.Sprintf("PostgreSQL %s, percodb: a transactional SQL database over sharded keys", i.version)
}

func (i *info) Schemas(implicit bool) []string {
	path := i.searched()
	if !implicit {
		return path
	}
	all := []string{catalog.SystemSchema}
	if own := i.tx.temporary(); own.Version() != 0 {
		all = []string{own.Name(), catalog.SystemSchema}
	}
	return append(all, path...)
}

// searched returns the schemas of the search path that exist and that the current role may use.
func (i *info) searched() []string {
	r := i.tx.names()
	if r == nil {
		return nil
	}
	access := i.acting.accessTo(r)
	var path []string
	for _, name := range i.settings.SearchPath {
		if ok, err := r.SchemaExists(i.tx.env.Ctx, name); err == nil && ok && access.Schema(name, acl.Usage) != 0 {
			path = append(path, name)
		}
	}
	return path
}

func (i *info) TemporarySchema() uint32 { return i.tx.temporary().OID() }

func (i *info) Setting(name string) (string, error) { return i.settings.Get(name) }

// SettingFlags implements builtin.SessionInfo.
func (i *info) SettingFlags(name string) ([]string, bool) {
	d, ok := settings.Describe(name)
	return d.Flags, ok
}

func (i *info) SetSetting(name, value string, local bool) error {
	err := setParameter(i.settings, name, value, local)
	if err != nil && isRoleSetting(strings.ToLower(name)) { // That it has changed is written as such.
		i.audit.function("set_config", err, false, name, value)
	}
	return err
}

// StatementText implements builtin.SessionInfo.
func (i *info) StatementText() string {
	text, _ := i.tx.shown.lastStatement()
	return text
}

func (i *info) TxnID(assign bool) int64 {
	if assign && !i.tx.numbered {
		i.tx.numbered = true
		i.tx.shown.numbered.Store(true)
	}
	if i.tx.txn == nil && i.tx.begin(i.tx.env.Ctx) != nil {
		return 0
	}
	return int64(i.tx.txn.StartTS())
}

// TxnAssigned implements builtin.SessionInfo.
func (i *info) TxnAssigned() bool { return i.tx.numbered || i.tx.txn != nil && i.tx.txn.Wrote() }

func (i *info) CancelBackend(pid int32) (bool, error) {
	ok, err := i.backends.cancel(pid)
	i.audit.function("pg_cancel_backend", err, ok, strconv.Itoa(int(pid)))
	return ok, err
}

func (i *info) TerminateBackend(ctx context.Context, pid int32, timeout time.Duration) (bool, error) {
	ok, err := i.backends.terminate(ctx, pid, timeout)
	i.audit.function("pg_terminate_backend", err, ok, strconv.Itoa(int(pid)))
	return ok, err
}

func (i *info) BlockingPIDs(ctx context.Context, pid int32) ([]int32, error) {
	return i.backends.blocking(ctx, pid)
}

func (i *info) ReloadConfiguration() (bool, error) {
	ok, err := i.reloadConfiguration()
	i.audit.function("pg_reload_conf", err, ok)
	return ok, err
}

func (i *info) reloadConfiguration() (bool, error) {
	r, err := i.tx.catalog.Present(i.tx.env.Ctx)
	if err != nil {
		return false, err
	}
	if catalog.NewAccess(r, i.tx.acting.current).Object(acl.Function, "pg_reload_conf()", acl.Execute) == 0 {
		return false, pgerror.New(pgerror.InsufficientPrivilege, "permission denied for function pg_reload_conf")
	}
	configuration := i.backends.deps.Configuration
	if configuration == nil {
		return false, nil
	}
	err = configuration.Reload(i.tx.env.Ctx)
	return err == nil, err
}

func (i *info) Notify(channel, payload string) error { return i.notifications.notify(channel, payload) }

func (i *info) ListeningChannels() []string { return i.notifications.listening() }

func (i *info) NotificationQueueUsage() float64 {
	if i.notifications.hub == nil {
		return 0
	}
	return i.notifications.hub.Usage()
}
