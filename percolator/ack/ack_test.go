package ack

import (
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: the verdicts. Method: all orders of a change, a snapshot and an acknowledgement.
func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		change, snapshot, acked tso.Timestamp
		want                    Verdict
	}{
		{"never acknowledged", 10, 20, 0, Confirm},
		{"never acknowledged, in the snapshot's moment", 20, 20, 0, Confirm},
		{"never acknowledged, after the snapshot", 21, 20, 0, Later},
		{"changed since", 15, 20, 12, Deliver},
		{"acknowledged at the change", 12, 20, 12, Seen},
		{"acknowledged after the change", 11, 20, 12, Seen},
		{"changed after the snapshot, too", 25, 20, 12, Later},
	} {
		if got := Decide(tc.change, tc.snapshot, tc.acked); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// Goal: acknowledgements survive their encoding, and other values are refused.
func TestParse(t *testing.T) {
	for _, a := range []Ack{{}, {Snapshot: 1}, {Snapshot: tso.MaxTimestamp, Gone: true}} {
		got, err := Parse(a.Append(nil))
		if err != nil || got != a {
			t.Errorf("%+v became %+v, %v", a, got, err)
		}
	}
	for _, value := range [][]byte{nil, {1}, make([]byte, 10), {0, 0, 0, 0, 0, 0, 0, 1, 2}} {
		if _, err := Parse(value); err == nil {
			t.Errorf("%x was accepted", value)
		}
	}
}
