package ddl

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/percodb/percodb/catalog"
)

// Goal: every statement does to schema and data what PostgreSQL's does, says it in the same words, and
// leaves rows and indexes in agreement. Method: transcripts, one file per subject, run in sessions
// named by s=; the checker runs after every step. Chunks are small, so that each takes several.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newServer(t, catalog.Options{})
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
				return at(d).exec(d.Input) + s.verify()
			case "describe":
				return at(d).describe(strings.Fields(d.Input))
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
