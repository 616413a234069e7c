package session

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/catalog"
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

	notifications *notifications
}

func (i *info) User() string        { return i.acting.name(i.acting.current) }
func (i *info) SessionUser() string { return i.acting.name(i.acting.session) }
func (i *info) Database() string    { return i.database }
func (i *info) PID() int32          { return int32(i.key.PID) }
func (i *info) ServerStart() int64  { return builtin.UnixToTimestamp(i.started) }

func (i *info) Version() string {
	return fmt.Sprintf("PostgreSQL %s, percodb: a transactional SQL database over sharded keys", i.version)
}

func (i *info) Schemas(implicit bool) []string {
	path := i.settings.SearchPath
	if implicit {
		return append([]string{catalog.SystemSchema}, path...)
	}
	return path
}

func (i *info) Setting(name string) (string, bool) {
	value, err := i.settings.Get(name)
	return value, err == nil
}

func (i *info) SetSetting(name, value string, local bool) error {
	return setParameter(i.settings, name, value, local)
}

func (i *info) TxnID() int64 {
	if i.tx.txn == nil && i.tx.begin(i.tx.env.Ctx) != nil {
		return 0
	}
	return int64(i.tx.txn.StartTS())
}

func (i *info) CancelBackend(pid int32) (bool, error) { return i.backends.cancel(pid) }

func (i *info) TerminateBackend(ctx context.Context, pid int32, timeout time.Duration) (bool, error) {
	return i.backends.terminate(ctx, pid, timeout)
}

func (i *info) ReloadConfiguration() (bool, error) {
	super, err := i.tx.superuser(i.tx.env.Ctx)
	if err == nil && !super {
		err = pgerror.New(pgerror.InsufficientPrivilege, "permission denied for function pg_reload_conf")
	}
	if err != nil {
		return false, err
	}
	reload := i.backends.deps.ReloadAccess
	if reload == nil {
		return false, nil
	}
	reload()
	return true, nil
}

func (i *info) Notify(channel, payload string) error { return i.notifications.notify(channel, payload) }

func (i *info) ListeningChannels() []string { return i.notifications.listening() }

func (i *info) NotificationQueueUsage() float64 {
	if i.notifications.hub == nil {
		return 0
	}
	return i.notifications.hub.Usage()
}
