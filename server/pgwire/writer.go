package pgwire

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

const (
	// flushBytes is the buffer size above which rows are sent on before the statement ends.
	flushBytes = 64 << 10
	// holdBytes is how much a held buffer may grow before Rewind is given up.
	holdBytes = 8 << 20
	// keepBytes is the largest buffer kept for the next statement.
	keepBytes = 256 << 10
)

// noMark says that nothing is held.
const noMark = -1

// writer is the session's ResultWriter over one connection. The first error sticks: the client is
// gone, and every later call returns it.
type writer struct {
	conn    net.Conn
	backend *pgproto3.Backend // to read CopyData with
	format  *types.Format     // the session's, followed as it changes
	buf     []byte
	err     error
	mark    int // where Hold began, or noMark
	hold    int // how many bytes may pile up behind it
	// heldEnd is where the held result ended, or noMark; what follows answers later messages. after
	// is that part, kept while Rewind has the result made anew.
	heldEnd int
	after   []byte
	// account counts what the buffer takes beyond keepBytes.
	account memory.Account
	counted int64

	cols    []session.Column
	formats []int16 // one per column
}

var _ session.ResultWriter = (*writer)(nil)

func newWriter(conn net.Conn, backend *pgproto3.Backend, pool *memory.Pool) *writer {
	return &writer{conn: conn, backend: backend, mark: noMark, heldEnd: noMark, account: memory.NewAccount(pool, 0)}
}

// send appends a message of pgproto3's.
func (w *writer) send(m pgproto3.BackendMessage) {
	if w.err != nil {
		return
	}
	buf, err := m.Encode(w.buf)
	if err != nil {
		w.err = err
		return
	}
	w.buf = buf
}

// flush sends what is buffered; what was held can then not be taken back.
func (w *writer) flush() error {
	w.mark, w.heldEnd = noMark, noMark
	if w.err != nil || len(w.buf) == 0 {
		return w.err
	}
	_, w.err = w.conn.Write(w.buf)
	if cap(w.buf) > keepBytes {
		w.buf = nil
		w.account.Shrink(w.counted)
		w.counted = 0
	}
	w.buf = w.buf[:0]
	return w.err
}

func (w *writer) flushIfLarge() error {
	if len(w.buf) < flushBytes {
		return w.err
	}
	if w.mark != noMark {
		if len(w.buf)-w.mark < w.hold {
			return w.err
		}
	}
	return w.flush()
}

// begin starts a message and returns where its length goes; end fills it in.
func (w *writer) begin(kind byte) int {
	w.buf = append(w.buf, kind, 0, 0, 0, 0)
	return len(w.buf) - 4
}

func (w *writer) end(at int) {
	binary.BigEndian.PutUint32(w.buf[at:], uint32(len(w.buf)-at))
}

// Columns implements session.ResultWriter.
func (w *writer) Columns(cols []session.Column, formats []int16, announce bool) error {
	w.cols = cols
	w.formats = w.formats[:0]
	for i := range cols {
		w.formats = append(w.formats, formatOf(formats, i))
	}
	if announce {
		w.rowDescription(cols, formats)
	}
	return w.err
}

// formatOf applies the rule of Bind: none given means text, one given holds for all.
func formatOf(formats []int16, i int) int16 {
	switch {
	case len(formats) == 0:
		return pgproto3.TextFormat
	case len(formats) == 1:
		return formats[0]
	}
	return formats[i]
}

func (w *writer) rowDescription(cols []session.Column, formats []int16) {
	at := w.begin('T')
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(len(cols)))
	for i := range cols {
		c := &cols[i]
		w.buf = append(w.buf, c.Name...)
		w.buf = append(w.buf, 0)
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(c.TableID))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(c.AttNum))
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(c.Type.OID))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(typeLen(c.Type)))
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(c.Type.Mod))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(formatOf(formats, i)))
	}
	w.end(at)
}

// Row implements session.ResultWriter.
func (w *writer) Row(row types.Row) error {
	if w.err != nil {
		return w.err
	}
	if err := w.makeSpace(row); err != nil {
		return err
	}
	at := w.begin('D')
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(len(row)))
	for i := range row {
		if row[i].IsNull() {
			w.buf = binary.BigEndian.AppendUint32(w.buf, ^uint32(0))
			continue
		}
		w.buf = append(w.buf, 0, 0, 0, 0)
		start := len(w.buf)
		if w.formats[i] == pgproto3.BinaryFormat {
			w.buf = types.AppendBinary(w.buf, row[i], w.cols[i].Type)
		} else {
			w.buf = types.AppendText(w.buf, row[i], w.cols[i].Type, w.format)
		}
		binary.BigEndian.PutUint32(w.buf[start-4:], uint32(len(w.buf)-start))
	}
	if size := len(w.buf) - at; size > maxMessageBytes {
		w.buf = w.buf[:at-1]
		return pgerror.New(pgerror.ProgramLimitExceeded, "a row of %d bytes is too large to be sent", size).
			WithHint("Select fewer columns, or parts of their values.")
	}
	w.end(at)
	return w.flushIfLarge()
}

// makeSpace makes space for a row of large values; an error is the statement's.
func (w *writer) makeSpace(row types.Row) error {
	large := 0
	for i := range row {
		if row[i].Large() {
			large += 2 * row[i].Size() // The text of bytes has two digits for each.
		}
	}
	if large == 0 || large <= cap(w.buf)-len(w.buf) {
		return nil
	}
	if size := int64(len(w.buf) + large); size > keepBytes {
		if err := w.account.Resize(w.counted, size); err != nil {
			return err
		}
		w.counted = size
	}
	w.buf = slices.Grow(w.buf, large)
	return nil
}

// Complete implements session.ResultWriter.
func (w *writer) Complete(tag session.Tag) error {
	at := w.begin('C')
	w.buf = append(tag.Append(w.buf), 0)
	w.end(at)
	return w.err
}

// Empty implements session.ResultWriter.
func (w *writer) Empty() error {
	w.end(w.begin('I'))
	return w.err
}

// readyForQuery ends a cycle and sends everything.
func (w *writer) readyForQuery(status session.TxnStatus) error {
	at := w.begin('Z')
	w.buf = append(w.buf, byte(status))
	w.end(at)
	return w.flush()
}

// Notice implements session.ResultWriter.
func (w *writer) Notice(n *pgerror.Error) {
	r := pgproto3.NoticeResponse(*errorResponse(n, noticeSeverity(n.Code)))
	w.send(&r)
}

// Setting implements session.ResultWriter.
func (w *writer) Setting(name, value string) {
	w.send(&pgproto3.ParameterStatus{Name: name, Value: value})
}

// noticeSeverity tells warnings from notices by their class: 01, and 25 for statements that make no
// sense where the transaction stands.
func noticeSeverity(code pgerror.Code) string {
	if strings.HasPrefix(string(code), "01") || strings.HasPrefix(string(code), "25") {
		return "WARNING"
	}
	return "NOTICE"
}

func (w *writer) error(e *pgerror.Error, severity string) { w.send(errorResponse(e, severity)) }

func errorResponse(e *pgerror.Error, severity string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: string(e.Code), Message: e.Message,
		Detail: e.Detail, Hint: e.Hint, Position: int32(e.Position), Where: e.Where,
		SchemaName: e.Schema, TableName: e.Table, ColumnName: e.Column, DataTypeName: e.DataType,
		ConstraintName: e.Constraint,
	}
}

// Hold implements session.ResultWriter.
func (w *writer) Hold() { w.mark, w.heldEnd, w.hold = len(w.buf), noMark, holdBytes }

// HoldAsUsual implements session.ResultWriter.
func (w *writer) HoldAsUsual() { w.mark, w.heldEnd, w.hold = len(w.buf), noMark, 0 }

// endHeld marks the end of what is held, before the answers to later messages.
func (w *writer) endHeld() {
	if w.mark != noMark && w.heldEnd == noMark {
		w.heldEnd = len(w.buf)
	}
}

// Rewind implements session.ResultWriter.
func (w *writer) Rewind() bool {
	if w.mark == noMark {
		return false
	}
	if w.heldEnd != noMark {
		w.after = append(w.after[:0], w.buf[w.heldEnd:]...)
		w.heldEnd = noMark
	}
	w.buf = w.buf[:w.mark]
	return true
}

// Release implements session.ResultWriter.
func (w *writer) Release() { w.mark, w.heldEnd = noMark, noMark }

// Resume implements session.ResultWriter.
func (w *writer) Resume() {
	w.restoreAfter(false)
	w.Release()
}

// restoreAfter puts back what Rewind took away besides the held result; with an error instead of a
// result it is dropped, as what follows an error is not answered.
func (w *writer) restoreAfter(failed bool) {
	if !failed {
		w.buf = append(w.buf, w.after...)
	}
	w.after = w.after[:0]
}

// dropPartial forgets the message that a panic left half written, recognised by its missing length.
func (w *writer) dropPartial() {
	for at := 0; at < len(w.buf); {
		length := int(binary.BigEndian.Uint32(w.buf[at+1:]))
		if length == 0 || at+1+length > len(w.buf) {
			w.buf = w.buf[:at]
			return
		}
		at += 1 + length
	}
}

// CopyIn implements session.ResultWriter.
func (w *writer) CopyIn(columns int, binaryFormat bool) (io.Reader, error) {
	w.send(&pgproto3.CopyInResponse{OverallFormat: formatByte(binaryFormat), ColumnFormatCodes: columnFormats(columns, binaryFormat)})
	if err := w.flush(); err != nil {
		return nil, err
	}
	return &copyReader{backend: w.backend}, nil
}

// CopyOut implements session.ResultWriter.
func (w *writer) CopyOut(columns int, binaryFormat bool) (io.Writer, error) {
	w.send(&pgproto3.CopyOutResponse{OverallFormat: formatByte(binaryFormat), ColumnFormatCodes: columnFormats(columns, binaryFormat)})
	return copyWriter{w}, w.err
}

// CopyDone implements session.ResultWriter.
func (w *writer) CopyDone() error {
	w.end(w.begin('c'))
	return w.err
}

func formatByte(binaryFormat bool) byte {
	if binaryFormat {
		return 1
	}
	return 0
}

func columnFormats(columns int, binaryFormat bool) []uint16 {
	codes := make([]uint16, columns)
	for i := range codes {
		codes[i] = uint16(formatByte(binaryFormat))
	}
	return codes
}

// copyWriter makes each Write one CopyData message.
type copyWriter struct{ w *writer }

func (c copyWriter) Write(p []byte) (int, error) {
	at := c.w.begin('d')
	c.w.buf = append(c.w.buf, p...)
	c.w.end(at)
	return len(p), c.w.flushIfLarge()
}

// copyReader reads the client's CopyData messages as one stream.
type copyReader struct {
	backend *pgproto3.Backend
	rest    []byte // of the message last received
	end     error
}

func (r *copyReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.end != nil {
			return 0, r.end
		}
		r.receive()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *copyReader) receive() {
	m, err := r.backend.Receive()
	if err != nil {
		r.end = protocolError(err)
		return
	}
	switch m := m.(type) {
	case *pgproto3.CopyData:
		r.rest = m.Data
	case *pgproto3.CopyDone:
		r.end = io.EOF
	case *pgproto3.CopyFail:
		r.end = pgerror.New(pgerror.QueryCanceled, "COPY from stdin failed: %s", m.Message)
	case *pgproto3.Flush, *pgproto3.Sync:
		// Ignored while copying (55.2.6).
	default:
		r.end = &connectionError{pgerror.New(pgerror.ProtocolViolation,
			"unexpected message type %T during COPY from stdin", m)}
	}
}

// connectionError says that the connection cannot go on. The client is told why where the reason is a
// *pgerror.Error, and is gone otherwise.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return "connection: " + e.err.Error() }

// Is has the session see no more than that the client is gone: the reason must not pass for an error of
// the statement.
func (e *connectionError) Is(target error) bool { return target == session.ErrClientGone }

// typeLen is pg_type.typlen: -1 for variable length.
func typeLen(t types.Type) int16 {
	if info := t.Info(); info != nil {
		return info.Len
	}
	return -1
}
