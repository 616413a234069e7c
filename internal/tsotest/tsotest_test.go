package tsotest

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/percodb/percodb/tso"
)

// Goal: the checker tells good histories from bad ones. Method: small histories of both kinds, as
// calls with the moments at which they begin and end.
func TestCheck(t *testing.T) {
	type call struct {
		began, ended int64
		first        tso.Timestamp // in ticks
		n            int
	}
	for name, tc := range map[string]struct {
		calls []call
		ok    bool
	}{
		"empty":                          {ok: true},
		"one after the other":            {[]call{{1, 2, 1, 1}, {3, 4, 2, 1}}, true},
		"overlapping, the later smaller": {[]call{{1, 4, 2, 1}, {2, 5, 1, 1}}, true},
		"smaller than one that returned": {[]call{{1, 2, 2, 1}, {3, 4, 1, 1}}, false},
		"twice":                          {[]call{{1, 4, 1, 1}, {2, 5, 1, 1}}, false},
		"within another's handful":       {[]call{{1, 4, 1, 4}, {2, 5, 3, 1}}, false},
		"after another's handful":        {[]call{{1, 4, 1, 4}, {2, 5, 5, 1}}, true},
		"in the middle of a long call":   {[]call{{1, 6, 2, 1}, {2, 3, 1, 1}, {4, 5, 3, 1}}, true},
		"a long call that is too small":  {[]call{{1, 2, 2, 1}, {3, 8, 1, 1}, {4, 5, 3, 1}}, false},
	} {
		h := &History{}
		for _, c := range tc.calls {
			caller := h.Caller()
			caller.calls = append(caller.calls, porcupine.Operation{
				ClientId: caller.id, Call: c.began, Return: c.ended, Output: taken{c.first * tso.Tick, c.n}})
		}
		if err := h.Check(); (err == nil) != tc.ok {
			t.Errorf("%s: %v, want linearizable %v", name, err, tc.ok)
		}
		if h.Len() != len(tc.calls) {
			t.Errorf("%s: %d calls, want %d", name, h.Len(), len(tc.calls))
		}
	}
}

// Goal: a timestamp that a shard computed is none of the oracle's.
func TestSubticksAreRefused(t *testing.T) {
	h := &History{}
	c := h.Caller()
	c.calls = append(c.calls, porcupine.Operation{Call: 1, Return: 2, Output: taken{tso.Tick + 1, 1}})
	if h.Check() == nil {
		t.Error("accepted")
	}
}
