package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/keyword"
)

// CollationDescriptor is a collation that a user has created, as of one schema change. Immutable once published. Its number, provider and
// locale never change; all that types store is these.
type CollationDescriptor struct {
	ID     uint64 // the OID
	Schema string
	Name   string
	Owned
	Provider collation.Provider
	// Locale is that of ICU; of libc Collate and Ctype are the two.
	Locale  string `json:",omitempty"`
	Collate string `json:",omitempty"`
	Ctype   string `json:",omitempty"`
	// AnyEncoding: it was copied from one that belongs to no encoding, as those of ICU do.
	AnyEncoding bool `json:",omitempty"`
	// RulesVersion is pg_collation.collversion, "" for none.
	RulesVersion string `json:",omitempty"`
	Comment      string `json:",omitempty"`

	order *collation.Collation // kept while the descriptor is
}

// Collation returns the order of texts.
func (d *CollationDescriptor) Collation() *collation.Collation {
	if d.order != nil {
		return d.order
	}
	if d.Provider == collation.Libc {
		return collation.Defined(uint32(d.ID), d.Provider, d.Ctype)
	}
	return collation.Defined(uint32(d.ID), d.Provider, d.Locale)
}

// Clone returns a copy that may be changed.
func (d *CollationDescriptor) Clone() *CollationDescriptor {
	c := *d
	return &c
}

// Collations are the collations that users have created, as of one schema version. Immutable; safe for concurrent use.
type Collations struct {
	list   []*CollationDescriptor // by OID
	stored []byte                 // the records that they were read from
}

// All lists the collations by OID.
func (c *Collations) All() []*CollationDescriptor { return c.list }

// ByOID returns the collation with an OID, nil if there is none.
func (c *Collations) ByOID(oid uint32) *CollationDescriptor {
	i, ok := slices.BinarySearchFunc(c.list, uint64(oid), func(d *CollationDescriptor, id uint64) int { return cmp.Compare(d.ID, id) })
	if !ok {
		return nil
	}
	return c.list[i]
}

// Named returns the collation with a name in a schema, nil if there is none.
func (c *Collations) Named(schema, name string) *CollationDescriptor {
	for _, d := range c.list {
		if d.Schema == schema && d.Name == name {
			return d
		}
	}
	return nil
}

// Same reports whether two versions of the schema have the same collations, which the same names find.
func (c *Collations) Same(other *Collations) bool {
	return c == other || c != nil && other != nil && bytes.Equal(c.stored, other.stored)
}

// FindCollation looks up a collation by name; schema "" searches the resolver's path. nil: there is none.
func FindCollation(r Resolver, schema, name string) *collation.Collation {
	path := []string{schema}
	if schema == "" {
		path = Path(r)
	}
	for _, schema := range path {
		if schema == SystemSchema {
			if c := collation.ByName(name); c != nil {
				return c
			}
		} else if d := r.Collations().Named(schema, name); d != nil {
			return d.Collation()
		}
	}
	return nil
}

// CollationName returns the schema and the name of a collation, which nil is the default one of; empty if it has been dropped, or was not
// derived.
func CollationName(r Resolver, c *collation.Collation) (schema, name string) {
	if c == nil {
		c = collation.DefaultCollation
	}
	if d := r.Collations().ByOID(c.OID); d != nil {
		return d.Schema, d.Name
	}
	return c.Schema, c.Name
}

// WrittenCollation returns the name of a collation as statements write it: with its schema if the bare name finds another one or none.
func WrittenCollation(r Resolver, c *collation.Collation) string {
	schema, name := CollationName(r, c)
	if CollationVisible(r, schema, name) {
		return keyword.QuoteIdent(name)
	}
	return keyword.QuoteIdent(schema) + "." + keyword.QuoteIdent(name)
}

// CollationVisible reports whether the bare name of a collation of a schema finds that one.
func CollationVisible(r Resolver, schema, name string) bool {
	found := FindCollation(r, "", name)
	if found == nil {
		return false
	}
	in, _ := CollationName(r, found)
	return in == schema
}

// loadCollations reads the collations. They are those of last if no record has changed.
func loadCollations(ctx context.Context, r rowReader, of space, last *schemaSnapshot) (*Collations, error) {
	all := &Collations{}
	err := scanSpan(ctx, r, of.span(wordCollation), func(key, value []byte) error {
		d := new(CollationDescriptor)
		if err := decode(key, value, d); err != nil {
			return err
		}
		d.order = d.Collation()
		d.order.Show(d.Schema, d.Name)
		all.list = append(all.list, d)
		all.stored = append(append(all.stored, value...), '\n')
		return nil
	})
	if err == nil && last != nil && last.collations.Same(all) {
		return last.collations, nil
	}
	return all, err
}

// PutCollation adds a collation, or replaces the one with its ID.
func (ch *Change) PutCollation(ctx context.Context, d *CollationDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.collations = true
	return ch.txn.Put(ch.space().idKey(wordCollation, d.ID), encode(d))
}

// DropCollation removes a collation, which nothing may use any more.
func (ch *Change) DropCollation(ctx context.Context, d *CollationDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.collations = true
	return ch.txn.Delete(ch.space().idKey(wordCollation, d.ID))
}

// UnmarshalJSON reads a stored key column with its collation.
func (c *IndexColumn) UnmarshalJSON(b []byte) (err error) {
	type stored IndexColumn
	if err = json.Unmarshal(b, (*stored)(c)); err == nil {
		c.Coll, err = c.Coll.Known()
	}
	return err
}
