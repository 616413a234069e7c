package kvtest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/kvtest"
	"github.com/percodb/percodb/tso"
)

// The tests below are rows of the table of known failures that docs/transactions-tests.md lists. Goal: each scenario
// ends correctly on every engine. Method: a transcript of requests and answers, whose comments describe the scenario,
// over a store and over a table of Bigtable in memory.

func TestProto_T_RB_1(t *testing.T)   { eachEngine(t, "testdata/proto/T_RB_1") }
func TestProto_T_RB_2(t *testing.T)   { eachEngine(t, "testdata/proto/T_RB_2") }
func TestProto_T_RB_4(t *testing.T)   { eachEngine(t, "testdata/proto/T_RB_4") }
func TestProto_T_RB_5(t *testing.T)   { eachEngine(t, "testdata/proto/T_RB_5") }
func TestProto_T_RB_6(t *testing.T)   { eachEngine(t, "testdata/proto/T_RB_6") }
func TestProto_T_ASY_7(t *testing.T)  { eachEngine(t, "testdata/proto/T_ASY_7") }
func TestProto_T_ASY_8(t *testing.T)  { eachEngine(t, "testdata/proto/T_ASY_8") }
func TestProto_T_PUSH_1(t *testing.T) { eachEngine(t, "testdata/proto/T_PUSH_1") }
func TestProto_T_PES_1(t *testing.T)  { eachEngine(t, "testdata/proto/T_PES_1") }
func TestProto_T_PES_2(t *testing.T)  { eachEngine(t, "testdata/proto/T_PES_2") }
func TestProto_T_PES_4(t *testing.T)  { eachEngine(t, "testdata/proto/T_PES_4") }
func TestProto_T_PES_6(t *testing.T)  { eachEngine(t, "testdata/proto/T_PES_6") }
func TestProto_T_PES_7(t *testing.T)  { eachEngine(t, "testdata/proto/T_PES_7") }
func TestProto_T_LCK_1(t *testing.T)  { eachEngine(t, "testdata/proto/T_LCK_1") }
func TestProto_T_ORD_2(t *testing.T)  { eachEngine(t, "testdata/proto/T_ORD_2") }

// eachEngine runs a transcript over a store, with and without packed locks, and over a table.
func eachEngine(t *testing.T, path string) {
	t.Run("store", func(t *testing.T) { kvtest.RunTranscript(t, path, openStore) })
	t.Run("packed", func(t *testing.T) { kvtest.RunTranscript(t, path, openPackingStore) })
	t.Run("table", func(t *testing.T) { kvtest.RunTranscript(t, path, openTable) })
}

// memoryTable is a Router to a table of kv/bigtable in memory, whose shard can be replaced.
type memoryTable struct {
	kv.Router
	oracle tso.Oracle
	table  *carelessTable
	shard  *bigtable.Shard
}

func openTable(t testing.TB, oracle tso.Oracle) *kvtest.Engine {
	m := &memoryTable{oracle: oracle, table: &carelessTable{Table: widerow.NewMemory()}}
	m.open(t)
	t.Cleanup(func() { m.shard.Close() })
	return &kvtest.Engine{
		Router:   m,
		Restart:  func(t testing.TB) { m.shard.Close(); m.open(t) },
		Careless: m.table.carelessly,
		Close:    func() { m.shard.Close() },
	}
}

func (m *memoryTable) open(t testing.TB) {
	t.Helper()
	shard, err := bigtable.NewShard(t.Context(), bigtable.NewClient(m.table, time.Minute), bigtable.ShardOptions{Oracle: m.oracle})
	if err != nil {
		t.Fatal(err)
	}
	m.shard, m.Router = shard, bigtable.NewRouter(shard)
}

// carelessTable is a table that can be told to make conditional changes whether their condition holds or not.
type carelessTable struct {
	widerow.Table
	careless atomic.Bool
}

func (c *carelessTable) carelessly(do func()) {
	c.careless.Store(true)
	defer c.careless.Store(false)
	do()
}

func (c *carelessTable) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (isMatched bool, err error) {
	if !c.careless.Load() {
		return c.Table.CheckAndMutate(ctx, row, predicate, matched, unmatched)
	}
	change := matched
	if change == nil {
		change = unmatched
	}
	_, err = c.Mutate(ctx, []string{row}, []*widerow.Mutation{change})
	return matched != nil, err
}
