package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/test/history"
)

// large replaces all rows of a table in one transaction that is too large for memory: its writes go to a file, and from
// there to the store. Each row has the number of the transaction that wrote it, its generation, so that every snapshot
// must show one generation, of all rows. One client writes while another reads.
type large struct {
	table  string
	size   largeSize
	writer sync.Mutex
	phases *phases

	// current is the writer's last transaction.
	current struct {
		sync.Mutex
		phase  phase
		met    phase // its phase when a process was killed; idle: none was killed
		tables bool  // a killed process has left table files to ingest
	}

	mu         sync.Mutex
	generation int64
	known      int64            // the generation that was acknowledged, or read, last
	unknown    map[int64]bool   // generations without an answer that have not been seen yet
	aborted    map[int64]bool   // generations that were reported as failed
	seen       map[int64]string // generations that a snapshot showed
	found      []history.Anomaly
}

// largeSize is the size of a generation, which has more bytes than the 16 MiB that a transaction keeps in memory.
type largeSize struct{ rows, pad int }

var (
	manyRows = largeSize{18_000, 1000}
	// wideRows are few, since over Bigtable each is a request.
	wideRows = largeSize{200, 90_000}
)

// phase is the phase of a large transaction.
type phase int

const (
	idle       phase = iota
	writing          // a statement of a block
	single           // a statement on its own, which writes and commits
	committing       // COMMIT
)

// phases counts the large transactions that ran when a process was killed, by phase.
type phases struct {
	mu                                sync.Mutex
	writing, prewrite, ingest, commit int
}

func (p *phases) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("kills met %d large transactions while they wrote, %d in prewrite, %d with files to ingest, %d that committed",
		p.writing, p.prewrite, p.ingest, p.commit)
}

// add counts a transaction whose outcome is known: met is its phase at a kill.
func (p *phases) add(met phase, tables, committed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case met == idle:
	case tables:
		p.ingest++
	case met == writing, met == single && !committed:
		p.writing++
	case committed:
		p.commit++
	default:
		p.prewrite++
	}
}

func newLarge(table string, size largeSize, phases *phases) *large {
	return &large{table: table, size: size, phases: phases, unknown: map[int64]bool{}, aborted: map[int64]bool{}, seen: map[int64]string{}}
}

func (l *large) setup(ctx context.Context, q querier) error {
	for _, statement := range []string{
		"create table if not exists " + l.table + " (id int primary key, g bigint not null, pad text not null)",
		"create index if not exists " + l.table + "_g on " + l.table + " (g)",
		"truncate " + l.table,
		fmt.Sprintf("insert into %s select i, 0, repeat('0', %d) from generate_series(1, %d) i", l.table, l.size.pad, l.size.rows),
	} {
		if _, err := q.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (l *large) clients() int { return 2 }

func (l *large) client(ctx context.Context, c *client) {
	if !l.writer.TryLock() {
		l.read(ctx, c, false)
		return
	}
	defer l.writer.Unlock()
	l.write(ctx, c)
	if c.rand.IntN(3) == 0 {
		l.read(ctx, c, true)
	}
}

// write writes the next generation, in one of the ways that lead to a large commit.
func (l *large) write(ctx context.Context, c *client) {
	l.mu.Lock()
	l.generation++
	g := l.generation
	l.mu.Unlock()
	l.enter(writing)
	var outcome history.Outcome
	switch c.rand.IntN(4) {
	case 0:
		l.enter(single)
		outcome, _ = c.single(ctx, func(ctx context.Context, q querier) error { return l.update(ctx, q, g) })
	case 1:
		outcome = l.block(ctx, c, func(ctx context.Context, q querier) error { return l.update(ctx, q, g) })
	case 2:
		outcome = l.block(ctx, c, func(ctx context.Context, q querier) error {
			if _, err := q.Exec(ctx, "delete from "+l.table); err != nil {
				return err
			}
			_, err := q.Exec(ctx, fmt.Sprintf("insert into %s select i, %d, repeat('i', %d) from generate_series(1, %d) i", l.table, g, l.size.pad, l.size.rows))
			return err
		})
	default:
		outcome = l.block(ctx, c, func(ctx context.Context, q querier) error {
			if _, err := q.Exec(ctx, "truncate "+l.table); err != nil {
				return err
			}
			return l.copy(ctx, c, g)
		})
	}
	l.current.Lock()
	met, tables := l.current.met, l.current.tables
	l.current.phase, l.current.met, l.current.tables = idle, idle, false
	l.current.Unlock()
	l.mu.Lock()
	switch outcome {
	case history.Committed:
		l.known = g
	case history.Aborted:
		l.aborted[g] = true
	default:
		l.unknown[g] = true
	}
	l.mu.Unlock()
	if outcome != history.Unknown {
		l.phases.add(met, tables, outcome == history.Committed)
		return
	}
	// The table's next contents show whether it has committed.
	if shown, ok := l.show(ctx, c); ok {
		l.phases.add(met, tables, shown == g)
	}
}

// block runs body in a transaction block, and records when COMMIT is sent.
func (l *large) block(ctx context.Context, c *client, body func(ctx context.Context, q querier) error) history.Outcome {
	outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error {
		err := body(ctx, q)
		if err == nil {
			l.enter(committing)
		}
		return err
	})
	return outcome
}

func (l *large) update(ctx context.Context, q querier, g int64) error {
	_, err := q.Exec(ctx, "update "+l.table+" set g = $1, pad = reverse(pad)", g)
	return err
}

func (l *large) copy(ctx context.Context, c *client, g int64) error {
	pad := strings.Repeat("c", l.size.pad)
	next := 0
	rows := pgx.CopyFromFunc(func() ([]any, error) {
		if next == l.size.rows {
			return nil, nil
		}
		next++
		return []any{int32(next), g, pad}, nil
	})
	_, err := c.conn.CopyFrom(ctx, pgx.Identifier{l.table}, []string{"id", "g", "pad"}, rows)
	return err
}

func (l *large) enter(p phase) {
	l.current.Lock()
	l.current.phase = p
	l.current.Unlock()
}

// killedLocked records that a process was killed, and whether it left table files.
func (l *large) killedLocked(tables bool) {
	if l.current.phase != idle {
		l.current.met = l.current.phase
		l.current.tables = l.current.tables || tables && l.current.phase != writing
	}
}

// hasTables reports whether a directory has table files that are not part of the store.
func hasTables(dirs []string) bool {
	found := false
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { // Unreadable directories have none.
			found = found || err == nil && strings.HasSuffix(path, ".ingest")
			return nil
		})
	}
	return found
}

// show returns the generation that the table shows, if it can be read.
func (l *large) show(ctx context.Context, c *client) (g int64, ok bool) {
	var rows, low, high, indexed int64
	outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error {
		err := q.QueryRow(ctx, "select count(*), coalesce(min(g), -1), coalesce(max(g), -1) from "+l.table+" where pad is not null").Scan(&rows, &low, &high)
		if err != nil {
			return err
		}
		return q.QueryRow(ctx, "select count(*) from "+l.table+" where g = $1", low).Scan(&indexed)
	})
	if outcome != history.Committed {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if rows != int64(l.size.rows) || low != high || indexed != rows {
		l.found = append(l.found, history.Anomaly{Class: history.GSingle,
			Story: fmt.Sprintf("  %s has %d rows of generations %d to %d, and %d entries of the first; a transaction is there in parts\n", l.table, rows, low, high, indexed)})
	}
	l.seen[low] = fmt.Sprintf("client %d read generation %d", c.id, low)
	return low, true
}

// read reads the table. The writer's reads, during which no transaction begins, must show what was acknowledged last,
// or a later generation of unknown outcome.
func (l *large) read(ctx context.Context, c *client, writer bool) {
	g, ok := l.show(ctx, c)
	if ok && writer {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.judge(g)
	}
}

// judge checks the generation in a snapshot of the writer against what it knows. l.mu is held.
func (l *large) judge(g int64) {
	switch {
	case g == l.known:
	case l.unknown[g]:
		delete(l.unknown, g)
		l.known = g
	default:
		l.found = append(l.found, history.Anomaly{Class: history.LostUpdate,
			Story: fmt.Sprintf("  %s shows generation %d; acknowledged, or seen, was %d, and without an answer are %v\n", l.table, g, l.known, l.unknown)})
	}
}

func (l *large) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	var g int64
	err := c.final(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, "select max(g) from "+l.table).Scan(&g)
	})
	if err != nil {
		return nil, err
	}
	if _, ok := l.show(ctx, c); !ok {
		return nil, fmt.Errorf("%s could be read once and not again", l.table)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge(g)
	for g, story := range l.seen {
		if l.aborted[g] {
			l.found = append(l.found, history.Anomaly{Class: history.G1a, Story: "  " + l.table + ": " + story + ", which was reported as failed\n"})
		}
	}
	return l.found, nil
}
