package catalog

import (
	"context"
	"slices"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/collation"
)

// CollationDescriptor is a user-defined collation. Immutable once published.
type CollationDescriptor struct {
	ID      uint64 // the OID
	Version uint64 // the schema version that last changed it
	Schema  string
	Name    string
	Owned
	Provider collation.Provider
	Locale   string
	// Rules is the version of the rules as of CREATE COLLATION or REFRESH VERSION.
	Rules   string `json:",omitempty"`
	Comment string `json:",omitempty"`

	def *collation.Collation
}

// Collation returns what orders texts. The descriptor must be one of a Resolver.
func (d *CollationDescriptor) Collation() *collation.Collation { return d.def }

// Clone returns a copy that may be changed.
func (d *CollationDescriptor) Clone() *CollationDescriptor {
	c := *d
	return &c
}

// define makes def.
func (d *CollationDescriptor) define() {
	d.def = collation.New(collation.Collation{OID: uint32(d.ID), Schema: d.Schema, Name: d.Name, Provider: d.Provider, Locale: d.Locale, Comment: d.Comment})
}

// Collations lists the user-defined collations by OID.
func (t *Types) Collations() []*CollationDescriptor { return t.collations }

// CollationByOID returns the user-defined collation with the OID, nil if there is none.
func (t *Types) CollationByOID(oid uint32) *CollationDescriptor {
	for _, d := range t.collations {
		if d.ID == uint64(oid) {
			return d
		}
	}
	return nil
}

// collation returns c, of which maybe no more than the number is known, as the schema has it.
func (t *Types) collation(c *collation.Collation) *collation.Collation {
	if found := collation.ByOID(c.OID); found != nil {
		return found.Plain()
	}
	if d := t.CollationByOID(c.OID); d != nil {
		return d.def
	}
	return c
}

// completeIndexes returns r with the collations of its indexes' columns as the schema has them; changed is r or a copy of it.
func (t *Types) completeIndexes(r, changed *TableDescriptor) *TableDescriptor {
	visit := func(ix *IndexDescriptor, mine func() *IndexDescriptor) {
		for i := range ix.Columns {
			if c := ix.Columns[i].Coll; c != nil {
				if want := t.collation(c); want != c {
					mine().Columns[i].Coll = want
				}
			}
		}
	}
	own := func() {
		if changed == r {
			changed = r.Clone()
		}
	}
	visit(&r.Primary, func() *IndexDescriptor { own(); return &changed.Primary })
	for i := range r.Indexes {
		visit(&r.Indexes[i], func() *IndexDescriptor { own(); return &changed.Indexes[i] })
	}
	return changed
}

// FindCollation looks up a collation by name; schema "" searches the resolver's path. nil: there is none.
func FindCollation(r Resolver, schema, name string) *collation.Collation {
	schemas := []string{schema}
	if schema == "" {
		schemas = Path(r)
		if !slices.Contains(schemas, SystemSchema) {
			schemas = append([]string{SystemSchema}, schemas...)
		}
	}
	for _, schema := range schemas {
		if schema == SystemSchema {
			if c := collation.ByName(name); c != nil {
				return c
			}
		}
		for _, d := range r.Types().collations {
			if d.Schema == schema && d.Name == name {
				return d.def
			}
		}
	}
	return nil
}

// loadCollations reads the user-defined collations, and appends their records to stored.
func (t *Types) loadCollations(ctx context.Context, r percolator.Reader) error {
	return scan(ctx, r, wordCollation, func(key, value []byte) error {
		d := new(CollationDescriptor)
		if err := decode(key, value, d); err != nil {
			return err
		}
		d.define()
		t.collations = append(t.collations, d)
		t.storedCollations = append(append(t.storedCollations, value...), '\n')
		return nil
	})
}

// PutCollation adds a collation, or replaces the one with its ID, and sets its Version.
func (ch *Change) PutCollation(ctx context.Context, d *CollationDescriptor) (err error) {
	if d.Version, err = ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.typ(d.ID)
	return ch.txn.Put(idKey(wordCollation, d.ID), encode(d))
}

// DropCollation removes a collation, which nothing may use any more.
func (ch *Change) DropCollation(ctx context.Context, d *CollationDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.typ(d.ID)
	return ch.txn.Delete(idKey(wordCollation, d.ID))
}
