package catalog

// LockMode is a mode in which PostgreSQL locks relations. percodb's statements keep each other off by other means: by locks on rows, and by the
// gate that a change of the schema closes. The modes are those that pg_locks shows.
type LockMode uint8

// The modes, each stronger than the one before.
const (
	AccessShareLock LockMode = iota + 1
	RowShareLock
	RowExclusiveLock
	ShareUpdateExclusiveLock
	ShareLock
	ShareRowExclusiveLock
	ExclusiveLock
	AccessExclusiveLock
)

var lockModeNames = [...]string{
	AccessShareLock: "AccessShareLock", RowShareLock: "RowShareLock", RowExclusiveLock: "RowExclusiveLock", ShareUpdateExclusiveLock: "ShareUpdateExclusiveLock",
	ShareLock: "ShareLock", ShareRowExclusiveLock: "ShareRowExclusiveLock", ExclusiveLock: "ExclusiveLock", AccessExclusiveLock: "AccessExclusiveLock",
}

func (m LockMode) String() string { return lockModeNames[m] }

// RelationLock is a mode in which a statement locks a relation or an index.
type RelationLock struct {
	OID  uint32
	Mode LockMode
}

// LockWithIndexes appends the locks of a statement that locks a table and all its indexes in one mode.
func LockWithIndexes(dst []RelationLock, t *TableDescriptor, mode LockMode) []RelationLock {
	dst = append(dst, RelationLock{t.OID(), mode})
	if t.HasPrimaryKey() {
		dst = append(dst, RelationLock{t.Primary.OID, mode})
	}
	for i := range t.Indexes {
		dst = append(dst, RelationLock{t.Indexes[i].OID, mode})
	}
	return dst
}

// SessionLocks are the locks of a session's open transaction, other than those of rows and advisory locks.
type SessionLocks struct {
	PID      uint32
	Database uint32 // its OID
	XID      uint32 // of the transaction; 0: it has no number yet
	// Held and Awaited are locks on relations and indexes.
	Held, Awaited []RelationLock
}
