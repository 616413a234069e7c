package check

import (
	"context"
	"fmt"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
)

// Finding is one thing that should not be.
type Finding struct {
	Relation string // schema.name
	Index    string // "" when the row itself, or the descriptor, is at fault
	Key      []byte // nil for descriptors
	Problem  string
}

func (f Finding) String() string {
	where := f.Relation
	if f.Index != "" {
		where += ", index " + f.Index
	}
	if f.Key != nil {
		where += fmt.Sprintf(", key %x", f.Key)
	}
	return where + ": " + f.Problem
}

// Summary counts what was checked.
type Summary struct{ Tables, Rows, Entries, Findings int64 }

// groupSize is the number of keys that are looked up together.
const groupSize = 1024

// Source is what a check reads.
type Source struct {
	Resolver catalog.Resolver
	Txn      percolator.Reader // of the resolver's snapshot
	Env      *builtin.Env      // evaluates the expressions of indexes and constraints
}

// Report receives what a check has to say.
type Report struct {
	// Finding is called with each finding; its error ends the check.
	Finding func(Finding) error
	// Note, if given, is called with what may be as its user wants it.
	Note func(Finding)
	// Progress, if given, is called every few thousand rows and entries with the relation and their number.
	Progress func(relation string, rows int64)
}

// Run checks a database.
func Run(ctx context.Context, of Source, to Report) (Summary, error) {
	all, err := of.Resolver.Relations(ctx)
	if err != nil {
		return Summary{}, err
	}
	k := &checker{txn: of.Txn, resolver: of.Resolver, Report: to, env: of.Env}
	for _, t := range all {
		if err := k.descriptor(ctx, t); err != nil {
			return k.sum, err
		}
		switch t.Kind {
		case catalog.KindTable:
			err = k.table(ctx, t)
		case catalog.KindSequence:
			err = k.sequence(ctx, t)
		}
		if err != nil {
			return k.sum, err
		}
	}
	return k.sum, nil
}

// checker is one run. One goroutine's.
type checker struct {
	txn      percolator.Reader
	resolver catalog.Resolver
	Report
	sum Summary
	env *builtin.Env
}

// seen reports progress every few thousand rows or entries.
func (k *checker) seen(t *catalog.TableDescriptor, n int64) {
	if k.Progress != nil && n%4096 == 1 {
		k.Progress(t.Schema+"."+t.Name, k.sum.Rows+k.sum.Entries)
	}
}

// found reports a problem of a relation; ix and key may be nil.
func (k *checker) found(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, key []byte, format string, args ...any) error {
	k.sum.Findings++
	f := Finding{Relation: t.Schema + "." + t.Name, Key: key, Problem: fmt.Sprintf(format, args...)}
	if ix != nil {
		f.Index = indexName(ix)
	}
	return k.Finding(f)
}

// note says what may be as its user wants it.
func (k *checker) note(t *catalog.TableDescriptor, format string, args ...any) {
	if k.Note != nil {
		k.Note(Finding{Relation: t.Schema + "." + t.Name, Problem: fmt.Sprintf(format, args...)})
	}
}

func indexName(ix *catalog.IndexDescriptor) string {
	if ix.Name == "" {
		return "over the hidden rowid"
	}
	return ix.Name
}

// descriptor checks that a descriptor agrees with itself and with its neighbours.
func (k *checker) descriptor(ctx context.Context, t *catalog.TableDescriptor) error {
	named, err := k.resolver.Relation(ctx, t.Schema, t.Name)
	if err != nil {
		return err
	}
	if named == nil || named.ID != t.ID {
		if err := k.found(t, nil, nil, "relation %d is not the one its name leads to", t.ID); err != nil {
			return err
		}
	}
	if ok, err := k.resolver.SchemaExists(ctx, t.Schema); err != nil || !ok {
		return firstOf(err, func() error { return k.found(t, nil, nil, "schema does not exist") })
	}
	var last uint32
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.ID <= last || t.Kind == catalog.KindTable && c.ID >= t.NextColumnID {
			if err := k.found(t, nil, nil, "column %q has id %d after %d, next %d", c.Name, c.ID, last, t.NextColumnID); err != nil {
				return err
			}
		}
		last = c.ID
		if c.Sequence == 0 {
			continue
		}
		seq, err := k.resolver.RelationByID(ctx, c.Sequence)
		if err != nil {
			return err
		}
		if seq == nil || seq.Kind != catalog.KindSequence {
			if err := k.found(t, nil, nil, "sequence %d of column %q does not exist", c.Sequence, c.Name); err != nil {
				return err
			}
		}
	}
	if err := k.partitions(ctx, t); err != nil {
		return err
	}
	return k.indexes(t)
}

func firstOf(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// indexes checks the index descriptors of a table.
func (k *checker) indexes(t *catalog.TableDescriptor) error {
	if t.Kind != catalog.KindTable {
		return nil
	}
	seen := map[uint32]bool{}
	for _, ix := range allIndexes(t) {
		if seen[ix.ID] || ix.ID >= t.NextIndexID {
			if err := k.found(t, ix, nil, "id %d is taken, or not below %d", ix.ID, t.NextIndexID); err != nil {
				return err
			}
		}
		seen[ix.ID] = true
		for i := range ix.Columns {
			ord := t.Ordinal(ix.Columns[i].ColumnID)
			if ord < 0 || !rowenc.Indexable(t.ColumnAt(ord).Type) {
				if err := k.found(t, ix, nil, "column %d does not exist or cannot be indexed", ix.Columns[i].ColumnID); err != nil {
					return err
				}
			}
		}
	}
	return k.observers(t, seen)
}

func allIndexes(t *catalog.TableDescriptor) []*catalog.IndexDescriptor {
	all := []*catalog.IndexDescriptor{&t.Primary}
	for i := range t.Indexes {
		all = append(all, &t.Indexes[i])
	}
	return all
}
