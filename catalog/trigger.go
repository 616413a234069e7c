package catalog

import "slices"

// TriggerEvents are the statements for which a trigger is executed.
type TriggerEvents uint8

// The events of triggers.
const (
	TriggerInsert TriggerEvents = 1 << iota
	TriggerDelete
	TriggerUpdate
	TriggerTruncate
)

// TriggerState says when a trigger is executed, as pg_trigger.tgenabled spells it.
type TriggerState byte

// The states of triggers: executed in sessions whose replication role is origin, in none, in those where it is replica, in all.
const (
	TriggerEnabled  TriggerState = 'O'
	TriggerDisabled TriggerState = 'D'
	TriggerReplica  TriggerState = 'R'
	TriggerAlways   TriggerState = 'A'
)

// TriggerDescriptor is a trigger of a table. Its name is unique among those of the table.
type TriggerDescriptor struct {
	OID      uint32 // towards PostgreSQL clients
	Name     string
	Function uint64 // the number of the routine
	Events   TriggerEvents
	Before   bool         `json:",omitempty"` // it is executed before the event, else after it
	Row      bool         `json:",omitempty"` // it is executed for each row, else for each statement
	Instead  bool         `json:",omitempty"` // Before and Row, and of a view: it is executed instead of the event
	Columns  []uint32     `json:",omitempty"` // ids of the columns of UPDATE OF; empty: all
	When     string       `json:",omitempty"` // SQL text of the condition over OLD and NEW, "" for none
	Args     []string     `json:",omitempty"`
	State    TriggerState // never 0
	// Constraint: it is a constraint trigger, whose constraint has the number ConstraintOID. Deferrable: it may be executed at the end of the
	// transaction; Deferred: and it is, unless SET CONSTRAINTS says otherwise.
	Constraint    bool   `json:",omitempty"`
	ConstraintOID uint32 `json:",omitempty"`
	Deferrable    bool   `json:",omitempty"`
	Deferred      bool   `json:",omitempty"`
	// OldTable and NewTable are the names by which its function reads the rows of the statement, "" for none.
	OldTable string `json:",omitempty"`
	NewTable string `json:",omitempty"`
	Comment  string `json:",omitempty"`
	// Inherited is the OID of the trigger of the partitioned table above that this one belongs to, 0 for none.
	Inherited uint32 `json:",omitempty"`
}

func (g TriggerDescriptor) clone() TriggerDescriptor {
	g.Columns, g.Args = slices.Clone(g.Columns), slices.Clone(g.Args)
	return g
}

// Fires reports whether the trigger is executed in a session, whose replication role is replica or not.
func (g *TriggerDescriptor) Fires(replica bool) bool {
	return g.State == TriggerAlways || g.State == TriggerEnabled && !replica || g.State == TriggerReplica && replica
}

// FiresTruncate reports whether the table has triggers for TRUNCATE.
func (t *TableDescriptor) FiresTruncate() bool {
	return slices.ContainsFunc(t.Triggers, func(g TriggerDescriptor) bool {
		return g.Events&TriggerTruncate != 0 && g.State != TriggerDisabled
	})
}

// TriggerNamed returns the table's trigger called name, or nil.
func (t *TableDescriptor) TriggerNamed(name string) *TriggerDescriptor {
	for i := range t.Triggers {
		if t.Triggers[i].Name == name {
			return &t.Triggers[i]
		}
	}
	return nil
}

// HasInsteadOf reports whether a view has a trigger INSTEAD OF an event.
func (t *TableDescriptor) HasInsteadOf(event TriggerEvents) bool {
	for i := range t.Triggers {
		if g := &t.Triggers[i]; g.Instead && g.Events&event != 0 {
			return true
		}
	}
	return false
}
