package bigtable

import (
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The limits of the service for requests, which Google's emulator does not check. One that exceeds them is refused here as it is there, so that
// tests find what the service would refuse.
const (
	serviceRowBytes    = 4 << 10 // of a row's name
	serviceColumnBytes = 16 << 10
	serviceFilterBytes = 20 << 10
	serviceReadBytes   = 512 << 10 // of a request for rows
	serviceMutations   = 100_000   // of a request, whatever its rows
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// checkLimits returns the error by which the service refuses a request, nil for one that it executes.
func checkLimits(req any) error {
	switch req := req.(type) {
	case *bigtablepb.MutateRowRequest:
		return checkChange(req.RowKey, req.Mutations)
	case *bigtablepb.CheckAndMutateRowRequest:
		if err := checkFilter(req.PredicateFilter); err != nil {
			return err
		}
		return checkChange(req.RowKey, append(req.TrueMutations[:len(req.TrueMutations):len(req.TrueMutations)], req.FalseMutations...))
	case *bigtablepb.MutateRowsRequest:
		n := 0
		for _, e := range req.Entries {
			if err := checkChange(e.RowKey, e.Mutations); err != nil {
				return err
			}
			n += len(e.Mutations)
		}
		if n > serviceMutations {
			return invalid("a request of %d mutations, of which there may be %d", n, serviceMutations)
		}
	case *bigtablepb.ReadRowsRequest:
		if n := proto.Size(req); n > serviceReadBytes {
			return invalid("a request for rows of %d bytes, of which there may be %d", n, serviceReadBytes)
		}
		return checkFilter(req.Filter)
	}
	return nil
}

func checkChange(row []byte, mutations []*bigtablepb.Mutation) error {
	switch {
	case len(row) == 0 || len(row) > serviceRowBytes:
		return invalid("a row's name of %d bytes", len(row))
	case len(mutations) == 0:
		return invalid("a change of a row without mutations")
	case len(mutations) > serviceMutations:
		return invalid("a change of a row by %d mutations, of which there may be %d", len(mutations), serviceMutations)
	}
	for _, m := range mutations {
		if n := max(len(m.GetSetCell().GetColumnQualifier()), len(m.GetDeleteFromColumn().GetColumnQualifier())); n > serviceColumnBytes {
			return invalid("a column's name of %d bytes", n)
		}
	}
	return nil
}

func checkFilter(f *bigtablepb.RowFilter) error {
	if f == nil {
		return nil
	}
	if n := proto.Size(f); n > serviceFilterBytes {
		return invalid("a filter of %d bytes, of which there may be %d", n, serviceFilterBytes)
	}
	return checkParts(f)
}

// checkParts refuses compositions of fewer than two filters.
func checkParts(f *bigtablepb.RowFilter) error {
	var parts []*bigtablepb.RowFilter
	switch of := f.Filter.(type) {
	case *bigtablepb.RowFilter_Chain_:
		parts = of.Chain.Filters
	case *bigtablepb.RowFilter_Interleave_:
		parts = of.Interleave.Filters
	default:
		return nil
	}
	if len(parts) < 2 {
		return invalid("a composition of %d filters", len(parts))
	}
	for _, part := range parts {
		if err := checkParts(part); err != nil {
			return err
		}
	}
	return nil
}
