package hermitage

import (
	"maps"
	"strings"
	"testing"
)

// read is the outcome that a transcript shows.
func read(transcript string) *outcome {
	o := &outcome{transcript: transcript, committed: map[string]string{}}
	answers := map[string][]string{}
	for _, line := range strings.Split(transcript, "\n") {
		subject, text, _ := strings.Cut(line, " → ")
		name, _, _ := strings.Cut(subject, ":")
		switch {
		case name == "table":
			o.table = text
		case text == "waits" || text == "not run":
		case text == "commit":
			o.committed[name] = strings.Join(answers[name], "; ")
		default:
			answers[name] = append(answers[name], text)
		}
	}
	return o
}

// Goal: what a transcript shows is what the run that wrote it saw, and differences count where they
// should. Method: a transcript by hand, and changes to it.
func TestRead(t *testing.T) {
	const transcript = `T1: update test set value = 11 where id = 1 → 1 row
T2: select * from test where id = 2 → (2,20)
T2: update test set value = 12 where id = 1 → waits
T1: commit → commit
T2 → error 40001
T2: select * from test → not run
T2: commit → rollback
table → (1,11) (2,20)`
	want := &outcome{committed: map[string]string{"T1": "1 row"}, table: "(1,11) (2,20)"}
	if got := read(transcript); !got.equal(want) {
		t.Errorf("%v %q", got.committed, got.table)
	}
	for _, change := range [][2]string{{"→ 1 row", "→ no row"}, {"T2: commit → rollback", "T2: commit → commit"}, {"(2,20)`", ""}, {"table → (1,11)", "table → (1,12)"}} {
		changed := strings.Replace(transcript, change[0], change[1], 1)
		if got := read(changed); changed != transcript && got.equal(want) {
			t.Errorf("%q for %q makes no difference", change[1], change[0])
		}
	}
	if got := read(strings.Replace(transcript, "(2,20)\nT2", "(2,21)\nT2", 1)); !maps.Equal(got.committed, want.committed) {
		t.Error("what a transaction read that did not commit makes a difference")
	}
}
