package kvtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var getCases = []Case{
	{"Get/absent", "", func(e *env) { equal(e, "a", e.get("a", e.now()), "-") }},
	{"Get/sees what committed at or below its timestamp", "", func(e *env) {
		before := e.now()
		first := e.store(put("a", "1"))
		second := e.store(put("a", "2"))
		for _, c := range []struct {
			ts   tso.Timestamp
			want string
		}{{before, "-"}, {first - 1, "-"}, {first, "1"}, {second - 1, "1"}, {second, "2"}, {e.now(), "2"}} {
			equal(e, fmt.Sprint("as of ", c.ts), e.get("a", c.ts), c.want)
		}
	}},
	{"Get/empty value is not absent", "", func(e *env) {
		e.store(put("a", ""))
		value, err := e.tryGet("a", kv.ReadOptions{ReadTS: e.now()})
		e.must(err)
		equal(e, "nil", value == nil, false)
		equal(e, "length", len(value), 0)
	}},
	{"Get/deletion", "", func(e *env) {
		first := e.store(put("a", "1"))
		e.store(del("a"))
		equal(e, "after", e.get("a", e.now()), "-")
		equal(e, "before", e.get("a", first), "1")
	}},
	{"Get/large value", "", func(e *env) {
		large := strings.Repeat("x", 2<<20)
		e.store(put("a", large))
		equal(e, "length", len(e.get("a", e.now())), len(large))
	}},
	{"Get/any bytes are a key", "", func(e *env) {
		keys := []string{"\x00", "\x00\x00", "a", "a\x00", "a\x00\xff", "a\xff", "\xff\xff"}
		for i, key := range keys {
			e.store(put(key, fmt.Sprint(i)))
		}
		for i, key := range keys {
			equal(e, fmt.Sprintf("%q", key), e.get(key, e.now()), fmt.Sprint(i))
		}
	}},
	{"Get/locked", "", func(e *env) {
		x := e.begin("p")
		x.prewrite(put("a", "1"), del("b"), put("p", "1"))
		err := want[*mvcc.KeyLockedError](e, second(e.tryGet("b", kv.ReadOptions{ReadTS: e.now()})))
		equal(e, "key", string(err.Key), "b")
		equal(e, "op", err.Lock.Op, mvcc.OpDelete)
		equal(e, "start_ts", err.Lock.StartTS, x.start)
		equal(e, "primary", string(err.Lock.Primary), "p")
		equal(e, "TTL", err.Lock.TTLMillis, uint64(ttl))
		equal(e, "size", err.Lock.TxnSize, uint32(3))
		equal(e, "minimum above start_ts", err.Lock.MinCommitTS > x.start, true)
	}},
	{"Get/a lock that commits above the snapshot is passed", "", func(e *env) {
		old := e.now()
		e.begin("a").prewrite(put("a", "1"))
		equal(e, "a", e.get("a", old), "-")
	}},
	{"Get/locks without a change are passed", "", func(e *env) {
		e.begin("a").prewrite(lockOnly("a"))
		x := e.begin("b")
		x.acquire("b")
		equal(e, "prewritten lock", e.get("a", e.now()), "-")
		equal(e, "pessimistic lock", e.get("b", e.now()), "-")
	}},
	{"Get/bypasses named transactions", "", func(e *env) {
		e.store(put("a", "0"))
		x, y := e.begin("a"), e.begin("b")
		x.prewrite(put("a", "1"))
		y.prewrite(put("b", "1"))
		value, err := e.tryGet("a", kv.ReadOptions{ReadTS: e.now(), Bypass: []tso.Timestamp{x.start}})
		e.must(err)
		equal(e, "a", text(value), "0")
		want[*mvcc.KeyLockedError](e, second(e.tryGet("b", kv.ReadOptions{ReadTS: e.now(), Bypass: []tso.Timestamp{x.start}})))
	}},
	{"Get/reads through locks of resolved transactions", "", func(e *env) {
		e.store(put("b", "0"), put("c", "0"))
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"), del("c"), put("d", ""))
		ts := x.commit()
		for key, want := range map[string]string{"b": "1", "c": "-", "d": ""} {
			value, err := e.tryGet(key, kv.ReadOptions{ReadTS: e.now(), Resolved: []kv.CommittedTxn{{StartTS: x.start, CommitTS: ts}}})
			e.must(err)
			equal(e, key, text(value), want)
		}
		value, err := e.tryGet("b", kv.ReadOptions{ReadTS: ts - 1, Resolved: []kv.CommittedTxn{{StartTS: x.start, CommitTS: ts}}})
		e.must(err)
		equal(e, "below the commit_ts", text(value), "0")
	}},
	{"Get/no timestamp", "", func(e *env) {
		want[*mvcc.InvalidRequestError](e, second(e.tryGet("a", kv.ReadOptions{ReadTS: tso.MaxTimestamp})))
	}},
	{"Get/timestamp that was not issued", "", func(e *env) {
		want[*mvcc.TSInFutureError](e, second(e.tryGet("a", kv.ReadOptions{ReadTS: e.future()})))
	}},
	{"Get/stale route", "", func(e *env) {
		ref, shard := e.at("a")
		ref.Epoch++
		_, err := shard.Get(e.ctx, ref, []byte("a"), kv.ReadOptions{ReadTS: e.now()})
		stale := want[*kv.StaleRangeError](e, err)
		if len(stale.Current) != 1 || !stale.Current[0].Span.Contains([]byte("a")) {
			e.Errorf("current ranges: %+v", stale.Current)
		}
	}},
	{"Get/the answer is the caller's", "", func(e *env) {
		e.store(put("a", "1"))
		value, err := e.tryGet("a", kv.ReadOptions{ReadTS: e.now()})
		e.must(err)
		value[0] = 'x'
		equal(e, "a", e.get("a", e.now()), "1")
	}},
	{"Get/a read keeps later commits above it", "ReadFence", func(e *env) {
		x := e.begin("a")
		read := e.now()
		e.get("a", read)
		if res := x.prewrite(put("a", "1")); res.MinCommitTS <= read {
			e.Errorf("the commit may lie at %d, read at %d", res.MinCommitTS, read)
		}
	}},
	{"BatchGet/values, absent and empty ones", "", func(e *env) {
		e.store(put("a", "1"), put("c", ""))
		res, err := e.batch(e.now(), "a", "b", "c")
		e.must(err)
		equal(e, "values", len(res.Values), 3)
		equal(e, "a", text(res.Values[0]), "1")
		equal(e, "b", text(res.Values[1]), "-")
		equal(e, "c", text(res.Values[2]), "")
		equal(e, "locked", len(res.Locked), 0)
	}},
	{"BatchGet/a locked key does not fail the others", "", func(e *env) {
		e.store(put("a", "1"), put("c", "3"))
		e.begin("b").prewrite(put("b", "2"))
		res, err := e.batch(e.now(), "a", "b", "c")
		e.must(err)
		equal(e, "a", text(res.Values[0]), "1")
		equal(e, "b", text(res.Values[1]), "-")
		equal(e, "c", text(res.Values[2]), "3")
		equal(e, "locked", len(res.Locked), 1)
		equal(e, "locked key", string(res.Locked[0].Key), "b")
	}},
	{"BatchGet/no timestamp", "", func(e *env) {
		want[*mvcc.InvalidRequestError](e, second(e.batch(tso.MaxTimestamp, "a")))
	}},
	{"BatchGet/stale route", "", func(e *env) {
		ref, shard := e.at("a")
		ref.ID += 1000
		_, err := shard.BatchGet(e.ctx, &kv.BatchGetRequest{Ranges: []kv.RangeRef{ref}, Keys: bytesOf([]string{"a"}), ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
		want[*kv.StaleRangeError](e, err)
	}},
	{"GetLatest/absent", "ReadLatest", func(e *env) {
		got, err := e.latest("a", 0)
		e.must(err)
		equal(e, "value", text(got.Value), "-")
		equal(e, "commit_ts", got.CommitTS, 0)
	}},
	{"GetLatest/newest version", "ReadLatest", func(e *env) {
		e.store(put("a", "1"))
		ts := e.store(put("a", "2"))
		got, err := e.latest("a", 0)
		e.must(err)
		equal(e, "value", text(got.Value), "2")
		equal(e, "commit_ts", got.CommitTS, ts)
		ts = e.store(del("a"))
		got, err = e.latest("a", 0)
		e.must(err)
		equal(e, "deleted value", text(got.Value), "-")
		equal(e, "commit_ts of the deletion", got.CommitTS, ts)
	}},
	{"GetLatest/a primary that is not committed is passed, a secondary may be", "ReadLatest", func(e *env) {
		x := e.begin("a")
		res := x.prewrite(put("a", "1"), put("b", "1"))
		got, err := e.latest("a", 0)
		e.must(err)
		equal(e, "primary", text(got.Value), "-")
		want[*mvcc.KeyLockedError](e, second(e.latest("b", 0)))
		for e.now() < res.MinCommitTS {
		}
		want[*mvcc.KeyLockedError](e, second(e.latest("a", e.now())))
	}},
	{"GetLatest/floor that was not issued", "ReadLatest", func(e *env) {
		want[*mvcc.TSInFutureError](e, second(e.latest("a", e.future())))
	}},
	{"GetLatest/stale route", "ReadLatest", func(e *env) {
		ref, shard := e.at("a")
		ref.Epoch++
		_, err := shard.GetLatest(e.ctx, ref, []byte("a"), 0)
		want[*kv.StaleRangeError](e, err)
	}},
}

// second is the error of a call that returns a value too.
func second[T any](_ T, err error) error { return err }

var scanCases = []Case{
	{"Scan/key order, both ways", "", func(e *env) {
		e.store(put("a", "1"), put("a\x00", "2"), put("b", "3"), put("ba", "4"))
		equal(e, "forward", e.page("a", "z", nil), "a=1 a\x00=2 b=3 ba=4")
		equal(e, "reverse", e.page("a", "z", func(r *kv.ScanRequest) { r.Reverse = true }), "ba=4 b=3 a\x00=2 a=1")
	}},
	{"Scan/start inclusive, end exclusive", "", func(e *env) {
		e.store(put("a", "1"), put("b", "2"), put("c", "3"))
		equal(e, "forward", e.page("a", "c", nil), "a=1 b=2")
		equal(e, "reverse", e.page("a", "c", func(r *kv.ScanRequest) { r.Reverse = true }), "b=2 a=1")
		equal(e, "one key", e.page("b", "b\x00", nil), "b=2")
	}},
	{"Scan/pages of a few rows make up the whole", "", func(e *env) {
		var ms []mvcc.Mutation
		var forward, reverse []string
		for i := range 10 {
			ms = append(ms, put(fmt.Sprintf("k%d", i), ""))
			forward = append(forward, fmt.Sprintf("k%d", i))
			reverse = append([]string{fmt.Sprintf("k%d", i)}, reverse...)
		}
		e.store(ms...)
		for limit := 1; limit <= 11; limit++ {
			equal(e, fmt.Sprint("forward by ", limit), e.pages(limit, false), strings.Join(forward, " "))
			equal(e, fmt.Sprint("reverse by ", limit), e.pages(limit, true), strings.Join(reverse, " "))
		}
	}},
	{"Scan/a page has a row however few bytes it may have", "", func(e *env) {
		e.store(put("a", strings.Repeat("x", 1000)), put("b", strings.Repeat("x", 1000)))
		res, err := e.scan("a", "z", func(r *kv.ScanRequest) { r.MaxBytes = 1 })
		e.must(err)
		equal(e, "rows", len(res.Rows), 1)
		equal(e, "there is more", res.ResumeKey != nil, true)
	}},
	{"Scan/keys only", "", func(e *env) {
		e.store(put("a", "1"), put("b", "2"))
		res, err := e.scan("a", "z", func(r *kv.ScanRequest) { r.KeysOnly = true })
		e.must(err)
		equal(e, "rows", len(res.Rows), 2)
		equal(e, "value", len(res.Rows[0].Value), 0)
	}},
	{"Scan/snapshot", "", func(e *env) {
		first := e.store(put("a", "1"), put("b", "1"))
		e.store(del("a"), put("b", "2"), put("c", "2"))
		at := func(ts tso.Timestamp) func(*kv.ScanRequest) {
			return func(r *kv.ScanRequest) { r.ReadTS = ts }
		}
		equal(e, "before", e.page("a", "z", at(first-1)), "")
		equal(e, "first", e.page("a", "z", at(first)), "a=1 b=1")
		equal(e, "now", e.page("a", "z", nil), "b=2 c=2")
	}},
	{"Scan/repeated scans show what was written in between", "", func(e *env) {
		last := e.store(put("a", "1"), put("b", "1"), put("c", "1"))
		want := "a=1 b=1 c=1"
		for n, write := range []mvcc.Mutation{put("b", "2"), del("a"), put("d", "3"), put("aa", "4"), del("c")} {
			for range 3 {
				equal(e, "after writes", e.page("a", "z", nil), want)
			}
			before := want
			want = []string{"a=1 b=2 c=1", "b=2 c=1", "b=2 c=1 d=3", "aa=4 b=2 c=1 d=3", "aa=4 b=2 d=3"}[n]
			now := e.store(write)
			equal(e, "the snapshot of before", e.page("a", "z", func(r *kv.ScanRequest) { r.ReadTS = now - 1 }), before)
			equal(e, "the first snapshot", e.page("a", "z", func(r *kv.ScanRequest) { r.ReadTS = last }), "a=1 b=1 c=1")
		}
		equal(e, "the end", e.page("a", "z", nil), want)
	}},
	{"Scan/rows on both sides of a lock are in the page", "", func(e *env) {
		e.store(put("a", "1"), put("c", "3"), put("e", "5"))
		e.begin("b").prewrite(put("b", "2"))
		e.begin("d").prewrite(put("d", "4"))
		for _, reverse := range []bool{false, true} {
			res, err := e.scan("a", "z", func(r *kv.ScanRequest) { r.Reverse = reverse })
			e.must(err)
			equal(e, "rows", len(res.Rows), 3)
			equal(e, "locked", len(res.Locked), 2)
		}
	}},
	{"Scan/several spans", "", func(e *env) {
		e.store(put("a", "1"), put("b", "2"), put("c", "3"), put("d", "4"), put("e", "5"))
		ref, shard := e.at("a")
		for _, reverse := range []bool{false, true} {
			want := "a=1 c=3 d=4"
			if reverse {
				want = "d=4 c=3 a=1"
			}
			for limit := 1; limit < 5; limit++ {
				var rows []kv.KeyValue
				spans := []kv.Span{span("a", "b"), span("bb", "e")}
				for len(spans) > 0 {
					res, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{ref}, Spans: spans, Reverse: reverse, Limit: limit,
						ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
					e.must(err)
					rows = append(rows, res.Rows...)
					spans = restOf(spans, res.ResumeKey, reverse)
				}
				equal(e, fmt.Sprintf("reverse %v, %d rows a page", reverse, limit), rowsOf(rows), want)
			}
		}
	}},
	{"Scan/pages show each row and each lock once", "", func(e *env) {
		e.store(put("a", "1"), put("c", "3"), put("e", "5"))
		e.begin("b").prewrite(put("b", "2"))
		e.begin("f").prewrite(put("d", "4"), put("f", "6"))
		ref, shard := e.at("a")
		for _, all := range [][]kv.Span{{span("a", "z")}, {span("a", "c"), span("c", "e"), span("e", "z")}} {
			for _, reverse := range []bool{false, true} {
				for limit := 1; limit <= 7; limit++ {
					var keys []string
					for spans := all; len(spans) > 0; {
						res, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{ref}, Spans: spans, Reverse: reverse, Limit: limit,
							ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
						e.must(err)
						for i := range res.Rows {
							keys = append(keys, string(res.Rows[i].Key))
						}
						for i := range res.Locked {
							keys = append(keys, string(res.Locked[i].Key)+"!")
						}
						spans = restOf(spans, res.ResumeKey, reverse)
					}
					slices.Sort(keys)
					equal(e, fmt.Sprintf("%d spans, reverse %v, %d a page", len(all), reverse, limit), strings.Join(keys, " "), "a b! c d! e f!")
				}
			}
		}
	}},
	{"Scan/one span across ranges", "Split", func(e *env) {
		e.store(put("a", "1"), put("z", "2"))
		e.must(e.engine.Split(e.ctx, []byte("m")))
		var refs []kv.RangeRef
		var shard kv.Shard
		both := func(reverse bool) *kv.ScanResponse {
			for { // the routes may be those from before, and the directory's, for a while
				refs, shard = e.on("a", "z")
				res, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: refs, Spans: []kv.Span{span("a", "zz")}, Reverse: reverse, Limit: 10, ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
				stale, ok := errkind.As[*kv.StaleRangeError](err)
				if !ok {
					e.must(err)
					return res
				}
				e.recorder.Invalidate(stale)
			}
		}
		for _, reverse := range []bool{false, true} {
			want := "a=1 z=2"
			if reverse {
				want = "z=2 a=1"
			}
			equal(e, "rows of both", rowsOf(both(reverse).Rows), want)
			_, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: refs[:1], Spans: []kv.Span{span("a", "zz")}, Reverse: reverse, Limit: 10, ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
			equal(e, "ranges", len(refs), 2)
			if errkind.Of(err) != errkind.StaleRoute {
				e.Errorf("a span beyond the ranges of its request: %v", err)
			}
		}
	}},
	{"Scan/no spans, empty ones, spans that overlap or descend", "", func(e *env) {
		ref, shard := e.at("a")
		for _, spans := range [][]kv.Span{{}, {span("b", "b")}, {span("b", "a")}, {span("a", "b"), span("c", "c")}, {span("a", "c"), span("b", "d")}, {span("c", "d"), span("a", "b")}} {
			_, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{ref}, Spans: spans, Limit: 1, ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
			want[*mvcc.InvalidRequestError](e, err)
		}
	}},
	{"Scan/no limit, no timestamp", "", func(e *env) {
		want[*mvcc.InvalidRequestError](e, second(e.scan("a", "z", func(r *kv.ScanRequest) { r.Limit = 0 })))
		want[*mvcc.InvalidRequestError](e, second(e.scan("a", "z", func(r *kv.ScanRequest) { r.ReadTS = tso.MaxTimestamp })))
	}},
	{"Scan/stale route", "", func(e *env) {
		stale := func(r *kv.ScanRequest) { r.Ranges[0].Epoch++ }
		want[*kv.StaleRangeError](e, second(e.scan("a", "z", stale)))
	}},
	{"Scan/the memory of an earlier page may be reused", "", func(e *env) {
		e.store(put("a", "1"), put("b", "2"))
		first, err := e.scan("a", "b", nil)
		e.must(err)
		equal(e, "first", rowsOf(first.Rows), "a=1")
		equal(e, "second", e.page("b", "c", func(r *kv.ScanRequest) { r.Reuse = first }), "b=2")
	}},
	{"Scan/counts what is deleted", "", func(e *env) {
		e.store(put("a", "1"), put("b", "2"))
		e.store(del("b"))
		res, err := e.scan("a", "z", nil)
		e.must(err)
		equal(e, "rows", rowsOf(res.Rows), "a=1")
		equal(e, "deleted", res.Deleted, 1)
	}},
	{"Scan/a read keeps later commits above it, absent keys too", "ReadFence", func(e *env) {
		x := e.begin("b")
		read := e.now()
		e.page("a", "z", func(r *kv.ScanRequest) { r.ReadTS = read })
		if res := x.prewrite(put("b", "1")); res.MinCommitTS <= read {
			e.Errorf("the commit may lie at %d, read at %d", res.MinCommitTS, read)
		}
	}},
}

// pages reads all rows page by page, keys only.
func (e *env) pages(limit int, reverse bool) string {
	e.Helper()
	var keys []string
	for left := span("a", "z"); ; {
		ref, shard := e.at(string(left.Start))
		res, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{ref}, Spans: []kv.Span{left}, Reverse: reverse, Limit: limit, ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
		e.must(err)
		if len(res.Rows) > limit {
			e.Fatalf("%d rows in a page of %d", len(res.Rows), limit)
		}
		for i := range res.Rows {
			keys = append(keys, string(res.Rows[i].Key))
		}
		switch {
		case res.ResumeKey == nil:
			return strings.Join(keys, " ")
		case reverse:
			left.End = res.ResumeKey
		default:
			left.Start = res.ResumeKey
		}
	}
}

// restOf returns the rest of spans after a page that ended at resume.
func restOf(spans []kv.Span, resume []byte, reverse bool) (rest []kv.Span) {
	if resume == nil {
		return nil
	}
	for _, s := range spans {
		if !reverse && string(s.Start) < string(resume) {
			s.Start = resume
		}
		if reverse && string(s.End) > string(resume) {
			s.End = resume
		}
		if s.Valid() {
			rest = append(rest, s)
		}
	}
	return rest
}
