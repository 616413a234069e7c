package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/transactions-tests.md anew")

// scenario is something that went wrong in a system like this one, or nearly did in this one, and must
// end well here. Its tests are called TestProto_ and its id.
type scenario struct{ id, origin, holds string }

// scenarios lists all of them, by what they are about.
var scenarios = []struct {
	about string
	of    []scenario
}{
	{"A message comes twice, or late", []scenario{
		{"T-DUP-1", "tikv#11187, tikv#10600", "An answer of an async prewrite is lost, a resolver commits everything, the duplicate arrives: it is told the commit_ts, and leaves no lock and no second version."},
		{"T-DUP-2", "tikv#11187, tikv#10600", "The same for a key that a pessimistic transaction has not locked, without any retry flag; also when the first packet comes after the second."},
		{"T-DUP-3", "", "The answer to a one-phase commit is lost, the range splits, the transaction comes again in two phases: every key tells the one commit_ts."},
		{"T-DUP-4", "", "A one-phase request is late, its client has gone on in two phases and rolled back: every key refuses it."},
		{"T-DUP-5", "", "A duplicate of a prewrite with another payload or another floor changes nothing of the stored lock."},
	}},
	{"Rollbacks", []scenario{
		{"T-RB-1", "tikv#7364", "One transaction's rollback is not forgotten for those of others on the key: its late requests are refused."},
		{"T-RB-2", "tikv#16620", "The same for an optimistic primary that expired."},
		{"T-RB-3", "sig-transaction#46", "A rollback and a commit never want the same timestamp on a key: what a shard computes is nobody's start_ts."},
		{"T-RB-4", "", "When the rollback record has been collected, the safe point refuses what the record refused."},
		{"T-RB-5", "", "The primary never arrived and its secondary expired: a record is left that the late primary meets."},
		{"T-RB-6", "", "The secondary is alive and the primary under way: whoever asks waits, and decides nothing."},
	}},
	{"Async commit", []scenario{
		{"T-ASY-1", "tikv#8589", "A commit that was asked for after another lies above it, whatever their shards have seen."},
		{"T-ASY-2", "tikv#8589", "A session's next read of the latest value sees the commit it was just told of."},
		{"T-ASY-3", "tidb#33641", "A prewrite that arrives after the others expired and were rolled back does not complete the commit."},
		{"T-ASY-4", "tidb#24384", "The primary fell back to a plain lock, a secondary did not, the owner dies: the time to live decides."},
		{"T-ASY-5", "", "The other way round: the resolver treats the transaction as a plain one."},
		{"T-ASY-6", "tidb#19860", "All locks are there: it can only be committed, by garbage collection too."},
		{"T-ASY-7", "tikv#9526", "After a scan for locks up to a timestamp nothing commits at or below it."},
		{"T-ASY-8", "tidb#21339, tikv#9069", "A page meets a lock after three rows: rows are kept, the lock is told, nothing is skipped."},
		{"T-ASY-9", "tidb#65757", "No lock stays for ever, whatever became of the work behind a commit."},
		{"T-ASY-10", "", "After a move, a split or a restart nothing is computed at or below a read served before."},
		{"T-ASY-11", "", "Owner and resolvers come to one fate at one commit_ts, wherever the owner dies."},
		{"T-ASY-12", "", "Whoever gives up after everything was sent is told the outcome, or that it is unknown; nothing is rolled back blindly."},
		{"T-ASY-13", "", "An owner that gives up is not overtaken by its own first request."},
	}},
	{"One-phase commit", []scenario{
		{"T-1PC-1", "", "One key is in somebody's way: nothing is applied, nothing stays in memory."},
		{"T-1PC-2", "", "A request that meets the transaction's own two-phase lock goes on in two phases."},
		{"T-1PC-3", "", "A reader at or above the commit_ts waits for the sync, one below passes."},
	}},
	{"What a power cut takes", []scenario{
		{"T-DUR-1", "", "Pebble shows a batch before it is synced; no reader sees what a power cut could undo."},
		{"T-DUR-2", "", "A rollback that was told to anybody survives, and the owner's commit fails."},
		{"T-DUR-3", "", "A read of the latest value waits for the sync of the commit it meets."},
	}},
	{"Pushing locks", []scenario{
		{"T-PUSH-1", "", "A pushed transaction is told to commit above, and does."},
		{"T-PUSH-2", "", "A push is lost in a crash; commits below it are refused all the same."},
		{"T-PUSH-3", "", "A secondary whose store restarts in between commits at the commit_ts taken before, and readers see it."},
		{"T-PUSH-4", "", "What was passed at one timestamp is not passed at a later one."},
	}},
	{"Pessimistic locks", []scenario{
		{"T-PES-1", "tikv#14311", "A lock is lost, others commit, a stale request takes it again: the prewrite that relies on the first is refused."},
		{"T-PES-2", "tidb#43540", "A stale lock on a committed primary does not make a resolver roll its secondaries back."},
		{"T-PES-3", "tidb#42937", "A leftover lock that names another primary keeps nothing alive; the client never changes its primary."},
		{"T-PES-4", "", "A lost lock is made good if nothing newer than its grant was committed, and only then."},
		{"T-PES-5", "tikv#10570, client-go#233", "Whoever has waited reads the row again: no update is lost."},
		{"T-PES-6", "", "A commit that meets the transaction's own pessimistic lock makes no version of it."},
		{"T-PES-7", "", "A release that comes after the key was locked anew leaves the lock alone."},
		{"T-PES-8", "", "Circles of two and three, also over a restart of whoever watches for them: exactly one victim; to lock again what one holds is no circle."},
		{"T-PES-9", "", "NOWAIT, SKIP LOCKED and timeouts against locks of every kind; an expired lock is resolved, not passed over for ever."},
		{"T-PES-10", "", "A key to be inserted is looked up by the request that locks it, whoever waited included; the lock is lost and others insert: the prewrite is refused though it does not look."},
	}},
	{"Time to live, and unknown outcomes", []scenario{
		{"T-TTL-1", "", "Heartbeats keep a slow commit alive; without them it is rolled back and says so."},
		{"T-TTL-2", "", "A client's clock that is an hour off changes nothing."},
		{"T-UND-1", "", "The answer to the commit point is lost: success or unknown if it is committed, never success if it is not."},
		{"T-UND-2", "", "A refusal by one shard is not hidden by requests to others that were given up because of it."},
	}},
	{"Writes of one transaction", []scenario{
		{"T-CMP-1", "", "Insert, delete and insert again, of keys that exist and that do not: uniqueness is checked where it must be."},
		{"T-CMP-2", "", "Of two insertions of one key one succeeds; the other hears of a conflict, not of a row outside its snapshot."},
		{"T-CMP-3", "", "What was committed after the snapshot is a conflict, not a duplicate."},
		{"T-LCK-1", "", "A lock without a write blocks no reader, conflicts like a write, and can be a primary."},
		{"T-LCK-2", "", "Locks on what was read prevent write skew."},
	}},
	{"Ranges that split, and old versions that go", []scenario{
		{"T-SPL-1", "", "Splits under a workload: no write is lost or done twice, no row skipped or repeated; a one-phase commit whose range has split is never carried out twice."},
		{"T-SPL-2", "", "Whoever waits for a lock while its range splits is told, and finds the lock by the new route."},
		{"T-GC-1", "", "The safe point passes a reader between its check and its iterator: an error, never a hole."},
		{"T-GC-2", "", "A power cut between batches of a collection brings no deleted row back."},
		{"T-GC-3", "", "A long transaction pins the safe point while its process is heard of."},
		{"T-GC-4", "", "A primary's record does not go before its secondaries' commits are durable everywhere."},
	}},
	{"Order, schema and layout", []scenario{
		{"T-ORD-1", "", "Fence, look at the locks, open the iterator: every other order of the three loses a write, and the test shows that."},
		{"T-ORD-2", "tidb#57769", "A timestamp from the future is refused, and moves nothing."},
		{"T-SCH-1", "tidb#38165", "No async commit passes the bound that the schema sets."},
		{"T-LAY-1", "", "Stored keys are in the order of user key, then newest version."},
		{"T-LAY-2", "", "No key's versions are found under another key, whatever their bytes."},
		{"T-LAY-3", "", "The comparer passes Pebble's own check."},
		{"T-LAY-4", "", "An iterator that passes over blocks by their timestamps finds what one that reads all does."},
	}},
}

var protoName = regexp.MustCompile(`^TestProto_(T_[A-Z0-9]+_[0-9]+)$`)

// protoTests returns the files that test each scenario, and all names of tests.
func protoTests(t *testing.T) (files map[string][]string, names map[string]bool) {
	t.Helper()
	files, names = map[string][]string{}, map[string]bool{}
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
			} else if strings.HasPrefix(f.Name.Name, "TestProto") {
				t.Errorf("%s: %s is no scenario's name", rel, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, names
}

const protoPage = `# Scenarios of the protocol, and their tests

What went wrong elsewhere, or was found by thinking about what could, one line each, with the test that holds
it. A test is called ` + "`TestProto_`" + ` and the id, as in ` + "`TestProto_T_DUP_1`" + `; some are held twice, at the shard
and at the client. Numbers like tikv#7364 are the public issues that the scenario is from. What the
words mean is told in [transactions.md](transactions.md).

` + "```" + `
go test -race -run TestProto ./...
` + "```" + `

This page is written by ` + "`go test ./internal/arch -run TestScenarios -rewrite`" + `; the same test fails when a
scenario has no test, a test no scenario, or the page is not this one.
`

// Goal: every scenario of the protocol has a test, every such test a scenario, and the page that lists them
// is true. Method: names of functions in all test files, against the list above.
func TestScenarios(t *testing.T) {
	files, _ := protoTests(t)
	var page strings.Builder
	page.WriteString(protoPage)
	listed := map[string]bool{}
	for _, group := range scenarios {
		fmt.Fprintf(&page, "\n## %s\n\n| id | from | what it holds | tests |\n|---|---|---|---|\n", group.about)
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
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", s.id, s.origin, s.holds, strings.Join(where, ", "))
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
	_, names := protoTests(t)
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
