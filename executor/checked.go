package executor

import (
	"context"
	"fmt"

	"github.com/percodb/percodb/sql/types"
)

// checked verifies the contract of Operator around another operator, in builds with invariants: calls come in order,
// rows have their width, and a row is invalid after the following Next or Close, which it enforces by returning copies
// and overwriting them.
type checked struct {
	op    Operator
	name  string
	width int
	open  bool
	ended bool
	last  types.Row
}

// scribble is the contents of a row that is no longer valid.
var scribble = types.Text("row used after the next call of its operator")

func (c *checked) fail(format string, args ...any) {
	panic("executor: " + c.name + ": " + fmt.Sprintf(format, args...))
}

func (c *checked) Open(ctx context.Context) error {
	if c.open {
		c.fail("opened twice")
	}
	c.open, c.ended = true, false
	return c.op.Open(ctx)
}

func (c *checked) Next(ctx context.Context) (types.Row, error) {
	switch {
	case !c.open:
		c.fail("Next before Open or after Close")
	case c.ended:
		c.fail("Next after the end or an error")
	}
	c.spoil()
	row, err := c.op.Next(ctx)
	if err != nil || row == nil {
		c.ended = true
		return nil, err
	}
	if len(row) != c.width {
		c.fail("row of %d columns, %d expected", len(row), c.width)
	}
	c.last = append(make(types.Row, 0, len(row)), row...)
	return c.last, nil
}

func (c *checked) Close() error {
	c.spoil()
	c.open = false
	return c.op.Close()
}

func (c *checked) spoil() {
	for i := range c.last {
		c.last[i] = scribble
	}
	c.last = nil
}
