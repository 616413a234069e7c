package bigtable

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	kvbigtable "github.com/percodb/percodb/kv/bigtable"
)

// check runs percodb check over an emulator, and returns what it prints.
func check(t *testing.T, emulator string) (out string, err error) {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), binary, "check", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", emulator).CombinedOutput()
	return string(b), err
}

// Goal: percodb check finds damage in a table over which no process runs, and nothing without damage; it refuses a table that is served. Method: all kinds
// of indexes and a foreign key; the process is killed, with a lock; cells are removed and written in the emulator, one damage after the other.
func TestCheck(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	served, addr := startSQL(t, emulator)
	conn := connect(t, addr)
	mustExec(t, conn, `CREATE TABLE parents (id int PRIMARY KEY)`)
	mustExec(t, conn, `CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES parents, u text UNIQUE, tags text[], n int);
		CREATE INDEX c_n ON c (n); CREATE INDEX c_expr ON c (lower(u)); CREATE INDEX c_part ON c (n) WHERE n > 5; CREATE INDEX c_tags ON c USING gin (tags)`)
	mustExec(t, conn, `INSERT INTO parents SELECT generate_series(1, 5)`)
	mustExec(t, conn, `INSERT INTO c SELECT i, 1 + i % 5, 'U' || i, ARRAY['a', 'b' || i], i FROM generate_series(1, 10) i`)
	mustExec(t, conn, `UPDATE c SET n = n + 1 WHERE id = 3`)
	if out, err := check(t, emulator); err == nil || !strings.Contains(out, "serves the table") {
		t.Errorf("a table that is served: %v\n%s", err, out)
	}
	mustExec(t, conn, `BEGIN; UPDATE c SET n = 0 WHERE id = 4`)
	served.Kill()
	if out, err := check(t, emulator); err != nil || !strings.Contains(out, "no findings") {
		t.Fatalf("%v\n%s", err, out)
	}

	client, err := bigtable.NewClient(t.Context(), "p", "i", kvbigtable.EmulatorOptions(emulator)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table := client.Open("percodb")
	rows := userRows(t, table)
	t.Logf("%d rows with a version of the tables", len(rows))
	damaged := 0
	for _, row := range rows {
		for _, family := range []string{"d", "w"} {
			for _, item := range row[family] {
				column := strings.TrimPrefix(item.Column, family+":")
				change, back := bigtable.NewMutation(), bigtable.NewMutation()
				change.DeleteCellsInColumn(family, column)
				back.Set(family, column, 0, item.Value)
				mustFind(t, table, emulator, row.Key(), change, back)
				damaged++
			}
		}
		if damaged >= 24 {
			break
		}
	}
	key := rows[0].Key()
	for column, value := range map[string]string{"x12345678": "short", "nonsense": ""} {
		change, back := bigtable.NewMutation(), bigtable.NewMutation()
		change.Set("l", column, 0, []byte(value))
		back.DeleteCellsInColumn("l", column)
		mustFind(t, table, emulator, key, change, back)
		damaged++
	}
	if out, err := check(t, emulator); err != nil {
		t.Errorf("after %d damages were mended: %v\n%s", damaged, err, out)
	}
	t.Logf("%d damages found", damaged)
}

// userRows returns the rows that have a value now, the last first: those of the tables and indexes that were created last.
func userRows(t *testing.T, table *bigtable.Table) (rows []bigtable.Row) {
	t.Helper()
	err := table.ReadRows(t.Context(), bigtable.PrefixRange("k"), func(r bigtable.Row) bool {
		if len(r["w"]) == 1 && len(r["d"]) == 1 {
			rows = append([]bigtable.Row{r}, rows...)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// mustFind plants a damage, has it found, and takes it back. It returns what percodb check printed.
func mustFind(t *testing.T, table *bigtable.Table, emulator, row string, change, back *bigtable.Mutation) (out string) {
	t.Helper()
	mustApply(t, table, row, change)
	out, err := check(t, emulator)
	if err == nil || !strings.Contains(out, "finding") {
		t.Errorf("row %q: not found: %v\n%s", row, err, out)
	}
	mustApply(t, table, row, back)
	return out
}

// Goal: percodb check finds what is missing although every row that is left is well formed: a row of a table, an entry of an index of each kind, what
// guards a foreign key or a deferrable key. Method: each row of the tables and indexes is removed with all its cells, and put back; for each kind some
// removal is reported by its name.
func TestCheckFindsMissingEntries(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	served, addr := startSQL(t, emulator)
	conn := connect(t, addr)
	client, err := bigtable.NewClient(t.Context(), "p", "i", kvbigtable.EmulatorOptions(emulator)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table := client.Open("percodb")
	mustExec(t, conn, `CREATE TABLE parents (id int PRIMARY KEY)`)
	mustExec(t, conn, `CREATE TABLE c (id int PRIMARY KEY, p int CONSTRAINT c_fk REFERENCES parents, u text CONSTRAINT c_unique UNIQUE, n int,
			d int CONSTRAINT c_deferrable UNIQUE DEFERRABLE INITIALLY DEFERRED, tags text[], r int4range, CONSTRAINT c_exclude EXCLUDE USING gist (r WITH &&));
		CREATE INDEX c_n ON c (n); CREATE INDEX c_expr ON c (lower(u)); CREATE INDEX c_part ON c (n) WHERE n > 5; CREATE INDEX c_tags ON c USING gin (tags)`)
	mustExec(t, conn, `CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
		CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (10); CREATE INDEX parted_v ON parted_low (v)`)
	before := map[string]bool{}
	for _, row := range userRows(t, table) {
		before[row.Key()] = true
	}
	mustExec(t, conn, `INSERT INTO parents VALUES (1)`)
	mustExec(t, conn, `INSERT INTO c VALUES (1, 1, 'U', 7, 1, ARRAY['a'], '[1,3)')`)
	mustExec(t, conn, `INSERT INTO parted VALUES (1, 1)`)
	served.Kill()
	if out, err := check(t, emulator); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var all strings.Builder
	removed := 0
	for _, row := range userRows(t, table) {
		if before[row.Key()] {
			continue
		}
		back, change := bigtable.NewMutation(), bigtable.NewMutation()
		copyCells(back, row)
		change.DeleteRow()
		all.WriteString(mustFind(t, table, emulator, row.Key(), change, back))
		removed++
	}
	for _, name := range []string{"c_unique", "c_deferrable", "c_exclude", "c_n", "c_expr", "c_part", "c_tags", "c_fk", "parted_v"} {
		if !strings.Contains(all.String(), name) {
			t.Errorf("no finding about %s:\n%s", name, all.String())
		}
	}
	t.Logf("%d rows removed, each found", removed)
}

// Goal: percodb check finds a row in a partition whose bound excludes it, and damage in what a foreign key has left on the guard of its parent; it notes, and does not
// count as damage, a sequence that has lost its value, or its row, behind what a column has. Method: each is planted in the cells, and taken back.
func TestCheckOfBoundsGuardsAndSequences(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	served, addr := startSQL(t, emulator)
	conn := connect(t, addr)
	client, err := bigtable.NewClient(t.Context(), "p", "i", kvbigtable.EmulatorOptions(emulator)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table := client.Open("percodb")
	mustExec(t, conn, `CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
		CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (10); CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (10) TO (20);
		CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1); CREATE TABLE c (id serial PRIMARY KEY, p int REFERENCES parents)`)
	low := madeBy(t, table, func() { mustExec(t, conn, "INSERT INTO parted VALUES (5, 1)") }, "w")
	high := madeBy(t, table, func() { mustExec(t, conn, "INSERT INTO parted VALUES (15, 1)") }, "w")
	mustExec(t, conn, "INSERT INTO c DEFAULT VALUES; INSERT INTO c DEFAULT VALUES")
	guard := madeBy(t, table, func() { mustExec(t, conn, "INSERT INTO c (p) VALUES (1)") }, "s")
	var sequence bigtable.Row
	err = table.ReadRows(t.Context(), bigtable.PrefixRange("k"), func(r bigtable.Row) bool {
		if strings.Contains(r.Key(), "sequence") {
			sequence = r
		}
		return true
	})
	if err != nil || len(sequence["w"]) < 2 {
		t.Fatalf("the row of the sequence: %v, %v", sequence, err)
	}
	served.Kill()
	if out, err := check(t, emulator); err != nil || strings.Contains(out, "_seq") {
		t.Fatalf("%v\n%s", err, out)
	}

	// The keys of the partitions differ in the table's number and in the id, the last byte.
	misplaced := low.Key()[:len(low.Key())-1] + high.Key()[len(high.Key())-1:]
	change, remove := bigtable.NewMutation(), bigtable.NewMutation()
	copyCells(change, high)
	remove.DeleteRow()
	if out := mustFind(t, table, emulator, misplaced, change, remove); !strings.Contains(out, "row does not belong to the partition") {
		t.Error(out)
	}

	back := bigtable.NewMutation()
	back.DeleteRow()
	copyCells(back, guard)
	column := strings.TrimPrefix(guard["s"][0].Column, "s:")
	future := bigtable.NewMutation()
	future.Set("s", "c\x00"+column[2:], 0, guard["s"][0].Value)
	short := bigtable.NewMutation()
	short.Set("s", column, 0, []byte("short"))
	value := bigtable.NewMutation()
	copyCells(value, high)
	for want, change := range map[string]*bigtable.Mutation{"which is in the future": future, "cell s": short, "the guard of a key has a value": value} {
		if out := mustFind(t, table, emulator, guard.Key(), change, back); !strings.Contains(out, want) {
			t.Errorf("not %q:\n%s", want, out)
		}
	}

	newest := bigtable.NewMutation() // the first of a family, as timestamps are inverted
	for _, family := range []string{"w", "d"} {
		newest.DeleteCellsInColumn(family, strings.TrimPrefix(sequence[family][0].Column, family+":"))
	}
	whole := bigtable.NewMutation()
	whole.DeleteRow()
	back = bigtable.NewMutation()
	copyCells(back, sequence)
	for want, change := range map[string]*bigtable.Mutation{"c_id_seq: is at 2, and column": newest, "c_id_seq: is at 1, and column": whole} {
		mustApply(t, table, sequence.Key(), change)
		if out, err := check(t, emulator); err != nil || !strings.Contains(out, want) {
			t.Errorf("not %q: %v\n%s", want, err, out)
		}
		mustApply(t, table, sequence.Key(), back)
	}
	if out, err := check(t, emulator); err != nil || strings.Contains(out, "_seq") {
		t.Errorf("in the end: %v\n%s", err, out)
	}
}

// madeBy returns the only row with cells of a family that had none before do.
func madeBy(t *testing.T, table *bigtable.Table, do func(), family string) (made bigtable.Row) {
	t.Helper()
	rows := func() (all []bigtable.Row) {
		err := table.ReadRows(t.Context(), bigtable.PrefixRange("k"), func(r bigtable.Row) bool {
			if len(r[family]) > 0 {
				all = append(all, r)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := map[string]bool{}
	for _, r := range rows() {
		before[r.Key()] = true
	}
	do()
	for _, r := range rows() {
		if before[r.Key()] {
			continue
		}
		if made != nil {
			t.Fatalf("two rows were made: %q and %q", made.Key(), r.Key())
		}
		made = r
	}
	if made == nil {
		t.Fatal("no row was made")
	}
	return made
}

// copyCells adds the cells of a row to a change.
func copyCells(change *bigtable.Mutation, row bigtable.Row) {
	for family, items := range row {
		for _, item := range items {
			change.Set(family, strings.TrimPrefix(item.Column, family+":"), 0, item.Value)
		}
	}
}

func mustApply(t *testing.T, table *bigtable.Table, row string, change *bigtable.Mutation) {
	t.Helper()
	if err := table.Apply(context.Background(), row, change); err != nil {
		t.Fatal(err)
	}
}
