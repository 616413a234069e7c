package session

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/builtin"
)

var (
	_ builtin.SessionInfo = (*info)(nil)
	_ catalog.SystemView  = systemView{}
)

// info is what SQL functions may ask the session.
type info struct{ s *Session }

// systemView is what the system's views show of a session's process.
type systemView struct{ s *Session }

func (s *Session) initEnv() {
	s.sequences.s = s
	s.objects = pgcatalog.Objects{Resolver: s.resolverForNames, User: s.user}
	s.memory = memory.NewAccount(s.deps.Memory, freeBytes)
	s.statements.memory = &s.memory
	s.env = builtin.Env{Memory: &s.memory, Ctx: s.ctx, Session: info{s}, Sequences: &s.sequences, Catalog: &s.objects, Rand: builtin.NewRand()}
	s.refreshEnv()
}

// resolverForNames is where functions and regclass look objects up: the transaction's schema, with a
// transaction begun if need be; nil when that fails.
func (s *Session) resolverForNames() catalog.Resolver {
	if s.tx.resolver == nil {
		if err := s.begin(s.ctx); err != nil {
			return nil
		}
	}
	return s.tx.resolver
}

// refreshEnv follows a change of settings.
func (s *Session) refreshEnv() {
	now := s.env.Format.Now
	s.env.Format = s.settings.format
	s.env.Format.Now, s.env.Format.Names = now, &s.objects
	s.settings.format.Names = &s.objects // For values on their way to the client.
	s.tx.resolver = nil                  // The search path may be another one.
	s.plans.path = nil
	if path := s.settings.searchPath; len(path) != 1 || path[0] != catalog.PublicSchema {
		s.plans.path = append([]string{}, path...)
	}
}

func (i info) User() string        { return i.s.user }
func (i info) SessionUser() string { return i.s.user }
func (i info) Database() string    { return i.s.database }
func (i info) PID() int32          { return int32(i.s.key.PID) }
func (i info) ServerStart() int64  { return builtin.UnixToTimestamp(i.s.started) }

func (i info) Version() string {
	return fmt.Sprintf("PostgreSQL %s, percodb: a transactional SQL database over sharded keys", i.s.deps.Version)
}

func (i info) Schemas(implicit bool) []string {
	path := i.s.settings.searchPath
	if implicit {
		return append([]string{catalog.SystemSchema}, path...)
	}
	return path
}

func (i info) Setting(name string) (string, bool) {
	value, err := i.s.showSetting(name)
	return value, err == nil
}

func (i info) SetSetting(name, value string, local bool) error {
	if _, ok := i.s.modeSetting(strings.ToLower(name)); ok {
		return i.s.setModeSetting(strings.ToLower(name), value, false)
	}
	if local {
		i.s.noteLocal(name)
	}
	i.s.noteSettings()
	_, err := i.s.settings.set(name, value)
	i.s.refreshEnv()
	return err
}

func (i info) TxnID() int64 {
	if i.s.tx.txn == nil && i.s.begin(i.s.ctx) != nil {
		return 0
	}
	return int64(i.s.tx.txn.StartTS())
}

// User implements catalog.SystemView.
func (v systemView) User() string { return v.s.user }

// Database implements catalog.SystemView.
func (v systemView) Database() string { return v.s.database }

// Settings implements catalog.SystemView.
func (v systemView) Settings() []catalog.Setting {
	s := v.s
	list := make([]catalog.Setting, 0, len(s.settings.defs))
	for key, def := range s.settings.defs {
		value, _ := s.showSetting(key)
		source := "default"
		if _, set := s.settings.values[key]; set {
			source = "session"
		}
		list = append(list, catalog.Setting{
			Name: def.name, Value: value, Description: def.note, Type: "string", Source: source,
			Default: def.initial, ReadOnly: def.fixed,
		})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Activity implements catalog.SystemView: the sessions of this process. What only a session's goroutine
// may read, its application's name and its times, it knows of itself alone.
func (v systemView) Activity() (all []catalog.Activity) {
	s := v.s
	s.deps.Sessions(func(other *Session) {
		a := catalog.Activity{PID: other.key.PID, User: other.user, State: other.state(), BackendStart: builtin.UnixToTimestamp(other.started)}
		if other == s {
			a.Application, _ = s.settings.get("application_name")
			a.XactStart, a.QueryStart, a.StateChange = s.env.TxnTime, s.env.StmtTime, s.env.StmtTime
		}
		all = append(all, a)
	})
	slices.SortFunc(all, func(a, b catalog.Activity) int { return cmp.Compare(a.PID, b.PID) })
	return all
}
