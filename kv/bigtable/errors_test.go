package bigtable

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
)

// Goal: Bigtable's errors have the kinds by which percolator retries, or not. Method: one of each status.
func TestErrors(t *testing.T) {
	for code, want := range map[codes.Code]errkind.Kind{
		codes.Unavailable: errkind.Unavailable, codes.DeadlineExceeded: errkind.Unavailable, codes.Aborted: errkind.Unavailable,
		codes.ResourceExhausted: errkind.Unavailable, codes.NotFound: errkind.Refused, codes.PermissionDenied: errkind.Refused,
		codes.Unauthenticated: errkind.Refused, codes.InvalidArgument: errkind.Refused,
	} {
		err := mapError(t.Context(), status.Error(code, "text"))
		unavailable, _ := errkind.As[*kv.UnavailableError](err)
		if errkind.Of(err) != want || unavailable != nil && unavailable.Quota != (code == codes.ResourceExhausted) {
			t.Errorf("%v: %v", code, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := mapError(ended, status.Error(codes.Canceled, "text")); errkind.Of(err) != errkind.Context {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Goal: a table that does not exist is said so. Method: a client of another table.
func TestNoTable(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	opts := e.client.opts
	opts.Table = "other"
	client, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := NewShard(t.Context(), client, ShardOptions{Oracle: e.oracle}); errkind.Of(err) != errkind.Refused {
		t.Errorf("%v", err)
	}
}
