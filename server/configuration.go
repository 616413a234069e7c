package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/pgerror"
)

// ConfigurationOptions are what flags of a server give.
type ConfigurationOptions struct {
	Catalog *catalog.Catalog
	// Access are the options of the gate. Rules that flags do not give, by a file or a text, are those that are stored, or auth.DefaultRules.
	Access            auth.Options
	Listen, SocketDir string
	// MaxConnections (0) and ReservedConnections (-1) are those that are stored, or the defaults.
	MaxConnections, ReservedConnections int
	Logger                              *slog.Logger
}

// Configuration decides the settings of a server: flags come before what ALTER SYSTEM has stored, and that before the defaults.
type Configuration struct {
	opts   ConfigurationOptions
	given  map[string]string // by flags, in canonical form, by lower-case name
	flags  map[string]string // that give them
	gate   *auth.Gate
	values atomic.Pointer[settings.Server]

	reloading sync.Mutex
	reloads   atomic.Uint64 // of the stored settings that were last loaded
}

var _ session.Configuration = (*Configuration)(nil)

// OpenConfiguration reads what is stored, and makes the gate.
func OpenConfiguration(ctx context.Context, opts ConfigurationOptions) (*Configuration, error) {
	c := &Configuration{opts: opts}
	c.readFlags()
	stored, err := opts.Catalog.System(ctx)
	if err != nil {
		return nil, err
	}
	c.reloads.Store(stored.Reloads)
	values, err := c.compute(stored.Settings, nil)
	if err != nil {
		opts.Logger.Warn("stored settings are not in force", "err", err)
	}
	if most, reserved := number(values, settings.MaxConnections), number(values, settings.ReservedConnections); reserved >= most {
		return nil, fmt.Errorf("superuser_reserved_connections (%d) must be less than max_connections (%d): give --superuser-reserved-connections and --max-connections", reserved, most)
	}
	access := opts.Access
	access.Reach = reach(opts.Listen, opts.SocketDir)
	policy := c.policyOf(values)
	if access.Timeout = policy.Timeout; access.Rules == "" {
		access.Rules = policy.Rules
	}
	if c.gate, err = auth.NewGate(access); err != nil {
		if c.StoredRules() {
			err = fmt.Errorf("%w; to start with other rules, give --hba FILE", err)
		}
		return nil, err
	}
	c.values.Store(&values)
	c.showFiles(values)
	return c, nil
}

// readFlags finds out which settings flags give.
func (c *Configuration) readFlags() {
	c.given, c.flags = map[string]string{}, map[string]string{}
	give := func(name, flag, value string) { c.given[name], c.flags[name] = value, flag }
	if n := c.opts.MaxConnections; n > 0 {
		give(settings.MaxConnections, "--max-connections", strconv.Itoa(n))
	}
	if n := c.opts.ReservedConnections; n >= 0 {
		give(settings.ReservedConnections, "--superuser-reserved-connections", strconv.Itoa(n))
	}
	if d := c.opts.Access.Timeout; d > 0 {
		give(settings.AuthenticationTimeout, "--authentication-timeout", settings.DurationText(d))
	}
	switch access := &c.opts.Access; {
	case access.RulesFile != "":
		give(settings.Rules, "--hba", "")
	case access.Rules != "":
		give(settings.Rules, "--insecure", access.Rules)
	}
}

// compute returns the values of stored settings and flags. before are those in force, nil at the start. Stored settings that cannot be used
// are left out; err says why.
func (c *Configuration) compute(stored map[string]string, before settings.Server) (values settings.Server, err error) {
	values = settings.Server{}
	for _, name := range []string{settings.MaxConnections, settings.ReservedConnections, settings.AuthenticationTimeout, settings.Rules} {
		values[name] = settings.ServerValue{Value: settings.Initial(name), Source: "default"}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if canonical, invalid := settings.CheckSystem(name, stored[name]); invalid != nil {
			errs = append(errs, invalid)
		} else {
			values[name] = settings.ServerValue{Value: canonical, Source: settings.FromFile}
		}
	}
	for name, value := range c.given {
		values[name] = settings.ServerValue{Value: value, Source: settings.FromCommandLine}
	}
	for name, now := range before {
		if settings.IsStartOnly(name) {
			now.PendingRestart = now.Value != values[name].Value && values[name].Source != ""
			values[name] = now
		}
	}
	return values, errors.Join(errs...)
}

// policyOf returns the part of the values that the gate obeys. A flag may give a timeout that is no number of seconds.
func (c *Configuration) policyOf(values settings.Server) auth.Policy {
	timeout := c.opts.Access.Timeout
	if timeout <= 0 {
		var err error
		if timeout, err = settings.ParseSeconds(values[settings.AuthenticationTimeout].Value); err != nil {
			timeout = auth.DefaultTimeout
		}
	}
	return auth.Policy{Rules: cmp.Or(values[settings.Rules].Value, auth.DefaultRules), Timeout: timeout}
}

func number(values settings.Server, name string) int {
	n, _ := strconv.Atoi(values[name].Value) // It has passed its check.
	return n
}

// reach returns where clients can connect to a server.
func reach(listen, socketDir string) auth.Reach {
	host, _, _ := net.SplitHostPort(listen)
	addr, err := netip.ParseAddr(host)
	return auth.Reach{Socket: socketDir != "", Loopback: host == "localhost" || err == nil && addr.IsLoopback()}
}

// showFiles adds the settings that show files and TLS.
func (c *Configuration) showFiles(values settings.Server) {
	files := c.gate.Certificates()
	for name, value := range map[string]string{
		"ssl": settings.OnOff(c.gate.TLS() != nil), "ssl_ca_file": files.CA, "ssl_cert_file": files.Cert, "ssl_key_file": files.Key,
		"hba_file": c.gate.RulesFile(), "ssl_ciphers": auth.CipherNames(), "ssl_library": "crypto/tls",
	} {
		source := settings.FromServer
		if settings.FlagOf(name) != "" {
			if source = "default"; value != "" && value != "off" {
				source = settings.FromCommandLine
			}
		}
		values[name] = settings.ServerValue{Value: value, Source: source}
	}
}

// Gate returns the gate.
func (c *Configuration) Gate() *auth.Gate { return c.gate }

// StoredRules reports whether the rules for clients are stored ones.
func (c *Configuration) StoredRules() bool {
	values := c.values.Load()
	return values != nil && (*values)[settings.Rules].Source == settings.FromFile
}

// MaxConnections returns the number of clients served at once, and how many of the slots are for superusers only.
func (c *Configuration) MaxConnections() (most, reserved int) {
	values := *c.values.Load()
	return number(values, settings.MaxConnections), number(values, settings.ReservedConnections)
}

// Values implements session.Configuration.
func (c *Configuration) Values() *settings.Server { return c.values.Load() }

// loadTimeout is how long a store may take to answer before files alone are loaded again.
const loadTimeout = 10 * time.Second

// Load loads files and stored settings again. What cannot be used is logged, and what was in force before stays.
func (c *Configuration) Load(ctx context.Context) {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	before := *c.values.Load()
	stored, err := c.opts.Catalog.System(ctx)
	if err != nil {
		policy := c.policyOf(before)
		policy.Err = fmt.Errorf("what ALTER SYSTEM has stored could not be read: %w", err)
		c.gate.Reload(policy)
		return
	}
	values, invalid := c.compute(stored.Settings, before)
	c.showFiles(values)
	if now := values[settings.Rules]; now.Source == settings.FromFile && now != before[settings.Rules] {
		if err := c.checkRules(ctx, now.Value); err != nil {
			values[settings.Rules] = before[settings.Rules]
			invalid = errors.Join(invalid, fmt.Errorf("%s: %w", settings.Rules, err))
		}
	}
	for name, v := range values {
		if v.PendingRestart {
			c.opts.Logger.Warn("a setting is in force after a restart", "setting", name)
		}
	}
	policy := c.policyOf(values)
	policy.Err = invalid
	c.values.Store(&values)
	c.gate.Reload(policy)
	c.reloads.Store(stored.Reloads)
}

// reloadInterval is the time between two looks at whether another process's client has called pg_reload_conf.
const reloadInterval = time.Second / 2

// Follow loads files and stored settings again when a client of another process has asked for it, until ctx ends.
func (c *Configuration) Follow(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if stored, err := c.opts.Catalog.System(ctx); err == nil && stored.Reloads != c.reloads.Load() {
			c.Load(ctx)
		}
	}
}

// Reload implements session.Configuration.
func (c *Configuration) Reload(ctx context.Context) error {
	err := c.opts.Catalog.ChangeSystem(ctx, func(s *catalog.System) error {
		s.Reloads++
		return nil
	})
	c.Load(ctx)
	return err
}

// Check implements session.Configuration.
func (c *Configuration) Check(ctx context.Context, name string, all map[string]string) error {
	if flag := c.flags[name]; flag != "" {
		return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed", name).
			WithHint("The flag " + flag + " of percodb start sets it. Start the server without the flag.")
	}
	switch name {
	case settings.MaxConnections, settings.ReservedConnections:
		values, _ := c.compute(all, nil)
		if most, reserved := number(values, settings.MaxConnections), number(values, settings.ReservedConnections); reserved >= most {
			return pgerror.New(pgerror.InvalidParameterValue, "superuser_reserved_connections (%d) must be less than max_connections (%d)", reserved, most)
		}
	case settings.Rules:
		if err := c.checkRules(ctx, all[name]); err != nil {
			return pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter %q", name).WithDetail("%s", err)
		}
	}
	return nil
}

// checkRules returns why rules must not be stored.
func (c *Configuration) checkRules(ctx context.Context, text string) error {
	present, err := c.opts.Catalog.Present(ctx)
	if err != nil {
		return err
	}
	roles, superusers := present.Roles(), map[string]*auth.Role{}
	for _, r := range roles.All() {
		if r.Superuser && r.Login {
			superusers[r.Name] = loginOf(roles, r)
		}
	}
	return c.gate.CheckRules(ctx, text, catalog.FirstDatabaseName, superusers)
}

// Stored implements session.Configuration.
func (c *Configuration) Stored(ctx context.Context) ([]catalog.FileSetting, error) {
	stored, err := c.opts.Catalog.System(ctx)
	if err != nil {
		return nil, err
	}
	values := *c.values.Load()
	var all []catalog.FileSetting
	for _, name := range slices.Sorted(maps.Keys(stored.Settings)) {
		row := catalog.FileSetting{Name: name, Value: stored.Settings[name]}
		canonical, invalid := settings.CheckSystem(name, row.Value)
		switch {
		case invalid != nil:
			row.Error = session.ToPGError(invalid).Message
		case c.flags[name] != "":
			row.Error = "the flag " + c.flags[name] + " sets it"
		case settings.IsStartOnly(name) && values[name].Value != canonical:
			row.Error = "setting could not be applied"
		case name == settings.Rules:
			if err := c.checkRules(ctx, canonical); err != nil {
				row.Error = err.Error()
			}
		}
		row.Applied = row.Error == ""
		all = append(all, row)
	}
	return all, nil
}

// AccessRules implements session.Configuration.
func (c *Configuration) AccessRules(ctx context.Context) ([]catalog.AccessRule, error) {
	given := c.opts.Access.Rules
	if given == "" && c.gate.RulesFile() == "" {
		stored, err := c.opts.Catalog.System(ctx)
		if err != nil {
			return nil, err
		}
		given = cmp.Or(stored.Settings[settings.Rules], auth.DefaultRules)
	}
	rules, err := c.gate.FileRules(given)
	if err != nil {
		return nil, err
	}
	all := make([]catalog.AccessRule, len(rules))
	for i, r := range rules {
		all[i] = catalog.AccessRule(r)
	}
	return all, nil
}
