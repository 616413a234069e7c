package ddl

import (
	"testing"
	"time"
)

// Goal: a table that goes on changing is analyzed less and less often, and one that was quiet at once.
// Method: looks every second at a table that always needs it; then a pause.
func TestAnalyzerPace(t *testing.T) {
	var p pace
	var at []int
	now := time.Unix(1000, 0)
	for second := range 300 {
		next, due := p.due(now.Add(time.Duration(second)*time.Second), time.Second)
		if due {
			at = append(at, second)
		}
		p = next
	}
	want := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 243}
	if len(at) != len(want) {
		t.Fatalf("analyzed at %v, want %v", at, want)
	}
	for i := range at {
		if at[i] != want[i] {
			t.Fatalf("analyzed at %v, want %v", at, want)
		}
	}
	if slow := (pace{pause: time.Second}).after(90 * time.Millisecond); slow.pause != 9*time.Second {
		t.Errorf("what took 90 ms is left alone for %v", slow.pause)
	}
	if p, due := p.due(now.Add(time.Hour), time.Second); !due || p.pause != time.Second {
		t.Errorf("after an hour's quiet: %+v, due %v", p, due)
	}
}
