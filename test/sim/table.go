package sim

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// In some worlds there are no stores: every process has a shard of kv/bigtable over one table in memory, and its requests to the table are
// the messages. Each concerns one row, or a few neighbours: Bigtable guarantees nothing about more.

// tableRequestTimeout is the deadline of requests to the table. Requests without a condition are executed no later, and history is kept for longer:
// docs/bigtable.md relies on that.
const tableRequestTimeout = gc.MinLife / 2

// tableRouter opens the shard of a process at its first use, for which it needs a timestamp.
type tableRouter struct {
	p      *process
	opened atomic.Pointer[bigtable.Shard]
}

func (r *tableRouter) shard(ctx context.Context) (*bigtable.Shard, error) {
	if s := r.opened.Load(); s != nil {
		return s, nil
	}
	w := r.p.w
	var table widerow.Table = &tableConn{p: r.p, to: w.nodes[0]}
	if w.plan.bug != "" {
		table = &brokenTable{Table: table, w: w}
	}
	s, err := bigtable.NewShard(ctx, bigtable.NewClient(table, tableRequestTimeout), bigtable.ShardOptions{
		Oracle: w.brokenOracle(oracleConn{r.p}), WaitGraph: w.waits, PrefixLen: func(key []byte) int { return min(2, len(key)) },
	})
	if err != nil {
		return nil, err
	}
	if !r.opened.CompareAndSwap(nil, s) { // Another goroutine was faster.
		s.Close()
	}
	return r.opened.Load(), nil
}

// Locate implements kv.Router.
func (r *tableRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	s, err := r.shard(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, _, err := bigtable.NewRouter(s).Locate(ctx, key)
	return d, r.p.w.brokenShard(r.p, s), err
}

// LocateEnd implements kv.Router.
func (r *tableRouter) LocateEnd(ctx context.Context, _ []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	return r.Locate(ctx, nil)
}

func (r *tableRouter) Invalidate(*kv.StaleRangeError)             {}
func (r *tableRouter) CreateRange(context.Context, kv.Span) error { return nil }
func (r *tableRouter) Ranges(ctx context.Context) ([]kv.RangeDescriptor, error) {
	return bigtable.NewRouter(nil).Ranges(ctx)
}

func (r *tableRouter) RangeSizes(context.Context) (map[uint64]int64, error) { return nil, nil }

// tableConn is a process's connection to the table.
type tableConn struct {
	p  *process
	to *node
}

// neighbours is how many rows one message reads: those of a scan are not read as of one moment.
const neighbours = 2

// ReadRows implements widerow.Table.
func (c *tableConn) ReadRows(ctx context.Context, rows widerow.RowSet, f widerow.Filter, o widerow.ReadOptions, visit func(widerow.Row) bool) error {
	var last string
	for n := int64(0); ; {
		after := last
		value, err := c.p.send(ctx, &message{to: c.to, kind: "read", key: []byte(fmt.Sprint(rows, after)), execute: func(ctx context.Context, _ kv.Shard) (any, error) {
			var page []widerow.Row
			err := c.to.rows.ReadRows(ctx, rows, f, widerow.ReadOptions{Reverse: o.Reverse}, func(r widerow.Row) bool {
				if after == "" || (r.Key() > after) != o.Reverse && r.Key() != after {
					page = append(page, r)
				}
				return len(page) < neighbours
			})
			return page, err
		}})
		if err != nil {
			return err
		}
		page := value.([]widerow.Row)
		for _, r := range page {
			last = r.Key()
			if n++; !visit(r) || n == o.Limit {
				return nil
			}
		}
		if len(page) < neighbours {
			return nil
		}
	}
}

// CheckAndMutate implements widerow.Table.
func (c *tableConn) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (isMatched bool, err error) {
	m := &message{to: c.to, kind: "check", key: []byte(row), detail: fmt.Sprintf("%v ? %v : %v", predicate, matched, unmatched)}
	m.execute = func(ctx context.Context, _ kv.Shard) (any, error) {
		return c.to.rows.CheckAndMutate(ctx, row, predicate, matched, unmatched)
	}
	value, err := c.p.send(ctx, m)
	isMatched, _ = value.(bool)
	return isMatched, err
}

// Mutate implements widerow.Table.
func (c *tableConn) Mutate(ctx context.Context, rows []string, changes []*widerow.Mutation) (errs []error, err error) {
	for i, row := range rows {
		m := &message{to: c.to, kind: "mutate", key: []byte(row), detail: changes[i].String()}
		m.deadline, _ = ctx.Deadline()
		m.execute = func(ctx context.Context, _ kv.Shard) (any, error) {
			return c.to.rows.Mutate(ctx, rows[i:i+1], changes[i:i+1])
		}
		if _, err := c.p.send(ctx, m); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// judgeShard is a shard over the table without messages, for looks at it from outside.
func (w *world) judgeShard(ctx context.Context) (*bigtable.Shard, error) {
	n := w.nodes[0]
	return bigtable.NewShard(ctx, bigtable.NewClient(n.rows, time.Minute), bigtable.ShardOptions{Oracle: nodeOracle{n, n.life}})
}

// checkTable reports contradictions in the table's rows: versions without data, transactions both committed and rolled back.
func (w *world) checkTable(ctx context.Context, when string) {
	s, err := w.judgeShard(ctx)
	if err == nil {
		_, err = s.Check(ctx, func(f mvcc.Finding) error {
			w.problem("the table when everything was %s: %q: %s", when, f.Key, f.Detail)
			return nil
		}, func(int64) {})
	}
	if err != nil {
		w.problem("check the table: %v", err)
	}
}

func (w *world) locksOfTable(ctx context.Context, now tso.Timestamp) ([]mvcc.LockInfo, error) {
	s, err := w.judgeShard(ctx)
	if err != nil {
		return nil, err
	}
	d, _, err := bigtable.NewRouter(s).Locate(ctx, nil)
	if err != nil {
		return nil, err
	}
	return s.ScanLock(ctx, &kv.ScanLockRequest{Range: d.Ref(), MaxTS: now})
}

// The bugs of worlds with a table.
const (
	noFence       bug = "rows have no fences"
	noNewerWrites bug = "predicates do not look for newer writes"
	noRollbacks   bug = "predicates do not look for the transaction's rollback record"
	noLocks       bug = "predicates do not look for locks"
	unconditional bug = "a change is made though its lock is not as expected"
	wildUndo      bug = "a lock is undone though it is another one"
	oneRequest    bug = "the commit_ts of a single row is fetched before its lock is written"
)

// hides makes the table hide cells from requests: the bugs that are about predicates.
func (b bug) hides() func(predicate bool, family, qualifier string) bool {
	hide := func(ofFamily, prefix string, reads bool) func(bool, string, string) bool {
		return func(predicate bool, family, qualifier string) bool {
			return (predicate || reads) && family == ofFamily && strings.HasPrefix(qualifier, prefix)
		}
	}
	switch b {
	case noFence:
		return hide("s", "f", true)
	case noNewerWrites:
		return hide("w", "", false)
	case noRollbacks:
		return hide("s", "r", false)
	}
	return nil
}

// brokenTable is a table with the plan's bug.
type brokenTable struct {
	widerow.Table
	w *world
}

func (b *brokenTable) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (bool, error) {
	onlyIf := matched != nil && unmatched == nil && !strings.HasPrefix(row, "m")
	undoes := onlyIf && !strings.Contains(matched.String(), "+")
	switch bug := b.w.plan.bug; {
	case !b.w.faulty:
	case onlyIf && bug == unconditional, undoes && bug == wildUndo, unmatched != nil && bug == noLocks && strings.Contains(unmatched.String(), "+l:"):
		change := matched
		if unmatched != nil {
			change = unmatched
		}
		_, err := b.Table.Mutate(ctx, []string{row}, []*widerow.Mutation{change})
		return onlyIf && err == nil, err
	}
	return b.Table.CheckAndMutate(ctx, row, predicate, matched, unmatched)
}

// oneRequestShard commits a single row at a timestamp that it has fetched before: the bug oneRequest.
type oneRequestShard struct {
	kv.Shard
	p *process
}

// Capabilities implements kv.Shard.
func (s oneRequestShard) Capabilities() kv.Capabilities { return kv.Capabilities{OnePhase: true} }

// Prewrite implements kv.Shard.
func (s oneRequestShard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	if !req.TryOnePC || len(req.Mutations) != 1 {
		return s.Shard.Prewrite(ctx, req)
	}
	ts, err := oracleConn{s.p}.Now(ctx)
	if err != nil {
		return kv.PrewriteResponse{}, err
	}
	resp, err := s.Shard.Prewrite(ctx, req)
	if err == nil {
		err = s.Shard.Commit(ctx, &kv.CommitRequest{Ranges: req.Ranges, Keys: [][]byte{req.Mutations[0].Key}, StartTS: req.StartTS, CommitTS: ts, Primary: true})
	}
	if err == nil {
		resp.OnePCCommitTS = ts
	}
	return resp, err
}
