package bigtable

import (
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/kvtest"
	"github.com/percodb/percodb/tso"
)

// emulated is a table in an emulator of its own, and a shard that can be replaced.
type emulated struct {
	kv.Router
	oracle tso.Oracle
	client *Client
	shard  *Shard
	server *Emulator
}

func newEmulated(t testing.TB, oracle tso.Oracle) *emulated {
	t.Helper()
	server, err := StartEmulator("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Project: "p", Instance: "i", Emulator: server.Addr()}
	if _, err := CreateTable(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	client, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	e := &emulated{oracle: oracle, client: client, server: server}
	e.open(t)
	return e
}

func (e *emulated) open(t testing.TB) {
	t.Helper()
	shard, err := NewShard(t.Context(), e.client, ShardOptions{Oracle: e.oracle})
	if err != nil {
		t.Fatal(err)
	}
	e.shard, e.Router = shard, NewRouter(shard)
}

// TestConformance runs the suite against Bigtable's emulator.
func TestConformance(t *testing.T) {
	kvtest.Run(t, openEmulated)
}

// Goal: the scenarios of the protocol end correctly over Bigtable's emulator, too. Method: the transcripts that kv/kvtest runs over a table in memory.
func TestTranscripts(t *testing.T) {
	kvtest.RunTranscripts(t, "../kvtest/testdata/proto", openEmulated)
}

func openEmulated(t testing.TB, oracle tso.Oracle) *kvtest.Engine {
	e := newEmulated(t, oracle)
	return &kvtest.Engine{
		Router:  e,
		Restart: func(t testing.TB) { e.shard.Close(); e.open(t) },
		Close:   func() { e.shard.Close() },
	}
}
