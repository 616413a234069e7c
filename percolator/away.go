package percolator

import (
	"context"
	"errors"
	"fmt"
)

// Determining an outcome may need several shards in turn. Garbage collection determines many while shards are unavailable,
// and cannot wait for each: the context carries the shards to omit.

type awayKey struct{}

// withAway makes status checks fail with *awayError if they depend on one of the shards.
func withAway(ctx context.Context, shards map[string]bool) context.Context {
	if len(shards) == 0 {
		return ctx
	}
	return context.WithValue(ctx, awayKey{}, shards)
}

// checkAway returns *awayError if ctx does without the shard.
func checkAway(ctx context.Context, shard string) error {
	if away, _ := ctx.Value(awayKey{}).(map[string]bool); away[shard] {
		return &awayError{shard}
	}
	return nil
}

type awayError struct{ shard string }

func (e *awayError) Error() string { return fmt.Sprintf("shard %s is away", e.shard) }

func isAway(err error) bool {
	_, ok := errors.AsType[*awayError](err)
	return ok
}
