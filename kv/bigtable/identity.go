package bigtable

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/bigtable/widerow"
)

// A table has a format and an identity, in the row that candidates for the lease read. Who deletes a table and makes another one of its name,
// or starts an emulator anew, leaves processes behind that know the schema and the keys of the old one: they end when they read the row.

// tableFormat is the format of rows and cells. A table of another one is refused.
const tableFormat = 1

// TableChangedError: the table is not the one that the process was started with.
type TableChangedError struct{ Table string }

func (e *TableChangedError) Error() string {
	return "the table " + e.Table + " was deleted and made anew since this process was started; what it knows of the old one is wrong in the new one: start it again"
}

// Kind implements errkind.Error.
func (e *TableChangedError) Kind() errkind.Kind { return errkind.Refused }

// identify writes the table's format(4) and an identity(16) into it, unless it has them.
func (c *Client) identify(ctx context.Context) error {
	value := binary.BigEndian.AppendUint32(nil, tableFormat)
	id := make([]byte, 16)
	_, _ = rand.Read(id) // It returns no error.
	change := widerow.NewMutation()
	change.Set(familyMeta, columnTable, append(value, id...))
	_, err := c.unless(ctx, metaRow(coordinatorRow), column(familyMeta, columnTable), change)
	return err
}

// recognize reads the identity of the table, and refuses a format that this release does not know. A table that was prepared before there were
// identities has none until the next CreateTable.
func (c *Client) recognize(ctx context.Context) error {
	value, err := c.readCoordinator(ctx, columnTable)
	if status.Code(err) == codes.NotFound {
		return &SetupError{What: "there is no table " + c.opts.Table + " in the instance " + c.opts.Instance, Err: err,
			Hint: "Check --project, --instance and --table; percodb start makes the table."}
	}
	if err != nil {
		return err
	}
	if len(value) >= 4 {
		if format := binary.BigEndian.Uint32(value); format != tableFormat {
			return &SetupError{What: fmt.Sprintf("the table %s has the format %d, and this release reads the format %d", c.opts.Table, format, tableFormat),
				Hint: "Use the percodb release that made it, or another --table."}
		}
	}
	c.identity = string(value)
	return nil
}

// sameTable returns an error if a coordinator's row is not of the table that was recognized.
func (c *Client) sameTable(row widerow.Row) error {
	if found := string(coordinatorCell(row, columnTable)); c.identity != "" && found != c.identity {
		return &TableChangedError{Table: c.opts.Table}
	}
	return nil
}
