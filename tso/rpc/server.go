package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
	"github.com/percodb/percodb/tso/rpc/tsopb"
)

// server answers for a source.
type server struct {
	tsopb.UnimplementedOracleServer
	source tso.Source
}

// RegisterOracle has r serve source. The source stays the caller's.
func RegisterOracle(r grpc.ServiceRegistrar, source tso.Source) {
	tsopb.RegisterOracleServer(r, &server{source: source})
}

// Take implements the service.
func (s *server) Take(ctx context.Context, req *tsopb.TakeRequest) (*tsopb.TakeResponse, error) {
	first, err := s.source.NowN(ctx, int(req.Count))
	if err != nil {
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}
		return &tsopb.TakeResponse{Error: encodeError(err)}, nil
	}
	return &tsopb.TakeResponse{First: uint64(first)}, nil
}

// encodeError and decodeError carry the errors of package tso.
func encodeError(err error) *tsopb.Error {
	if errkind.Of(err) == errkind.OracleClosed {
		return &tsopb.Error{Kind: &tsopb.Error_Closed{Closed: &tsopb.Closed{}}}
	}
	if unavailable, ok := errkind.As[*tso.UnavailableError](err); ok {
		return &tsopb.Error{Kind: &tsopb.Error_Unavailable{Unavailable: &tsopb.Unavailable{Reason: unavailable.Err.Error()}}}
	}
	return &tsopb.Error{Kind: &tsopb.Error_Other{Other: err.Error()}}
}

func decodeError(e *tsopb.Error) error {
	switch kind := e.GetKind().(type) {
	case *tsopb.Error_Closed:
		return tso.ErrClosed
	case *tsopb.Error_Unavailable:
		return &tso.UnavailableError{Err: errors.New(kind.Unavailable.GetReason())}
	}
	return errors.New(e.GetOther())
}
