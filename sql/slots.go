package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// slotter decides which literals of a statement become slots. A plan is kept under the statement's
// key, so whatever may change the plan's shape must show in the key:
//
//   - literals from ORDER BY, GROUP BY, LIMIT, OFFSET, FETCH or a window frame to the clause's end,
//     the observer of percodb.changes, and type modifiers, are pinned: their value is in the key, their slot is -1;
//   - with GROUP BY, OVER or SELECT DISTINCT the planner compares expressions, so equal literals share a
//     slot whose number is in the key, and a literal equal to a pinned one is pinned too.
type slotter struct {
	shared bool
	index  map[slotValue]int32
}

type slotValue struct {
	kind  ast.LiteralKind
	value string
}

// assign sets the slot of every literal token and returns the number of slots.
func (a *slotter) assign(s *scanner, toks []token) (int, *pgerror.Error) {
	a.shared = false
	literals, err := pinLiterals(s, toks, &a.shared)
	if literals == 0 || err != nil {
		return 0, err
	}
	if a.shared {
		return a.share(s, toks, literals)
	}
	next := int32(0)
	for from := 0; from < len(toks); from += pollTokens {
		if from > 0 {
			if err := s.meter.poll(); err != nil {
				return 0, err
			}
		}
		some := toks[from:min(from+pollTokens, len(toks))]
		for i := range some {
			if t := &some[i]; t.kind == tokLiteral && t.slot != pinned {
				t.slot = next
				next++
			}
		}
	}
	return int(next), nil
}

// The slots of a literal before its number is known.
const (
	pinned  = -1
	slotted = -2
)

// pinLiterals marks every literal as pinned or slotted, reports whether expressions will be compared,
// and returns the number of literals.
func pinLiterals(s *scanner, toks []token, shared *bool) (int, *pgerror.Error) {
	depth, pinDepth, count := 0, -1, 0
	for i := range toks {
		if i&pollMask == pollMask {
			if err := s.meter.poll(); err != nil {
				return 0, err
			}
		}
		t := &toks[i]
		switch t.kind {
		case '(', '[':
			depth++
			if pinDepth < 0 && t.kind == '(' && i > 0 && typeModifiers(toks, i) {
				pinDepth = depth
			}
		case ')', ']':
			depth--
			if depth < pinDepth {
				pinDepth = -1
			}
		case tokLiteral:
			count++
			t.slot = slotted
			// The field of EXTRACT decides the result's type.
			if pinDepth >= 0 || i > 1 && toks[i-2].kw == kw.Extract || observerOfChanges(s, toks, i) {
				t.slot = pinned
			}
			if i > 0 && toks[i-1].kind == ')' && t.lit == ast.LiteralString {
				pinModifiers(toks, i-1)
			}
		case tokIdent:
			if t.kw == kw.None {
				continue
			}
			if pinDepth == depth && endsPinned(t.kw) {
				pinDepth = -1
			}
			if pinDepth < 0 && startsPinned(toks, i, depth) {
				pinDepth = depth
			}
			if t.kw == kw.Group && follows(toks, i, kw.By) || t.kw == kw.Over ||
				t.kw == kw.Distinct && i > 0 && toks[i-1].kw == kw.Select {
				*shared = true
			}
		}
	}
	return count, nil
}

// pinModifiers pins the literals inside the parentheses that close at last: they are the modifiers of a type
// before a string, as in f(3) 'x'. The closing one keeps in its slot where they open, or the beginning of the text if
// they do not, so that no token is visited twice however they nest.
func pinModifiers(toks []token, last int) {
	i := last
	for depth := 0; i > 0; i-- {
		switch t := &toks[i]; t.kind {
		case ')':
			if t.slot >= 0 {
				i = int(t.slot)
			} else {
				depth++
			}
		case '(':
			depth--
		case tokLiteral:
			t.slot = pinned
		}
		if depth <= 0 {
			break
		}
	}
	toks[last].slot = int32(i)
}

// observerOfChanges reports whether the literal at i is the first argument of percodb.changes, which decides the columns.
func observerOfChanges(s *scanner, toks []token, i int) bool {
	if i < 4 || toks[i-1].kind != '(' || toks[i-2].kind != tokIdent && toks[i-2].kind != tokQuoted || toks[i-3].kind != '.' {
		return false
	}
	name := &toks[i-2]
	return strings.EqualFold(strings.Trim(s.text[name.start:name.end], `"`), "changes")
}

func follows(toks []token, i int, word kw.Word) bool {
	return i+1 < len(toks) && toks[i+1].kw == word
}

// startsPinned reports whether a clause whose literals are pinned begins at i.
func startsPinned(toks []token, i, depth int) bool {
	switch toks[i].kw {
	case kw.Order, kw.Group:
		return follows(toks, i, kw.By)
	case kw.Limit, kw.Offset, kw.Fetch:
		return true
	case kw.Rows, kw.Range, kw.Groups:
		return depth > 0 && i+1 < len(toks) && (toks[i+1].kw == kw.Between || toks[i+1].kind == tokLiteral)
	}
	return false
}

// endsPinned reports whether a word at the pinned clause's own depth begins another clause.
func endsPinned(word kw.Word) bool {
	switch word {
	case kw.Having, kw.Window, kw.Union, kw.Intersect, kw.Except, kw.Order, kw.Limit, kw.Offset, kw.Fetch,
		kw.For, kw.On, kw.Returning, kw.Where:
		return true
	}
	return false
}

// typeModifiers reports whether the parenthesis at i belongs to a type: after a type keyword, or after
// a name that :: or AS precedes. Mistaking AS t (…) for one only pins more than needed.
func typeModifiers(toks []token, i int) bool {
	switch toks[i-1].kw {
	case kw.Bit, kw.Char, kw.Character, kw.CurrentTime, kw.CurrentTimestamp, kw.Localtime, kw.Localtimestamp, kw.Dec, kw.Decimal, kw.Float, kw.Interval, kw.Nchar, kw.Numeric,
		kw.Second, kw.Time, kw.Timestamp, kw.Varchar, kw.Varying:
		return true
	case kw.Materialized:
		return false
	}
	j := i - 1
	if toks[j].kind != tokIdent && toks[j].kind != tokQuoted || toks[j].kw.Category() == kw.Reserved {
		return false
	}
	for j >= 2 && toks[j-1].kind == '.' {
		j -= 2
	}
	return j > 0 && (toks[j-1].kind == tokCast || toks[j-1].kw == kw.As)
}

// share numbers the slots so that equal literals have one, and pins those equal to a pinned one.
func (a *slotter) share(s *scanner, toks []token, literals int) (int, *pgerror.Error) {
	if a.index == nil {
		a.index = make(map[slotValue]int32)
	}
	clear(a.index)
	if literals > pollTokens {
		bytes := int64(literals) * slotBytes
		if err := s.meter.grow(bytes); err != nil {
			return 0, err
		}
		defer func() {
			s.meter.Shrink(bytes)
			a.index = nil
		}()
	}
	next := int32(0)
	for pass, want := range [2]int32{pinned, slotted} {
		for i := range toks {
			if i&pollMask == pollMask {
				if err := s.meter.poll(); err != nil {
					return 0, err
				}
			}
			t := &toks[i]
			if t.kind != tokLiteral || t.slot != want {
				continue
			}
			value, err := s.literal(t)
			if err != nil {
				value = s.text[t.start:t.end] // refused later, when its value is asked for
			}
			slot, known := a.index[slotValue{t.lit, value}]
			switch {
			case known:
				t.slot = slot
			case pass == 0:
				a.index[slotValue{t.lit, value}] = pinned
			default:
				a.index[slotValue{t.lit, value}] = next
				t.slot = next
				next++
			}
		}
	}
	return int(next), nil
}

// slotBytes is about what an entry of slotter.index takes.
const slotBytes = 96

// foldMinimum joins a minus sign with the magnitude of the smallest int4 or int8: PostgreSQL's
// grammar negates constants before it gives them a type, so -2147483648 is an int4. The result is in toks' place.
func foldMinimum(s *scanner, toks []token) ([]token, *pgerror.Error) {
	out := 1
	for i := 1; i < len(toks); i++ {
		if i&pollMask == pollMask {
			if err := s.meter.poll(); err != nil {
				return toks, err
			}
		}
		t := &toks[i]
		if t.kind != tokLiteral {
			if out != i {
				toks[out] = *t
			}
			out++
			continue
		}
		if sign := &toks[out-1]; t.sub == styleNumber && sign.sub == '-' && sign.kind == tokOp {
			kind, next := minimumKind(s.text[t.start:t.end]), toks[i+1].kind
			if kind != 0 && (out < 2 || !endsOperand(toks, out-2)) && next != tokCast && next != '[' {
				t.start, t.lit = sign.start, kind
				out--
			}
		}
		if out != i {
			toks[out] = *t
		}
		out++
	}
	return toks[:out], nil
}

func minimumKind(digits string) ast.LiteralKind {
	switch digits {
	case minInt4:
		return ast.LiteralInt4
	case minInt8:
		return ast.LiteralInt8
	}
	return 0
}

// minimumDigits is the number of digits of the smallest value of an integer type.
func minimumDigits(kind ast.LiteralKind) int {
	if kind == ast.LiteralInt4 {
		return len(minInt4)
	}
	return len(minInt8)
}

// endsOperand reports whether a minus after token i subtracts.
func endsOperand(toks []token, i int) bool { return operandToken(&toks[i]) && !operatorWord(toks, i) }

// operandToken reports whether t can be the last token of an operand.
func operandToken(t *token) bool {
	switch t.kind {
	case tokQuoted, tokLiteral, tokParam, ')', ']':
		return true
	case tokIdent:
		switch t.kw {
		case kw.Null, kw.True, kw.False, kw.End, kw.Default, kw.CurrentDate, kw.CurrentTime, kw.CurrentTimestamp,
			kw.Localtime, kw.Localtimestamp, kw.CurrentUser, kw.CurrentRole, kw.SessionUser, kw.User, kw.CurrentCatalog:
			return true
		}
		return t.kw.Category() != kw.Reserved
	}
	return false
}

// operatorWord reports whether token i, a word that is not reserved, precedes an operand. BETWEEN, ESCAPE and BY are
// also column names.
func operatorWord(toks []token, i int) bool {
	switch toks[i].kw {
	case kw.Like, kw.Ilike, kw.Is:
		return true
	case kw.Between, kw.Escape:
		return i > 0 && (toks[i-1].kw == kw.Not || operandToken(&toks[i-1]))
	case kw.By:
		return i > 0 && (toks[i-1].kw == kw.Order || toks[i-1].kw == kw.Group || toks[i-1].kw == kw.Partition || toks[i-1].kw == kw.Increment)
	}
	return false
}
