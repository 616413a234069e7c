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

// emulatorSends is how many bytes of rows are sent at once, or little more than one row.
const emulatorSends = 256 << 10

// rowNames are the names of the rows of the emulator's tables, and of some that have no cell. Callers hold Emulator.mu.
type rowNames struct {
	tables map[string]*btree.BTreeG[string]
	long   longRows
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
		n.long.change(req.TableName, string(req.RowKey), req.Mutations, err)
	case *bigtablepb.MutateRowsRequest:
		for _, e := range req.Entries {
			n.add(req.TableName, e.RowKey)
			n.long.change(req.TableName, string(e.RowKey), e.Mutations, cmp.Or(err, errNotApplied)) // Each entry may have failed by itself.
			if last := len(e.Mutations) - 1; err == nil && last >= 0 && e.Mutations[last].GetDeleteFromRow() != nil {
				n.tables[req.TableName].Delete(string(e.RowKey))
			}
		}
	case *bigtablepb.CheckAndMutateRowRequest:
		n.add(req.TableName, req.RowKey)
		if req.PredicateFilter != nil { // The emulator has decided.
			err = errNotApplied
		}
		n.long.change(req.TableName, string(req.RowKey), req.TrueMutations, err)
	case *bigtablepb.ReadModifyWriteRowRequest:
		n.add(req.TableName, req.RowKey)
		n.long.change(req.TableName, string(req.RowKey), nil, errNotApplied)
	case *adminpb.DeleteTableRequest:
		if err == nil {
			delete(n.tables, req.Name)
		}
		n.long.forget()
	default: // It may have dropped rows or a family.
		n.long.forget()
	}
}

// read answers a request. Ranges are read by the names of their rows, some at a time, between which rows may change: what a read of several rows
// returns is as of one moment for each row.
func (e *Emulator) read(server bigtablepb.BigtableServer, req *bigtablepb.ReadRowsRequest, ss grpc.ServerStream) error {
	to := &rowSender{ServerStream: ss, limit: req.RowsLimit}
	if computable(req.Filter) {
		to.filter, req.Filter, req.RowsLimit = req.Filter, nil, 0
		to.sent = func(cells cellsOfRow) { e.names.long.keep(req.TableName, cells) }
	}
	spans, wellFormed := rowSpans(req.Rows)
	e.mu.RLock()
	known := e.names.tables[req.TableName] != nil
	e.mu.RUnlock()
	if !known || !wellFormed || req.RequestStatsView == bigtablepb.ReadRowsRequest_REQUEST_STATS_FULL {
		to.unbounded = true
		e.mu.RLock()
		err := server.ReadRows(req, to)
		e.mu.RUnlock()
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		return to.flush()
	}
	size := emulatorAsks
	if to.limit > 0 {
		size = int(min(to.limit, emulatorAsks))
	}
	for len(spans) > 0 {
		e.mu.RLock()
		rest, err := e.names.readPart(server, req, spans, size, to)
		e.mu.RUnlock()
		if errors.Is(err, errEnough) {
			break
		}
		if err == nil {
			err = to.progress()
		}
		if err != nil {
			return err
		}
		spans, size = rest, min(2*size, emulatorAsks)
	}
	return to.flush()
}

// readPart reads up to size rows, fewer if they are large, and returns the spans that are left.
func (n *rowNames) readPart(server bigtablepb.BigtableServer, req *bigtablepb.ReadRowsRequest, spans []rowSpan, size int, to *rowSender) (rest []rowSpan, err error) {
	var names []string
	if n.tables[req.TableName] == nil { // The table has been deleted meanwhile.
		return nil, nil
	}
	eachName(n.tables[req.TableName], spans, req.Reversed, func(name string) bool {
		names = append(names, name)
		return len(names) < size
	})
	if len(names) == 0 {
		return nil, nil
	}
	part := &bigtablepb.ReadRowsRequest{TableName: req.TableName, AppProfileId: req.AppProfileId, Filter: req.Filter, RowsLimit: req.RowsLimit,
		Reversed: req.Reversed, Rows: &bigtablepb.RowSet{}}
	if req.RowsLimit > 0 {
		part.RowsLimit = req.RowsLimit - to.rows
	}
	ask := func() error {
		if len(part.Rows.RowKeys) == 0 {
			return nil
		}
		err := server.ReadRows(part, to)
		part.Rows.RowKeys = part.Rows.RowKeys[:0]
		return err
	}
	for i := 0; i < len(names) && err == nil; i++ {
		long := n.long.get(req.TableName, names[i])
		if long == nil || to.filter == nil {
			part.Rows.RowKeys = append(part.Rows.RowKeys, []byte(names[i]))
		} else if err = ask(); err == nil {
			err = to.sendRow(long)
		}
	}
	if err == nil {
		err = ask()
	}
	last := names[len(names)-1]
	if errors.Is(err, errFull) {
		last, err = to.last, nil
	}
	to.reached = last
	return behind(spans, last, req.Reversed), err
}

// behind returns what of spans is left after a row.
func behind(spans []rowSpan, row string, reversed bool) (rest []rowSpan) {
	next := row + "\x00"
	for _, s := range spans {
		switch {
		case reversed && s.start < row:
			if s.end == "" || s.end > row {
				s.end = row
			}
			rest = append(rest, s)
		case !reversed && (s.end == "" || s.end > next):
			s.start = max(s.start, next)
			rest = append(rest, s)
		}
	}
	return rest
}

// rowSpan is a range of rows; end "" is above all of them.
type rowSpan struct{ start, end string }

// rowSpans returns the ranges of a set of rows, ascending and apart from each other, unless it is malformed: the emulator refuses it.
func rowSpans(rows *bigtablepb.RowSet) (spans []rowSpan, wellFormed bool) {
	if rows == nil || len(rows.RowKeys)+len(rows.RowRanges) == 0 {
		return []rowSpan{{}}, true
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
	sent    func(cellsOfRow)      // is called with rows that have not been filtered
	limit   int64                 // of rows; 0: none
	rows    int64
	last    string // row that was sent
	reached string // row, which may not have been sent
	pending bigtablepb.ReadRowsResponse
	bytes   int
	// unbounded: there is no flush until the end.
	unbounded bool
}

// errEnough ends a read whose limit has been reached, errFull a part of one when much is to be sent.
var (
	errEnough = errors.New("bigtable: enough rows")
	errFull   = errors.New("bigtable: much to be sent")
)

// Send implements bigtablepb.Bigtable_ReadRowsServer.
func (s *rowSender) Send(res *bigtablepb.ReadRowsResponse) error {
	if res.RequestStats != nil {
		s.pending.RequestStats = res.RequestStats
	}
	if s.sent != nil && s.filter != nil && len(res.Chunks) > 0 {
		s.sent(res.Chunks)
	}
	return s.sendRow(res.Chunks)
}

// sendRow sends what passes the filter of a row.
func (s *rowSender) sendRow(row cellsOfRow) error {
	cells := row.sent(s.filter)
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
	if s.bytes < emulatorSends || s.unbounded {
		return nil
	}
	s.last = string(cells[0].RowKey)
	return errFull
}

// progress sends the rows that wait, or, as the service does, how far the scan has come without finding any.
func (s *rowSender) progress() error {
	if len(s.pending.Chunks) == 0 && s.reached != "" {
		s.pending.LastScannedRowKey = []byte(s.reached)
		defer s.pending.Reset()
		return s.SendMsg(&s.pending)
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
