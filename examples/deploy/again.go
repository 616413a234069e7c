package deploy

import (
	"context"
	"time"
)

// outageLimit is how long a server may be unavailable.
const outageLimit = 60 * time.Second

// Again calls f until it succeeds, ctx ends, or the server has been unavailable for a minute. It suits work that may be repeated
// although its commit has succeeded before the connection was lost.
func Again(ctx context.Context, f func(context.Context) error) error {
	deadline := time.Now().Add(outageLimit)
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
