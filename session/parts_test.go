package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a plan's key tells apart what plans depend on: text, declared types, search path. Method: all keys of a table differ.
func TestPlanKeys(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{"a", "b"} {
		for _, declared := range [][]types.Type{nil, {types.TInt4}, {types.TInt8}, {types.TInt4, types.TInt8}} {
			for _, path := range [][]string{nil, {}, {"x"}, {"x", "y"}, {"xy"}} {
				m := newPlans(catalog.FirstDatabase)
				m.path = path
				key, what := string(m.keyOf([]byte(text), declared)), fmt.Sprintf("%s %v %q %v", text, declared, path, path == nil)
				if other, ok := seen[key]; ok {
					t.Errorf("%s and %s have one key", what, other)
				}
				seen[key] = what
			}
		}
	}
}

// Goal: a session is sent VACUUM's notice once, however many tables a client such as pgbench vacuums.
func TestVacuumNotice(t *testing.T) {
	server := newTestServer(t)
	c := server.connect()
	c.must("create table t (id int primary key)")
	c.transcript(`
		begin; vacuum t → BEGIN; error 25001; E
		rollback → ROLLBACK; I
		vacuum t → notice 00000; VACUUM; I
		vacuum analyze t → VACUUM; I
		vacuum → VACUUM; I
	`)
	server.connect().transcript(`vacuum → notice 00000; VACUUM; I`)
}

// Goal: a plan is not used under a search path that finds other tables.
func TestPlansFollowSearchPath(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)", "create schema other", "create table other.t (s text)", "insert into t values (1)", "insert into other.t values ('x')")
	c.transcript(`
		select * from t → columns id; row 1; SELECT 1; I
		set search_path = other, public → SET; I
		select * from t → columns s; row x; SELECT 1; I
		set search_path = '' → SET; I
		select * from t → error 42P01; I
		set search_path = public → SET; I
		select * from t → columns id; row 1; SELECT 1; I
	`)
}

// Goal: plans follow the schema, prepared statements with their types or not at all, as PostgreSQL has it.
func TestPlansFollowSchema(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key, n int)", "insert into t values (1, 2)", "prepare p as select * from t", "prepare n as select n from t")
	c.transcript(`
		execute p → columns id n; row 1 2; SELECT 1; I
		alter table t add column s text default 'x' → ALTER TABLE; I
		execute n → columns n; row 2; SELECT 1; I
		execute p → error 0A000; I
		select * from t → columns id n s; row 1 2 x; SELECT 1; I
		begin → BEGIN; T
		alter table t drop column s → ALTER TABLE; T
		select * from t → columns id n; row 1 2; SELECT 1; T
		rollback → ROLLBACK; I
		select * from t → columns id n s; row 1 2 x; SELECT 1; I
	`)
}

// Goal: the session's share of plans is bounded.
func TestPlansAreBounded(t *testing.T) {
	m := newPlans(catalog.FirstDatabase)
	for i := range 3*sessionPlans + 1 {
		m.add(fmt.Sprint(i), &cachedPlan{})
	}
	if n := len(m.byKey); n > sessionPlans {
		t.Errorf("%d plans, at most %d are to be kept", n, sessionPlans)
	}
}

// Goal: plans of large texts do not take a server's memory. Method: many of them are kept, some twice; the bytes of the keys stay
// within the bounds, the last one is kept, and one that is too large is not.
func TestLargePlansAreBounded(t *testing.T) {
	shared, own := NewPlanCache(), newPlans(catalog.FirstDatabase)
	var last string
	for i := range 3000 {
		last = fmt.Sprint(i/2, strings.Repeat("x", 64<<10))
		shared.add(last, nil)
		own.add(last, &cachedPlan{})
	}
	keys := int64(0)
	for _, key := range shared.plans.Keys() {
		keys += int64(len(key))
	}
	if got := shared.text.Load(); got != keys || got > planCacheText || got < planCacheText/2 || !shared.plans.Contains(last) {
		t.Errorf("the server's plans: %d bytes of keys, %d counted", keys, got)
	}
	if own.text > sessionPlanText || own.byKey[last] == nil || len(own.byKey) > sessionPlanText/(64<<10) {
		t.Errorf("the session's plans: %d, %d bytes of keys", len(own.byKey), own.text)
	}
	huge := strings.Repeat("x", planCacheText)
	shared.add(huge, nil)
	if own.add(huge, &cachedPlan{}); own.byKey[huge] != nil || shared.plans.Contains(huge) {
		t.Error("a text larger than the bound is kept")
	}
}

// Goal: prepared statements are found, taken and forgotten by name as in PostgreSQL.
func TestPreparedStatements(t *testing.T) {
	c := newTestServer(t).connect()
	c.transcript(`
		prepare a as select $1::int + 1 → PREPARE; I
		prepare a as select 2 → error 42P05; I
		execute a(1) → columns ?column?; row 2; SELECT 1; I
		execute a → error 42601; I
		execute b → error 26000; I
		deallocate b → error 26000; I
		deallocate a → DEALLOCATE; I
		execute a(1) → error 26000; I
		prepare a as select 3 → PREPARE; I
		deallocate all → DEALLOCATE ALL; I
		execute a → error 26000; I
		prepare a as select 3 → PREPARE; I
		discard all → DISCARD ALL; I
		execute a → error 26000; I
	`)
	if err := c.Bind(BindRequest{}); ToPGError(err).Code != "26000" {
		t.Errorf("Bind of no statement: %v", err)
	}
	for range 2 { // The unnamed one is replaced.
		if err := c.Parse("", "select 1", nil); err != nil {
			t.Error(err)
		}
	}
	if err := c.Parse("a", "select 1", nil); err != nil {
		t.Error(err)
	}
	if err := c.Parse("a", "select 1", nil); ToPGError(err).Code != "42P05" {
		t.Errorf("the same name twice: %v", err)
	}
	c.query("") // A simple query drops the unnamed statement.
	if err := c.Bind(BindRequest{}); ToPGError(err).Code != "26000" {
		t.Errorf("Bind after a simple query: %v", err)
	}
}

// Goal: cursors and portals live as long as their transaction, their savepoint, or WITH HOLD says.
func TestCursors(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)", "insert into t values (1), (2), (3)")
	c.transcript(`
		declare a cursor for select id from t → error 25P01; I
		begin → BEGIN; T
		declare a cursor for select id from t order by id → DECLARE CURSOR; T
		declare a cursor for select id from t → error 42P03; E
		rollback → ROLLBACK; I
		begin → BEGIN; T
		declare a cursor for select id from t order by id → DECLARE CURSOR; T
		fetch 2 from a → columns id; row 1; row 2; FETCH 2; T
		delete from t → DELETE 3; T
		fetch all from a → columns id; row 3; FETCH 1; T
		fetch a → columns id; FETCH 0; T
		fetch backward from a → columns id; row 3; FETCH 1; T
		rollback → ROLLBACK; I
		fetch a → error 34000; I
		begin → BEGIN; T
		savepoint s → SAVEPOINT; T
		declare b cursor for select id from t → DECLARE CURSOR; T
		rollback to s → ROLLBACK; T
		fetch b → error 34000; E
		rollback → ROLLBACK; I
		begin → BEGIN; T
		savepoint s → SAVEPOINT; T
		declare b cursor for select id from t order by id → DECLARE CURSOR; T
		release s → RELEASE; T
		move b → MOVE 1; T
		fetch b → columns id; row 2; FETCH 1; T
		close b → CLOSE CURSOR; T
		close b → error 34000; E
		rollback → ROLLBACK; I
		declare h cursor with hold for select id from t order by id → DECLARE CURSOR; I
		delete from t where id = 2 → DELETE 1; I
		fetch all from h → columns id; row 1; row 2; row 3; FETCH 3; I
		begin; declare g cursor with hold for select 1; rollback → BEGIN; DECLARE CURSOR; ROLLBACK; I
		fetch g → error 34000; I
		close all → CLOSE CURSOR ALL; I
		fetch h → error 34000; I
	`)
}

// Goal: SET, SET LOCAL and RESET follow the transaction and its savepoints.
func TestSettings(t *testing.T) {
	c := newTestServer(t).connect()
	c.transcript(`
		set datestyle = 'German' → SET; I
		show datestyle → columns DateStyle; row German, DMY; SHOW; I
		begin; set datestyle = 'ISO'; rollback; show datestyle → BEGIN; SET; ROLLBACK; columns DateStyle; row German, DMY; SHOW; I
		begin; set local datestyle = 'SQL'; commit; show datestyle → BEGIN; SET; COMMIT; columns DateStyle; row German, DMY; SHOW; I
		begin; set local datestyle = 'SQL'; show datestyle; rollback → BEGIN; SET; columns DateStyle; row SQL, DMY; SHOW; ROLLBACK; I
		begin; savepoint s; set datestyle = 'ISO'; rollback to s; commit; show datestyle → BEGIN; SAVEPOINT; SET; ROLLBACK; COMMIT; columns DateStyle; row German, DMY; SHOW; I
		set local datestyle = 'ISO' → notice 25P01; SET; I
		reset datestyle → RESET; I
		show datestyle → columns DateStyle; row ISO, MDY; SHOW; I
		set nothing = 1 → error 42704; I
		set my.own = 'x' → SET; I
		show my.own → columns my.own; row x; SHOW; I
		set server_version = '1' → error 55P02; I
		set lock_timeout = 'soon' → error 22023; I
		set default_transaction_read_only = on → SET; I
		create table t (id int) → error 25006; I
		begin read write; create table t (id int); commit → BEGIN; CREATE TABLE; COMMIT; I
		reset all → RESET; I
		show default_transaction_read_only → columns default_transaction_read_only; row off; SHOW; I
	`)
}

// Goal: COPY in both directions, alone and in a block, with an error that leaves nothing.
func TestCopy(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key, s text default 'd')")
	for _, step := range []struct{ input, text, want string }{
		{"1\ta\n2\t\\N\n", "copy t from stdin", "copy in; COPY 2; I"},
		{"3\n", "copy t (id) from stdin", "copy in; COPY 1; I"},
		{"4,x\n1,y\n", "copy t from stdin (format csv)", "copy in; error 23505; I"},
		{"x\n", "copy t (id) from stdin", "copy in; error 22P02; I"},
		{"5\n", "begin; copy t (id) from stdin; rollback", "BEGIN; copy in; COPY 1; ROLLBACK; I"},
		{"", "copy t to stdout", `copy out; data "1\ta\n"; data "2\t\\N\n"; data "3\td\n"; copy done; COPY 3; I`},
		{"", "copy (select id from t where id > 2) to stdout (format csv, header)", `copy out; data "id\n"; data "3\n"; copy done; COPY 1; I`},
		{"", "copy t from '/etc/passwd'", "error 0A000; I"},
		{"", "copy nothing from stdin", "error 42P01; I"},
		{"", "copy t (id, id) from stdin", "error 42701; I"},
	} {
		c.input = step.input
		if got := c.query(step.text); got != step.want {
			t.Errorf("%s:\n got %s\nwant %s", step.text, got, step.want)
		}
	}
}

// Goal: the arguments that portals keep draw from the server's memory, as large as they are once they are read, and give it back
// with the portal. Method: portals are bound until the memory is used up, or a bound of their number is reached.
func TestPortalsDrawMemory(t *testing.T) {
	server := newTestServer(t)
	const limit = 16 << 20
	server.deps.Memory = memory.NewPool("a test", limit)
	c := server.connect()
	for name, text := range map[string]string{"text": "select length($1::text)", "ints": "select array_length($1::int[], 1)"} {
		if err := c.Parse(name, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	nulls := binary.BigEndian.AppendUint32(nil, 1)
	for _, n := range []uint32{1, 23, 50_000, 1} {
		nulls = binary.BigEndian.AppendUint32(nulls, n)
	}
	nulls = append(nulls, bytes.Repeat([]byte{0xff}, 4*50_000)...)
	for _, a := range []struct {
		statement string
		value     []byte
		format    int16
		most      int // portals that limit has memory for
	}{
		{"text", bytes.Repeat([]byte{'x'}, 1<<20), 0, 17},
		{"ints", []byte("{" + strings.Repeat("1,", 50_000) + "1}"), 0, 17},
		{"ints", nulls, 1, 17},
	} {
		c.must("begin")
		count := 0
		var err error
		for ; err == nil && count < 200; count++ {
			err = c.Bind(BindRequest{
				Portal: fmt.Sprint("p", count), Statement: a.statement, Params: [][]byte{a.value}, ParamFormats: []int16{a.format},
			})
		}
		if err == nil || ToPGError(err).Code != "53200" || count < 5 || count > a.most {
			t.Errorf("%s, format %d: %d portals, then %v", a.statement, a.format, count, err)
		}
		c.must("rollback")
		if used := c.memory.Used(); used > 1<<20 {
			t.Errorf("%s, format %d: %d bytes are in use after the transaction", a.statement, a.format, used)
		}
	}
	if err := c.Bind(BindRequest{Statement: "text", Params: [][]byte{bytes.Repeat([]byte{'x'}, 1<<20)}}); err != nil {
		t.Error(err)
	}
}

// Goal: prepared statements draw from the server's memory until they are forgotten. Method: large ones are prepared until the
// memory is used up, and forgotten in each of the ways.
func TestStatementsDrawMemory(t *testing.T) {
	server := newTestServer(t)
	server.deps.Memory = memory.NewPool("a test", 16<<20)
	c := server.connect()
	text := "select length('" + strings.Repeat("x", 256<<10) + "')"
	deallocate := func(query string) func() {
		return func() { c.must(query) }
	}
	for name, forget := range map[string]func(){
		"DEALLOCATE ALL": deallocate("deallocate all"), "DISCARD ALL": deallocate("discard all"),
		"Close": func() {
			for i := range 100 {
				c.CloseStatement(fmt.Sprint("s", i))
			}
		},
	} {
		count := 0
		var err error
		for ; err == nil && count < 100; count++ {
			err = c.Parse(fmt.Sprint("s", count), text, nil)
		}
		if err == nil || ToPGError(err).Code != "53200" || count < 5 || count > 10 {
			t.Errorf("%d statements, then %v", count, err)
		}
		forget()
		if used := c.memory.Used(); used > 64<<10 {
			t.Errorf("%d bytes are in use after %s", used, name)
		}
	}
	for range 100 {
		if err := c.Parse("", text, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.must("select 1")
	if used := c.memory.Used(); used > 64<<10 {
		t.Errorf("%d bytes are in use after the unnamed statement", used)
	}
}

// Goal: a value's input warns, once for each execution; a result in the binary format is refused where its type has none.
func TestAccessItems(t *testing.T) {
	c := newTestServer(t).connect()
	c.transcript(`
		select 'postgres=r'::aclitem is null → notice 0L000; columns ?column?; row f; SELECT 1; I
		select 'postgres=r'::aclitem is null → notice 0L000; columns ?column?; row f; SELECT 1; I
		select 'postgres=r/postgres'::aclitem is null → columns ?column?; row f; SELECT 1; I
	`)
	for sql, want := range map[string]pgerror.Code{"select 1, null::aclitem": pgerror.UndefinedFunction, "select 1": ""} {
		if err := c.Parse("", sql, nil); err != nil {
			t.Fatal(err)
		}
		err := c.Bind(BindRequest{ResultFormats: []int16{1}})
		if err == nil && want != "" || err != nil && ToPGError(err).Code != want {
			t.Errorf("%s: %v", sql, err)
		}
		c.report(c.Sync(&c.recordingWriter))
	}
}
