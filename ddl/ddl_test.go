package ddl

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
)

// Goal: every statement does to schema and data what PostgreSQL's does, says it in the same words, and
// leaves rows and indexes in agreement. Method: transcripts, one file per subject, run in sessions
// named by s=; the checker runs after every step. Chunks are small, so that each takes several; then all
// again with indexes built in one transaction, which does not fit into memory.
func TestTranscripts(t *testing.T) {
	for _, whole := range []bool{false, true} {
		t.Run(map[bool]string{false: "chunks", true: "one transaction"}[whole], func(t *testing.T) { runTranscripts(t, whole) })
	}
}

var duplicated = regexp.MustCompile(`=\(.*\) is duplicated`)

func runTranscripts(t *testing.T, whole bool) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newServer(t, catalog.Options{})
		s.whole = whole
		sessions := map[string]*session{}
		at := func(d *datadriven.TestData) *session {
			name := "main"
			d.MaybeScanArgs(t, "s", &name)
			if sessions[name] == nil {
				sessions[name] = s.session()
			}
			return sessions[name]
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "exec":
				out := at(d).exec(d.Input) + s.verify()
				// Which of several duplicates is named depends on the sizes of chunks and memory.
				return duplicated.ReplaceAllString(out, duplicated.FindString(d.Expected))
			case "describe":
				return at(d).describe(strings.Fields(d.Input))
			case "cells":
				return at(d).cells() + s.verify()
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
		for _, c := range sessions {
			c.rollback()
		}
	})
}

// describe prints descriptors in brief.
func (s *session) describe(names []string) string {
	ctx := context.Background()
	txn := s.txn
	if txn == nil {
		txn, _ = s.db.Begin(ctx)
	}
	r, err := s.catalog.At(ctx, txn)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, name := range names {
		t, err := r.Relation(ctx, "", name)
		if err != nil || t == nil {
			fmt.Fprintf(&out, "%s: none (%v)\n", name, err)
			continue
		}
		out.WriteString(describeTable(t))
	}
	return out.String()
}

func describeTable(t *catalog.TableDescriptor) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s.%s\n", t.Schema, t.Name)
	for i := range t.Columns {
		c := &t.Columns[i]
		fmt.Fprintf(&out, "  %d %s %s", c.ID, c.Name, c.Type.String())
		for word, on := range map[string]bool{" hidden": c.Hidden, " not null": c.NotNull && !c.Hidden} {
			if on {
				out.WriteString(word)
			}
		}
		if c.Default != "" {
			// Numbers of sequences depend on what came before.
			def := c.Default
			if c.Sequence != 0 {
				def = "nextval(its sequence)"
			}
			out.WriteString(" default " + def)
		}
		if c.Identity != "" {
			out.WriteString(" identity " + c.Identity)
		}
		if c.Missing != nil {
			out.WriteString(" missing")
		}
		out.WriteByte('\n')
	}
	if t.Kind != catalog.KindTable {
		if t.ViewQuery != "" {
			out.WriteString("  as " + t.ViewQuery + "\n")
		}
		return out.String()
	}
	describeIndex(&out, t, &t.Primary)
	for i := range t.Indexes {
		describeIndex(&out, t, &t.Indexes[i])
	}
	for _, c := range t.Checks {
		fmt.Fprintf(&out, "  check %s %s\n", c.Name, c.Expr)
	}
	for _, o := range t.Observers {
		fmt.Fprintf(&out, "  observer %s of %v under %d, when (%s), state %d, %d %d %d %v\n", o.Name, o.Columns, o.AckIndex, o.When,
			o.State, o.Concurrency, o.Batch, o.MaxAttempts, o.Weak)
		if o.Body == "" {
			continue
		}
		for _, line := range strings.Split(o.Body, "\n") {
			out.WriteString("    " + line + "\n")
		}
	}
	return out.String()
}

func describeIndex(out *strings.Builder, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) {
	fmt.Fprintf(out, "  index %d %s", ix.ID, ix.Name)
	if ix.Unique {
		out.WriteString(" unique")
	}
	if ix.Constraint {
		out.WriteString(" constraint")
	}
	for _, c := range ix.Columns {
		out.WriteString(" " + t.Columns[t.Ordinal(c.ColumnID)].Name)
		if c.Desc {
			out.WriteString(" desc")
		}
	}
	for _, id := range ix.Include {
		out.WriteString(" include " + t.Columns[t.Ordinal(id)].Name)
	}
	out.WriteByte('\n')
}

// Goal: the analyzer notices a load and makes statistics that say what was loaded. Method: load, have it
// look once, read the statistics.
func TestAnalyzerFollowsLoads(t *testing.T) {
	s := newServer(t, catalog.Options{})
	c := s.session()
	c.exec("create table t (a int primary key, b int, c text); insert into t select g, g % 10, case when g % 4 = 0 then null else 'x' end from generate_series(1, 2300) g; delete from t where a > 2000")
	ctx := context.Background()
	txn, _ := s.db.Begin(ctx)
	r, err := s.catalog.At(ctx, txn)
	if err != nil {
		t.Fatal(err)
	}
	desc, _ := r.Relation(ctx, "", "t")
	guard := s.catalog.NewGuard()
	guard.Writes(desc, 2000) // The harness counts one row a statement.
	guard.Done(ctx, 1, nil)
	deps := Deps{DB: s.db, Catalog: s.catalog}
	if err := (&Analyzer{deps: deps.ensureDefaults(), paces: map[uint64]pace{}}).look(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	txn, _ = s.db.Begin(ctx)
	if r, err = s.catalog.At(ctx, txn); err != nil {
		t.Fatal(err)
	}
	stats, err := r.Stats(ctx, desc.ID)
	if err != nil {
		t.Fatal(err)
	}
	a, b, text := stats.Columns[1], stats.Columns[2], stats.Columns[3]
	if stats.Rows != 2000 || stats.Deleted != 300 || a.Distinct != 2000 || b.Distinct != 10 || text.NullFraction != 0.25 || len(a.Histogram) != histogramBuckets+1 {
		t.Fatalf("%+v", stats)
	}
	for i, want := range map[int]int64{0: 1, histogramBuckets: 2000} {
		if d, err := rowenc.DecodeDatum(a.Histogram[i]); err != nil || d.Int() != want {
			t.Fatalf("bound %d is %d (%v), want %d", i, d.Int(), err, want)
		}
	}
	if stale, err := s.catalog.Stale(ctx); err != nil || len(stale) != 0 {
		t.Fatal(stale, err)
	}
}
