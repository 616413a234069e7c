package mvcc

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var smFlag = flag.String("model", "", "full: search the model's wide bounds, which takes minutes")

// smAtOnce bounds how many of the wide worlds are searched at once: each may need 2 GB.
const smAtOnce = 2

// Goal: within its bounds, the protocol has no state that violates an invariant. Method: visit them all.
func TestModel(t *testing.T) {
	if testing.Short() {
		t.Skip("a search by one goroutine, of half a minute")
	}
	full := *smFlag == "full"
	begun := time.Now()
	if full {
		defer debug.SetGCPercent(debug.SetGCPercent(40))
	}
	turns := make(chan struct{}, smAtOnce)
	configs := smConfigs(full)
	results := make([]smResult, len(configs))
	t.Run("worlds", func(t *testing.T) {
		for i := range configs {
			cfg := &configs[i]
			t.Run(cfg.name, func(t *testing.T) {
				t.Parallel()
				if full {
					turns <- struct{}{}
					defer func() { <-turns }()
				}
				m := smModel{cfg: cfg}
				r := m.search(0)
				results[i] = r
				t.Logf("%-14s %9d states %10d steps  %v", cfg.name, r.states, r.steps, r.took)
				if r.violation != "" {
					t.Errorf("%s, after %d steps:", r.violation, len(r.trace))
					for i, step := range r.trace {
						t.Logf("%3d %s", i+1, step)
					}
				}
			})
		}
	})
	rows, all, ran := smWorldRows(configs, results)
	t.Logf("%-14s %9d states %10d steps  %v", "all", all.states, all.steps, time.Since(begun))
	switch {
	case t.Failed() || ran < len(configs): // some were not run
	case full:
		smCheckPage(t, "worlds", rows)
	default:
		smCheckWorlds(t)
	}
}

// smWorldRows returns the page's rows, the sums, and how many worlds were searched.
func smWorldRows(configs []smConfig, results []smResult) (rows string, all smResult, ran int) {
	var b strings.Builder
	for i := range configs {
		r := &results[i]
		fmt.Fprintf(&b, "%s %s | %s | %s |\n", configs[i].row(), configs[i].bounds(), smThousands(r.states), smThousands(r.steps))
		all.states, all.steps = all.states+r.states, all.steps+r.steps
		if r.states > 0 {
			ran++
		}
	}
	fmt.Fprintf(&b, "| **all** | | | **%s** | **%s** |\n", smThousands(all.states), smThousands(all.steps))
	return b.String(), all, ran
}

// row is the part of a world's row that does not depend on the bounds.
func (c *smConfig) row() string { return fmt.Sprintf("| %s | %s |", c.name, c.what) }

// bounds describes how many events may occur.
func (c *smConfig) bounds() string {
	parts := []string{smCount(len(c.txns), "transaction"), smCount(c.keys, "key"), smCount(int(c.shards()), "shard")}
	for _, n := range []struct {
		n    uint8
		what string
	}{{c.dups, "copy"}, {c.losses, "loss"}, {c.crashes, "restart"}, {c.deaths, "death"}, {c.splits, "move"}, {c.aways, "absence"}, {c.rounds, "round"}} {
		if n.n > 0 {
			parts = append(parts, smCount(int(n.n), n.what))
		}
	}
	if c.ahead > 0 {
		parts = append(parts, fmt.Sprintf("%d ahead", c.ahead))
	}
	if c.jumps > 0 {
		parts = append(parts, fmt.Sprintf("%d s", 10*c.jumps))
	}
	return strings.Join(parts, ", ")
}

func smCount(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "copy":
		return fmt.Sprintf("%d copies", n)
	case what == "loss":
		return fmt.Sprintf("%d losses", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// smThousands writes a number with commas between its thousands.
func smThousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", smThousands(n/1000), n%1000)
}
