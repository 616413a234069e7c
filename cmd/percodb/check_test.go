package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/node"
)

// run runs percodb check and returns what it says, and whether the exit code is that of findings.
func runCheck(t *testing.T, args ...string) (said string, failed bool, err error) {
	t.Helper()
	cmd := checkCommand()
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err = cmd.ExecuteContext(t.Context())
	var silent *silentError
	if errors.As(err, &silent) {
		failed, err = true, nil
	}
	return out.String(), failed, err
}

func startNode(t *testing.T, opts node.Options) *node.Node {
	t.Helper()
	opts.AdminListen = "127.0.0.1:0"
	n, err := node.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopNode(n) })
	return n
}

func stopNode(n *node.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n.Close(ctx)
}

func fill(t *testing.T, addr string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://postgres@%s/percodb?sslmode=disable", addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range []string{
		"create table stock (id int primary key, name text not null, n int)", "create index stock_n on stock (n)",
		"insert into stock select i, repeat('long', i % 700), i % 10 from generate_series(1, 5000) i", "update stock set n = n + 1 where id < 100",
		"create table other (id int primary key)", "insert into other values (1)",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// damage takes one version of the last half of a store away: an index entry or a row, whichever it is, for
// keys of system tables come first.
func damage(t *testing.T, dir string) {
	t.Helper()
	e, err := kv.OpenEngine(kv.EngineOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	it, err := e.NewRangeIter(storage.AppendSentinel([]byte{0x20}), storage.AppendSentinel([]byte{0x21}))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var keys [][]byte
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	b := e.NewBatch(0)
	defer b.Close()
	b.Delete(keys[len(keys)*3/4])
	if err := errors.Join(e.Apply(b, storage.Sync), b.SyncWait()); err != nil {
		t.Fatal(err)
	}
}

// Goal: percodb check finds nothing wrong with a server's data, while it runs and when it has stopped,
// and finds a version that is gone; it makes no directory where there is none. Method: the command, on a
// server in this process.
func TestCheckCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	start := func() *node.Node {
		return startNode(t, node.Options{Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0"})
	}
	want := func(failed bool, parts []string, args ...string) {
		t.Helper()
		said, gotFailed, err := runCheck(t, args...)
		if err != nil || gotFailed != failed {
			t.Errorf("check %s: failed %v, %v:\n%s", args, gotFailed, err, said)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("check %s: no %q in:\n%s", args, part, said)
			}
		}
	}
	n := start()
	fill(t, n.Addr().String())
	want(false, []string{"no findings", "2 tables: 5001 rows, 5000 index entries"}, "--live", n.AdminAddr().String())
	var used *startError
	if _, _, err := runCheck(t, "--data", dir); !errors.As(err, &used) || !strings.Contains(explain(err), "--live") {
		t.Errorf("check of a directory in use: %v", err)
	}
	stopNode(n)
	want(false, []string{"no findings", "2 tables: 5001 rows, 5000 index entries"}, "--data", dir)
	damage(t, dir)
	want(true, []string{"public.stock", "1 finding in"}, "--data", dir)
	n = start()
	want(true, []string{"public.stock", "1 finding in"}, "--live", n.AdminAddr().String())
	stopNode(n)
	if _, _, err := runCheck(t, "--live", "127.0.0.1:1"); err == nil {
		t.Error("check of nobody")
	}
	missing := filepath.Join(t.TempDir(), "missing")
	var empty *node.NoDataError
	for range 2 {
		if _, _, err := runCheck(t, "--data", missing); !errors.As(err, &empty) {
			t.Errorf("check of nothing: %v", err)
		}
	}
}

// Goal: the same for a cluster: each process verifies what it holds, and its directories together are
// verified whole; what cannot be is said. Method: an oracle, two stores and a SQL process.
func TestCheckCommandOnACluster(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "tso"), filepath.Join(t.TempDir(), "kv1"), filepath.Join(t.TempDir(), "kv2")}
	oracle := startNode(t, node.Options{Role: node.RoleTSO, Data: dirs[0], RPCListen: "127.0.0.1:0"})
	join := oracle.RPCAddr().String()
	kv1 := startNode(t, node.Options{Role: node.RoleKV, Data: dirs[1], RPCListen: "127.0.0.1:0", Join: join})
	kv2 := startNode(t, node.Options{Role: node.RoleKV, Data: dirs[2], RPCListen: "127.0.0.1:0", Join: join})
	sql := startNode(t, node.Options{Role: node.RoleSQL, Listen: "127.0.0.1:0", Join: join})
	fill(t, sql.Addr().String())
	nodes := []*node.Node{oracle, kv1, kv2, sql}
	var live []string
	for _, n := range nodes {
		live = append(live, n.AdminAddr().String())
	}
	want := func(failed bool, parts []string, args ...string) {
		t.Helper()
		said, gotFailed, err := runCheck(t, args...)
		if err != nil || gotFailed != failed {
			t.Errorf("check %s: failed %v, %v:\n%s", args, gotFailed, err, said)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("check %s: no %q in:\n%s", args, part, said)
			}
		}
	}
	whole := []string{"no findings", "2 tables: 5001 rows, 5000 index entries"}
	want(false, whole, "--live", strings.Join(live, ","))
	for i := len(nodes) - 1; i >= 0; i-- {
		stopNode(nodes[i])
	}
	want(false, whole, "--data", strings.Join(dirs, ","))
	want(true, []string{"0 findings", "not verified: store kv-", "not verified: the tables (give the directories"}, "--data", dirs[0], "--data", dirs[1])
	want(true, []string{"0 findings", "not verified: store kv-", "not verified: the tables"}, "--data", dirs[0])
	want(true, []string{"0 findings", "not verified: the tables"}, "--data", dirs[1])
	for _, dir := range dirs[1:] {
		damage(t, dir)
	}
	want(true, []string{"public."}, "--data", strings.Join(dirs, ","))
}

// Goal: a data directory without the file that names its manifest is refused, by check and by start, with what to do,
// and none of its files is touched. Method: remove the marker of a directory with data.
func TestDamagedDirectoryIsRefusedUntouched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n := startNode(t, node.Options{Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0"})
	fill(t, n.Addr().String())
	stopNode(n)
	contents := func() map[string]string {
		files := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[entry.Name()] = string(text)
		}
		return files
	}
	whole := contents()
	if said, failed, err := runCheck(t, "--data", dir); failed || err != nil || !maps.Equal(contents(), whole) {
		t.Errorf("check of a healthy directory changes it, or finds something: %v\n%s", err, said)
	}
	markers, err := filepath.Glob(filepath.Join(dir, "marker.manifest.*"))
	if err != nil || len(markers) != 1 {
		t.Fatal(markers, err)
	}
	if err := os.Remove(markers[0]); err != nil {
		t.Fatal(err)
	}
	before := contents()
	_, _, checkErr := runCheck(t, "--data", dir)
	_, startErr := node.Start(t.Context(), node.Options{Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0"})
	for what, err := range map[string]error{"check": checkErr, "start": startErr} {
		if err == nil || !strings.Contains(explain(err), "marker.manifest.") || !strings.Contains(explain(err), "restore it from a backup") {
			t.Errorf("%s says: %v", what, err)
		}
	}
	if !maps.Equal(contents(), before) {
		t.Error("the directory has changed")
	}
}

// printed receives what a command prints.
type printed func(text string)

func (p printed) Write(b []byte) (int, error) {
	p(string(b))
	return len(b), nil
}

// Goal: a data directory and its files are their owner's alone, new ones and those that were wider, which the server
// says in its log; check leaves them as they are. Method: start in a wide directory, widen it, check, start again.
func TestDataDirectoryIsItsOwnersAlone(t *testing.T) {
	if child := os.Getenv("PERCODB_TEST_START"); child != "" {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := startCommand()
		cmd.SetOut(printed(func(text string) {
			if strings.Contains(text, "is ready") {
				cancel()
			}
		}))
		cmd.SetArgs([]string{"--data", child, "--listen", "127.0.0.1:0"})
		if err := cmd.ExecuteContext(ctx); err != nil {
			t.Fatal(err)
		}
		return
	}
	defer syscall.Umask(syscall.Umask(0o022))
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	wide := func() (paths []string) {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	// The server's command, for its umask.
	run := func() (log string) {
		var out, stderr bytes.Buffer
		cmd := exec.Command(os.Args[0], "-test.run", "^TestDataDirectoryIsItsOwnersAlone$")
		cmd.Env = append(os.Environ(), "PERCODB_TEST_START="+dir)
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, out.String(), stderr.String())
		}
		return stderr.String()
	}
	if log := run(); strings.Contains(log, "open to other users") {
		t.Errorf("a new directory: %s", log)
	}
	if w := wide(); len(w) > 0 {
		t.Errorf("a new data directory is open to others: %v", w)
	}
	for _, path := range []string{dir, filepath.Join(dir, "PERCODB_FORMAT")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, failed, err := runCheck(t, "--data", dir); failed || err != nil || len(wide()) != 2 {
		t.Errorf("check: %v; open to others: %v", err, wide())
	}
	if log := run(); !strings.Contains(log, "open to other users") {
		t.Errorf("the server says nothing of a directory open to others: %q", log)
	}
	if w := wide(); len(w) > 0 {
		t.Errorf("open to others after a start: %v", w)
	}
}
