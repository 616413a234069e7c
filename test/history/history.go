package history

import (
	"fmt"
	"strings"
)

// Outcome is what the client knows of its transaction's outcome.
type Outcome uint8

// The outcomes.
const (
	// Unknown: the client received no answer; it may have committed, or may still commit.
	Unknown Outcome = iota
	// Committed: acknowledged.
	Committed
	// Aborted: reported as not committed.
	Aborted
)

func (o Outcome) String() string {
	return [...]string{"unknown", "committed", "aborted"}[o]
}

// Level is the isolation level that a history is checked against.
type Level uint8

// The levels, weakest first.
const (
	// ReadCommitted forbids G0, G1a, G1b, G1c, and losing an acknowledged append.
	ReadCommitted Level = iota
	// SnapshotIsolation also forbids every cycle without two adjacent rw edges, which includes lost updates, and
	// inconsistent reads within a transaction.
	SnapshotIsolation
	// Serializable forbids every cycle.
	Serializable
)

func (l Level) String() string {
	return [...]string{"read committed", "snapshot isolation", "serializable"}[l]
}

// OpKind is the kind of a statement.
type OpKind uint8

// The kinds of statement.
const (
	// OpAppend adds Value to the list at Key.
	OpAppend OpKind = iota + 1
	// OpRead read List at Key.
	OpRead
	// OpScan is OpRead of a key that a predicate selected; a key that the predicate covers and did not find is recorded
	// with an empty list.
	OpScan
)

// Op is one statement of a transaction, on one key.
type Op struct {
	Kind  OpKind
	Key   string
	Value int64   // appended; never used twice for one key
	List  []int64 // read
	// At is when the statement began, if each statement takes its own snapshot; otherwise 0.
	At int64
}

func (o *Op) String() string {
	if o.Kind == OpAppend {
		return fmt.Sprintf("append %d to %s", o.Value, o.Key)
	}
	verb := "read"
	if o.Kind == OpScan {
		verb = "scan"
	}
	return fmt.Sprintf("%s %s: %v", verb, o.Key, o.List)
}

// Txn is one attempt at a transaction: a retry is another one. All sessions share one clock for Begin and End, in any
// unit (a counter will do): Begin is read before the transaction requests its snapshot, End after its outcome is known.
// End is meaningless if the outcome is unknown.
type Txn struct {
	Session    int
	Begin, End int64
	Outcome    Outcome
	// Stale: the snapshot is of an earlier time; it need not show what was acknowledged before Begin.
	Stale bool
	Ops   []Op
	// Note is printed with the transaction, for instance its timestamps.
	Note string
}

// History is a record of transactions, in any order. They are named T0, T1… by position.
type History struct{ Txns []Txn }

// describe prints a transaction with its statements.
func (h *History) describe(b *strings.Builder, i int32) {
	t := &h.Txns[i]
	fmt.Fprintf(b, "  T%d: session %d, began at %d", i, t.Session, t.Begin)
	if t.Outcome == Unknown {
		b.WriteString(", outcome unknown")
	} else {
		fmt.Fprintf(b, ", %s at %d", t.Outcome, t.End)
	}
	if t.Note != "" {
		fmt.Fprintf(b, " (%s)", t.Note)
	}
	b.WriteByte('\n')
	for n := range t.Ops {
		fmt.Fprintf(b, "     %d. %s\n", n+1, t.Ops[n].String())
	}
}

// Class names an anomaly. Those of cycles end in "-realtime" if the cycle needs an rt edge.
type Class string

// The classes of list histories.
const (
	G0           Class = "G0 (write cycle)"
	G1a          Class = "G1a (aborted read)"
	G1b          Class = "G1b (intermediate read)"
	G1c          Class = "G1c (circular information flow)"
	GSingle      Class = "G-single (read skew)"
	LostUpdate   Class = "lost update"
	GNonadjacent Class = "G-nonadjacent (no two rw edges in a row)"
	G2Item       Class = "G2-item (write skew)"
	G2           Class = "G2 (phantom)"
	Internal     Class = "internal (a transaction contradicts itself)"
	Incompatible Class = "incompatible orders (reads of one key are no prefixes of each other)"
	Duplicate    Class = "duplicate (one append took effect twice)"
	Garbage      Class = "garbage (a value that was never written)"
	LostAppend   Class = "lost append (an acknowledged append was not there later)"
	Malformed    Class = "malformed history"
)

const realtime = "-realtime"

// Anomaly is a violation.
type Anomaly struct {
	Class Class
	// Txns are the transactions it consists of, in the cycle's order.
	Txns []int
	// Story describes it: a line for each edge, then the transactions with their statements.
	Story string
}

func (a Anomaly) String() string { return string(a.Class) + "\n" + a.Story }

// Is reports whether the anomaly is of the class, with or without a real-time edge.
func (a Anomaly) Is(c Class) bool { return a.Class == c || a.Class == c+realtime }
