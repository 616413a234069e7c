package gen

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// small is a scale that is generated in well under a second.
func small() Scale {
	return Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 6, MarketDays: 31, NewsBytes: 300, Seed: 7, ShortHistory: true}
}

func newGenerator(t *testing.T, s Scale) *Generator {
	t.Helper()
	g, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tablesOf collects the rows of every table, split into lines of fields.
func tablesOf(g *Generator) [schema.Count][][]string {
	var all [schema.Count][][]string
	for _, part := range g.Parts() {
		for batch := range part.Batches {
			for t := range batch.Rows {
				for line := range strings.Lines(string(batch.Rows[t].Data)) {
					all[t] = append(all[t], strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
				}
			}
		}
	}
	return all
}

// TestSameRowsFromAnyNumberOfWorkers: rows are a function of the scale alone, not of concurrency.
// Method: a digest of every batch of two load units, from 1 worker and from 8, and from another seed.
func TestSameRowsFromAnyNumberOfWorkers(t *testing.T) {
	scale := small()
	scale.Customers = 2000
	digests := func(workers int, scale Scale) map[string][32]byte {
		var mu sync.Mutex
		var group sync.WaitGroup
		found := map[string][32]byte{}
		parts := make(chan Part)
		g := newGenerator(t, scale)
		for range workers {
			group.Go(func() {
				for part := range parts {
					for batch := range part.Batches {
						h := sha256.New()
						for i := range batch.Rows {
							fmt.Fprintf(h, "%d %d\n", i, batch.Rows[i].Count)
							h.Write(batch.Rows[i].Data)
						}
						mu.Lock()
						found[batch.Name] = [32]byte(h.Sum(nil))
						mu.Unlock()
					}
				}
			})
		}
		for _, part := range g.Parts() {
			parts <- part
		}
		close(parts)
		group.Wait()
		return found
	}
	one, eight := digests(1, scale), digests(8, scale)
	if len(one) < 7 || len(one) != len(eight) {
		t.Fatalf("1 worker made %d batches, 8 workers %d", len(one), len(eight))
	}
	for name, digest := range one {
		if eight[name] != digest {
			t.Errorf("batch %s differs", name)
		}
	}
	scale.Seed++
	for name, digest := range digests(2, scale) {
		if one[name] == digest {
			t.Errorf("batch %s is the same with another seed", name)
		}
	}
}

// TestPartStops: a receiver that has stopped the part is not called again.
func TestPartStops(t *testing.T) {
	for _, part := range newGenerator(t, small()).Parts() {
		n := 0
		for range part.Batches {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s: %d batches", part.Name, n)
		}
	}
}

// TestCardinalities: every table has the number of rows that its rule states. Tables without a rule have the
// numbers of a simulation independent of this package: after one day 40,300 lots, 29,200 summaries,
// and 1.10 changes per trade.
func TestCardinalities(t *testing.T) {
	scale := small()
	scale.TradesPerCustomer = 0
	var counts [schema.Count]int64
	for _, part := range newGenerator(t, scale).Parts() {
		for batch := range part.Batches {
			for i := range batch.Rows {
				counts[i] += batch.Rows[i].Count
			}
		}
	}
	near := func(table schema.Table, want int64, tolerance float64) {
		if d := math.Abs(float64(counts[table] - want)); d > float64(want)*tolerance/100 {
			t.Errorf("%s has %d rows, want %d ± %v %%", table, counts[table], want, tolerance)
		}
	}
	for table := range schema.Count {
		if rule := scale.Rule(table); rule.Tolerance >= 0 {
			near(table, rule.Rows, rule.Tolerance)
		}
	}
	near(schema.Holding, 40_300, 3)
	near(schema.HoldingSummary, 29_200, 3)
	near(schema.HoldingHistory, counts[schema.Trade]*110/100, 2)
}

// TestForeignKeys: all 49 foreign keys hold, primary keys and unique indexes are unique, rows have as many fields as
// their table has columns. Method: the rows of two load units in memory.
func TestForeignKeys(t *testing.T) {
	scale := small()
	scale.Customers = 2000
	tables := tablesOf(newGenerator(t, scale))
	pick := func(table schema.Table, columns []string) []string {
		all := table.Columns()
		var at []int
		for _, c := range columns {
			at = append(at, slices.Index(all, c))
		}
		var keys []string
		for _, row := range tables[table] {
			var key []string
			for _, i := range at {
				key = append(key, row[i])
			}
			keys = append(keys, strings.Join(key, "\t"))
		}
		return keys
	}
	unique := func(table schema.Table, columns []string) map[string]bool {
		keys := map[string]bool{}
		for _, k := range pick(table, columns) {
			if keys[k] {
				t.Errorf("%s: two rows of %v %q", table, columns, k)
			}
			keys[k] = true
		}
		return keys
	}
	var keys [schema.Count]map[string]bool
	for table := range schema.Count {
		for _, row := range tables[table] {
			if len(row) != len(table.Columns()) {
				t.Fatalf("%s: a row of %d fields, want %d: %q", table, len(row), len(table.Columns()), row)
			}
		}
		keys[table] = unique(table, table.Key())
	}
	for _, index := range schema.Indexes() {
		if index.Unique {
			unique(index.Table, strings.Split(index.Columns, ", "))
		}
	}
	if n := len(schema.ForeignKeys()); n != 49 {
		t.Errorf("%d foreign keys", n)
	}
	for _, fk := range schema.ForeignKeys() {
		for _, k := range pick(fk.Table, strings.Split(fk.Columns, ", ")) {
			if !keys[fk.Parent][k] {
				t.Errorf("%s: no row of %s for %q", fk.Name(), fk.Parent, k)
				break
			}
		}
	}
}

// TestTradeIDs: the existing ids are those for which IsSkipped is false, over two load units.
func TestTradeIDs(t *testing.T) {
	scale := small()
	scale.Customers = 2000
	g := newGenerator(t, scale)
	exists := map[string]bool{}
	for _, row := range tablesOf(g)[schema.Trade] {
		exists[row[0]] = true
	}
	var n int
	for id := int64(1); id <= g.MaxTradeID(); id++ {
		if exists[fmt.Sprint(id)] == g.IsSkipped(id) {
			t.Fatalf("trade %d: skipped is %v, exists is %v", id, g.IsSkipped(id), exists[fmt.Sprint(id)])
		}
		if !g.IsSkipped(id) {
			n++
		}
	}
	if n != len(exists) || n != 12_000 {
		t.Errorf("%d ids, %d trades, want 12000", n, len(exists))
	}
}

// TestProfiles: every profile is valid, and values out of bounds are rejected with a message.
func TestProfiles(t *testing.T) {
	for _, name := range Profiles() {
		s, err := Profile(name)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Profile("huge"); err == nil {
		t.Error("an unknown profile was accepted")
	}
	for _, change := range []func(*Scale){
		func(s *Scale) { s.Customers = 1500 }, func(s *Scale) { s.Customers = 0 }, func(s *Scale) { s.TradeDays = 4 },
		func(s *Scale) { s.TradeDays = -1 }, func(s *Scale) { s.MarketDays = 0 }, func(s *Scale) { s.NewsBytes = 1 },
		func(s *Scale) { s.TradesPerCustomer = 1 },
	} {
		s, _ := Profile("dev")
		change(&s)
		if s.Validate() == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}
