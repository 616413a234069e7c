package bigtable

import (
	"cmp"
	"errors"
	"slices"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/btree"
	"google.golang.org/grpc"
)

// emulatorAsks is how many rows the emulator is asked for at once.
const emulatorAsks = 512

// emulatorSends is how many bytes of rows are sent at once.
const emulatorSends = 64 << 10

// rowNames are the names of the rows of the emulator's tables, and of some that have no cell. Callers hold Emulator.mu.
type rowNames struct {
	tables map[string]*btree.BTreeG[string]
}

func (n *rowNames) add(table string, row []byte) {
	names := n.tables[table]
	if names == nil {
		if n.tables == nil {
			n.tables = map[string]*btree.BTreeG[string]{}
		}
		names = btree.NewG(32, cmp.Less[string])
		n.tables[table] = names
	}
	names.ReplaceOrInsert(string(row))
}

// note adds the rows that a request may have written, and removes those and the table that it has deleted.
func (n *rowNames) note(req any, err error) {
	switch req := req.(type) {
	case *bigtablepb.MutateRowRequest:
		n.add(req.TableName, req.RowKey)
	case *bigtablepb.MutateRowsRequest:
		for _, e := range req.Entries {
			n.add(req.TableName, e.RowKey)
			if last := len(e.Mutations) - 1; err == nil && last >= 0 && e.Mutations[last].GetDeleteFromRow() != nil {
				n.tables[req.TableName].Delete(string(e.RowKey))
			}
		}
	case *bigtablepb.CheckAndMutateRowRequest:
		n.add(req.TableName, req.RowKey)
	case *bigtablepb.ReadModifyWriteRowRequest:
		n.add(req.TableName, req.RowKey)
	case *adminpb.DeleteTableRequest:
		if err == nil {
			delete(n.tables, req.Name)
		}
	}
}

// read answers a request. Ranges are read by the names of their rows, some at a time.
func (n *rowNames) read(server bigtablepb.BigtableServer, req *bigtablepb.ReadRowsRequest, ss grpc.ServerStream) error {
	to := &rowSender{ServerStream: ss, limit: req.RowsLimit}
	if computable(req.Filter) {
		to.filter, req.Filter, req.RowsLimit = req.Filter, nil, 0
	}
	names := n.tables[req.TableName]
	spans, split := rowSpans(req.Rows)
	var err error
	if names == nil || !split || req.RequestStatsView == bigtablepb.ReadRowsRequest_REQUEST_STATS_FULL {
		err = server.ReadRows(req, to)
	} else {
		err = readSpans(server, req, names, spans, to)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return to.flush()
}

// readSpans reads the rows in spans.
func readSpans(server bigtablepb.BigtableServer, req *bigtablepb.ReadRowsRequest, names *btree.BTreeG[string], spans []rowSpan, to *rowSender) error {
	part := &bigtablepb.ReadRowsRequest{TableName: req.TableName, AppProfileId: req.AppProfileId, Filter: req.Filter, Reversed: req.Reversed,
		Rows: &bigtablepb.RowSet{}}
	size := emulatorAsks
	if to.limit > 0 {
		size = int(min(to.limit, emulatorAsks))
	}
	var err error
	ask := func() bool {
		if len(part.Rows.RowKeys) > 0 {
			err = server.ReadRows(part, to)
		}
		part.Rows.RowKeys = part.Rows.RowKeys[:0]
		size = min(2*size, emulatorAsks)
		return err == nil
	}
	eachName(names, spans, req.Reversed, func(name string) bool {
		part.Rows.RowKeys = append(part.Rows.RowKeys, []byte(name))
		return len(part.Rows.RowKeys) < size || ask()
	})
	if err == nil {
		ask()
	}
	return err
}

// rowSpan is a range of rows; end "" is above all of them.
type rowSpan struct{ start, end string }

// rowSpans returns the ranges of a set of rows, ascending and apart from each other. split is false for sets that are not split: those without
// ranges, and those that are malformed, which the emulator refuses.
func rowSpans(rows *bigtablepb.RowSet) (spans []rowSpan, split bool) {
	if rows == nil || len(rows.RowKeys)+len(rows.RowRanges) == 0 {
		return []rowSpan{{}}, true
	}
	if len(rows.RowRanges) == 0 {
		return nil, false
	}
	for _, key := range rows.RowKeys {
		spans = append(spans, rowSpan{string(key), string(key) + "\x00"})
	}
	for _, r := range rows.RowRanges {
		s := rowSpan{}
		switch start := r.StartKey.(type) {
		case *bigtablepb.RowRange_StartKeyClosed:
			s.start = string(start.StartKeyClosed)
		case *bigtablepb.RowRange_StartKeyOpen:
			s.start = string(start.StartKeyOpen) + "\x00"
		}
		switch end := r.EndKey.(type) {
		case *bigtablepb.RowRange_EndKeyClosed:
			s.end = string(end.EndKeyClosed) + "\x00"
		case *bigtablepb.RowRange_EndKeyOpen:
			s.end = string(end.EndKeyOpen)
		}
		if s.end != "" && s.start >= s.end {
			return nil, false
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b rowSpan) int { return cmp.Compare(a.start, b.start) })
	apart := spans[:1]
	for _, s := range spans[1:] {
		last := &apart[len(apart)-1]
		switch {
		case last.end == "" || s.end != "" && s.end <= last.end:
		case s.start <= last.end:
			last.end = s.end
		default:
			apart = append(apart, s)
		}
	}
	return apart, true
}

// eachName visits the names in spans until visit returns false.
func eachName(names *btree.BTreeG[string], spans []rowSpan, reversed bool, visit func(string) bool) {
	going := true
	each := func(name string) bool {
		going = visit(name)
		return going
	}
	if !reversed {
		for i := 0; i < len(spans) && going; i++ {
			if s := spans[i]; s.end == "" {
				names.AscendGreaterOrEqual(s.start, each)
			} else {
				names.AscendRange(s.start, s.end, each)
			}
		}
		return
	}
	for i := len(spans) - 1; i >= 0 && going; i-- {
		s := spans[i]
		below := func(name string) bool { return name >= s.start && (name == s.end && s.end != "" || each(name)) }
		if s.end == "" {
			names.Descend(below)
		} else {
			names.DescendLessOrEqual(s.end, below)
		}
	}
}

// rowSender filters rows and sends many in one message. The emulator sends one row at a time, and a message for each row that does not match.
type rowSender struct {
	grpc.ServerStream
	filter  *bigtablepb.RowFilter // nil: rows have been filtered
	limit   int64                 // of rows; 0: none
	rows    int64
	pending bigtablepb.ReadRowsResponse
	bytes   int
}

// errEnough ends a read whose limit has been reached.
var errEnough = errors.New("bigtable: enough rows")

// Send implements bigtablepb.Bigtable_ReadRowsServer.
func (s *rowSender) Send(res *bigtablepb.ReadRowsResponse) error {
	if res.RequestStats != nil {
		s.pending.RequestStats = res.RequestStats
	}
	cells := cellsOfRow(res.Chunks).sent(s.filter)
	if len(cells) == 0 {
		return s.Context().Err()
	}
	s.pending.Chunks = append(s.pending.Chunks, cells...)
	for _, c := range cells {
		s.bytes += len(c.RowKey) + len(c.Value) + 32
	}
	if s.rows++; s.rows == s.limit {
		return errEnough
	}
	if s.bytes < emulatorSends {
		return nil
	}
	return s.flush()
}

func (s *rowSender) flush() error {
	if len(s.pending.Chunks) == 0 && s.pending.RequestStats == nil {
		return nil
	}
	err := s.SendMsg(&s.pending)
	s.pending.Reset()
	s.bytes = 0
	return err
}
