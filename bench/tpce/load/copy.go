package load

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/internal/loading"
)

// copyAll generates all batches and copies those that are not loaded.
func copyAll(ctx context.Context, o Options, g *gen.Generator, done map[string]bool, sum *Summary) error {
	group, ctx := errgroup.WithContext(ctx)
	parts, batches := make(chan gen.Part), make(chan *gen.Batch, o.Workers)
	var mu sync.Mutex // of sum and o.Progress
	note := func(b *gen.Batch, copied bool) {
		mu.Lock()
		defer mu.Unlock()
		for t := range b.Rows {
			sum.Rows[t] += b.Rows[t].Count
		}
		if copied {
			sum.Copied += b.Count()
		}
		o.Progress.Add(b.Count())
	}
	group.Go(func() error {
		defer close(parts)
		for _, part := range g.Parts() {
			if err := send(ctx, parts, part); err != nil {
				return err
			}
		}
		return nil
	})
	makers, makerCtx := errgroup.WithContext(ctx)
	for range o.Workers {
		makers.Go(func() error { return makeBatches(makerCtx, parts, batches, done, note) })
	}
	group.Go(func() error {
		defer close(batches)
		return makers.Wait()
	})
	for i := range o.Workers {
		group.Go(func() error {
			conn, err := pgx.Connect(ctx, o.URLs[i%len(o.URLs)])
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			for b := range batches {
				copied, err := copyBatch(ctx, conn, b)
				if err != nil {
					return err
				}
				note(b, copied)
			}
			return nil
		})
	}
	return group.Wait()
}

// makeBatches generates the batches of parts until there are no more parts.
func makeBatches(ctx context.Context, parts <-chan gen.Part, batches chan<- *gen.Batch, done map[string]bool, note func(*gen.Batch, bool)) error {
	for part := range parts {
		for b := range part.Batches {
			if done[b.Name] {
				note(b, false)
				continue
			}
			if err := send(ctx, batches, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends, unless ctx ends first.
func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copyBatch copies a batch in one transaction, with retries after conflicts. It returns false if the
// batch is already loaded: a commit of an interrupted load may have been in progress when this load read the
// list of loaded batches.
func copyBatch(ctx context.Context, conn *pgx.Conn, b *gen.Batch) (bool, error) {
	err := loading.InTransaction(ctx, conn, func(tx pgx.Tx) error { return copyRows(ctx, tx, b) })
	if loading.HasCode(err, "23505") {
		var there bool
		query := "SELECT EXISTS (SELECT 1 FROM " + schema.LoadTable + " WHERE batch = $1)"
		if err := conn.QueryRow(ctx, query, b.Name).Scan(&there); err != nil || there {
			return false, err
		}
	}
	if err != nil {
		return false, fmt.Errorf("batch %s: %w", b.Name, err)
	}
	return true, nil
}

// copyRows writes the batch's name, which waits for other transactions that write the same name, and its rows.
func copyRows(ctx context.Context, tx pgx.Tx, b *gen.Batch) error {
	if _, err := tx.Exec(ctx, "INSERT INTO "+schema.LoadTable+" (batch) VALUES ($1)", b.Name); err != nil {
		return err
	}
	for t := range b.Rows {
		if b.Rows[t].Count == 0 {
			continue
		}
		tag, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(b.Rows[t].Data), "COPY "+schema.Table(t).String()+" FROM STDIN")
		if err != nil {
			return err
		}
		if tag.RowsAffected() != b.Rows[t].Count {
			return fmt.Errorf("COPY %s: the server took %d rows of %d", schema.Table(t), tag.RowsAffected(), b.Rows[t].Count)
		}
	}
	return nil
}
