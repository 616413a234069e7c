// Package ack decides whether an observer has seen a change: by the change's notify cell, and by the acknowledgement
// that the observer's transactions leave. It is used by the delivery (package observe) and by the model of the protocol.
//
//	a writer commits at c            the cell says c; a further change raises it
//	a transaction with snapshot s    reads the acknowledgement and the row at s, and acts on the row; it may lock the
//	                                 acknowledgement first
//	it commits                       with acknowledgement s, in the same transaction
//	after that                       the cell is cleared, unless it is above s by now
//
// Invariants:
//
//	I1 At most one transaction that delivers a change commits: the acknowledgement is in its write set, so that of two
//	   that have not seen each other's the first to commit wins, and whoever reads it later finds c ≤ s.
//	I2 No change is lost: its cell is there from its commit on, and is cleared only up to a snapshot that includes it.
//	I3 Whoever delivers reads the row at s. So a change whose cell appears late, since its lock was resolved late, is
//	   above s or has been seen.
package ack

import (
	"encoding/binary"
	"errors"

	"github.com/percodb/percodb/tso"
)

// Ack is an acknowledgement: the value that a transaction writes for each row it delivers.
type Ack struct {
	Snapshot tso.Timestamp // at which the row was read
	// Gone: there was no row. Such an acknowledgement is collected when the row has no cell.
	Gone bool
}

const flagGone = 1

// valueLen is the length of an encoded acknowledgement: 8 bytes of snapshot, 1 of flags.
const valueLen = 9

// Append appends the encoded acknowledgement to dst.
func (a Ack) Append(dst []byte) []byte {
	var flags byte
	if a.Gone {
		flags = flagGone
	}
	return append(binary.BigEndian.AppendUint64(dst, uint64(a.Snapshot)), flags)
}

var errMalformed = errors.New("ack: malformed acknowledgement")

// Parse decodes an acknowledgement.
func Parse(value []byte) (Ack, error) {
	if len(value) != valueLen || value[8]&^flagGone != 0 {
		return Ack{}, errMalformed
	}
	return Ack{Snapshot: tso.Timestamp(binary.BigEndian.Uint64(value)), Gone: value[8]&flagGone != 0}, nil
}

// Verdict is what a transaction that has read the acknowledgement of a row does with a notify cell.
type Verdict uint8

const (
	// Deliver the row as of the snapshot.
	Deliver Verdict = iota
	// Confirm that the cell is still there, after the snapshot was taken, and deliver the row if it is: without an
	// acknowledgement the change may have been seen, cleared, and its acknowledgement collected.
	Confirm
	// Seen: the change is in an acknowledged snapshot. The cell is only cleared.
	Seen
	// Later: the change is not in this snapshot. The cell stays.
	Later
)

// Decide returns the verdict about a cell that was read before the transaction began, or locked the acknowledgement. change is the cell's
// commit_ts, acked the snapshot of the acknowledgement, read at snapshot; 0: there is none.
func Decide(change, snapshot, acked tso.Timestamp) Verdict {
	switch {
	case acked != 0 && change <= acked:
		return Seen
	case change > snapshot:
		return Later
	case acked == 0:
		return Confirm
	}
	return Deliver
}
