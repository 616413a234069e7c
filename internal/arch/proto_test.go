package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/transactions-tests.md anew")

// scenario is a failure that occurred in a similar system, or that was found by analysing this one, with the behaviour that
// is required instead. The names of its tests are TestProto_ and its id.
type scenario struct{ id, origin, holds string }

// What a scenario needs that is not there over a table of kv/bigtable, or why it has not been run there.
const (
	needsAsync    = "needs async commit"
	needsOnePhase = "needs one-phase commit"
	needsStore    = "is about a store's memory, log or layout"
	needsShards   = "needs several shards"
	overSQL       = "is tested in SQL or by rounds of collection, over a store"
)

// notOverTables lists, by id, the scenarios that no test runs over a table of kv/bigtable.
var notOverTables = map[string]string{
	"T-DUP-1": needsAsync, "T-DUP-2": needsAsync, "T-DUP-3": needsOnePhase, "T-DUP-4": needsOnePhase, "T-DUP-5": needsAsync,
	"T-RB-3":  needsStore,
	"T-ASY-1": needsAsync, "T-ASY-2": needsAsync, "T-ASY-3": needsAsync, "T-ASY-4": needsAsync, "T-ASY-5": needsAsync, "T-ASY-6": needsAsync,
	"T-ASY-10": needsStore, "T-ASY-12": needsAsync,
	"T-1PC-1": needsOnePhase, "T-1PC-2": needsOnePhase, "T-1PC-3": needsOnePhase,
	"T-DUR-1": needsStore, "T-DUR-2": needsStore, "T-DUR-3": needsStore,
	"T-PUSH-2": needsStore, "T-PUSH-3": needsStore,
	"T-UND-2": needsShards, "T-CMP-3": needsOnePhase,
	"T-SPL-1": needsShards, "T-SPL-2": needsShards, "T-GC-1": needsStore, "T-GC-2": needsStore, "T-GC-3": overSQL, "T-GC-4": needsShards,
	"T-OBS-6": overSQL, "T-OBS-8": overSQL, "T-OBS-9": overSQL,
	"T-ORD-1": needsStore, "T-SCH-1": needsAsync, "T-LAY-1": needsStore, "T-LAY-2": needsStore, "T-LAY-3": needsStore, "T-LAY-4": needsStore,
}

// overTable are the functions by which a test runs over a table of kv/bigtable, beside stores.
var overTable = []string{"eachCluster", "eachRealCluster", "eachEngine", "newTable"}

// scenarios lists all of them by subject.
var scenarios = []struct {
	about string
	of    []scenario
}{
	{"Duplicate and delayed messages", []scenario{
		{"T-DUP-1", "tikv#11187, tikv#10600", "The response to an async prewrite is lost, a resolver commits all keys, the duplicate request arrives: it returns the commit_ts and leaves no lock and no second version."},
		{"T-DUP-2", "tikv#11187, tikv#10600", "The same for a key that a pessimistic transaction has not locked, without any retry flag; also if the first packet arrives after the second."},
		{"T-DUP-3", "", "The response to a one-phase commit is lost, the range splits, the transaction retries in two phases: every key returns the same commit_ts."},
		{"T-DUP-4", "", "A one-phase request is delayed; its client has continued in two phases and rolled back: every key rejects the request."},
		{"T-DUP-5", "", "A duplicate of a prewrite with a different payload or a different floor does not change the stored lock."},
	}},
	{"Rollbacks", []scenario{
		{"T-RB-1", "tikv#7364", "A rollback record of one transaction survives rollbacks of others on the same key: the transaction's delayed requests are rejected."},
		{"T-RB-2", "tikv#16620", "The same for an expired optimistic primary."},
		{"T-RB-3", "sig-transaction#46", "A rollback and a commit never have the same timestamp on a key: a timestamp that a shard computes is never a start_ts."},
		{"T-RB-4", "", "After the rollback record has been collected, the safe point rejects what the record rejected."},
		{"T-RB-5", "", "The prewrite of the primary has not arrived and the secondary has expired: the resolver leaves a rollback record that rejects the delayed primary."},
		{"T-RB-6", "", "The secondary's lock has not expired and the primary's prewrite is in flight: a resolver waits and decides nothing."},
	}},
	{"Async commit", []scenario{
		{"T-ASY-1", "tikv#8589", "If a commit is requested after another one was reported, its commit_ts is higher, whatever timestamps their shards have seen."},
		{"T-ASY-2", "tikv#8589", "A session's next read of the latest value sees the commit that was last reported to it."},
		{"T-ASY-3", "tidb#33641", "A prewrite that arrives after the others expired and were rolled back does not complete the commit."},
		{"T-ASY-4", "tidb#24384", "The primary fell back to a plain lock, a secondary did not, the coordinator fails: the outcome is decided by the time to live."},
		{"T-ASY-5", "", "The reverse: a secondary fell back. The resolver treats the transaction as a plain two-phase commit."},
		{"T-ASY-6", "tidb#19860", "All locks are present: every resolver, garbage collection included, commits the transaction."},
		{"T-ASY-7", "tikv#9526", "After a scan for locks up to a timestamp nothing commits at or below it."},
		{"T-ASY-8", "tidb#21339, tikv#9069", "A scan encounters a lock after three rows: the page returns the rows and the lock, and skips nothing."},
		{"T-ASY-9", "tidb#65757", "Every lock is removed eventually, even if the background work after a commit fails."},
		{"T-ASY-10", "", "After a move, a split or a restart no commit_ts is computed at or below the timestamp of a read served before."},
		{"T-ASY-11", "", "Coordinator and resolvers agree on one outcome and one commit_ts, at whatever point the coordinator fails."},
		{"T-ASY-12", "", "A commit that is cancelled after all requests were sent returns the outcome, or that it is unknown; it does not roll back without knowing."},
		{"T-ASY-13", "", "A coordinator that gives up decides the outcome first; its own delayed first request cannot change it."},
	}},
	{"One-phase commit", []scenario{
		{"T-1PC-1", "", "One key has a conflict: nothing is applied, and nothing remains in memory."},
		{"T-1PC-2", "", "A request that encounters the transaction's own two-phase lock continues in two phases."},
		{"T-1PC-3", "", "A reader at or above the commit_ts waits for the sync; a reader below does not."},
	}},
	{"Power cuts", []scenario{
		{"T-DUR-1", "", "Pebble makes a batch visible before it is synced; no reader sees data that a power cut could undo."},
		{"T-DUR-2", "", "A rollback that was reported survives, and the coordinator's commit fails."},
		{"T-DUR-3", "", "A read of the latest value waits for the sync of the commit that it encounters."},
	}},
	{"Pushing locks", []scenario{
		{"T-PUSH-1", "", "A pushed transaction commits above the pushing reader's timestamp."},
		{"T-PUSH-2", "", "A push is lost in a crash; commits at or below the read are rejected nevertheless."},
		{"T-PUSH-3", "", "A secondary whose store restarts in between commits at the commit_ts obtained before, and readers see it."},
		{"T-PUSH-4", "", "A lock that a reader may ignore at one timestamp is not ignored at a later one."},
	}},
	{"Pessimistic locks", []scenario{
		{"T-PES-1", "tikv#14311", "A lock is lost, others commit, a delayed request acquires it again: the prewrite that relies on the first lock is rejected."},
		{"T-PES-2", "tidb#43540", "A stale lock on a committed primary does not make a resolver roll its secondaries back."},
		{"T-PES-3", "tidb#42937", "A leftover lock with a different primary keeps no transaction alive; the client never changes its primary."},
		{"T-PES-4", "", "A prewrite succeeds despite a lost lock if nothing newer than the lock's grant was committed, and fails otherwise."},
		{"T-PES-5", "tikv#10570, client-go#233", "A statement that has waited for a lock reads the row again: no update is lost."},
		{"T-PES-6", "", "A commit that encounters the transaction's own pessimistic lock does not convert it into a version."},
		{"T-PES-7", "", "A release that arrives after the key was locked again does not remove the new lock."},
		{"T-PES-8", "", "Deadlocks of two and three transactions, also across a restart of the detector, have exactly one victim; locking a key that the transaction holds already is not a deadlock."},
		{"T-PES-9", "", "NOWAIT, SKIP LOCKED and timeouts against locks of every kind; an expired lock is resolved, not skipped for ever."},
		{"T-PES-10", "", "The request that locks a key to be inserted also checks that it does not exist, also after waiting. If the lock is lost and others insert the key, the prewrite is rejected although it does not repeat the check."},
	}},
	{"Time to live and unknown outcomes", []scenario{
		{"T-TTL-1", "", "Heartbeats keep a slow commit alive; without them it is rolled back and reports that."},
		{"T-TTL-2", "", "A client's clock that is wrong by an hour has no effect."},
		{"T-UND-1", "", "The response to the primary's commit is lost: the client gets success or unknown if the transaction is committed, never success if it is not."},
		{"T-UND-2", "", "A rejection by one shard is not hidden by the requests to other shards that were cancelled because of it."},
	}},
	{"Writes of one transaction", []scenario{
		{"T-CMP-1", "", "Insert, delete and insert again, of existing and new keys: uniqueness is checked where necessary."},
		{"T-CMP-2", "", "Of two insertions of one key one succeeds; the other gets a conflict, not an error about a row outside its snapshot."},
		{"T-CMP-3", "", "A key that was committed after the snapshot is a conflict, not a duplicate."},
		{"T-LCK-1", "", "A lock without a write does not block readers, conflicts like a write, and can be a primary."},
		{"T-LCK-2", "", "Locks on the rows that were read prevent write skew."},
	}},
	{"Range splits and garbage collection", []scenario{
		{"T-SPL-1", "", "Splits under a workload: no write is lost or applied twice, no row is skipped or repeated; a one-phase commit whose range has split is never executed twice."},
		{"T-SPL-2", "", "A request that waits for a lock while its range splits gets an error and finds the lock by the new route."},
		{"T-GC-1", "", "The safe point passes a reader's timestamp between its check and its iterator: the read fails and never returns incomplete data."},
		{"T-GC-2", "", "A power cut between batches of a collection does not restore deleted rows."},
		{"T-GC-3", "", "A long transaction keeps the safe point below its snapshot while its process sends reports."},
		{"T-GC-4", "", "A primary's record is not removed before the commits of its secondaries are durable on all shards."},
	}},
	{"Observers", []scenario{
		{"T-OBS-1", "", "At most one transaction that delivers a change commits, whatever crashes, and derived data equals a recomputation."},
		{"T-OBS-2", "", "Of two transactions that deliver one change the first to commit wins, optimistic or pessimistic; the other one finds the change acknowledged."},
		{"T-OBS-3", "", "A change between an observer's snapshot and the clearing of its cell stays pending."},
		{"T-OBS-4", "", "Many changes of a row are delivered once at least and as often as there are at most; the last state is seen."},
		{"T-OBS-5", "", "A key whose owner died after the commit point notifies its observers when another transaction commits it, at the owner's commit_ts."},
		{"T-OBS-6", "", "Processes that share a backlog, without hints, spread over it: none handles most of it."},
		{"T-OBS-7", "", "Without hints all changes are delivered."},
		{"T-OBS-8", "", "Observers that change what others observe form a chain; a cycle is ended, with an error that names it."},
		{"T-OBS-9", "", "A change notifies an observer if and only if it commits after CREATE OBSERVER and before DROP OBSERVER."},
		{"T-OBS-10", "", "A transaction that rolls back, conflicts or dies, and writes that a savepoint undoes, notify nobody."},
	}},
	{"Ordering, schema and storage layout", []scenario{
		{"T-ORD-1", "", "A read fences its timestamp, checks the locks, opens the iterator: the test shows that every other order loses a write."},
		{"T-ORD-2", "tidb#57769", "A timestamp from the future is rejected and raises no other timestamp."},
		{"T-SCH-1", "tidb#38165", "No async commit exceeds the upper bound that the schema sets for its commit_ts."},
		{"T-LAY-1", "", "Stored keys are ordered by user key, then from the newest version to the oldest."},
		{"T-LAY-2", "", "The versions of a key are never found under another key, whatever bytes the keys contain."},
		{"T-LAY-3", "", "The comparer passes Pebble's own check."},
		{"T-LAY-4", "", "An iterator that skips blocks by their timestamps returns the same versions as one that reads all blocks."},
	}},
}

var protoName = regexp.MustCompile(`^TestProto_(T_[A-Z0-9]+_[0-9]+)$`)

// protoTests returns the files that test each scenario, all names of tests, and the scenarios that are tested over a table of kv/bigtable.
func protoTests(t *testing.T) (files map[string][]string, names, tables map[string]bool) {
	t.Helper()
	files, names, tables = map[string][]string{}, map[string]bool{}, map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			names[f.Name.Name] = true
			if m := protoName.FindStringSubmatch(f.Name.Name); m != nil {
				id := strings.ReplaceAll(m[1], "_", "-")
				files[id] = append(files[id], filepath.ToSlash(rel))
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if name, ok := n.(*ast.Ident); ok && slices.Contains(overTable, name.Name) {
						tables[id] = true
					}
					return true
				})
			} else if strings.HasPrefix(f.Name.Name, "TestProto") {
				t.Errorf("%s: %s is no scenario's name", rel, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, names, tables
}

const protoPage = `# Scenarios of the protocol, and their tests

Failures that occurred in other systems, or that were found by analysis, one line each, with the tests of the required
behaviour. The name of a test is ` + "`TestProto_`" + ` and the id, as in ` + "`TestProto_T_DUP_1`" + `; some scenarios are tested both
at the shard and at the client. Numbers like tikv#7364 are the public issues that describe the failure.
[transactions.md](transactions.md) explains the terms.

` + "```" + `
go test -race -run TestProto ./...
` + "```" + `

` + "`go test ./internal/arch -run TestScenarios -rewrite`" + ` writes this page. Without the flag the test fails if a
scenario has no test, a test has no scenario, or the page is out of date.
`

// Goal: every scenario of the protocol has a test, every such test a scenario, and the page that lists them
// is true. Method: names of functions in all test files, against the list above.
func TestScenarios(t *testing.T) {
	files, _, tables := protoTests(t)
	var page, sections strings.Builder
	listed, over := map[string]bool{}, 0
	missing := map[string]int{}
	for _, group := range scenarios {
		fmt.Fprintf(&sections, "\n## %s\n\n| id | from | required behaviour | tests | over Bigtable |\n|---|---|---|---|---|\n", group.about)
		for _, s := range group.of {
			if listed[s.id] {
				t.Errorf("%s is listed twice", s.id)
			}
			listed[s.id] = true
			var where []string
			slices.Sort(files[s.id])
			for _, file := range files[s.id] {
				where = append(where, fmt.Sprintf("[%s](../%s)", path.Dir(file), file))
			}
			if len(where) == 0 {
				t.Errorf("%s has no test", s.id)
			}
			reason := notOverTables[s.id]
			switch {
			case reason != "": // The test may run its other half there, and skip the rest.
				missing[reason]++
			case tables[s.id]:
				reason, over = "yes", over+1
			default:
				t.Errorf("%s is not tested over a table, and no reason is listed", s.id)
			}
			fmt.Fprintf(&sections, "| %s | %s | %s | %s | %s |\n", s.id, s.origin, s.holds, strings.Join(where, ", "), reason)
		}
	}
	fmt.Fprintf(&page, "%s\nAll %d are tested over stores of percodb, %d over a table of Bigtable as well. The others:\n\n", protoPage, len(listed), over)
	for _, reason := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(&page, "- %d: %s\n", missing[reason], reason)
	}
	page.WriteString(sections.String())
	for id := range notOverTables {
		if !listed[id] {
			t.Errorf("%s is no scenario", id)
		}
	}
	for id := range files {
		if !listed[id] {
			t.Errorf("%s has a test, but is not listed", id)
		}
	}
	name := filepath.Join("..", "..", "docs", "transactions-tests.md")
	if *rewrite {
		if err := os.WriteFile(name, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != page.String() {
		t.Errorf("docs/transactions-tests.md is not what this test would write (-rewrite): %v", err)
	}
}

var (
	docTest = regexp.MustCompile("`(Test[A-Za-z0-9_]*[A-Za-z0-9])(/[^`]*)?`")
	docLink = regexp.MustCompile(`\]\((\.[^)#]*|[a-z][^)#:]*)(#[^)]*)?\)`)
)

// TestDocsAreTrue: every test and every file that a page under docs names exists.
func TestDocsAreTrue(t *testing.T) {
	_, names, _ := protoTests(t)
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) < 3 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docTest.FindAllStringSubmatch(string(text), -1) {
			if !names[m[1]] {
				t.Errorf("%s names the test %s, which does not exist", filepath.Base(page), m[1])
			}
		}
		for _, m := range docLink.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(page), m[1], err)
			}
		}
	}
}
