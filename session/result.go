package session

import (
	"io"
	"strconv"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Column describes an output column.
type Column = planner.Column

// Tag is a command tag: "SELECT 3", "INSERT 0 1", "BEGIN".
type Tag struct {
	Verb string
	// Rows is shown after the verb; -1 shows the verb alone.
	Rows int64
}

// Append appends the tag as PostgreSQL prints it.
func (t Tag) Append(dst []byte) []byte {
	dst = append(dst, t.Verb...)
	if t.Rows < 0 {
		return dst
	}
	if t.Verb == "INSERT" {
		dst = append(dst, " 0"...)
	}
	dst = append(dst, ' ')
	return strconv.AppendInt(dst, t.Rows, 10)
}

func verb(v string) Tag { return Tag{Verb: v, Rows: -1} }

// ResultWriter encodes what statements yield and appends it to its Buffer. pgwire implements it.
type ResultWriter interface {
	// Columns precedes the first Row of a row set: its columns and the formats asked for (as in
	// Bind: none means text, one holds for all). With announce, as in the simple protocol, the
	// client is told of them.
	Columns(cols []Column, formats []int16, announce bool) error
	// Row must not keep row.
	Row(row types.Row) error
	Complete(tag Tag) error
	// Empty answers an empty query.
	Empty() error
	Notice(n *pgerror.Error)
	// Setting reports a changed setting that clients track.
	Setting(name, value string)

	// Suspended ends an Execute that has sent as many rows as were asked for.
	Suspended() error

	// Begin, Revoke, RevokeRows, Seal, Commit and Abandon are Buffer's, which an implementation embeds.
	Begin(limit int)
	Revoke() bool
	RevokeRows()
	Seal()
	Commit()
	Abandon()

	// CopyIn starts COPY FROM STDIN and returns the client's data stream; reading it fails with
	// the client's reason when the client gives up.
	CopyIn(columns int, binary bool) (io.Reader, error)
	// CopyOut starts COPY TO STDOUT; every Write is one CopyData message. CopyDone ends it.
	CopyOut(columns int, binary bool) (io.Writer, error)
	CopyDone() error
}

// TxnStatus is the transaction indicator of ReadyForQuery.
type TxnStatus byte

// The transaction indicators.
const (
	Idle    TxnStatus = 'I'
	InBlock TxnStatus = 'T'
	Failed  TxnStatus = 'E'
)

// rowCollector is a ResultWriter that keeps rows (or only lets them pass) for uses inside the session.
type rowCollector struct {
	discard bool
	rows    []types.Row
	mark    int
}

func (c *rowCollector) Columns([]Column, []int16, bool) error { return nil }

func (c *rowCollector) Row(row types.Row) error {
	if !c.discard {
		c.rows = append(c.rows, row.Clone())
	}
	return nil
}

func (c *rowCollector) Complete(Tag) error         { return nil }
func (c *rowCollector) Empty() error               { return nil }
func (c *rowCollector) Notice(*pgerror.Error)      {}
func (c *rowCollector) Setting(name, value string) {}
func (c *rowCollector) Suspended() error           { return nil }
func (c *rowCollector) Begin(int)                  { c.mark = len(c.rows) }
func (c *rowCollector) Revoke() bool               { c.rows = c.rows[:c.mark]; return true }
func (c *rowCollector) RevokeRows()                { c.rows = c.rows[:c.mark] }
func (c *rowCollector) Seal()                      {}
func (c *rowCollector) Commit()                    {}
func (c *rowCollector) Abandon()                   {}

func (c *rowCollector) CopyIn(int, bool) (io.Reader, error)  { return nil, errNoCopy }
func (c *rowCollector) CopyOut(int, bool) (io.Writer, error) { return nil, errNoCopy }
func (c *rowCollector) CopyDone() error                      { return errNoCopy }

// taker keeps the rows and the tag of a statement that is sent in parts; all else passes.
type taker struct {
	ResultWriter
	rows *executor.RowStore
	tag  Tag
}

func (t *taker) Columns([]Column, []int16, bool) error { return nil }

func (t *taker) Row(row types.Row) error { return t.rows.Add(row) }

func (t *taker) Complete(tag Tag) error {
	t.tag = tag
	return nil
}

// Begin has nothing to do: all rows are one statement's.
func (t *taker) Begin(int)    {}
func (t *taker) Revoke() bool { return t.rows.Reset() == nil }
func (t *taker) RevokeRows()  { _ = t.rows.Reset() } // The statement fails, as it is.
func (t *taker) Seal()        {}
func (t *taker) Commit()      {}
func (t *taker) Abandon()     {}

var errNoCopy = pgerror.New(pgerror.FeatureNotSupported, "COPY is not possible here")
