package bigtable

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
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
