package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var (
	_ builtin.SessionInfo = (*info)(nil)
	_ builtin.Sequences   = (*Session)(nil)
	_ catalog.SystemView  = (*Session)(nil)
)

// info is what SQL functions may ask the session.
type info struct{ s *Session }

func (s *Session) initEnv() {
	s.objects = pgcatalog.Objects{Resolver: s.resolverForNames, User: s.user}
	s.memory = memory.NewAccount(s.deps.Memory, freeBytes)
	s.env = builtin.Env{Memory: &s.memory, Ctx: s.ctx, Session: info{s}, Sequences: s, Catalog: &s.objects, Rand: builtin.NewRand()}
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
	s.defaultPath = len(s.settings.searchPath) == 1 && s.settings.searchPath[0] == catalog.PublicSchema
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
func (s *Session) User() string { return s.user }

// Database implements catalog.SystemView.
func (s *Session) Database() string { return s.database }

// Settings implements catalog.SystemView.
func (s *Session) Settings() []catalog.Setting {
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
func (s *Session) Activity() (all []catalog.Activity) {
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

// sequence finds a sequence by regclass.
func (s *Session) sequence(ctx context.Context, oid types.OID) (*catalog.TableDescriptor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	t, err := s.tx.resolver.RelationByID(ctx, uint64(oid))
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, pgerror.New(pgerror.UndefinedTable, "could not open relation with OID %d", oid)
	}
	if t.Kind != catalog.KindSequence {
		return nil, pgerror.New(pgerror.WrongObjectType, "%q is not a sequence", t.Name)
	}
	return t, nil
}

// NextVal implements builtin.Sequences.
func (s *Session) NextVal(ctx context.Context, oid types.OID) (int64, error) {
	t, err := s.sequence(ctx, oid)
	if err != nil {
		return 0, err
	}
	if s.modes().readOnly {
		return 0, readOnlyError("nextval()")
	}
	value, err := s.deps.Catalog.NextVal(ctx, t)
	if err == nil {
		s.noteSequence(oid, value)
	}
	return value, err
}

func (s *Session) noteSequence(oid types.OID, value int64) {
	if s.lastValues == nil {
		s.lastValues = map[types.OID]int64{}
	}
	s.lastValues[oid] = value
	s.lastSequence = oid
}

func (s *Session) forgetSequences() { s.lastValues, s.lastSequence = nil, 0 }

// CurrVal implements builtin.Sequences.
func (s *Session) CurrVal(ctx context.Context, oid types.OID) (int64, error) {
	t, err := s.sequence(ctx, oid)
	if err != nil {
		return 0, err
	}
	value, ok := s.lastValues[oid]
	if !ok {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisite, "currval of sequence %q is not yet defined in this session", t.Name)
	}
	return value, nil
}

// LastVal implements builtin.Sequences.
func (s *Session) LastVal(context.Context) (int64, error) {
	value, ok := s.lastValues[s.lastSequence]
	if !ok {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisite, "lastval is not yet defined in this session")
	}
	return value, nil
}

// SetVal implements builtin.Sequences.
func (s *Session) SetVal(ctx context.Context, oid types.OID, value int64, called bool) error {
	t, err := s.sequence(ctx, oid)
	if err != nil {
		return err
	}
	if s.modes().readOnly {
		return readOnlyError("setval()")
	}
	if err := s.deps.Catalog.SetVal(ctx, t, value, called); err != nil {
		return err
	}
	if called {
		s.noteSequence(oid, value)
	}
	return nil
}
