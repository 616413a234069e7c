package sql

import (
	"errors"
	"fmt"
	"sync"

	tidb "github.com/pingcap/tidb/pkg/parser"
	tast "github.com/pingcap/tidb/pkg/parser/ast"
)

// grammar is TiDB's parser, made on first use. Not safe for concurrent use.
type grammar struct{ parser *tidb.Parser }

// errConstant says that a constant reached TiDB's grammar. The normaliser writes none.
var errConstant = errors.New("a constant in the normalised text")

// setDriver gives TiDB's parser the constructors of constants it insists on. They only guard: the
// normalised text holds names, punctuation and keywords.
var setDriver = sync.OnceFunc(func() {
	constant := func(string) (any, error) { return nil, errConstant }
	tast.NewDecimal = constant
	tast.NewHexLiteral = constant
	tast.NewBitLiteral = constant
	tast.NewValueExpr = func(any, string, string) tast.ValueExpr { panic(errConstant) }
	tast.NewParamMarkerExpr = func(int) tast.ParamMarkerExpr { panic(errConstant) }
})

// parse gives TiDB's tree of a normalised text.
func (g *grammar) parse(text string) (st tast.StmtNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			g.parser = nil
			err = fmt.Errorf("TiDB's parser panicked on %q: %v", text, r)
		}
	}()
	if g.parser == nil {
		setDriver()
		g.parser = tidb.New()
		g.parser.SetParserConfig(tidb.ParserConfig{SkipPositionRecording: true})
	}
	stmts, _, err := g.parser.ParseSQL(text)
	if err != nil {
		return nil, fmt.Errorf("TiDB's parser refused %q: %w", text, err)
	}
	if len(stmts) != 1 {
		return nil, fmt.Errorf("TiDB's parser found %d statements in %q", len(stmts), text)
	}
	return stmts[0], nil
}
