package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/process"
)

var schemaKills = flag.Int("schema-kills", 1, "kills in each schema change")

// schemaChange is a statement that changes the schema while tables are written.
type schemaChange struct {
	do string
	// done is true once the change has taken effect; undo takes it back.
	done, undo string
}

func indexChange(definition string) schemaChange {
	return schemaChange{"create " + definition, "select exists (select from pg_index where indexrelid = to_regclass('changing_ix') and indisvalid)", "drop index changing_ix"}
}

func constraintChange(do, name string) schemaChange {
	return schemaChange{do, "select exists (select from pg_constraint where conname = '" + name + "' and convalidated)", "alter table changing drop constraint " + name}
}

var schemaChanges = []schemaChange{
	indexChange("index changing_ix on changing (b)"),
	indexChange("unique index changing_ix on changing (u) include (b)"),
	indexChange("index concurrently changing_ix on changing (lower(s), b desc) where b > 5"),
	indexChange("index changing_ix on changing using gin (j)"),
	indexChange("index changing_ix on changing using hash (s)"),
	indexChange("index changing_ix on changing_parts (v)"),
	constraintChange("alter table changing add constraint changing_check check (b >= 0)", "changing_check"),
	constraintChange("alter table changing add constraint changing_unique unique (u)", "changing_unique"),
	constraintChange("alter table changing add constraint changing_fk foreign key (b) references changing_kinds", "changing_fk"),
	{"alter table changing validate constraint changing_later", "select convalidated from pg_constraint where conname = 'changing_later'",
		"alter table changing drop constraint changing_later; alter table changing add constraint changing_later check (b < 1000) not valid"},
	{"alter table changing alter b type bigint", "select format_type(atttypid, -1) = 'bigint' from pg_attribute where attrelid = 'changing'::regclass and attname = 'b'",
		"alter table changing alter b type int"},
	{"alter table changing add column c text default 'c'", "select exists (select from pg_attribute where attrelid = 'changing'::regclass and attname = 'c')",
		"alter table changing drop column c"},
	{"alter table changing drop column extra", "select not exists (select from pg_attribute where attrelid = 'changing'::regclass and attname = 'extra')",
		"alter table changing add column extra int default 7; create index on changing (extra)"},
	{"alter table changing_parts detach partition changing_parts2", "select count(*) = 1 from pg_inherits where inhparent = 'changing_parts'::regclass",
		"alter table changing_parts attach partition changing_parts2 for values from (5) to (10)"},
	{"alter table changing_parts attach partition changing_more for values from (10) to (20)", "select count(*) = 3 from pg_inherits where inhparent = 'changing_parts'::regclass",
		"alter table changing_parts detach partition changing_more"},
	{"truncate changing_more", "select count(*) = 0 from changing_more", "insert into changing_more select 10 + g % 10, g from generate_series(1, 2000) g"},
	{"reindex table changing", "select true", ""},
}

const schemaSetup = `
	create table changing_kinds (id bigint primary key);
	insert into changing_kinds select generate_series(0, 99);
	create table changing (id int primary key, b int, u int, s text, j jsonb, extra int);
	create index on changing (extra);
	insert into changing select g, g % 40, g, 'S' || g % 300, jsonb_build_object('k', g % 50, 'l', jsonb_build_array(g % 7)), g from generate_series(1, 6000) g;
	alter table changing add constraint changing_later check (b < 1000) not valid;
	create table changing_parts (k int, v int) partition by range (k);
	create table changing_parts1 partition of changing_parts for values from (0) to (5);
	create table changing_parts2 partition of changing_parts for values from (5) to (10);
	insert into changing_parts select g % 10, g from generate_series(1, 4000) g;
	create table changing_more (k int, v int);
	insert into changing_more select 10 + g % 10, g from generate_series(1, 2000) g`

// Goal: no schema change that was acknowledged is lost when the server is killed, none is half made, and a build of an index that has begun is
// completed: percodb check finds nothing after any kill. Method: clients write; each change is interrupted after random parts of the time that it
// usually takes.
func TestKillInSchemaChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &schemaKill{t: t, binary: binary, data: filepath.Join(t.TempDir(), "data")}
	s.start()
	s.exec(schemaSetup)
	interrupted := 0
	for i := range schemaChanges {
		c := &schemaChanges[i]
		began := time.Now()
		s.exec(c.do)
		usual := time.Since(began)
		s.undo(c)
		for k := range *schemaKills {
			after := rand.N(usual)
			acknowledged := s.interrupt(c, after)
			if !acknowledged {
				interrupted++
			}
			s.verify(fmt.Sprintf("%s, killed after %v of %v (%d)", c.do, after, usual, k), c, acknowledged)
		}
	}
	t.Logf("%d changes interrupted", interrupted)
}

// schemaKill is a server whose schema changes are interrupted.
type schemaKill struct {
	t            *testing.T
	binary, data string
	p            *process.Process
	addr         string
}

func (s *schemaKill) start() {
	s.t.Helper()
	p, err := process.Start(s.binary, nil, "start", "--listen", "127.0.0.1:0", "--data", s.data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.p = p
	s.t.Cleanup(p.Kill)
	if s.addr, err = p.AwaitReady(s.t.Context()); err != nil {
		s.t.Fatal(err, p.Output())
	}
}

func (s *schemaKill) connect(ctx context.Context) *pgx.Conn {
	s.t.Helper()
	c, err := connectTo(ctx, s.addr, "percodb")
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *schemaKill) exec(text string) {
	s.t.Helper()
	c := s.connect(s.t.Context())
	defer c.Close(s.t.Context())
	for statement := range strings.SplitSeq(text, ";\n") {
		if _, err := c.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (s *schemaKill) undo(c *schemaChange) {
	s.t.Helper()
	if c.undo != "" {
		s.exec(strings.ReplaceAll(c.undo, "; ", ";\n"))
	}
}

func (s *schemaKill) isTrue(query string) (is bool) {
	s.t.Helper()
	c := s.connect(s.t.Context())
	defer c.Close(s.t.Context())
	if err := c.QueryRow(s.t.Context(), query).Scan(&is); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return is
}

// interrupt begins a change under writers, and kills the server. It reports whether the change had been acknowledged.
func (s *schemaKill) interrupt(c *schemaChange, after time.Duration) (acknowledged bool) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var writers sync.WaitGroup
	for range 2 {
		conn := s.connect(ctx)
		writers.Go(func() {
			defer conn.Close(ctx)
			for ctx.Err() == nil && !conn.IsClosed() {
				_, _ = conn.Exec(ctx, randomChange()) // Conflicts with the change are none of its business.
			}
		})
	}
	conn := s.connect(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, c.do)
		ended <- err
	}()
	time.Sleep(after) // The kill may come at any moment of the change.
	s.p.Kill()
	err := <-ended
	cancel()
	writers.Wait()
	return err == nil
}

// randomChange is a statement that keeps values of u unique and b among the kinds.
func randomChange() string {
	id := rand.IntN(8000) + 1
	switch rand.IntN(6) {
	case 0:
		return fmt.Sprintf("delete from changing where id = %d", id)
	case 1:
		return fmt.Sprintf("insert into changing (id, b, u, s, j) values (%d, %d, %d, 'S%d', '{\"k\": %d}') on conflict do nothing", id, id%40, id, id%300, id%60)
	case 2:
		return fmt.Sprintf("update changing set b = %d where id = %d", rand.IntN(60), id)
	case 3:
		return fmt.Sprintf("update changing set u = -u, s = 's%d' where id = %d", rand.IntN(500), id)
	case 4:
		return fmt.Sprintf("update changing_parts set v = v + 1, k = (k + 3) %% 5 where v = %d", id/2)
	}
	return fmt.Sprintf("update changing set j = '{\"k\": %d, \"m\": [1]}' where id = %d", rand.IntN(60), id)
}

// verify checks the data directory, starts the server, waits until it has completed what it completes, and takes the change back.
func (s *schemaKill) verify(where string, c *schemaChange, acknowledged bool) {
	s.t.Helper()
	s.check(where)
	s.start()
	for deadline := time.Now().Add(time.Minute); !s.isTrue("select count(*) = 0 from pg_stat_progress_create_index"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: the build is not completed", where)
		}
	}
	done := s.isTrue(c.done)
	if !done && !s.isTrue("select to_regclass('changing_ix') is null") {
		s.t.Fatalf("%s: the index is there, and the change has not taken effect", where)
	}
	if acknowledged && !done {
		s.t.Fatalf("%s: the change was acknowledged, and is lost", where)
	}
	if !s.isTrue("select count(*) = 0 from pg_index where not indisvalid") {
		s.t.Fatalf("%s: an index is left invalid", where)
	}
	s.p.Kill()
	s.check(where + ", continued")
	s.start()
	if done {
		s.undo(c)
	}
}

func (s *schemaKill) check(where string) {
	s.t.Helper()
	d := &deployment{binary: s.binary, checks: []string{s.data}}
	for _, f := range d.check(s.t.Context()) {
		s.t.Fatalf("%s: %s\n%s", where, f.what, f.story)
	}
}
