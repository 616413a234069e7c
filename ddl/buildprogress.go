package ddl

import (
	"slices"
	"sync"

	"github.com/percodb/percodb/catalog"
)

// Builds are the builds of indexes that this process is at (pg_stat_progress_create_index). The zero value is empty; the methods of nil do
// nothing. Safe for concurrent use.
type Builds struct {
	mu   sync.Mutex
	list map[uint32]*catalog.IndexProgress
}

// The phases of a build, as PostgreSQL names them.
const (
	phaseInitializing = "initializing"
	phaseScanning     = "building index: scanning table"
	phaseMerging      = "index validation: scanning table"
	phaseFinishing    = "waiting for writers before validation"
)

// All returns the builds, by the OID of the index.
func (b *Builds) All() (all []catalog.IndexProgress) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.list {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(x, y catalog.IndexProgress) int { return int(int64(x.Index) - int64(y.Index)) })
	return all
}

// Has reports whether the process is at the build of an index.
func (b *Builds) Has(index uint32) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list[index] != nil
}

// begin adds a build.
func (b *Builds) begin(index uint32, rec *catalog.BuildRecord, database string, concurrently bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.list == nil {
		b.list = map[uint32]*catalog.IndexProgress{}
	}
	p := ProgressOf(index, rec)
	if p.DatabaseName = database; concurrently {
		p.Command = "CREATE INDEX CONCURRENTLY"
	}
	b.list[index] = &p
}

// update notes the progress of a build.
func (b *Builds) update(index uint32, rec *catalog.BuildRecord) {
	b.change(index, func(p *catalog.IndexProgress) {
		now := ProgressOf(index, rec)
		p.Phase, p.Total, p.Rows = now.Phase, now.Total, now.Rows
	})
}

// finishing notes that a build waits for writers.
func (b *Builds) finishing(index uint32) {
	b.change(index, func(p *catalog.IndexProgress) { p.Phase = phaseFinishing })
}

func (b *Builds) change(index uint32, f func(p *catalog.IndexProgress)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.list[index]; p != nil {
		f(p)
	}
}

// end removes builds.
func (b *Builds) end(indexes []uint32) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, index := range indexes {
		delete(b.list, index)
	}
}

// ProgressOf is the progress that a record shows.
func ProgressOf(index uint32, rec *catalog.BuildRecord) catalog.IndexProgress {
	p := catalog.IndexProgress{
		PID: rec.Session, Database: rec.Database, Table: rec.Table, Index: index, Command: "CREATE INDEX", Phase: phaseInitializing,
		Total: max(rec.Total, rec.Rows), Rows: rec.Rows, Parts: rec.Parts, Part: rec.Part,
	}
	switch {
	case rec.Phase == catalog.BuildMerges:
		p.Phase = phaseMerging
	case rec.From != 0:
		p.Phase = phaseScanning
	}
	return p
}
