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

// The states of triggers. percodb's sessions have the replication role origin, or replica.
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
	// Constraint: it is a constraint trigger.
	Constraint bool   `json:",omitempty"`
	Comment    string `json:",omitempty"`
	// Inherited is the OID of the trigger of the partitioned table above that this one belongs to, 0 for none.
	Inherited uint32 `json:",omitempty"`
}

func (g TriggerDescriptor) clone() TriggerDescriptor {
	g.Columns, g.Args = slices.Clone(g.Columns), slices.Clone(g.Args)
	return g
}

// Fires reports whether the trigger is executed in sessions of clients.
func (g *TriggerDescriptor) Fires() bool {
	return g.State == TriggerEnabled || g.State == TriggerAlways
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
