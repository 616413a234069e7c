package crawl

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// tables are those of the repository and of its index.
var tables = []string{
	"DROP TABLE IF EXISTS repository, members, clusters, inverted, shown",
	"CREATE TABLE repository (url int PRIMARY KEY, hash int NOT NULL, links int[] NOT NULL, crawl bigint NOT NULL)",
	"CREATE TABLE members (hash int, url int, PRIMARY KEY (hash, url))",
	"CREATE INDEX members_url ON members (url)",
	"CREATE TABLE clusters (hash int PRIMARY KEY, representative int NOT NULL, size int NOT NULL)",
	"CREATE TABLE inverted (target int, source int, PRIMARY KEY (target, source))",
	"CREATE INDEX inverted_source ON inverted (source)",
	"CREATE TABLE shown (url int PRIMARY KEY, hash int NOT NULL, crawl bigint NOT NULL)",
}

// indexer derives the index of one document.
const indexer = `CREATE OBSERVER indexer ON repository AS $$
	DELETE FROM members WHERE url = KEY.url AND hash <> NEW.hash;
	INSERT INTO members SELECT NEW.hash, KEY.url ON CONFLICT DO NOTHING;
	INSERT INTO clusters SELECT hash, min(url), count(*) FROM members WHERE hash = NEW.hash GROUP BY hash
		ON CONFLICT (hash) DO UPDATE SET representative = excluded.representative, size = excluded.size;
	INSERT INTO clusters SELECT m.hash, min(m.url), count(*) FROM shown s JOIN members m ON m.hash = s.hash
		WHERE s.url = KEY.url AND s.hash <> NEW.hash GROUP BY m.hash
		ON CONFLICT (hash) DO UPDATE SET representative = excluded.representative, size = excluded.size;
	DELETE FROM clusters WHERE hash = (SELECT hash FROM shown WHERE url = KEY.url)
		AND NOT EXISTS (SELECT FROM members m WHERE m.hash = clusters.hash);
	DELETE FROM inverted WHERE source = KEY.url AND target <> ALL (NEW.links);
	INSERT INTO inverted SELECT l, KEY.url FROM unnest(NEW.links) AS l ON CONFLICT DO NOTHING;
	INSERT INTO shown VALUES (KEY.url, NEW.hash, NEW.crawl)
		ON CONFLICT (url) DO UPDATE SET hash = excluded.hash, crawl = excluded.crawl
$$`

// derivations are the queries that compute each derived table from the whole repository.
var derivations = []struct{ table, query string }{
	{"members", "SELECT hash, url FROM repository"},
	{"clusters", "SELECT hash, min(url), count(*)::int FROM repository GROUP BY hash"},
	{"inverted", "SELECT DISTINCT l, url FROM repository, unnest(links) AS l"},
	{"shown", "SELECT url, hash, crawl FROM repository"},
}

// page returns the contents of a document: its hash, one of half as many as there are documents, and its links.
func page(r *rand.Rand, documents, links int) (int32, []int32) {
	targets := make([]int32, links)
	for i := range targets {
		targets[i] = int32(r.IntN(documents))
	}
	return int32(r.IntN(documents/2 + 1)), targets
}

// load makes the tables, fills the repository, and derives its index.
func (b *bench) load(ctx context.Context) error {
	if err := b.exec(ctx, tables...); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 0))
	n := 0
	_, err := b.pool.CopyFrom(ctx, pgx.Identifier{"repository"}, []string{"url", "hash", "links", "crawl"}, pgx.CopyFromFunc(func() ([]any, error) {
		if n == b.o.Documents {
			return nil, nil
		}
		hash, links := page(r, b.o.Documents, b.o.Links)
		n++
		return []any{int32(n - 1), hash, links, int64(0)}, nil
	}))
	if err != nil {
		return err
	}
	if err := b.deriveAll(ctx); err != nil {
		return err
	}
	return b.exec(ctx, "ANALYZE")
}

// deriveAll computes the index from the whole repository: the batch job.
func (b *bench) deriveAll(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, b.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		for _, d := range derivations {
			for _, sql := range []string{"DELETE FROM " + d.table, "INSERT INTO " + d.table + " " + d.query} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// verify returns an error if the index differs from one computed from the whole repository.
func (b *bench) verify(ctx context.Context) error {
	for _, d := range derivations {
		var wrong int
		err := b.pool.QueryRow(ctx, fmt.Sprintf("SELECT (SELECT count(*) FROM (TABLE %[1]s EXCEPT %[2]s) w) + (SELECT count(*) FROM (%[2]s EXCEPT TABLE %[1]s) m)",
			d.table, d.query)).Scan(&wrong)
		if err != nil {
			return err
		}
		if wrong > 0 {
			return fmt.Errorf("%d rows of %s differ from a recomputation", wrong, d.table)
		}
	}
	return nil
}
