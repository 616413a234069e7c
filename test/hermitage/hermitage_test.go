package hermitage

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/node"
)

var rewrite = flag.Bool("rewrite", false, "record what the servers do")

func startPercodb(t *testing.T) *server {
	t.Helper()
	return startNode(t, node.Options{Role: node.RoleAll, Data: t.TempDir()})
}

// startBigtable starts percodb over an emulator of Bigtable.
func startBigtable(t *testing.T) *server {
	t.Helper()
	emulator, err := bigtable.StartEmulator("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Close)
	return startNode(t, node.Options{Role: node.RoleAll, RPCListen: "127.0.0.1:0",
		Bigtable: &bigtable.Options{Project: "p", Instance: "i", Emulator: emulator.Addr()}})
}

func startNode(t *testing.T, opts node.Options) *server {
	t.Helper()
	opts.Listen, opts.Version = "127.0.0.1:0", "15.8"
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	return &server{
		url: fmt.Sprintf("postgres://postgres@%s/percodb?sslmode=disable", n.Addr()),
		waiting: "select count(*) > 0 from percodb.locks l join percodb.transactions w on w.start_ts = any (l.waiters) " +
			"join percodb.transactions h on h.start_ts = l.holder where w.pid = $1::int",
	}
}

// Goal: what the files expect of PostgreSQL is what it does. Method: every schedule at every level,
// transcripts compared.
func TestPostgres(t *testing.T) {
	s := startPostgres(t)
	for _, sc := range scenarios(t) {
		for _, level := range levels {
			var got []string
			for _, schedule := range sc.schedules {
				got = append(got, run(t, s, level, schedule).transcript)
			}
			if *rewrite {
				sc.record(level, false, got)
				continue
			}
			compare(t, sc, level, got, sc.recorded[level].transcripts)
		}
		if *rewrite {
			if err := sc.write(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Goal: at each level percodb is at least as strict as PostgreSQL (I2), and differs from it only where
// a file says why. Method: every schedule at every level; PostgreSQL's outcome is taken from the
// recorded transcript, and where percodb's is another one, it must be that of a serial order.
func TestPercodb(t *testing.T) { testPercodb(t, startPercodb(t), "") }

// Goal: the same over Bigtable. Method: the same, with the transcripts that were recorded of percodb over its own store. Those of shared
// locks differ: every use of one leaves a record there, to which the snapshot of a waiter advances.
func TestBigtable(t *testing.T) {
	if *rewrite {
		t.Skip("what is recorded is what percodb does over its own store")
	}
	testPercodb(t, startBigtable(t), "testdata/16-for-share.txt")
}

// testPercodb does not compare the transcripts of one file.
func testPercodb(t *testing.T, s *server, unlike string) {
	t.Helper()
	strict, cases := 0, 0
	for _, sc := range scenarios(t) {
		for _, level := range levels {
			cases++
			var got []string
			holds := true
			for i, schedule := range sc.schedules {
				o := run(t, s, level, schedule)
				got = append(got, o.transcript)
				if i >= len(sc.recorded[level].transcripts) {
					t.Fatalf("%s, %s: nothing is recorded of PostgreSQL", sc.name, level)
				}
				reference := read(sc.recorded[level].transcripts[i])
				if err := asStrict(t, s, level, schedule, o, reference); err != nil {
					t.Errorf("%s, %s: %v:\n%s", sc.name, level, err, o.transcript)
					holds = false
				}
			}
			if holds {
				strict++
			}
			if *rewrite {
				sc.record(level, true, got)
				continue
			}
			if sc.path == unlike {
				continue
			}
			want, differs := sc.expected(level)
			compare(t, sc, level, got, want.transcripts)
			if differs && slices.Equal(want.reason, []string{"#"}) || differs && len(want.reason) == 0 {
				t.Errorf("%s, %s: the file does not say why percodb differs", sc.path, level)
			}
		}
		if *rewrite {
			if err := sc.write(); err != nil {
				t.Fatal(err)
			}
		}
	}
	fmt.Printf("%d of %d at least as strict as PostgreSQL\n", strict, cases)
	if cases != 51 {
		t.Errorf("%d cases", cases)
	}
}

// asStrict is I2 for one schedule.
func asStrict(t *testing.T, s *server, level string, schedule []step, got, reference *outcome) error {
	t.Helper()
	for name := range reference.committed {
		if _, ok := got.committed[name]; !ok {
			return fmt.Errorf("%s commits on PostgreSQL and not here", name)
		}
	}
	if got.equal(reference) {
		return nil
	}
	if _, ok := serial(t, s, level, schedule, got); !ok {
		return fmt.Errorf("neither PostgreSQL's outcome nor that of a serial order")
	}
	return nil
}

func compare(t *testing.T, sc *scenario, level string, got, want []string) {
	t.Helper()
	for i := range got {
		if i >= len(want) || got[i] != want[i] {
			t.Errorf("%s, %s: got\n%s\nrecorded:\n%s", sc.path, level, got[i], at(want, i))
		}
	}
	if len(want) > len(got) {
		t.Errorf("%s, %s: %d transcripts are recorded of %d schedules", sc.path, level, len(want), len(got))
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}
