// Package settings holds the run-time parameters of one session (PostgreSQL's GUCs): their definitions, their values, and
// what SET, SET LOCAL, RESET, savepoints and the end of a transaction do to them.
//
// Invariants:
//
//	P1 A value in force has passed its definition's check, and is printed in canonical form.
//	P2 A transaction that rolls back restores the values that it began with; ROLLBACK TO those of the savepoint.
//	P3 A value that SET LOCAL has hidden is in force again when the transaction ends.
//
// Values that other packages read for each statement are decoded once, into the exported fields of Settings. A parameter
// whose value is kept elsewhere, such as transaction_isolation, is connected with Live.
package settings

import (
	"fmt"
	"github.com/percodb/percodb/plpgsql"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// KeepAlive are the settings of keepalives on the client's TCP connection; 0: the server's default.
type KeepAlive struct {
	Idle, Interval time.Duration
	Count          int
}

// Settings are one session's parameters. One goroutine's. The exported fields are decoded values, which callers only read.
type Settings struct {
	StatementTimeout, LockTimeout time.Duration // 0: unbounded
	// IdleInTransactionTimeout is how long a client may leave a transaction waiting, IdleSessionTimeout how long it may be
	// silent outside one. 0: unbounded.
	IdleInTransactionTimeout, IdleSessionTimeout time.Duration
	// TransactionTimeout is how long a transaction may last, ConnectionCheckInterval the time between two checks that the client of a
	// running statement is still connected. 0: unbounded, none.
	TransactionTimeout, ConnectionCheckInterval time.Duration
	KeepAlive                                   KeepAlive
	Format                                      types.Format
	SearchPath                                  []string // without "$user"
	Modes                                       Modes    // of transactions to come
	MySQL                                       bool     // the client's texts are MySQL's
	BackslashStrings                            bool     // standard_conforming_strings is off
	EscapeStringWarning                         bool     // warn of backslashes in strings then
	Replica                                     bool     // ordinary triggers are not executed, and foreign keys not checked
	RowSecurityOff                              bool     // statements that policies affect are refused
	GenericPlans                                bool     // the values of an execution do not decide its plan
	Procedural                                  plpgsql.Options
	// MaxWorkers is max_parallel_workers, WorkersPerGather and ParallelSetupCost are the parameters of these names.
	MaxWorkers, WorkersPerGather int
	ParallelSetupCost            float64
	SessionUser, CurrentRole     string // the values of SessionAuthorization and Role

	server  map[string]string // the values of fixed parameters that differ by session; by lower-case name, like all maps here
	base    *Server           // nil: none
	live    map[string]live
	values  map[string]string // those that were set
	startup map[string]string // what RESET returns to, where the client's startup packet set it
	// changed: a value may differ from what the client was last sent, which is sent.
	changed bool
	sent    map[string]string
	// before are the values before the transaction's first SET, nil if it has had none; locals are those that SET LOCAL hides.
	before, locals map[string]string
	onChange       func()
	checkRole      func(name, value string) error
	checkReset     func(name string) error
	mayExamine     func() bool
	textSearch     func(name string) (canonical string, ok bool)
}

// live are the functions of Live.
type live struct {
	value  func() string
	assign func(value string) error
}

// definition describes one parameter. All sessions share it.
type definition struct {
	name     string // as SHOW ALL prints it
	initial  string
	reported bool // sent to the client as ParameterStatus
	fixed    bool // SET answers 55P02
	atStart  bool // fixed from the start of a server to its end
	atReload bool // fixed until a server loads its configuration again
	stored   bool // fixed, but ALTER SYSTEM may change it
	hidden   bool // from roles that are no members of pg_read_all_settings
	// ofTransaction: it is that of the current transaction
	ofTransaction bool
	flag          string // of percodb start, that gives the value
	role          bool   // its value is a role; RESET ALL leaves it
	super         bool   // for superusers
	note          string
	// check returns the value in canonical form, or an error to answer 22023 with.
	check func(value string) (string, error)
	// checkIn is check for values that depend on the one in force.
	checkIn func(s *Settings, value string) (string, error)
	// apply decodes the value.
	apply func(s *Settings, value string) error
}

// shared is what sessions share: the definitions, their names in order, and the decoded initial values.
var shared = sync.OnceValue(func() (c struct {
	defs    map[string]*definition
	names   []string
	initial Settings
}) {
	c.defs = definitions()
	c.names = slices.Sorted(maps.Keys(c.defs))
	for _, def := range c.defs {
		if def.apply != nil {
			if err := def.apply(&c.initial, def.initial); err != nil {
				panic(fmt.Sprintf("BUG: default of setting %s: %v", def.name, err))
			}
		}
	}
	return c
})

// New makes the settings of a session. server has the values that the server gives to fixed parameters, by lower-case name; it is
// retained and must not be nil.
func New(server map[string]string) *Settings {
	s := new(Settings)
	*s = shared().initial
	s.server, s.values, s.startup, s.sent, s.changed = server, map[string]string{}, map[string]string{}, map[string]string{}, true
	s.SessionUser = server[SessionAuthorization]
	return s
}

// Check returns the error of SET of a parameter, and the parameter's name as SHOW prints it. The value of one that is a role is not
// checked.
func Check(name, value string) (title string, err error) {
	s := New(map[string]string{})
	_, err = s.set(name, value)
	return s.Title(name), err
}

// ForSuperusers reports whether a parameter is for superusers, and roles that have been granted SET on it.
func ForSuperusers(name string) bool {
	def := shared().defs[strings.ToLower(name)]
	return def != nil && def.super
}

// CheckRoles has set check the values of the parameters that are roles, and of those for superusers, before they change, and reset whether a
// parameter that is a role may be reset.
func (s *Settings) CheckRoles(set func(name, value string) error, reset func(name string) error) {
	s.checkRole, s.checkReset = set, reset
}

// FindTextSearch has f find text search configurations; canonical is the name with the schema.
func (s *Settings) FindTextSearch(f func(name string) (canonical string, ok bool)) {
	s.textSearch = f
}

// SetServer changes a parameter that clients cannot change.
func (s *Settings) SetServer(name, value string) {
	s.server[name] = value
	s.changed = true
}

// initial returns the value of a parameter that was never set.
func (s *Settings) initial(key string, def *definition) string {
	if value, ok := s.server[key]; ok {
		return value
	}
	if s.base != nil {
		if v, ok := (*s.base)[key]; ok {
			return v.Value
		}
	}
	return def.initial
}

// OnChange has f called after changes of values.
func (s *Settings) OnChange(f func()) { s.onChange = f }

func (s *Settings) notify() {
	if s.onChange != nil {
		s.onChange()
	}
}

// Live connects a parameter whose value is kept elsewhere: value returns it, assign, which gets it in canonical form, changes
// it. RESET assigns the value of the parameter default_…; RESET ALL, rollbacks and SET LOCAL do not concern it. assign is not
// called for a fixed parameter and may be nil then.
func (s *Settings) Live(name string, value func() string, assign func(value string) error) {
	if s.live == nil {
		s.live = make(map[string]live)
	}
	s.live[name] = live{value, assign}
}

// Default gives a parameter the value that RESET returns to.
func (s *Settings) Default(name, value string) error {
	canonical, err := s.set(name, value)
	if err == nil {
		s.startup[strings.ToLower(name)] = canonical
	}
	return err
}

// Start takes the settings of a startup packet and of its "options" (-c name=value).
func (s *Settings) Start(startup map[string]string) error {
	apply := s.Default
	for name, value := range startup {
		switch {
		case name == "user", name == "database", name == "replication", strings.HasPrefix(name, "_pq_."):
		case name == "options":
			for _, option := range parseOptions(value) {
				if err := apply(option[0], option[1]); err != nil {
					return err
				}
			}
		default:
			if err := apply(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseOptions reads "-c a=b --c=d", with backslashes before blanks within values.
func parseOptions(text string) [][2]string {
	words := []string{}
	var word strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case text[i] == ' ' || text[i] == '\t':
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteByte(text[i])
		}
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	options := [][2]string{}
	for _, w := range words {
		w = strings.TrimPrefix(strings.TrimPrefix(w, "--"), "-c")
		if name, value, ok := strings.Cut(w, "="); ok {
			options = append(options, [2]string{strings.ReplaceAll(name, "-", "_"), value})
		}
	}
	return options
}

// Known reports whether there is a parameter of that name, other than custom ones.
func (s *Settings) Known(name string) bool { return shared().defs[strings.ToLower(name)] != nil }

// IsLive reports whether SET of the parameter changes what is kept elsewhere.
func (s *Settings) IsLive(name string) bool {
	return s.live[strings.ToLower(name)].assign != nil
}

// Title returns a parameter's name as SHOW heads its value.
func (s *Settings) Title(name string) string {
	key := strings.ToLower(name)
	if def := shared().defs[key]; def != nil {
		return def.name
	}
	return key
}

// Get returns a parameter's value as SHOW and current_setting print it.
func (s *Settings) Get(name string) (string, error) {
	key := strings.ToLower(name)
	if kept, ok := s.live[key]; ok {
		return kept.value(), nil
	}
	value, ok := s.stored(key)
	if !ok {
		return "", Unknown(name)
	}
	if def := shared().defs[key]; def != nil && !s.shows(def) {
		return "", pgerror.New(pgerror.InsufficientPrivilege, "must be superuser or have privileges of pg_read_all_settings to examine %q", def.name)
	}
	return value, nil
}

// stored returns the value that is kept here.
func (s *Settings) stored(key string) (string, bool) {
	if v, ok := s.values[key]; ok {
		return v, true
	}
	if def, ok := shared().defs[key]; ok {
		return s.initial(key, def), true
	}
	return "", false
}

// Set changes a parameter until the end of the session, or a rollback of the transaction.
func (s *Settings) Set(name, value string) error {
	s.keep()
	key := strings.ToLower(name)
	delete(s.locals, key) // A SET outlives the SET LOCAL before it.
	if _, err := s.set(name, value); err != nil {
		return err
	}
	s.notify()
	return nil
}

// SetLocal changes a parameter until the transaction ends.
func (s *Settings) SetLocal(name, value string) error {
	s.keep()
	s.hide(strings.ToLower(name))
	if _, err := s.set(name, value); err != nil {
		return err
	}
	s.notify()
	return nil
}

// Reset returns a parameter to the value that the session began with.
func (s *Settings) Reset(name string) error {
	s.keep()
	key := strings.ToLower(name)
	delete(s.locals, key)
	if err := s.reset(name); err != nil {
		return err
	}
	s.notify()
	return nil
}

// ResetLocal is Reset until the transaction ends.
func (s *Settings) ResetLocal(name string) error {
	s.keep()
	key := strings.ToLower(name)
	s.hide(key)
	if err := s.reset(name); err != nil {
		return err
	}
	s.notify()
	return nil
}

// ResetAll is Reset of all parameters but those connected with Live.
func (s *Settings) ResetAll() error {
	s.keep()
	for key, def := range shared().defs {
		if def.fixed || def.role || s.IsLive(key) {
			continue
		}
		if def.super && s.checkRole != nil && s.checkRole(key, "") != nil {
			continue // Who may not set it has not changed it.
		}
		delete(s.locals, key)
		if err := s.reset(key); err != nil {
			return err
		}
	}
	s.notify()
	return nil
}

// keep keeps the values as they were before the transaction's first SET.
func (s *Settings) keep() {
	if s.before == nil {
		s.before = maps.Clone(s.values)
	}
}

// hide keeps the value that a change until the end of the transaction hides.
func (s *Settings) hide(key string) {
	if s.IsLive(key) {
		return
	}
	before, known := s.stored(key)
	if _, hidden := s.locals[key]; hidden || !known {
		return
	}
	if s.locals == nil {
		s.locals = map[string]string{}
	}
	s.locals[key] = before
}

// set changes a parameter and returns its canonical value. Unknown names with a dot are custom parameters, which take any
// value, as in PostgreSQL.
func (s *Settings) set(name, value string) (string, error) {
	key := strings.ToLower(name)
	def, ok := shared().defs[key]
	if !ok {
		if strings.Contains(key, ".") {
			if err := checkCustomName(name); err != nil {
				return "", err
			}
			s.values[key] = value
			return value, nil
		}
		return "", Unknown(name)
	}
	if def.fixed {
		return "", def.fixedError()
	}
	canonical, err := value, error(nil)
	if def.super && s.checkRole != nil {
		if err := s.checkRole(key, value); err != nil {
			return "", err
		}
	}
	switch {
	case def.role && s.checkRole != nil:
		err = s.checkRole(key, value)
	case def.check != nil:
		canonical, err = def.check(value)
	case def.checkIn != nil:
		canonical, err = def.checkIn(s, value)
	}
	if err != nil {
		return "", def.invalid(value, err)
	}
	return s.assign(key, canonical)
}

// checkCustomName refuses the name of a custom parameter that is no series of identifiers.
func checkCustomName(name string) error {
	for _, part := range strings.Split(name, ".") {
		for i, c := range []byte(part) {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
			if !letter && (i == 0 || c != '$' && (c < '0' || c > '9')) {
				part = ""
				break
			}
		}
		if part == "" {
			return pgerror.New(pgerror.InvalidName, "invalid configuration parameter name %q", name).
				WithDetail("Custom parameter names must be two or more simple identifiers separated by dots.")
		}
	}
	return nil
}

// assign is set of a value in canonical form that the parameter may have.
func (s *Settings) assign(key, canonical string) (string, error) {
	if assign := s.live[key].assign; assign != nil {
		return canonical, assign(canonical)
	}
	if def := shared().defs[key]; def != nil && def.apply != nil {
		if err := def.apply(s, canonical); err != nil {
			return "", def.invalid(canonical, err)
		}
	}
	s.values[key] = canonical
	s.changed = true
	return canonical, nil
}

func (s *Settings) reset(name string) error {
	key := strings.ToLower(name)
	def, ok := shared().defs[key]
	if !ok {
		if !strings.Contains(key, ".") {
			return Unknown(name)
		}
		if _, known := s.values[key]; known { // It stays known.
			s.values[key] = ""
		}
		return nil
	}
	value, ok := s.startup[key]
	if !ok {
		value = s.initial(key, def)
	}
	switch {
	case def.fixed:
		return nil
	case def.role: // It was in force before.
		if s.checkReset != nil {
			if err := s.checkReset(key); err != nil {
				return err
			}
		}
		_, err := s.assign(key, value)
		return err
	case s.IsLive(key):
		value, _ = s.stored("default_" + key)
	}
	if _, err := s.set(key, value); err != nil {
		return err
	}
	if !ok && !s.IsLive(key) {
		delete(s.values, key) // The value follows the server's from now on.
	}
	return nil
}

// Mark is what ROLLBACK TO SAVEPOINT restores.
type Mark struct{ values, locals map[string]string }

// Mark returns the present values.
func (s *Settings) Mark() Mark { return Mark{maps.Clone(s.values), maps.Clone(s.locals)} }

// RollbackTo restores the values of a mark of the same transaction.
func (s *Settings) RollbackTo(m Mark) {
	if maps.Equal(s.values, m.values) && maps.Equal(s.locals, m.locals) {
		return
	}
	s.restore(m.values)
	s.locals = maps.Clone(m.locals)
	s.notify()
}

// EndTransaction undoes the changes of a transaction that was rolled back, and those of SET LOCAL in any case.
func (s *Settings) EndTransaction(committed bool) {
	before, locals := s.before, s.locals
	s.before, s.locals = nil, nil
	switch {
	case !committed && before != nil:
		s.restore(before)
	case len(locals) > 0:
		for key, value := range locals {
			_, _ = s.assign(key, value) // The value was in force before the transaction.
		}
	default:
		return
	}
	s.notify()
}

// restore puts earlier values in force.
func (s *Settings) restore(to map[string]string) {
	for key, def := range shared().defs {
		want, ok := to[key]
		if !ok {
			want = s.initial(key, def)
		}
		if have, _ := s.stored(key); have != want && def.apply != nil {
			_ = def.apply(s, want) // The value was in force before, so it applies again.
		}
	}
	s.values = maps.Clone(to)
	s.changed = true
}

// Changed reports whether Report may have something to send.
func (s *Settings) Changed() bool { return s.changed }

// Report sends the parameters that clients track and whose values differ from those sent before, in name order.
func (s *Settings) Report(send func(name, value string)) {
	defs := shared().defs
	for _, key := range shared().names {
		def := defs[key]
		if !def.reported {
			continue
		}
		value, _ := s.stored(key)
		if sent, ok := s.sent[key]; ok && sent == value {
			continue
		}
		s.sent[key] = value
		send(def.name, value)
	}
	s.changed = false
}

// Setting is one parameter as SHOW ALL and pg_settings list it.
type Setting struct {
	Name, Value, Default, Note string
	Context, Source            string // as pg_settings has them
	PendingRestart             bool
	Description                Description
}

// InUnits is the parameter with its values as numbers of units, as pg_settings shows them.
func (s Setting) InUnits() Setting {
	s.Value, s.Default = s.Description.inUnit(s.Value), s.Description.inUnit(s.Default)
	return s
}

// All lists the parameters in name order that the role may examine.
func (s *Settings) All() []Setting {
	all := make([]Setting, 0, len(shared().defs))
	defs := shared().defs
	for _, key := range shared().names {
		def := defs[key]
		value, err := s.Get(key)
		if err != nil {
			continue // It is hidden from the role.
		}
		shown := Setting{Name: def.name, Value: value, Default: s.initial(key, def), Note: def.note, Context: def.context(), Source: "default"}
		shown.Description, _ = Describe(key)
		if s.base != nil {
			if v, ok := (*s.base)[key]; ok {
				shown.Source, shown.PendingRestart = v.Source, v.PendingRestart
			}
		}
		if _, set := s.values[key]; set {
			shown.Source = "session"
		}
		all = append(all, shown)
	}
	return all
}

// Unknown is the error for a parameter that does not exist.
func Unknown(name string) *pgerror.Error {
	return pgerror.New(pgerror.UndefinedObject, "unrecognized configuration parameter %q", name)
}

// Invalid is the error for a value that a known parameter cannot have; err gives the reason.
func (s *Settings) Invalid(name, value string, err error) error {
	return shared().defs[name].invalid(value, err)
}

func (def *definition) invalid(value string, err error) error {
	if pg, ok := err.(*pgerror.Error); ok {
		return pg
	}
	if r, ok := err.(*outOfRange); ok {
		return pgerror.New(pgerror.InvalidParameterValue, "%s is outside the valid range for parameter %q (%s .. %s)", r.value, def.name, r.low, r.high)
	}
	if err == errNoBool {
		return pgerror.New(pgerror.InvalidParameterValue, "parameter %q requires a Boolean value", def.name)
	}
	e := pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter %q: %q", def.name, value)
	if err != errNoNumber && err != errNoTextSearch {
		reason := err.Error()
		e.Hint = strings.ToUpper(reason[:1]) + reason[1:] + "."
	}
	return e
}

func (def *definition) fixedError() error {
	switch {
	case def.atStart:
		return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed without restarting the server", def.name)
	case def.atReload:
		return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed now", def.name)
	}
	return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed", def.name)
}

// DefaultPath reports whether names without a schema are looked up as in a session that has not set search_path.
func (s *Settings) DefaultPath() bool {
	return len(s.SearchPath) == 1 && s.SearchPath[0] == defaultSchema
}

// defaultSchema is the only schema of the default search path.
const defaultSchema = "public"
