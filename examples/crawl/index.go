package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/examples/deploy"
)

// schema makes the documents, what is derived from them, and the observers that derive it. Each statement may be repeated.
var schema = []string{
	`DROP TABLE IF EXISTS documents, postings, members, clusters`,
	`CREATE TABLE documents (url text PRIMARY KEY, content text NOT NULL, crawled timestamptz NOT NULL DEFAULT now())`,
	`CREATE TABLE postings (word text, url text, PRIMARY KEY (word, url))`,
	`CREATE INDEX postings_url ON postings (url)`,
	`CREATE TABLE members (hash text, url text, PRIMARY KEY (hash, url))`,
	`CREATE INDEX members_url ON members (url)`,
	`CREATE TABLE clusters (hash text PRIMARY KEY, representative text NOT NULL, size int NOT NULL)`,

	// The words of a document.
	`CREATE OBSERVER words ON documents (content) AS $$
		DELETE FROM postings WHERE url = KEY.url AND word <> ALL (coalesce(string_to_array(NEW.content, ' '), '{}'));
		INSERT INTO postings SELECT DISTINCT w, KEY.url FROM unnest(string_to_array(NEW.content, ' ')) AS w ON CONFLICT DO NOTHING
	$$`,
	// The cluster of a document: those with the same hash.
	`CREATE OBSERVER duplicates ON documents (content) AS $$
		DELETE FROM members WHERE url = KEY.url AND hash IS DISTINCT FROM md5(NEW.content);
		INSERT INTO members SELECT md5(NEW.content), KEY.url WHERE NEW.content IS NOT NULL ON CONFLICT DO NOTHING
	$$`,
	// A cluster's representative, whenever a document enters or leaves it: an observer of another one's writes.
	`CREATE OBSERVER elect ON members AS $$
		DELETE FROM clusters WHERE hash = KEY.hash AND NOT EXISTS (SELECT FROM members m WHERE m.hash = KEY.hash);
		INSERT INTO clusters SELECT hash, min(url), count(*) FROM members WHERE hash = KEY.hash GROUP BY hash
			ON CONFLICT (hash) DO UPDATE SET representative = excluded.representative, size = excluded.size
	$$`,
}

// create makes empty tables and the observers.
func create(ctx context.Context, pool *pgxpool.Pool) error {
	for _, sql := range schema {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.40s…: %w", sql, err)
		}
	}
	return nil
}

// web is what a crawler finds: documents that change, disappear, and repeat each other's content.
type web struct {
	random    *rand.Rand
	documents int
}

func newWeb(seed uint64, documents int) *web {
	return &web{random: rand.New(rand.NewPCG(seed, 1)), documents: documents}
}

// crawl fetches a document and stores its content.
func (w *web) crawl(ctx context.Context, pool *pgxpool.Pool) error {
	url := fmt.Sprintf("https://example.com/%d", w.random.IntN(w.documents))
	sql, args := `INSERT INTO documents (url, content) VALUES ($1, $2)
		ON CONFLICT (url) DO UPDATE SET content = excluded.content, crawled = now()`, []any{url, w.content()}
	if w.random.IntN(20) == 0 {
		sql, args = `DELETE FROM documents WHERE url = $1`, args[:1]
	}
	return deploy.Again(ctx, func(ctx context.Context) error {
		_, err := pool.Exec(ctx, sql, args...)
		return err
	})
}

// content returns one of a limited number of texts, so that documents have duplicates.
func (w *web) content() string {
	text := rand.New(rand.NewPCG(uint64(w.random.IntN(w.documents/4+1)), 2))
	words := make([]string, 5+text.IntN(10))
	for i := range words {
		words[i] = fmt.Sprintf("word%d", text.IntN(100))
	}
	return strings.Join(words, " ")
}

// recomputations are queries for what an observer has derived, and for the same computed from the documents.
var recomputations = []struct{ table, derived, computed string }{
	{"postings", `SELECT word, url FROM postings`,
		`SELECT DISTINCT w, url FROM documents, unnest(string_to_array(content, ' ')) AS w`},
	{"members", `SELECT hash, url FROM members`, `SELECT md5(content), url FROM documents`},
	{"clusters", `SELECT hash, representative, size FROM clusters`,
		`SELECT md5(content), min(url), count(*)::int FROM documents GROUP BY 1`},
}

// check waits until the observers have handled every change, and compares the derived tables with a recomputation.
func check(ctx context.Context, pool *pgxpool.Pool) error {
	for _, name := range []string{"words", "duplicates", "elect"} { // elect after the observer that it follows
		err := deploy.Again(ctx, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			_, err := pool.Exec(ctx, "WAIT FOR OBSERVER "+name)
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for the observer %s: %w", name, err)
		}
	}
	return deploy.Again(ctx, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return compare(ctx, tx)
		})
	})
}

// compare returns an error if a derived table differs from its recomputation.
func compare(ctx context.Context, tx pgx.Tx) error {
	var errs []error
	for _, r := range recomputations {
		var rows, missing, wrong int
		err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT (SELECT count(*) FROM (%[1]s) d),
			(SELECT count(*) FROM (%[2]s EXCEPT %[1]s) m), (SELECT count(*) FROM (%[1]s EXCEPT %[2]s) w)`, r.derived, r.computed)).
			Scan(&rows, &missing, &wrong)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d rows, %d missing, %d wrong\n", r.table, rows, missing, wrong)
		if missing+wrong > 0 {
			errs = append(errs, fmt.Errorf("%s differs from a recomputation", r.table))
		}
	}
	return errors.Join(errs...)
}
