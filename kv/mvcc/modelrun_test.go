package mvcc

import (
	"flag"
	"testing"
)

var smFlag = flag.String("model", "", "full: search the model's wide bounds, which takes minutes")

// Goal: under its bounds, the protocol has no state that breaks an invariant. Method: visit them all.
func TestModel(t *testing.T) {
	for _, cfg := range smConfigs(*smFlag == "full") {
		t.Run(cfg.name, func(t *testing.T) {
			t.Parallel()
			m := smModel{cfg: &cfg}
			r := m.search(0)
			t.Logf("%-14s %9d states %10d steps  %v", cfg.name, r.states, r.steps, r.took)
			if r.violation != "" {
				t.Errorf("%s, after %d steps:", r.violation, len(r.trace))
				for i, step := range r.trace {
					t.Logf("%3d %s", i+1, step)
				}
			}
		})
	}
}
