package pgwire

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// writer encodes a session's results into the buffer that it embeds.
type writer struct {
	*session.Buffer
	backend *pgproto3.Backend // to read CopyData with
	format  *types.Format     // the session's, followed as it changes
	cols    []session.Column
	formats []int16 // one per column
}

var _ session.ResultWriter = (*writer)(nil)

func newWriter(conn net.Conn, backend *pgproto3.Backend, pool *memory.Pool) *writer {
	return &writer{Buffer: session.NewBuffer(conn, pool), backend: backend}
}

// send appends a message of pgproto3's.
func (w *writer) send(m pgproto3.BackendMessage) {
	if w.Err() != nil {
		return
	}
	buf, err := m.Encode(w.Data)
	if err != nil {
		w.Fail(err)
		return
	}
	w.Data = buf
}

// begin starts a message and returns where its length goes; end fills it in.
func (w *writer) begin(kind byte) int {
	w.Data = append(w.Data, kind, 0, 0, 0, 0)
	return len(w.Data) - 4
}

func (w *writer) end(at int) {
	binary.BigEndian.PutUint32(w.Data[at:], uint32(len(w.Data)-at))
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
	return w.Err()
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
	w.Data = binary.BigEndian.AppendUint16(w.Data, uint16(len(cols)))
	for i := range cols {
		c := &cols[i]
		t := c.Type.Underlying()
		w.Data = append(w.Data, c.Name...)
		w.Data = append(w.Data, 0)
		w.Data = binary.BigEndian.AppendUint32(w.Data, uint32(c.TableID))
		w.Data = binary.BigEndian.AppendUint16(w.Data, uint16(c.AttNum))
		w.Data = binary.BigEndian.AppendUint32(w.Data, uint32(t.OID))
		w.Data = binary.BigEndian.AppendUint16(w.Data, uint16(typeLen(t)))
		w.Data = binary.BigEndian.AppendUint32(w.Data, uint32(t.Mod))
		w.Data = binary.BigEndian.AppendUint16(w.Data, uint16(formatOf(formats, i)))
	}
	w.end(at)
}

// Row implements session.ResultWriter.
func (w *writer) Row(row types.Row) error {
	if err := w.Err(); err != nil {
		return err
	}
	if err := w.makeSpace(row); err != nil {
		return err
	}
	at := w.begin('D')
	w.Data = binary.BigEndian.AppendUint16(w.Data, uint16(len(row)))
	for i := range row {
		if row[i].IsNull() {
			w.Data = binary.BigEndian.AppendUint32(w.Data, ^uint32(0))
			continue
		}
		w.Data = append(w.Data, 0, 0, 0, 0)
		start := len(w.Data)
		if w.formats[i] == pgproto3.BinaryFormat {
			w.Data = types.AppendBinary(w.Data, row[i], w.cols[i].Type)
		} else {
			w.Data = types.AppendText(w.Data, row[i], w.cols[i].Type, w.format)
		}
		binary.BigEndian.PutUint32(w.Data[start-4:], uint32(len(w.Data)-start))
	}
	if size := len(w.Data) - at; size > maxMessageBytes {
		w.Data = w.Data[:at-1]
		return rowTooLarge(size)
	}
	w.end(at)
	return w.SendIfLarge()
}

func rowTooLarge(size int) error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "a row of %d bytes is too large to be sent", size).
		WithHint("Select fewer columns, or parts of their values.")
}

// maxRowSpace bounds the space for a row before it is encoded: what is reserved may be twice what it takes.
const maxRowSpace = 2 * maxMessageBytes

// makeSpace makes space for a row of large values; an error is the statement's.
func (w *writer) makeSpace(row types.Row) error {
	large := 0
	for i := range row {
		if row[i].Large() {
			large += max(2*row[i].Size(), row[i].TextBytes()) // The text of bytes has two digits for each.
		}
	}
	switch {
	case large == 0:
		return nil
	case large > maxRowSpace:
		return rowTooLarge(large)
	}
	return w.Grow(large)
}

// Complete implements session.ResultWriter.
func (w *writer) Complete(tag session.Tag) error {
	at := w.begin('C')
	w.Data = append(tag.Append(w.Data), 0)
	w.end(at)
	return w.Err()
}

// Empty implements session.ResultWriter.
func (w *writer) Empty() error {
	w.end(w.begin('I'))
	return w.Err()
}

// Suspended implements session.ResultWriter.
func (w *writer) Suspended() error {
	w.end(w.begin('s'))
	return w.Err()
}

// readyForQuery ends a cycle and sends everything.
func (w *writer) readyForQuery(status session.TxnStatus) error {
	at := w.begin('Z')
	w.Data = append(w.Data, byte(status))
	w.end(at)
	return w.Send()
}

// Notice implements session.ResultWriter.
func (w *writer) Notice(n *pgerror.Error) {
	severity := n.Severity
	if severity == "" {
		severity = noticeSeverity(n.Code)
	}
	at := len(w.Data)
	r := pgproto3.NoticeResponse(*errorResponse(n, severity))
	w.send(&r)
	w.Keep(at)
}

// Setting implements session.ResultWriter.
func (w *writer) Setting(name, value string) {
	w.send(&pgproto3.ParameterStatus{Name: name, Value: value})
}

// notification sends a notification.
func (w *writer) notification(m *notify.Message) error {
	at := w.begin('A')
	w.Data = binary.BigEndian.AppendUint32(w.Data, m.PID)
	w.Data = append(append(w.Data, m.Channel...), 0)
	w.Data = append(append(w.Data, m.Payload...), 0)
	w.end(at)
	return w.SendIfLarge()
}

// noticeSeverity distinguishes warnings from notices by their class: 01, 0L for access items without a grantor, and 25 for statements
// that have no effect in the current transaction state. Of class 22 only nonstandard escapes are warned of.
func noticeSeverity(code pgerror.Code) string {
	switch code[:2] {
	case "01", "0L", "25":
		return "WARNING"
	}
	if code == pgerror.NonstandardEscape {
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
		ConstraintName: e.Constraint, InternalPosition: int32(e.InternalPosition), InternalQuery: e.InternalQuery,
	}
}

// dropPartial forgets the message that a panic left half written, recognised by its missing length.
func (w *writer) dropPartial() {
	for at := 0; at < len(w.Data); {
		length := int(binary.BigEndian.Uint32(w.Data[at+1:]))
		if length == 0 || at+1+length > len(w.Data) {
			w.Data = w.Data[:at]
			return
		}
		at += 1 + length
	}
}

// CopyIn implements session.ResultWriter.
func (w *writer) CopyIn(columns int, binaryFormat bool) (io.Reader, error) {
	w.send(&pgproto3.CopyInResponse{OverallFormat: formatByte(binaryFormat), ColumnFormatCodes: columnFormats(columns, binaryFormat)})
	if err := w.Send(); err != nil {
		return nil, err
	}
	return &copyReader{backend: w.backend}, nil
}

// CopyOut implements session.ResultWriter.
func (w *writer) CopyOut(columns int, binaryFormat bool) (io.Writer, error) {
	w.send(&pgproto3.CopyOutResponse{OverallFormat: formatByte(binaryFormat), ColumnFormatCodes: columnFormats(columns, binaryFormat)})
	return copyWriter{w}, w.Err()
}

// CopyDone implements session.ResultWriter.
func (w *writer) CopyDone() error {
	w.end(w.begin('c'))
	return w.Err()
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
	c.w.Data = append(c.w.Data, p...)
	c.w.end(at)
	return len(p), c.w.SendIfLarge()
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

// connectionError: the connection cannot continue. If the reason is a *pgerror.Error the client is sent it; otherwise
// the client has disconnected.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return "connection: " + e.err.Error() }

// Kind implements errkind.Error: the session sees no more than that the client is gone, because the reason must not pass
// for an error of the statement.
func (e *connectionError) Kind() errkind.Kind { return errkind.ClientGone }

// typeLen is pg_type.typlen: -1 for variable length.
func typeLen(t types.Type) int16 {
	if info := t.Info(); info != nil {
		return info.Len
	}
	return -1
}
