package kv

import (
	"bytes"
	"context"
	"encoding/hex"
	"testing"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Goal: the meta records on disk are those of docs/format. Method: golden bytes.
func TestGoldenMetaFormats(t *testing.T) {
	desc := RangeDescriptor{ID: 2, Epoch: 3, Span: span("a", "b"), Shard: "kv"}
	const descHex = "0000000000000002" + "0000000000000003" + "0161" + "0162" + "026b76"
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"descriptor", descHex, appendDescriptor(nil, &desc)},
		{"plan", descHex + "0161" + "0000000000000005" + "01" + "0000000000000010", appendPlan(nil, &plan{desc: desc, source: "a", remainderID: 5, released: true, maxTS: 16})},
		{"key", "01" + hex.EncodeToString([]byte("tso_window")) + "00", metaKey(metaWindow)},
		{"key of a range", "01" + hex.EncodeToString([]byte("range/")) + "0000000000000002" + "00", metaIDKey(metaRange, 2)},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Goal: no bytes on disk make a decoder panic; what is read is written back the same. Method: fuzzing.
func FuzzMeta(f *testing.F) {
	desc := RangeDescriptor{ID: 2, Epoch: 3, Span: span("a", "b"), Shard: "kv"}
	f.Add(appendDescriptor(nil, &desc))
	f.Add(appendPlan(nil, &plan{desc: desc, source: "a"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, rest, err := decodeDescriptor(b); err == nil {
			again := appendDescriptor(nil, &d)
			if d2, rest2, err := decodeDescriptor(again); err != nil || len(rest2) > 0 || !equalDescriptors(&d, &d2) || len(again)+len(rest) > len(b) {
				t.Errorf("descriptor %x came back as %x", b, again)
			}
		}
		if p, err := decodePlan(b); err == nil {
			if p2, err := decodePlan(appendPlan(nil, p)); err != nil || !equalDescriptors(&p.desc, &p2.desc) || p2.source != p.source {
				t.Errorf("plan %x came back as %+v", b, p2)
			}
		}
	})
}

// Goal: the oracle's window is durable when Save returns. Method: save, cut the power, load.
func TestWindowStoreSurvivesAPowerCut(t *testing.T) {
	ctx := context.Background()
	fs := storage.NewCrashableMemFS()
	e, err := OpenEngine(EngineOptions{Dir: "d", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if ts, err := e.WindowStore().Load(ctx); ts != 0 || err != nil {
		t.Errorf("fresh window: %d, %v", ts, err)
	}
	for _, ts := range []tso.Timestamp{16, 1 << 40} {
		if err := e.WindowStore().Save(ctx, ts); err != nil {
			t.Fatal(err)
		}
	}
	crashed := storage.CrashClone(fs, 0, nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = OpenEngine(EngineOptions{Dir: "d", FS: crashed}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if ts, err := e.WindowStore().Load(ctx); ts != 1<<40 || err != nil {
		t.Errorf("window after a power cut: %d, %v", ts, err)
	}
}

// Goal: bounds of a meta prefix hold its records and no others. Method: neighbours.
func TestMetaBounds(t *testing.T) {
	lower, upper := metaBounds(metaRange)
	for name, inside := range map[string]bool{"range": false, "range/": true, "range/\xff\xff": true, "range0": false, "safe_point": false} {
		key := metaKey(name)
		if got := storage.Compare(lower, key) <= 0 && storage.Compare(key, upper) < 0; got != inside {
			t.Errorf("%q inside: %v", name, got)
		}
	}
	if bytes.Equal(lower, upper) {
		t.Error("no bounds")
	}
}
