package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// The databases that every new store has, with PostgreSQL's OIDs.
const (
	// FirstDatabase is that of a store from before there were several. Its objects have the oldest keys.
	FirstDatabase     = 5
	FirstDatabaseName = "percodb"

	template1OID  = 1
	template0OID  = 4
	Template1Name = "template1"
	Template0Name = "template0"

	// otherName means the first database while no database has it.
	otherName = "postgres"
)

// ErrNoDatabase is returned by the methods of a Catalog whose database has been dropped, or did not exist as of the snapshot.
var ErrNoDatabase = errors.New("the database does not exist")

// DatabaseDescriptor is a database as of one schema version. Immutable once published.
type DatabaseDescriptor struct {
	OID  uint32
	Name string
	Owned
	// ConnectionLimit bounds the sessions in one process that are not superusers'; nil: nothing does.
	ConnectionLimit *int `json:",omitempty"`
	// Closed: nobody can connect.
	Closed bool `json:",omitempty"`
	// Template: whoever may create databases may copy it, and it cannot be dropped.
	Template bool `json:",omitempty"`
	// Observed: it may have observers, which run although no session uses it.
	Observed bool   `json:",omitempty"`
	Comment  string `json:",omitempty"`
}

// Limit returns how many sessions the database has at most in one process, -1 for no limit. Superusers are not bound by it.
func (d *DatabaseDescriptor) Limit() int { return limitOf(d.ConnectionLimit) }

func limitOf(limit *int) int {
	if limit == nil {
		return -1
	}
	return *limit
}

// SetLimit sets the limit; -1: none.
func (d *DatabaseDescriptor) SetLimit(limit int) {
	if d.ConnectionLimit = &limit; limit < 0 {
		d.ConnectionLimit = nil
	}
}

// Clone returns a copy that may be changed.
func (d *DatabaseDescriptor) Clone() *DatabaseDescriptor {
	c := *d
	return &c
}

// Databases are all databases as of one schema version. Immutable; safe for concurrent use.
type Databases struct {
	list   []*DatabaseDescriptor // by OID
	stored []byte                // the records that they were read from
}

// NewDatabases returns the databases of a new store.
func NewDatabases() *Databases {
	template := Owned{Owner: BootstrapSuperuser, ACL: acl.List{
		{Grantee: acl.Public, Grantor: BootstrapSuperuser, Rights: acl.Connect},
		{Grantee: BootstrapSuperuser, Grantor: BootstrapSuperuser, Rights: acl.Database.All()},
	}}
	return &Databases{list: []*DatabaseDescriptor{
		{OID: template1OID, Name: Template1Name, Owned: template, Template: true, Comment: "default template for new databases"},
		{OID: template0OID, Name: Template0Name, Owned: template, Template: true, Closed: true, Comment: "unmodifiable empty database"},
		{OID: FirstDatabase, Name: FirstDatabaseName},
	}}
}

// All lists the databases by OID.
func (d *Databases) All() []*DatabaseDescriptor { return d.list }

// ByOID returns a database, nil if there is none.
func (d *Databases) ByOID(oid uint32) *DatabaseDescriptor {
	i, found := slices.BinarySearchFunc(d.list, oid, func(d *DatabaseDescriptor, oid uint32) int { return cmp.Compare(d.OID, oid) })
	if !found {
		return nil
	}
	return d.list[i]
}

// Named returns the database of that name, nil if there is none.
func (d *Databases) Named(name string) *DatabaseDescriptor {
	for _, x := range d.list {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// ForClient returns the database to which a client connects by a name: Named, or the first one for the name postgres, which clients expect to
// be there. nil: there is none.
func (d *Databases) ForClient(name string) *DatabaseDescriptor {
	if x := d.Named(name); x != nil || name != otherName {
		return x
	}
	return d.ByOID(FirstDatabase)
}

// loadDatabases reads the databases. They are those of last if nothing has changed.
func loadDatabases(ctx context.Context, r rowReader, last *schemaSnapshot) (*Databases, error) {
	all := &Databases{}
	err := scan(ctx, r, wordDatabase, func(key, value []byte) error {
		d := new(DatabaseDescriptor)
		if err := decode(key, value, d); err != nil {
			return err
		}
		all.list = append(all.list, d)
		all.stored = append(append(all.stored, value...), '\n')
		return nil
	})
	if err == nil && len(all.list) == 0 { // As of a snapshot from before formatWithoutDatabases was upgraded.
		return NewDatabases(), nil
	}
	if err == nil && last != nil && bytes.Equal(last.databases.stored, all.stored) {
		return last.databases, nil
	}
	return all, err
}

// addDatabases writes the databases of a new store, or of one whose format is formatWithoutDatabases or older: its objects are those of the
// first database.
func (c *Catalog) addDatabases(ctx context.Context, txn *percolator.Txn) error {
	var former struct {
		Database        Owned
		ConnectionLimit *int
	}
	key := spaceOf(FirstDatabase).grantsKey()
	value, err := txn.Get(ctx, key)
	if err == nil && value != nil {
		err = decode(key, value, &former)
	}
	if err != nil {
		return err
	}
	for _, d := range NewDatabases().list {
		if d.OID == FirstDatabase {
			d.Owned, d.ConnectionLimit = former.Database, former.ConnectionLimit
		} else if err := putSchemas(txn, spaceOf(d.OID)); err != nil {
			return err
		}
		if err := txn.Put(idKey(wordDatabase, uint64(d.OID)), encode(d)); err != nil {
			return err
		}
	}
	return txn.Put(keyFormat, []byte(formatVersion))
}

// putSchemas writes the schemas that every database has.
func putSchemas(w percolator.Writer, of space) error {
	for name, id := range map[string]uint64{PublicSchema: publicOID, SystemSchema: systemOID, InformationSchema: informationOID} {
		if err := w.Put(of.schemaKey(name), encode(schemaRecord{ID: id})); err != nil {
			return err
		}
	}
	return nil
}

// Database opens the catalog of a database of the store. Its methods return ErrNoDatabase if there is none with that OID.
func (st *store) Database(oid uint32) *Catalog {
	st.databases.Lock()
	defer st.databases.Unlock()
	if c := st.databases.open[oid]; c != nil {
		return c
	}
	return st.open(oid)
}

// open adds the catalog of a database to those that are open.
func (st *store) open(oid uint32) *Catalog {
	c := &Catalog{store: st, database: oid, space: spaceOf(oid), spans: schemaSpans(spaceOf(oid))}
	st.databases.open[oid] = c
	return c
}

// Open lists the catalogs of databases that this process uses.
func (st *store) Open() []*Catalog {
	st.databases.Lock()
	defer st.databases.Unlock()
	all := make([]*Catalog, 0, len(st.databases.open))
	for _, c := range st.databases.open {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Catalog) int { return cmp.Compare(a.database, b.database) })
	return all
}

// forget closes the catalog of a database that has been dropped.
func (c *Catalog) forget() {
	c.databases.Lock()
	if c.databases.open[c.database] == c && c.database != FirstDatabase {
		delete(c.databases.open, c.database)
	}
	c.databases.Unlock()
	c.current.Store(nil)
}

// OID returns the database's.
func (c *Catalog) OID() uint32 { return c.database }

// schemas are the schemas of the databases that are open, as of one version.
type schemas struct {
	version    uint64
	byDatabase map[uint32]*schemaSnapshot
}

// lookAll is look for all databases that are open.
func (c *Catalog) lookAll(ctx context.Context, r percolator.Reader, at tso.Timestamp) (all schemas, err error) {
	version, err := getNumber(ctx, r, keyVersion)
	if err != nil {
		return all, err
	}
	c.sawVersion(version, at)
	return c.allOfVersion(ctx, r, version)
}

// allOfVersion is ofVersion for all databases that are open.
func (c *Catalog) allOfVersion(ctx context.Context, r percolator.Reader, version uint64) (all schemas, err error) {
	all = schemas{version: version, byDatabase: map[uint32]*schemaSnapshot{}}
	for _, each := range c.Open() {
		s, err := each.ofVersion(ctx, r, version)
		switch {
		case errors.Is(err, ErrNoDatabase):
			each.forget()
		case err != nil:
			return all, err
		default:
			all.byDatabase[each.database] = s
		}
	}
	return all, nil
}

// of returns the schema of a database, nil if it has not been read.
func (s *schemas) of(c *Catalog) *schemaSnapshot { return s.byDatabase[c.database] }

// permits reports whether a transaction planned under planned may commit under s.
func (s *schemas) permits(planned *TableDescriptor) bool {
	for _, one := range s.byDatabase {
		if one.byID[planned.ID] != nil {
			return one.permits(planned)
		}
	}
	return false
}

// PutDatabase replaces a database.
func (ch *Change) PutDatabase(ctx context.Context, d *DatabaseDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.databases = true
	return ch.txn.Put(idKey(wordDatabase, uint64(d.OID)), encode(d))
}

// CreateDatabase adds an empty database. Its OID must come from NewID, and its name must be free.
func (ch *Change) CreateDatabase(ctx context.Context, d *DatabaseDescriptor) error {
	if err := ch.PutDatabase(ctx, d); err != nil {
		return err
	}
	return putSchemas(ch.txn, spaceOf(d.OID))
}

// observe notes that the database may have observers.
func (ch *Change) observe(ctx context.Context) error {
	d := new(DatabaseDescriptor)
	key := idKey(wordDatabase, uint64(ch.catalog.database))
	value, err := ch.txn.Get(ctx, key)
	if err == nil {
		err = decode(key, value, d)
	}
	if err != nil || d.Observed {
		return err
	}
	d.Observed = true
	return ch.PutDatabase(ctx, d)
}

// DropDatabase removes a database, but not the first one, with all that is in it, whose keys wait for the garbage collector. No session may use it.
func (ch *Change) DropDatabase(ctx context.Context, d *DatabaseDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.databases = true
	of := ch.catalog.Database(d.OID)
	s, err := of.at(ctx, ch.txn)
	if err != nil {
		return err
	}
	for _, t := range s.list {
		if err := ch.abandon(ctx, t); err != nil {
			return err
		}
	}
	err = scanSpan(ctx, ch.txn, of.space.all(), func(key, _ []byte) error { return ch.txn.Delete(bytes.Clone(key)) })
	if err != nil {
		return err
	}
	ch.gone = append(ch.gone, of)
	return ch.txn.Delete(idKey(wordDatabase, uint64(d.OID)))
}

// abandon queues the keys of a relation of a database that is dropped, and deletes what is stored of it outside the database's own keys.
func (ch *Change) abandon(ctx context.Context, t *TableDescriptor) error {
	switch {
	case t.Kind == KindTable:
		if err := ch.DropSpan(ctx, DroppedSpan{Table: t.ID}); err != nil {
			return err
		}
	case t.Sequence != nil:
		return ch.txn.Delete(idKey(wordSequence, t.Sequence.ValueID))
	}
	for i := range t.Observers {
		if err := ch.ForgetObserver(ctx, t.Observers[i].ID); err != nil {
			return err
		}
	}
	for i := range t.Builds {
		if err := ch.abandonBuild(ctx, &t.Builds[i]); err != nil {
			return err
		}
	}
	if t.StatsVersion == 0 {
		return nil
	}
	return ch.txn.Delete(idKey(wordStats, t.ID))
}
