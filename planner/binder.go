package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxDepth bounds how deep expressions, subqueries and views may nest, so that recursion over
// hostile texts ends with an error and not with the stack.
const maxDepth = 5000

// binder turns one statement's syntax tree into a rel. One goroutine's.
type binder struct {
	ctx  context.Context
	r    catalog.Resolver
	env  *builtin.Env
	opts Options

	cols       []columnInfo // by column ID
	params     []types.Type // by parameter number - 1; zero or unknown Type: not known yet
	paramPos   []int        // where each was first seen
	relations  []*catalog.TableDescriptor
	names      []FoundName
	types      []*types.Defined
	extensions []*catalog.ExtensionDescriptor
	inlined    *builtin.SetFunc // the function bound last in FROM if its query has taken its place; nil: none has
	routines   bool             // a routine of a user is called when the plan is executed
	apart      bool             // ROWS FROM is being bound, whose functions are no queries
	inlining   []types.OID      // the functions whose bodies are being bound
	arguments  []int            // the columns that stand for $1, … in the body that is being bound
	depth      int
	views      []uint64 // ids of the views being expanded
	guards     []uint64 // ids of the tables whose policies with subqueries are being bound
	stored     int      // texts of policies that are being bound
	// policyViews is the number of views around the policy that is being bound.
	policyViews int
	byRole      bool // who acts decides which policies are in the plan
	guarded     bool // there are policies in the plan
	needs       []*Need
	as          uint32 // the owner of the view being expanded; 0: whoever runs the statement
	noSlots     bool
	travels     *ast.Query    // the statement, if it is a query: AS OF SYSTEM TIME is permitted only at its top
	texts       []textLiteral // literals that are constants
	subs        int           // subqueries numbered so far
	works       int           // recursive WITH items numbered so far
	limits      []limitScope  // the LIMIT and OFFSET being bound
	trackers    []*tracker    // of the aggregates being bound
	unpopulated string        // Plan.Unpopulated
	volatile    bool          // a volatile function was called
	withs       bool          // there is a WITH clause
	laterals    bool          // a join is lateral
	top         *ast.With     // that of the statement itself, the only one that may have data-modifying items
	modifying   []*cte        // data-modifying items of WITH, in the order of the text
	consumes    bool          // percodb.changes was called
	currentOf   []CursorKey   // of WHERE CURRENT OF
	lockingView bool          // the rows of a view's tables are being locked
	locks       string        // the strength of a FOR UPDATE or its kind that was seen
	scans       []*scanRel
	shallow     bool           // views are read as if they were tables: nothing is planned
	naming      *ast.ColumnRef // the name of a column that is being bound
	// notes record how the text was bound, which is verbatim then; nil: they are not kept.
	notes *bindNotes
	// onName is told which column of a relation a name means; nil: nobody is.
	onName func(ref *ast.ColumnRef, t *catalog.TableDescriptor, ordinal int)
	// stars are the columns for which the stars in select lists stand; nil: they are not noted.
	stars map[ast.Expr][]ast.SelectItem
	// userOperator is the OID of the operator that was bound last if it is one of a user, else 0. writing: the statement writes the one that
	// is being bound.
	userOperator uint32
	writing      bool
	whole        bool // what is being bound is the operator alone, so that its function may be inlined
	// usedOperators and usedCasts are the OIDs of those of users, each as often as it is used.
	usedOperators, usedCasts []types.OID

	visited int64 // bytes not drawn yet
	passed  int   // expressions since the last poll
	long    bool  // memory was drawn
}

// textLiteral is a constant whose type context decides, and its place in the syntax tree.
type textLiteral struct {
	c       *expr.Const
	literal *ast.Literal
}

// typeLiteral notes in the syntax tree that context has given a literal a user-defined type. A statement that stores the tree keeps the
// type then, whatever it is called later.
func (b *binder) typeLiteral(c *expr.Const, t types.Type) {
	for i := range b.texts {
		if b.texts[i].c == c {
			name := &ast.TypeName{Name: []string{t.Def.Schema, t.Def.Name}}
			if t.IsArray() {
				name.Array = 1
			}
			b.texts[i].literal.Typed = name
		}
	}
}

// columnInfo describes a column ID.
type columnInfo struct {
	Column
	notNull bool
	scan    *scanRel            // the table it comes from, nil for computed columns
	ordinal int                 // its ordinal there
	fields  []builtin.SetColumn // of its anonymous records, where they are known; nil: they are not
}

// newColumn makes a column ID.
func (b *binder) newColumn(name string, t types.Type) int {
	if t.Coll != nil {
		t.Coll = t.Coll.Plain()
	}
	b.cols = append(b.cols, columnInfo{Column: Column{Name: name, Type: t}})
	return len(b.cols) - 1
}

// column makes an expression that reads a column.
func (b *binder) column(id, pos int) *expr.Column {
	c := &b.cols[id]
	name := c.Name
	if c.Table != "" {
		name = c.Table + "." + name
	}
	return &expr.Column{ID: id, Typ: c.Type, Name: name, Pos: pos}
}

// enter counts one level of nesting; leave gives it back.
func (b *binder) enter(pos int) error {
	if b.depth++; b.depth > maxDepth {
		return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
			WithHint("The statement nests deeper than the server allows.").At(pos)
	}
	return b.visit(nodeBytes)
}

func (b *binder) leave() { b.depth-- }

// Expressions and rows that a plan is made of are counted; each time their memory has reached visitedBytes, it is drawn from
// the meter, which is polled.
const (
	visitedBytes = 256 << 10
	// nodeBytes is about what an expression takes: bound and compiled, with its place among the inputs, its value in each
	// execution, and its entry of a hash table or its key.
	nodeBytes = 416
	// passedNodes is the number of expressions of a pass that adds nothing between two polls.
	passedNodes = 4096
)

// visit counts n bytes of memory. Errors: the context's, *memory.ExceededError.
func (b *binder) visit(n int64) error {
	if b.visited += n; b.visited < visitedBytes {
		return nil
	}
	n, b.visited, b.long = b.visited, 0, true
	if b.opts.Meter == nil {
		return b.ctx.Err()
	}
	return b.opts.Meter.Grow(n)
}

// pass counts an expression that a pass over the plan visits.
func (b *binder) pass() error {
	if b.passed++; b.passed < passedNodes {
		return nil
	}
	b.passed = 0
	return b.poll()
}

// poll is called between passes, which take long for long statements only.
func (b *binder) poll() error {
	switch {
	case !b.long:
		return nil
	case b.opts.Meter == nil:
		return b.ctx.Err()
	}
	return b.opts.Meter.Poll()
}

// use records that the plan depends on t.
func (b *binder) use(t *catalog.TableDescriptor) {
	for _, have := range b.relations {
		if have == t {
			return
		}
	}
	b.relations = append(b.relations, t)
	for i := range t.Columns {
		b.useType(t.Columns[i].Type)
	}
}

// declareParams completes the types that the client declared for parameters.
func (b *binder) declareParams() {
	for i, t := range b.opts.ParamTypes {
		if complete := b.r.Types().Complete(t); complete != t {
			b.opts.ParamTypes = slices.Clone(b.opts.ParamTypes)
			for j := i; j < len(b.opts.ParamTypes); j++ {
				b.opts.ParamTypes[j] = b.r.Types().Complete(b.opts.ParamTypes[j])
				b.useType(b.opts.ParamTypes[j])
			}
			return
		}
	}
}

// newScan makes the scan of a table with fresh column IDs. need takes the columns that the statement's text reads; nil: the text is not
// the client's.
func (b *binder) newScan(t *catalog.TableDescriptor, alias string, need *Need) *scanRel {
	b.use(t)
	s := &scanRel{table: t, alias: alias, cols: make([]int, len(t.Columns)), need: need}
	first := len(b.cols)
	for i := range t.Columns {
		c := &t.Columns[i]
		b.cols = append(b.cols, columnInfo{
			Column: Column{Name: c.Name, Type: c.Type, TableID: t.ID, AttNum: int16(c.ID), Table: alias},
			// Columns that are NOT NULL or part of a key are never NULL; the executor assigns the rowid.
			notNull: c.NotNull || c.Hidden || inIndex(&t.Primary, c.ID),
			scan:    s,
			ordinal: i,
		})
		s.cols[i] = first + i
	}
	b.scans = append(b.scans, s)
	return s
}

func inIndex(ix *catalog.IndexDescriptor, columnID uint32) bool {
	for i := range ix.Columns {
		if ix.Columns[i].ColumnID == columnID {
			return true
		}
	}
	return false
}

// undefinedColumn is PostgreSQL's error for a name that no column has.
func undefinedColumn(table, name string, pos int) error {
	if table != "" {
		return pgerror.New(pgerror.UndefinedColumn, "column %s.%s does not exist", table, name).At(pos)
	}
	return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", name).At(pos)
}
