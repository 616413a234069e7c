package mvcc

import (
	"context"

	"github.com/percodb/percodb/tso"
)

// RefreshArgs asks whether Spans are at ToTS what they were at FromTS, changes by StartTS aside.
type RefreshArgs struct {
	Spans                 []Span
	StartTS, FromTS, ToTS tso.Timestamp
}

// Refresh is not built yet.
func (s *State) Refresh(ctx context.Context, args *RefreshArgs) error { return errNotYet }
