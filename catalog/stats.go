package catalog

import (
	"context"
	"sync"

	"github.com/percodb/percodb/percolator"
)

// statsCache keeps statistics as last read, and counts changes since they were made. Safe for
// concurrent use.
type statsCache struct {
	catalog *Catalog
	mu      struct {
		sync.Mutex
		tables  map[uint64]cachedStats // by relation id
		changes map[changedTable]int64 // rows written by this process since the last statistics
	}
}

// changedTable names a table of a database.
type changedTable struct {
	database uint32
	id       uint64
}

type cachedStats struct {
	version uint64 // TableDescriptor.StatsVersion
	stats   *TableStats
}

// get returns the statistics of t. They are estimates: if those of its StatsVersion have been replaced, it returns newer
// ones.
func (s *statsCache) get(ctx context.Context, t *TableDescriptor) (*TableStats, error) {
	s.mu.Lock()
	cached, ok := s.mu.tables[t.ID]
	s.mu.Unlock()
	if ok && cached.version == t.StatsVersion {
		return cached.stats, nil
	}
	txn, err := s.catalog.db.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	return s.read(ctx, txn, t)
}

// read reads the statistics of t through r and keeps them.
func (s *statsCache) read(ctx context.Context, r percolator.Reader, t *TableDescriptor) (*TableStats, error) {
	key := idKey(wordStats, t.ID)
	value, err := r.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.keep(t, key, value)
}

// keep decodes and keeps the statistics of t; a nil value has none.
func (s *statsCache) keep(t *TableDescriptor, key, value []byte) (*TableStats, error) {
	stats := &TableStats{}
	if value != nil {
		if err := decode(key, value, stats); err != nil {
			return nil, err
		}
	}
	s.set(t.ID, t.StatsVersion, stats)
	return stats, nil
}

// fewStats is up to how many tables' statistics are read one by one.
const fewStats = 16

// load reads the statistics of a schema that are not known yet.
func (s *statsCache) load(ctx context.Context, r percolator.Reader, schema *schemaSnapshot) error {
	missing := map[uint64]*TableDescriptor{}
	s.mu.Lock()
	for _, t := range schema.list {
		if cached, ok := s.mu.tables[t.ID]; t.StatsVersion != 0 && (!ok || cached.version != t.StatsVersion) {
			missing[t.ID] = t
		}
	}
	s.mu.Unlock()
	if len(missing) > fewStats {
		return scan(ctx, r, wordStats, func(key, value []byte) error {
			id, err := idOfKey(wordStats, key)
			if t := missing[id]; t != nil && err == nil {
				_, err = s.keep(t, key, value)
			}
			return err
		})
	}
	for _, t := range missing {
		if _, err := s.read(ctx, r, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *statsCache) set(id, version uint64, stats *TableStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.tables == nil {
		s.mu.tables = map[uint64]cachedStats{}
	}
	s.mu.tables[id] = cachedStats{version: version, stats: stats}
}

// note counts rows written by a committed transaction.
func (s *statsCache) note(table changedTable, rows int64) {
	if rows == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.changes == nil {
		s.mu.changes = map[changedTable]int64{}
	}
	s.mu.changes[table] += rows
}

// PutStats stores statistics of t, which the catalog owns from then on. It gives t a new Version, so that statements are
// planned again, and does not affect writers.
func (ch *Change) PutStats(ctx context.Context, t *TableDescriptor, stats *TableStats) error {
	if t.Temporary() {
		ch.putTemporaryStats(t, stats)
		return nil
	}
	if err := ch.txn.Put(idKey(wordStats, t.ID), encode(stats)); err != nil {
		return err
	}
	next := t.Clone()
	version, err := ch.bump(ctx)
	if err != nil {
		return err
	}
	next.Version, next.StatsVersion = version, version
	ch.catalog.stats.set(t.ID, version, stats)
	ch.catalog.stats.forgetChanges(changedTable{ch.catalog.database, t.ID})
	ch.wrote.relation(t.ID)
	return ch.txn.Put(ch.space().idKey(wordRelation, t.ID), encode(next))
}

func (s *statsCache) forgetChanges(table changedTable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.changes, table)
}

// A table's statistics are stale when more rows than this were written since they were made.
const (
	staleRows     = 500
	staleFraction = 0.2
)

// Stale lists tables of the database whose rows, as written by this process, have changed much since their
// statistics were made.
func (c *Catalog) Stale(ctx context.Context) ([]uint64, error) {
	var current *schemaSnapshot
	if c.opts.Shared {
		current = c.lease.seen.Load().of(c)
	} else if p := c.current.Load(); p != nil {
		current = p.schemaSnapshot
	}
	if current == nil {
		return nil, nil
	}
	c.stats.mu.Lock()
	changes := make(map[uint64]int64, len(c.stats.mu.changes))
	for table, n := range c.stats.mu.changes {
		if n > staleRows && table.database == c.database {
			changes[table.id] = n
		}
	}
	c.stats.mu.Unlock()
	var stale []uint64
	for id, n := range changes {
		t := current.byID[id]
		if t == nil || t.Kind != KindTable {
			c.stats.forgetChanges(changedTable{c.database, id})
			continue
		}
		stats, err := current.Stats(ctx, id)
		if err != nil {
			return nil, err
		}
		if float64(n) > staleRows+staleFraction*stats.Rows {
			stale = append(stale, id)
		}
	}
	return stale, nil
}
