package catalog

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// ExtensionDescriptor is an extension that CREATE EXTENSION has installed. What it consists of is part of the program
// (builtin.Extension); the descriptor says that statements find it, and in which schema. Immutable once published.
type ExtensionDescriptor struct {
	ID      uint64 // the OID
	Name    string
	Schema  string
	Version string
	Owner   uint32 `json:",omitempty"`
	Comment string `json:",omitempty"`
}

// OwnerOID returns the owner, who is the superuser of the database's creation if none is stored.
func (d *ExtensionDescriptor) OwnerOID() uint32 {
	o := Owned{Owner: d.Owner}
	return o.OwnerOID()
}

// Extension returns what the extension consists of; nil if this program does not have it, which a newer one has installed.
func (d *ExtensionDescriptor) Extension() *builtin.Extension { return builtin.ExtensionNamed(d.Name) }

// plpgsqlOID is PostgreSQL's number of the one extension that every database has.
const plpgsqlOID = 13559

// Extensions are the installed extensions as of one schema version. Immutable; safe for concurrent use.
type Extensions struct {
	list   []*ExtensionDescriptor // by name
	stored []byte                 // the records that they were read from
}

// NewExtensions returns the extensions of a new database.
func NewExtensions() *Extensions {
	language := builtin.ExtensionNamed("plpgsql")
	return &Extensions{list: []*ExtensionDescriptor{
		{ID: plpgsqlOID, Name: language.Name, Schema: language.Schema, Version: language.Version, Comment: language.Comment},
	}}
}

// All lists the extensions by name.
func (x *Extensions) All() []*ExtensionDescriptor { return x.list }

// Named returns the extension with a name, nil if it is not installed.
func (x *Extensions) Named(name string) *ExtensionDescriptor {
	for _, d := range x.list {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Sources returns where functions and operators come from that are named without a schema, given the search path.
func (x *Extensions) Sources(path []string) builtin.Sources {
	from := builtin.System
	if slices.Contains(path, InformationSchema) {
		from |= builtin.InformationSchema
	}
	if len(x.list) == 1 {
		return from
	}
	for _, d := range x.list {
		if e := d.Extension(); e != nil && slices.Contains(path, d.Schema) {
			from |= e.Source()
		}
	}
	return from
}

// In returns where the functions and operators of a schema come from.
func (x *Extensions) In(schema string) builtin.Sources {
	from := builtin.Sources(0)
	switch schema {
	case SystemSchema:
		from = builtin.System
	case InformationSchema:
		from = builtin.InformationSchema
	}
	for _, d := range x.list {
		if e := d.Extension(); e != nil && d.Schema == schema {
			from |= e.Source()
		}
	}
	return from
}

// typeNamed returns the type of a name in a schema that an extension has; the zero Type if there is none.
func (x *Extensions) typeNamed(schema, name string) types.Type {
	for _, d := range x.list {
		if d.Schema == schema {
			if t := types.OfExtension(d.Name, name); t.Valid() {
				return t
			}
		}
	}
	return types.Type{}
}

// loadExtensions reads the installed extensions. They are those of last if nothing has changed.
func loadExtensions(ctx context.Context, r rowReader, of space, last *schemaSnapshot) (*Extensions, error) {
	all := NewExtensions()
	err := scanSpan(ctx, r, of.span(wordExtension), func(key, value []byte) error {
		d := new(ExtensionDescriptor)
		if err := decode(key, value, d); err != nil {
			return err
		}
		all.list = append(all.list, d)
		all.stored = append(append(all.stored, value...), '\n')
		return nil
	})
	if err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(last.extensions.stored, all.stored) {
		return last.extensions, nil
	}
	slices.SortFunc(all.list, func(a, b *ExtensionDescriptor) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// PutExtension adds an extension, or replaces the one with its ID.
func (ch *Change) PutExtension(ctx context.Context, d *ExtensionDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.extensions = true
	return ch.txn.Put(ch.space().idKey(wordExtension, d.ID), encode(d))
}

// DropExtension removes an extension, which nothing may use any more.
func (ch *Change) DropExtension(ctx context.Context, d *ExtensionDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.extensions = true
	return ch.txn.Delete(ch.space().idKey(wordExtension, d.ID))
}

// ForStored returns r for an expression or a query that the catalog holds: what it names of extensions was found when it was stored, and is
// found in whatever schema the extension is.
func ForStored(r Resolver) Resolver {
	all := r.Extensions().list
	if len(all) == 1 && len(r.Operations().operators) == 0 {
		return r
	}
	path := slices.Clip(Path(r))
	if len(all) > 1 {
		for _, d := range all {
			if !slices.Contains(path, d.Schema) {
				path = append(path, d.Schema)
			}
		}
	}
	if p, ok := r.(*inPath); ok {
		return &inPath{Resolver: p.Resolver, path: path, local: p.local, stored: true}
	}
	return &inPath{Resolver: r, path: path, stored: true}
}

// Stored reports whether r is for what the catalog holds.
func Stored(r Resolver) bool {
	p, ok := r.(*inPath)
	return ok && p.stored
}
