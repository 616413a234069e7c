package catalog

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// wrote is what a transaction has written of the schema; what it has undone since may be among it.
type wrote struct {
	relations     []uint64
	schemas       []string
	types         []uint64
	routines      []uint64
	roles, grants bool // any role; the record of the database
	extensions    bool // any extension
	textSearch    bool // any text search object
	databases     bool // any database
	collations    bool // any collation
	operations    bool // any operator, cast, operator class or family
}

func (w *wrote) relation(id uint64) {
	if !slices.Contains(w.relations, id) {
		w.relations = append(w.relations, id)
	}
}

func (w *wrote) schema(name string) {
	if !slices.Contains(w.schemas, name) {
		w.schemas = append(w.schemas, name)
	}
}

func (w *wrote) typ(id uint64) {
	if !slices.Contains(w.types, id) {
		w.types = append(w.types, id)
	}
}

func (w *wrote) routine(id uint64) {
	if !slices.Contains(w.routines, id) {
		w.routines = append(w.routines, id)
	}
}

// overtaken reports whether others have changed, between base and now, an object that the transaction has written, but for the relations
// and types of merged.
func (w *wrote) overtaken(base, now *schemaSnapshot, merged []uint64) bool {
	for _, id := range w.relations {
		if base.versionOf(id) != now.versionOf(id) && !slices.Contains(merged, id) && !base.byID[id].analyzed(now.byID[id]) {
			return true
		}
	}
	for _, name := range w.schemas {
		if !bytes.Equal(encode(base.schemas[name]), encode(now.schemas[name])) {
			return true
		}
	}
	for _, id := range w.types {
		if base.types.versionOf(id) != now.types.versionOf(id) && !slices.Contains(merged, id) {
			return true
		}
	}
	for _, id := range w.routines {
		if base.routines.versionOf(id) != now.routines.versionOf(id) && !slices.Contains(merged, id) {
			return true
		}
	}
	if w.extensions && !bytes.Equal(base.extensions.stored, now.extensions.stored) {
		return true
	}
	if w.textSearch && !bytes.Equal(base.textSearch.stored, now.textSearch.stored) {
		return true
	}
	if w.databases && !bytes.Equal(base.databases.stored, now.databases.stored) {
		return true
	}
	if w.collations && !base.collations.Same(now.collations) {
		return true
	}
	if w.operations && !base.operations.Same(now.operations) {
		return true
	}
	return w.roles && !bytes.Equal(base.roles.stored, now.roles.stored) || w.grants && !base.grants.sameRecord(now.grants)
}

// versionOf returns the Version of a relation, 0 if it does not exist.
func (s *schemaSnapshot) versionOf(id uint64) uint64 {
	if t := s.byID[id]; t != nil {
		return t.Version
	}
	return 0
}

// versionOf returns the Version of a type, 0 if it does not exist.
func (t *Types) versionOf(id uint64) uint64 {
	if d := t.byOID[types.OID(id)]; d != nil {
		return d.Version
	}
	return 0
}

// versionOf returns the Version of a routine, 0 if it does not exist.
func (r *Routines) versionOf(id uint64) uint64 {
	if d := r.byOID[types.OID(id)]; d != nil {
		return d.Version
	}
	return 0
}

// sameRecord reports whether the records of the database are the same.
func (g *Grants) sameRecord(other *Grants) bool {
	return bytes.Equal(encode(g.record()), encode(other.record()))
}

// meet lets the change commit although others have changed the schema since it began: one of the two has changed nothing but owners,
// roles, privileges and statistics, and no privileges that the other one has changed. Changes of privileges wait for no open transaction
// (ChangePrivileges), so they may overtake it; statistics are made by the server itself, and nobody expects a conflict with them. meet locks the schema's version and returns the committed schema that the change is laid over. It gives the change a new version if
// others have changed something, since what was seen under its former one lacks that.
func (ch *Change) meet(ctx context.Context) (*schemaSnapshot, error) {
	if _, err := ch.txn.AcquireLocks(ctx, percolator.LockOptions{Aside: true}, keyVersion); err != nil {
		return nil, err
	}
	now := ch.txn.ReadTS()
	if at := ch.txn.LockedAt(keyVersion); at == 0 || at > now { // Others have written the version since the snapshot.
		var err error
		if now, err = ch.catalog.db.Timestamp(ctx); err != nil {
			return nil, err
		}
	}
	theirs, err := ch.catalog.committedAt(ctx, now)
	if err != nil {
		return nil, err
	}
	if theirs.version == ch.base.version {
		return theirs, nil
	}
	merged, err := ch.merge(ctx, theirs)
	if err == nil {
		err = ch.conflict(theirs, merged)
	}
	if err != nil {
		return nil, err
	}
	final, err := ch.catalog.with(ctx, ch.txn, theirs)
	if err == nil {
		err = ch.base.lackNone(theirs, final)
	}
	if err == nil && ch.wrote.roles {
		err = ch.lackElsewhere(ctx, final, now)
	}
	return theirs, err
}

// merge writes the descriptors of relations and types of which one transaction has changed the privileges or statistics and the other one the
// rest, and returns these. The schema's version is locked, so that nobody else changes them.
func (ch *Change) merge(ctx context.Context, theirs *schemaSnapshot) (merged []uint64, err error) {
	version, err := ch.bump(ctx)
	if err != nil {
		return nil, err
	}
	own, err := ch.catalog.with(ctx, ch.txn, theirs)
	if err != nil {
		return nil, err
	}
	for _, id := range ch.wrote.relations {
		if ch.base.versionOf(id) == theirs.versionOf(id) {
			continue
		}
		base, mine, other := ch.base.byID[id], own.byID[id], theirs.byID[id]
		t := mergeRelation(base, mine, other)
		if t == nil && (mine != nil || !base.analyzed(other)) { // A relation that has been dropped needs no statistics.
			continue
		}
		if _, err := ch.txn.AcquireLocks(ctx, percolator.LockOptions{Aside: true}, ch.space().idKey(wordRelation, id), idKey(wordStats, id)); err != nil {
			return nil, err
		}
		if t != nil {
			t.Version = version
			if err := ch.txn.Put(ch.space().idKey(wordRelation, id), encode(t)); err != nil {
				return nil, err
			}
		}
		merged = append(merged, id)
	}
	typesMerged, err := mergeEach(ctx, ch, wordType, ch.wrote.types, func(id uint64) *TypeDescriptor {
		if ch.base.types.versionOf(id) == theirs.types.versionOf(id) {
			return nil
		}
		oid := types.OID(id)
		d := mergeType(ch.base.types.byOID[oid], own.types.byOID[oid], theirs.types.byOID[oid])
		if d != nil {
			d.Version = version
		}
		return d
	})
	if err != nil {
		return nil, err
	}
	routinesMerged, err := mergeEach(ctx, ch, wordRoutine, ch.wrote.routines, func(id uint64) *RoutineDescriptor {
		if ch.base.routines.versionOf(id) == theirs.routines.versionOf(id) {
			return nil
		}
		oid := types.OID(id)
		d := mergeRoutine(ch.base.routines.byOID[oid], own.routines.byOID[oid], theirs.routines.byOID[oid])
		if d != nil {
			d.Version = version
		}
		return d
	})
	if err != nil {
		return nil, err
	}
	merged = slices.Concat(merged, typesMerged, routinesMerged)
	if len(merged) > 0 { // own is cached under the version.
		_, err = ch.bump(ctx)
	}
	return merged, err
}

// mergeEach writes what merge makes of the objects of a kind, nil where nothing has to be merged, and returns the ids of those that it has written.
func mergeEach[D any](ctx context.Context, ch *Change, kind string, ids []uint64, merge func(id uint64) *D) (merged []uint64, err error) {
	for _, id := range ids {
		d := merge(id)
		if d == nil {
			continue
		}
		key := ch.space().idKey(kind, id)
		if _, err := ch.txn.AcquireLocks(ctx, percolator.LockOptions{Aside: true}, key); err != nil {
			return nil, err
		}
		if err := ch.txn.Put(key, encode(d)); err != nil {
			return nil, err
		}
		merged = append(merged, id)
	}
	return merged, nil
}

// mergeRelation returns a relation that two transactions have changed since base if one of them has changed nothing but its owner,
// privileges and statistics, and the other one anything but the owner and privileges; else nil. Of statistics of both it has the
// transaction's own.
func mergeRelation(base, own, theirs *TableDescriptor) (merged *TableDescriptor) {
	switch {
	case base == nil || own == nil || theirs == nil:
		return nil
	case base.sameDefinition(theirs) && own.hasPrivilegesOf(base):
		merged = own.WithPrivilegesOf(theirs)
	case base.sameDefinition(own) && theirs.hasPrivilegesOf(base):
		merged = theirs.WithPrivilegesOf(own)
	default:
		return nil
	}
	if merged.StatsVersion = own.StatsVersion; own.StatsVersion == base.StatsVersion {
		merged.StatsVersion = theirs.StatsVersion
	}
	return merged
}

// mergeType is mergeRelation for types.
func mergeType(base, own, theirs *TypeDescriptor) (merged *TypeDescriptor) {
	switch {
	case base == nil || own == nil || theirs == nil:
		return nil
	case base.sameDefinition(theirs) && own.hasPrivilegesOf(base):
		merged = own.Clone()
		merged.Owned = theirs.Owned
	case base.sameDefinition(own) && theirs.hasPrivilegesOf(base):
		merged = theirs.Clone()
		merged.Owned = own.Owned
	}
	return merged
}

// mergeRoutine is mergeRelation for routines.
func mergeRoutine(base, own, theirs *RoutineDescriptor) (merged *RoutineDescriptor) {
	switch {
	case base == nil || own == nil || theirs == nil:
		return nil
	case base.sameDefinition(theirs) && own.hasPrivilegesOf(base):
		merged = own.Clone()
		merged.Owned = theirs.Owned
	case base.sameDefinition(own) && theirs.hasPrivilegesOf(base):
		merged = theirs.Clone()
		merged.Owned = own.Owned
	}
	return merged
}

// analyzed reports whether another version of the relation, which may be nil, differs in nothing but statistics.
func (t *TableDescriptor) analyzed(other *TableDescriptor) bool {
	return t != nil && other != nil && t.SameButStatistics(other)
}

// hasPrivilegesOf reports whether t has the owner and privileges of another version of the relation, and none on further columns.
func (t *TableDescriptor) hasPrivilegesOf(other *TableDescriptor) bool {
	return bytes.Equal(encode(t), encode(t.WithPrivilegesOf(other)))
}

// sameDefinition reports whether two versions of a relation differ in nothing but owner, privileges and statistics.
func (t *TableDescriptor) sameDefinition(other *TableDescriptor) bool {
	return t.Version == other.Version || t.SameButStatistics(other.WithPrivilegesOf(t))
}

// conflict returns a *ConflictError if the change cannot commit, given the schema that others have made since it began, and the relations
// that have been merged.
func (ch *Change) conflict(theirs *schemaSnapshot, merged []uint64) error {
	if ch.wrote.overtaken(ch.base, theirs, merged) || ch.token && !ch.standsBeside(theirs) {
		return &ConflictError{privileges: !ch.base.samePrivileges(theirs)}
	}
	return nil
}

// standsBeside reports whether the change is as right in the schema that others have made since it began as in the one it was made for: they
// have changed no definition, or have only created objects, as the change has. What is created on both sides does not refer to each other.
func (ch *Change) standsBeside(theirs *schemaSnapshot) bool {
	if len(ch.wrote.routines) > 0 && !theirs.routines.keptIn(ch.base.routines) {
		return false // Both may have created routines with the same name and arguments.
	}
	return ch.base.keptIn(theirs) && (ch.wrote.creates(ch.base) || theirs.keptIn(ch.base))
}

// creates reports whether the transaction has written no object of base, privileges aside.
func (w *wrote) creates(base *schemaSnapshot) bool {
	existed := func(id uint64) bool {
		return base.byID[id] != nil || base.types.byOID[types.OID(id)] != nil || base.routines.byOID[types.OID(id)] != nil
	}
	hadSchema := func(name string) bool { _, ok := base.schemas[name]; return ok }
	return !w.extensions && !w.textSearch && !w.collations && !w.operations && !slices.ContainsFunc(w.relations, existed) && !slices.ContainsFunc(w.types, existed) && !slices.ContainsFunc(w.routines, existed) &&
		!slices.ContainsFunc(w.schemas, hadSchema)
}

// overlay is a transaction's changes over the schema in force: the result for the versions of both.
type overlay struct {
	*schemaSnapshot
	inForce, own uint64
}

// over returns the schema in force with the transaction's own changes; own is as the transaction sees it.
func (ch *Change) over(ctx context.Context, own *schemaSnapshot) (*schemaSnapshot, error) {
	present, err := ch.catalog.Present(ctx)
	if err != nil {
		return nil, err
	}
	theirs, ok := present.(*schemaSnapshot)
	if !ok || theirs.version == ch.base.version {
		return own, nil
	}
	if err := ch.conflict(theirs, nil); err != nil {
		return nil, err
	}
	if o := ch.seen; o.schemaSnapshot != nil && o.inForce == theirs.version && o.own == own.version {
		return o.schemaSnapshot, nil
	}
	s, err := ch.catalog.with(ctx, ch.txn, theirs)
	if err == nil {
		ch.seen = overlay{s, theirs.version, own.version}
	}
	return s, err
}

// keptIn reports whether other has all objects of s, which differ in nothing but owners, privileges and statistics.
func (s *schemaSnapshot) keptIn(other *schemaSnapshot) bool {
	for id, t := range s.byID {
		if o := other.byID[id]; o == nil || !t.sameDefinition(o) {
			return false
		}
	}
	for name, rec := range s.schemas {
		if o, ok := other.schemas[name]; !ok || o.ID != rec.ID {
			return false
		}
	}
	return s.types.keptIn(other.types) && s.routines.keptIn(other.routines) && bytes.Equal(s.extensions.stored, other.extensions.stored) &&
		bytes.Equal(s.textSearch.stored, other.textSearch.stored) && s.collations.Same(other.collations) && s.operations.Same(other.operations)
}

// samePrivileges reports whether what is in both schemas has the same owners and privileges, and the roles are the same.
func (s *schemaSnapshot) samePrivileges(other *schemaSnapshot) bool {
	for id, t := range s.byID {
		if o := other.byID[id]; o != nil && o.Version != t.Version && !t.hasPrivilegesOf(o) {
			return false
		}
	}
	for _, d := range s.types.list {
		if o := other.types.byOID[types.OID(d.ID)]; o != nil && o.Version != d.Version && !d.hasPrivilegesOf(o) {
			return false
		}
	}
	for _, d := range s.routines.list {
		if o := other.routines.byOID[d.OID()]; o != nil && o.Version != d.Version && !d.hasPrivilegesOf(o) {
			return false
		}
	}
	for name, rec := range s.schemas {
		if o, ok := other.schemas[name]; ok && !bytes.Equal(encode(rec.Owned), encode(o.Owned)) {
			return false
		}
	}
	return bytes.Equal(s.roles.stored, other.roles.stored) && bytes.Equal(s.databases.stored, other.databases.stored) && s.grants.sameRecord(other.grants)
}

// lackNone returns a conflict if the schema that results from two changes of s refers to a role that one of them has dropped.
func (s *schemaSnapshot) lackNone(theirs, final *schemaSnapshot) error {
	dropped := map[uint32]bool{}
	for _, before := range []*Roles{s.roles, theirs.roles} {
		for oid := range before.byOID {
			if final.roles.byOID[oid] == nil {
				dropped[oid] = true
			}
		}
	}
	gone := func(role uint32) bool { return dropped[role] }
	if len(dropped) > 0 && (final.references(gone) > 0 || final.databases.referenced(gone)) {
		return &ConflictError{}
	}
	return nil
}

// lackElsewhere is lackNone for the objects of other databases, and the roles that the change drops.
func (ch *Change) lackElsewhere(ctx context.Context, final *schemaSnapshot, now tso.Timestamp) error {
	gone := func(role uint32) bool { return ch.base.roles.byOID[role] != nil && final.roles.byOID[role] == nil }
	if !slices.ContainsFunc(ch.base.roles.list, func(r *Role) bool { return gone(r.OID) }) {
		return nil
	}
	for _, d := range final.databases.list {
		if d.OID == ch.catalog.database {
			continue
		}
		of := ch.catalog.Database(d.OID)
		s, err := of.committedAt(ctx, now)
		if err == nil {
			s, err = of.with(ctx, ch.txn, s)
		}
		if err != nil {
			return err
		}
		if s.references(gone) > 0 {
			return &ConflictError{}
		}
	}
	return nil
}

// references counts the objects that belong, or on which a privilege is granted, to one of the roles.
func (s *schemaSnapshot) references(role func(uint32) bool) (n int) {
	listed := func(list acl.List) bool {
		return slices.ContainsFunc(list, func(it acl.Item) bool { return role(it.Grantee) || role(it.Grantor) })
	}
	owned := func(o *Owned) bool { return role(o.Owner) || listed(o.ACL) }
	for _, t := range s.byID {
		if owned(&t.Owned) || slices.ContainsFunc(t.Columns, func(c ColumnDescriptor) bool { return listed(c.ACL) }) ||
			slices.ContainsFunc(t.Observers, func(o ObserverDescriptor) bool { return role(o.Owner) }) ||
			slices.ContainsFunc(t.Policies, func(p PolicyDescriptor) bool { return slices.ContainsFunc(p.Roles, role) }) {
			n++
		}
	}
	for _, d := range s.types.list {
		if owned(&d.Owned) {
			n++
		}
	}
	for _, d := range s.routines.list {
		if owned(&d.Owned) {
			n++
		}
	}
	for _, d := range s.textSearch.list {
		if owned(&d.Owned) {
			n++
		}
	}
	for _, d := range s.collations.list {
		if owned(&d.Owned) {
			n++
		}
	}
	s.operations.owned(func(o *Owned) {
		if owned(o) {
			n++
		}
	})
	for _, rec := range s.schemas {
		if owned(&rec.Owned) {
			n++
		}
	}
	for i := range s.grants.Defaults {
		if d := &s.grants.Defaults[i]; role(d.Role) || listed(d.ACL) {
			n++
		}
	}
	for i := range s.grants.Objects {
		if o := &s.grants.Objects[i]; listed(o.ACL) && (!o.shared() || s.database.OID == FirstDatabase) {
			n++
		}
	}
	return n
}

// referenced reports whether one of the roles owns a database or is named in its privileges.
func (d *Databases) referenced(role func(uint32) bool) bool {
	return slices.ContainsFunc(d.list, func(d *DatabaseDescriptor) bool {
		return role(d.Owner) || slices.ContainsFunc(d.ACL, func(it acl.Item) bool { return role(it.Grantee) || role(it.Grantor) })
	})
}

// References counts the objects of the database that belong, or on which a privilege is granted, to a role, as txn sees them.
func (c *Catalog) References(ctx context.Context, txn *percolator.Txn, role uint32) (int, error) {
	s, err := c.at(ctx, txn)
	if err != nil {
		return 0, err
	}
	return s.references(func(oid uint32) bool { return oid == role }), nil
}

// Empty reports whether the database has no objects but those that every one has, as txn sees it.
func (c *Catalog) Empty(ctx context.Context, txn *percolator.Txn) (bool, error) {
	s, err := c.at(ctx, txn)
	if err != nil {
		return false, err
	}
	return len(s.stored) == 0 && len(s.types.stored) == 0 && len(s.routines.stored) == 0 && len(s.extensions.stored) == 0 && len(s.textSearch.stored) == 0 && len(s.collations.list) == 0 && len(s.operations.stored) == 0 &&
		len(s.names) == 4 && len(s.grants.Defaults) == 0, nil
}

// InForce returns the schema in force with the transaction's own changes, by which its statements are authorized; nil if it has changed
// nothing. An object that others have changed since the transaction did is a *ConflictError: the transaction cannot commit, and what it sees
// of the object is no longer in force.
func (g *Guard) InForce(ctx context.Context) (Resolver, error) {
	if g.change == nil || g.change.base == nil {
		return nil, nil
	}
	own, err := g.catalog.at(ctx, g.txn)
	if err != nil {
		return nil, err
	}
	return g.change.over(ctx, own)
}
