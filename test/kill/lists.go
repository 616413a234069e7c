package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/test/history"
)

// lists appends to lists and reads them, by key and by range, at one isolation level. A list is a text of numbers.
type lists struct {
	table, level string
	sessions     int
	outcomes     *outcomes // nil: they are not counted

	mu    sync.Mutex
	h     history.History
	value int64
}

// outcomes are numbers of transactions by their outcome. Safe for concurrent use.
type outcomes [3]atomic.Int64

func (o *outcomes) String() string {
	return fmt.Sprintf("%d transactions committed, %d did not, %d may have", o[history.Committed].Load(), o[history.Aborted].Load(), o[history.Unknown].Load())
}

// listLevels are the levels of the histories of a run of lists alone.
var listLevels = [...]string{readCommitted, repeatableRead, serializable}

// listWorkloads are the workloads of a round of lists alone.
func listWorkloads(number int, counts *[len(listLevels)]outcomes) (all []workload) {
	for i, level := range listLevels {
		all = append(all, &lists{table: fmt.Sprintf("lists_%d_%d", i, number), level: level, sessions: 4, outcomes: &counts[i]})
	}
	return all
}

// listKeys is the number of lists; listLength is the approximate length at which others are used, since reading whole
// lists dominates the cost of a run.
const (
	listKeys   = 6
	listLength = 150
)

func (l *lists) setup(ctx context.Context, q querier) error {
	_, err := q.Exec(ctx, "create table if not exists "+l.table+" (k int primary key, v text not null)")
	return err
}

func (l *lists) clients() int { return l.sessions }

// next returns a value that was never appended, and the current first key.
func (l *lists) next() (value int64, first int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.value++
	return l.value, int(l.value) / (listKeys * listLength) * listKeys
}

func (l *lists) client(ctx context.Context, c *client) {
	txn := history.Txn{Session: c.id, Begin: c.w.now()}
	single := c.rand.IntN(5) == 0
	var err error
	if single {
		txn.Outcome, err = c.single(ctx, func(ctx context.Context, q querier) error { return l.append(ctx, c, q, &txn) })
	} else {
		txn.Outcome, err = c.transaction(ctx, l.level, func(ctx context.Context, q querier) error {
			for range 1 + c.rand.IntN(4) {
				if err := l.op(ctx, c, q, &txn); err != nil {
					return err
				}
			}
			return nil
		})
	}
	txn.End = c.w.now()
	if err != nil {
		txn.Note = err.Error()
	}
	l.record(txn)
	if l.outcomes != nil {
		l.outcomes[txn.Outcome].Add(1)
	}
}

func (l *lists) record(txn history.Txn) {
	l.mu.Lock()
	l.h.Txns = append(l.h.Txns, txn)
	l.mu.Unlock()
}

// op is one statement.
func (l *lists) op(ctx context.Context, c *client, q querier, txn *history.Txn) error {
	_, first := l.next()
	switch n := c.rand.IntN(10); {
	case n < 5:
		return l.append(ctx, c, q, txn)
	case n < 8:
		k := first + c.rand.IntN(listKeys)
		return l.read(ctx, c, q, txn, history.OpRead, k, k)
	}
	low := first + c.rand.IntN(listKeys)
	return l.read(ctx, c, q, txn, history.OpScan, low, low+c.rand.IntN(3))
}

// append records the attempt before it is made, because it may take effect without an answer.
func (l *lists) append(ctx context.Context, c *client, q querier, txn *history.Txn) error {
	value, first := l.next()
	k := first + c.rand.IntN(listKeys)
	txn.Ops = append(txn.Ops, history.Op{Kind: history.OpAppend, Key: strconv.Itoa(k), Value: value, At: l.at(c)})
	text := strconv.FormatInt(value, 10)
	_, err := q.Exec(ctx, "insert into "+l.table+" as t values ($1, $2) on conflict (k) do update set v = t.v || ' ' || excluded.v", k, text)
	return err
}

// at returns the time of a statement that takes its own snapshot.
func (l *lists) at(c *client) int64 {
	if l.level != readCommitted {
		return 0
	}
	return c.w.now()
}

// read reads the lists of [low, high].
func (l *lists) read(ctx context.Context, c *client, q querier, txn *history.Txn, kind history.OpKind, low, high int) error {
	at := l.at(c)
	var rows pgx.Rows
	var err error
	if kind == history.OpRead {
		rows, err = q.Query(ctx, "select k, v from "+l.table+" where k = $1", low)
	} else {
		rows, err = q.Query(ctx, "select k, v from "+l.table+" where k >= $1 and k <= $2", low, high)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	found := map[int][]int64{}
	for rows.Next() {
		var k int
		var v string
		if err := rows.Scan(&k, &v); err != nil {
			return err
		}
		if found[k], err = numbers(v); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for k := low; k <= high; k++ {
		txn.Ops = append(txn.Ops, history.Op{Kind: kind, Key: strconv.Itoa(k), List: found[k], At: at})
	}
	return nil
}

func numbers(text string) ([]int64, error) {
	var all []int64
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// historyLevels are the levels that histories of the isolation levels are checked against.
var historyLevels = map[string]history.Level{
	readCommitted: history.ReadCommitted, repeatableRead: history.SnapshotIsolation, serializable: history.Serializable,
}

func (l *lists) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	_, first := l.next()
	txn := history.Txn{Session: c.id, Begin: c.w.now(), Outcome: history.Committed}
	err := c.final(ctx, func(ctx context.Context, q querier) error {
		txn.Ops = nil
		return l.read(ctx, c, q, &txn, history.OpScan, 0, first+listKeys)
	})
	if err != nil {
		return nil, err
	}
	txn.End = c.w.now()
	l.record(txn)
	return history.CheckListAppend(&l.h, history.Options{Level: historyLevels[l.level], Strict: true}), nil
}
