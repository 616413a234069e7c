package mysql

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

// TiDB's parser leaves the representation of constants to its user, through these variables of its package.
func init() {
	tidb.NewValueExpr = func(value any, _, _ string) tidb.ValueExpr {
		if v, ok := value.(tidb.ValueExpr); ok {
			return v
		}
		return &constant{value: value}
	}
	tidb.NewParamMarkerExpr = func(offset int) tidb.ParamMarkerExpr { return &parameter{offset: offset} }
	tidb.NewDecimal = func(text string) (any, error) { return decimal(text), nil }
	tidb.NewHexLiteral = newHexLiteral
	tidb.NewBitLiteral = newBitLiteral
}

// decimal is an exact number as written.
type decimal string

// binary is the bytes of X'…', 0x…, B'…' or 0b….
type binary []byte

// constant is a constant of a MySQL text: nil, bool, int, int64, uint64, float64, decimal, string or binary.
type constant struct {
	tidb.TexprNode
	value any
}

// Restore is part of ast.Node; nothing here prints MySQL's trees.
func (*constant) Restore(*format.RestoreCtx) error { return fmt.Errorf("not printable") }

// Accept is part of ast.Node.
func (n *constant) Accept(v tidb.Visitor) (tidb.Node, bool) {
	entered, _ := v.Enter(n)
	return v.Leave(entered)
}

// Format is part of ast.ExprNode.
func (n *constant) Format(w io.Writer) { fmt.Fprint(w, n.value) }

// SetValue is part of ast.ValueExpr.
func (n *constant) SetValue(value any) { n.value = value }

// GetValue is part of ast.ValueExpr.
func (n *constant) GetValue() any { return n.value }

// GetString is part of ast.ValueExpr.
func (n *constant) GetString() string {
	switch v := n.value.(type) {
	case string:
		return v
	case binary:
		return string(v)
	case nil:
		return ""
	}
	return fmt.Sprint(n.value)
}

// GetDatumString is part of ast.ValueExpr.
func (n *constant) GetDatumString() string { return n.GetString() }

// GetProjectionOffset is part of ast.ValueExpr.
func (*constant) GetProjectionOffset() int { return -1 }

// SetProjectionOffset is part of ast.ValueExpr.
func (*constant) SetProjectionOffset(int) {}

// parameter is a question mark.
type parameter struct {
	constant
	offset int // in bytes, in the whole text
}

// Accept is part of ast.Node.
func (n *parameter) Accept(v tidb.Visitor) (tidb.Node, bool) {
	entered, _ := v.Enter(n)
	return v.Leave(entered)
}

// SetOrder is part of ast.ParamMarkerExpr.
func (*parameter) SetOrder(int) {}

// newHexLiteral reads X'…' or 0x….
func newHexLiteral(text string) (any, error) {
	digits := strings.TrimPrefix(text, "0x")
	if text != "" && (text[0] == 'x' || text[0] == 'X') {
		digits = strings.Trim(text[1:], "'")
		if len(digits)%2 != 0 {
			return nil, fmt.Errorf("invalid hexadecimal literal %s", text)
		}
	}
	if len(digits)%2 != 0 {
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, err
	}
	return binary(b), nil
}

// newBitLiteral reads B'…' or 0b….
func newBitLiteral(text string) (any, error) {
	digits := strings.TrimPrefix(text, "0b")
	if text != "" && (text[0] == 'b' || text[0] == 'B') {
		digits = strings.Trim(text[1:], "'")
	}
	b := make([]byte, (len(digits)+7)/8)
	for i := range len(digits) {
		bit := digits[len(digits)-1-i]
		if bit != '0' && bit != '1' {
			return nil, fmt.Errorf("invalid bit literal %s", text)
		}
		b[len(b)-1-i/8] |= (bit - '0') << (i % 8)
	}
	return binary(b), nil
}
