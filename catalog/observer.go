package catalog

import (
	"context"
	"slices"
)

// ObserverState states whether an observer's notifications are handled. They are written in every state.
type ObserverState uint8

// The states of an observer.
const (
	ObserverEnabled  ObserverState = iota
	ObserverDisabled               // the notifications wait
	ObserverSeeding                // enabled; the rows from before it was created are being notified
)

// Limits and defaults of observers.
const (
	// MaxObservers bounds the observers of a table.
	MaxObservers = 64
	// The bounds of ObserverDescriptor's options; the defaults are those of CREATE OBSERVER.
	MaxObserverConcurrency, DefaultObserverConcurrency = 256, 8
	MaxObserverBatch, DefaultObserverBatch             = 10_000, 1
	MaxObserverAttempts, DefaultObserverAttempts       = 1_000, 16
)

// ObserverDescriptor is an observer of a table: a condition, and statements that run in a transaction of their own after a
// change of a row. Its name is unique among the observers of its table's schema.
type ObserverDescriptor struct {
	ID       uint64 // its number in notifications; never used again
	OID      uint32 // towards PostgreSQL clients
	Name     string
	Columns  []uint32 `json:",omitempty"` // ids of the columns whose changes notify it; empty: all
	When     string   `json:",omitempty"` // SQL text of the condition over NEW and KEY, "" for none
	Body     string   `json:",omitempty"` // SQL text of its statements, names qualified as of creation; "": clients consume the changes
	State    ObserverState
	AckIndex uint32 // the number, among the table's indexes, of the keys that record what is handled
	// Concurrency is how many transactions of it run at once, Batch how many rows each handles, MaxAttempts how often it is
	// tried for a row before the row is set aside.
	Concurrency, Batch, MaxAttempts int
	Weak                            bool     `json:",omitempty"` // a change may be handled several times
	DependsOn                       []uint64 `json:",omitempty"` // ids of the relations in the body
	Comment                         string   `json:",omitempty"`
	// Generation grows when transactions under way must end: the observer is disabled, or gets another body.
	Generation uint64 `json:",omitempty"`
	// Owner is the OID of the role with whose privileges its statements run; 0 stands for BootstrapSuperuser.
	Owner uint32 `json:",omitempty"`
}

// Observes reports whether a change of the column notifies the observer.
func (o *ObserverDescriptor) Observes(columnID uint32) bool {
	return len(o.Columns) == 0 || slices.Contains(o.Columns, columnID)
}

// OwnerOID returns the OID of the owner.
func (o *ObserverDescriptor) OwnerOID() uint32 {
	if o.Owner == 0 {
		return BootstrapSuperuser
	}
	return o.Owner
}

func (o ObserverDescriptor) clone() ObserverDescriptor {
	o.Columns = slices.Clone(o.Columns)
	o.DependsOn = slices.Clone(o.DependsOn)
	return o
}

// ObserverNamed returns the table's observer called name, or nil.
func (t *TableDescriptor) ObserverNamed(name string) *ObserverDescriptor {
	for i := range t.Observers {
		if t.Observers[i].Name == name {
			return &t.Observers[i]
		}
	}
	return nil
}

// ObserverByID returns the table's observer with the given number, or nil.
func (t *TableDescriptor) ObserverByID(id uint64) *ObserverDescriptor {
	for i := range t.Observers {
		if t.Observers[i].ID == id {
			return &t.Observers[i]
		}
	}
	return nil
}

// FindObserver finds an observer and its table by name; schema "" searches the path. It returns nil if there is none.
func FindObserver(ctx context.Context, r Resolver, schema, name string) (found *TableDescriptor, o *ObserverDescriptor, err error) {
	found, err = findRelation(ctx, r, schema, func(t *TableDescriptor) bool {
		o = t.ObserverNamed(name)
		return o != nil
	})
	return found, o, err
}

// findRelation returns the first relation of a schema, or for "" of those of the path in their order, that has what is looked for; nil if none has.
func findRelation(ctx context.Context, r Resolver, schema string, has func(*TableDescriptor) bool) (*TableDescriptor, error) {
	all, err := r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	schemas := []string{schema}
	if schema == "" {
		schemas = Path(r)
	}
	for _, schema := range schemas {
		for _, t := range all {
			if t.Schema == schema && has(t) {
				return t, nil
			}
		}
	}
	return nil, nil
}

// ObserverByID finds an observer and its table by its number. It returns nil if there is none.
func ObserverByID(ctx context.Context, r Resolver, id uint64) (*TableDescriptor, *ObserverDescriptor, error) {
	all, err := r.Relations(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range all {
		if o := t.ObserverByID(id); o != nil {
			return t, o, nil
		}
	}
	return nil, nil, nil
}
