package catalog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/readlease"
	"github.com/percodb/percodb/tso"
)

// Options of a Catalog. The zero value means the defaults named here.
type Options struct {
	Logger *slog.Logger // discards
	// Shared is set if other processes execute SQL over the same store.
	Shared bool
	// System are the system tables (pgcatalog.Tables); none.
	System []*TableDescriptor
	// Lease is how long after reading the schema a process of a Shared catalog may commit, and therefore how long a
	// schema change waits: 1 s. PollInterval is the interval at which the process reads it: 250 ms. All processes must
	// have the same Lease.
	Lease, PollInterval time.Duration
	// Leases is the authority for leases of the schema version, the same for all processes of a Shared catalog; it
	// grants each for Lease. Without it every transaction reads the schema version from the store.
	Leases readlease.Service
	// WaitGraph is the graph in which the waits for row locks are registered: that of the store, or of the cluster if
	// Shared. Without it a deadlock between row locks and schema changes lasts until a statement is canceled.
	WaitGraph waitgraph.Graph
	// SequenceAhead is the number of sequence values made durable at once: 32, or 1 with Shared, where other processes
	// draw from the same sequence.
	SequenceAhead int
}

func (o Options) ensureDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Lease == 0 {
		o.Lease = time.Second
	}
	if o.PollInterval == 0 {
		o.PollInterval = 250 * time.Millisecond
	}
	if o.SequenceAhead == 0 {
		o.SequenceAhead = 32
		if o.Shared {
			o.SequenceAhead = 1
		}
	}
	return o
}

// Catalog is the schema of one database of a store. Safe for concurrent use.
type Catalog struct {
	*store
	database uint32 // its OID
	space    space
	spans    []kv.Span // schemaSpans

	current atomic.Pointer[published] // nil: not known; see refresh
	mu      struct {
		sync.Mutex
		recent []recentSnapshot // the last few versions, the newest last
		last   *schemaSnapshot  // the one read last
	}
	connections connections
}

// store is what the databases of a store share.
type store struct {
	db   *percolator.DB
	opts Options

	// inForce is the newest known version; see settled.
	inForce atomic.Pointer[versionSince]
	// seen is what was read last of the version, or written by this process; see versionAt.
	seen atomic.Pointer[versionSeen]
	// committing counts schema changes that are ready to commit and not yet published; while it is not 0, inForce may be
	// outdated.
	committing atomic.Int32
	gate       gate
	lease      lease
	version    versionLease
	changing   chan struct{} // holds one token, taken by the schema change under way
	granting   chan struct{} // the same for a change of privileges that runs alone
	// changer is the transaction that has the token, 0 if not known; see Change.id.
	changer atomic.Uint64
	// changerSession is the session of that transaction, waits what sessions wait for.
	changerSession atomic.Uint32
	waits          schemaWaits
	ids            block
	rowIDs         block
	sequences      sequences
	stats          statsCache
	secret         struct {
		sync.Mutex
		value []byte // nil: not read yet
	}
	databases struct {
		sync.Mutex
		open map[uint32]*Catalog // by OID
	}
}

// published is the newest known schema of a database: the one in force for every transaction that starts at or
// after since, until it is replaced.
type published struct {
	*schemaSnapshot
	since tso.Timestamp
}

// versionSince is the version of the schema, of all databases, that is in force since a timestamp.
type versionSince struct {
	version uint64
	since   tso.Timestamp
}

// keepSnapshots is the number of versions kept for transactions older than the newest.
const keepSnapshots = 8

// New opens the catalog of a store's first database and initializes it in a new store; Database opens those of others. Close it before
// db. It returns a *FormatError if another version of percodb wrote it.
func New(ctx context.Context, db *percolator.DB, opts Options) (*Catalog, error) {
	st := &store{db: db, opts: opts.ensureDefaults(), changing: make(chan struct{}, 1), granting: make(chan struct{}, 1)}
	st.databases.open = map[uint32]*Catalog{}
	c := st.open(FirstDatabase)
	c.changing <- struct{}{}
	c.granting <- struct{}{}
	c.ids = block{catalog: c, key: keyIDs, first: firstUserOID, size: idBlock}
	c.rowIDs = block{catalog: c, key: keyRowIDs, first: 1, size: rowIDBlock}
	c.sequences = sequences{catalog: c}
	c.stats = statsCache{catalog: c}
	c.gate.mu.tables = map[uint64]*tableGate{}
	if err := c.bootstrap(ctx); err != nil {
		return nil, err
	}
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	if c.opts.Shared {
		if err := c.lease.start(ctx, c); err != nil {
			return nil, err
		}
		c.version.start(ctx, c)
	}
	if err := c.sweepTemporary(ctx); err != nil {
		c.opts.Logger.Warn("temporary tables of processes that have ended are left for the next start", "err", err)
	}
	return c, nil
}

// Close ends the catalog's background work and gives unused sequence values back.
func (c *Catalog) Close(ctx context.Context) error {
	c.version.stop(ctx)
	c.lease.stop(ctx)
	return c.sequences.giveBack(ctx)
}

// bootstrap writes the first keys of a new store.
func (c *Catalog) bootstrap(ctx context.Context) error {
	return c.retry(ctx, func(txn *percolator.Txn) error {
		format, err := txn.Get(ctx, keyFormat)
		if err != nil {
			return err
		}
		switch string(format) {
		case "":
		case formatVersion:
			return nil
		case formatWithoutOperators, formatWithoutPartitionedKeys:
			return txn.Put(keyFormat, []byte(formatVersion))
		case formatWithoutDatabases, formatWithoutKeys, formatWithoutCollations, formatWithoutPolicies:
			return c.addDatabases(ctx, txn)
		case formatWithoutRoles:
			if err := c.addRoles(ctx, txn); err != nil {
				return err
			}
			return c.addDatabases(ctx, txn)
		default:
			return &FormatError{Found: string(format), Want: formatVersion}
		}
		if err := putSchemas(txn, c.space); err != nil {
			return err
		}
		if err := putNumber(txn, keyVersion, 1); err != nil {
			return err
		}
		return c.addDatabases(ctx, txn)
	})
}

// addRoles upgrades a store whose format is formatWithoutRoles. Clients that connected by the name that the server proposed then can
// still do so: it becomes a superuser.
func (c *Catalog) addRoles(ctx context.Context, txn *percolator.Txn) error {
	next, err := getNumber(ctx, txn, keyIDs)
	if err != nil {
		return err
	}
	next = max(next, firstUserOID)
	if err := putNumber(txn, keyIDs, next+2); err != nil { // one for the role, one for the version
		return err
	}
	role := builtinRoles()[0]
	role.OID, role.Name = uint32(next), formerUser
	if err := txn.Put(idKey(wordRole, next), encode(role)); err != nil {
		return err
	}
	return putNumber(txn, keyVersion, next+1)
}

// retry runs f in a new transaction and commits it, until it does not conflict. The error is never that of an unknown outcome: the
// transaction on whose behalf f runs was not attempted, and whether f has happened does not matter to it.
func (c *Catalog) retry(ctx context.Context, f func(txn *percolator.Txn) error) error {
	_, err := c.retryAt(ctx, f)
	return percolator.CauseOf(err)
}

// retryAt is retry that returns what Commit returned, also if the outcome is unknown.
func (c *Catalog) retryAt(ctx context.Context, f func(txn *percolator.Txn) error) (at tso.Timestamp, err error) {
	for {
		txn, err := c.db.Begin(ctx)
		if err != nil {
			return 0, err
		}
		err = f(txn)
		if err == nil {
			at, err = txn.Commit(ctx)
		} else {
			_ = txn.Rollback(ctx) // Nothing has been sent to the store.
		}
		if errkind.Of(err) != errkind.WriteConflict {
			return at, err
		}
	}
}

// At returns the schema as txn sees it: as of its snapshot, with its own changes. Call it again after a statement that
// changes the schema, and after rolling back to a savepoint.
func (c *Catalog) At(ctx context.Context, txn *percolator.Txn) (Resolver, error) {
	return c.at(ctx, txn)
}

func (c *Catalog) at(ctx context.Context, txn *percolator.Txn) (s *schemaSnapshot, err error) {
	// A schema change is not a conflict of rows: the guard checks it against what is written, and the schema is read
	// again when the snapshot is refreshed.
	if txn.Wrote() {
		if s, err = c.committedAt(ctx, txn.ReadTS()); err == nil {
			s, err = c.with(ctx, txn, s)
		}
		return s, err
	}
	if s := c.knownAt(txn.ReadTS()); s != nil {
		return s, nil
	}
	err = txn.Aside(func(r percolator.Reader) error {
		s, err = c.look(ctx, r, txn.ReadTS())
		return err
	})
	if err == nil && !c.opts.Shared {
		c.adopt(s)
	}
	return s, err
}

// knownAt returns the committed schema as of ts, which was issued before the call, or nil if it must be read from the store.
func (c *Catalog) knownAt(ts tso.Timestamp) *schemaSnapshot {
	if c.opts.Shared {
		if s := c.version.at(ts).of(c); s != nil {
			return s
		}
	} else if p := c.settled(); p != nil && ts >= p.since {
		return p.schemaSnapshot
	}
	if version := c.versionAt(ts); version != 0 {
		return c.recent(version, 0)
	}
	return nil
}

// committedAt returns the committed schema as of ts.
func (c *Catalog) committedAt(ctx context.Context, ts tso.Timestamp) (*schemaSnapshot, error) {
	if s := c.knownAt(ts); s != nil {
		return s, nil
	}
	past := c.db.BeginAt(ts)
	defer past.Close()
	return c.look(ctx, past, ts)
}

// settled returns the published schema, or nil while it may be another one than the store's. The count
// is read first: a change that ended before has published.
func (c *Catalog) settled() *published {
	if c.committing.Load() != 0 {
		return nil
	}
	p := c.current.Load()
	if f := c.inForce.Load(); p == nil || f == nil || p.version != f.version {
		return nil
	}
	return p
}

// adopt publishes s, which was read from the store, if its version is the one in force: a change of another database, or of what they share,
// has published only its own.
func (c *Catalog) adopt(s *schemaSnapshot) {
	if f := c.inForce.Load(); f != nil && f.version == s.version {
		c.publish(s, f.since)
	}
}

// Latest returns a schema for a statement that reads without a timestamp, or nil if the statement needs a transaction.
// InForce reports afterwards whether the schema was in force for what was read.
func (c *Catalog) Latest() Resolver {
	if c.opts.Shared {
		s := c.version.held.Load().of(c)
		if seen := c.seen.Load(); s == nil && seen != nil {
			s = c.recent(seen.version, 0)
		}
		if s == nil {
			s = c.lease.seen.Load().of(c)
		}
		if s == nil {
			return nil
		}
		return s
	}
	if p := c.settled(); p != nil {
		return p.schemaSnapshot
	}
	return nil
}

// InForce reports whether a schema that Latest returned has been in force since. Versions only increase, so checking
// afterwards suffices. snapshot, unless 0, is the one that was read, taken after Latest: then it is enough that the schema was in force at it.
func (c *Catalog) InForce(ctx context.Context, r Resolver, snapshot tso.Timestamp) (bool, error) {
	if !c.opts.Shared {
		p := c.settled()
		return p != nil && p.version == r.Version(), nil
	}
	if c.version.held.Load() != nil {
		// First the timestamp, then the lease: it covers the moment between a read without a snapshot and the timestamp.
		if snapshot == 0 {
			var err error
			if snapshot, err = c.db.Timestamp(ctx); err != nil {
				return false, err
			}
		}
		if h := c.version.at(snapshot); h != nil {
			return h.version == r.Version(), nil
		}
	}
	version, err := getNumber(ctx, c.db.Latest(), keyVersion)
	return version == r.Version(), err
}

// look reads the committed version of the schema through r, whose snapshot is at, and, unless that version is cached, the schema. Version numbers
// are never reused, not even those of changes that are rolled back, so the schema cached under a number is valid for every reader of that number.
func (c *Catalog) look(ctx context.Context, r percolator.Reader, at tso.Timestamp) (*schemaSnapshot, error) {
	version, err := getNumber(ctx, r, keyVersion)
	if err != nil {
		return nil, err
	}
	c.sawVersion(version, at)
	return c.ofVersion(ctx, r, version)
}

// ofVersion returns the schema of a version, which is the one that r reads.
func (c *Catalog) ofVersion(ctx context.Context, r percolator.Reader, version uint64) (*schemaSnapshot, error) {
	if s := c.recent(version, 0); s != nil {
		return s, nil
	}
	last := c.last()
	var known *schemaRows
	if last != nil {
		known = last.rows
	}
	rows, err := readSchemaRows(ctx, r, c.spans, known)
	if err != nil {
		return nil, err
	}
	s, err := c.newSnapshot(ctx, version, rows, last)
	if err == nil {
		c.remember(s, 0)
	}
	return s, err
}

// with returns a committed schema with the changes of txn over it. It sends no request.
func (c *Catalog) with(ctx context.Context, txn *percolator.Txn, under *schemaSnapshot) (*schemaSnapshot, error) {
	var version uint64
	err := txn.OwnWrites([]kv.Span{versionSpan}, func(key, value []byte) (err error) {
		version, err = parseNumber(key, value)
		return err
	})
	if err != nil || version == 0 {
		return under, err
	}
	if s := c.recent(version, under.version); s != nil {
		return s, nil
	}
	rows, wrote, err := under.rows.with(txn, c.spans)
	if err != nil {
		return nil, err
	}
	if !wrote { // It has changed another database.
		s := *under
		s.version = version
		return &s, nil
	}
	s, err := c.newSnapshot(ctx, version, rows, under)
	if err == nil {
		c.remember(s, under.version)
	}
	return s, err
}

// recentSnapshot is a schema that was made of its rows: that of its version, if under is 0. Else the transaction that has written the version may
// not have committed, and the schema is the one that it sees over the committed version under.
type recentSnapshot struct {
	*schemaSnapshot
	under uint64
}

// recent returns the schema of a version, as a transaction sees it that has written the version over under (0: none has), if it is cached.
func (c *Catalog) recent(version, under uint64) *schemaSnapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.mu.recent) - 1; i >= 0; i-- {
		if r := &c.mu.recent[i]; r.version == version && (r.under == 0 || r.under == under) {
			return r.schemaSnapshot
		}
	}
	return nil
}

// last returns the schema that was made last, whose parts another one may share; nil if none was.
func (c *Catalog) last() *schemaSnapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.last
}

// remember caches s among the recent snapshots, in the place of the oldest if there are too many.
func (c *Catalog) remember(s *schemaSnapshot, under uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.recent = slices.DeleteFunc(c.mu.recent, func(r recentSnapshot) bool { return r.version == s.version })
	if len(c.mu.recent) >= keepSnapshots {
		c.mu.recent = slices.Delete(c.mu.recent, 0, 1)
	}
	c.mu.recent = append(c.mu.recent, recentSnapshot{s, under})
	c.mu.last = s
}

// versionSeen is a version that was read as of both timestamps, or committed at from. It was the version all the time between, as numbers are
// not reused.
type versionSeen struct {
	version  uint64
	from, to tso.Timestamp
}

// sawVersion notes that a version was read as of ts, or committed at ts.
func (st *store) sawVersion(version uint64, ts tso.Timestamp) {
	for {
		old := st.seen.Load()
		next := &versionSeen{version, ts, ts}
		switch {
		case old == nil:
		case old.version == version && (ts < old.from || ts > old.to):
			next.from, next.to = min(old.from, ts), max(old.to, ts)
		case old.version == version || ts < old.to:
			return
		}
		if st.seen.CompareAndSwap(old, next) {
			return
		}
	}
}

// versionAt returns the version of the schema as of ts, or 0 if it must be read.
func (st *store) versionAt(ts tso.Timestamp) uint64 {
	if seen := st.seen.Load(); seen != nil && seen.from <= ts && ts <= seen.to {
		return seen.version
	}
	return 0
}

// refresh reads the schema from the store and publishes it.
func (c *Catalog) refresh(ctx context.Context) error {
	txn, err := c.db.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	s, err := c.look(ctx, txn, txn.ReadTS())
	if err != nil {
		return err
	}
	c.publish(s, txn.StartTS())
	return nil
}

// publish makes s the schema in force for transactions from since on.
func (c *Catalog) publish(s *schemaSnapshot, since tso.Timestamp) {
	next := &published{schemaSnapshot: s, since: since}
	for {
		old := c.current.Load()
		if old != nil && old.since >= since || c.current.CompareAndSwap(old, next) {
			break
		}
	}
	version := &versionSince{version: s.version, since: since}
	for {
		old := c.inForce.Load()
		if old != nil && old.since >= since || c.inForce.CompareAndSwap(old, version) {
			return
		}
	}
}
