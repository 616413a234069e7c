package main

import (
	"strings"
	"testing"
)

// Goal: a generation that was acknowledged must be there until another one is; one without an answer may come once, at
// any time; what was overwritten must not come back.
func TestGenerations(t *testing.T) {
	l := newLarge("t", manyRows, new(phases))
	l.known, l.unknown[2] = 1, true
	for _, step := range []struct {
		shown int64
		wrong bool
	}{{1, false}, {2, false}, {2, false}, {1, true}, {3, true}} {
		l.found = nil
		l.judge(step.shown)
		if (len(l.found) > 0) != step.wrong {
			t.Errorf("generation %d: %v", step.shown, l.found)
		}
	}
}

// Goal: a kill is counted by what the transaction was doing, and by what it has left.
func TestPhases(t *testing.T) {
	var p phases
	for _, met := range []struct {
		phase             phase
		tables, committed bool
	}{
		{idle, false, true}, {writing, false, false}, {single, false, false}, {committing, false, false}, {committing, true, false},
		{committing, true, true}, {single, false, true}, {committing, false, true},
	} {
		p.add(met.phase, met.tables, met.committed)
	}
	if got := p.String(); !strings.Contains(got, "met 2 large transactions while they wrote, 1 in prewrite, 2 with files to ingest, 2 that") {
		t.Error(got)
	}
}
