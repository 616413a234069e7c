package sql

import "unicode/utf8"

// TokenKind says what a Token is.
type TokenKind uint8

// The kinds of tokens.
const (
	TokenEnd    TokenKind = iota // of the text
	TokenName                    // an unquoted word; Value is folded
	TokenQuoted                  // a quoted name
	TokenString                  // a string or bit string
	TokenNumber                  // an integer or decimal number
	TokenParam                   // $1
	TokenSymbol                  // an operator or punctuation, as it is written
)

// Token is a lexeme of a text in a language around SQL, such as PL/pgSQL.
type Token struct {
	Kind       TokenKind
	Start, End int    // bytes of the text
	Value      string // a name or string without quotes and escapes, else the text
}

// Tokens cuts a text into tokens; the last one is TokenEnd. Errors are *pgerror.Error with the position in the text, or those of m, which
// may be nil.
func Tokens(text string, m *Meter) ([]Token, error) {
	s := newScanner(text, 0, StandardStrings, m)
	var list []Token
	for {
		var t token
		if err := s.next(&t); err != nil {
			return nil, m.explain(err)
		}
		out := Token{Start: int(t.start), End: int(t.end), Value: text[t.start:t.end]}
		switch t.kind {
		case tokEOF:
			return append(list, out), nil
		case tokIdent, tokQuoted:
			name, err := s.ident(&t)
			if err != nil {
				return nil, m.explain(err)
			}
			out.Kind, out.Value = TokenName, name
			if t.kind == tokQuoted {
				out.Kind = TokenQuoted
			}
		case tokLiteral:
			out.Kind = TokenNumber
			if t.sub&styleMask != styleNumber {
				value, err := s.literal(&t)
				if err != nil {
					return nil, m.explain(err)
				}
				out.Kind, out.Value = TokenString, value
			}
		case tokParam:
			out.Kind = TokenParam
		default:
			out.Kind = TokenSymbol
		}
		list = append(list, out)
	}
}

// PositionIn returns the position, in characters from 1, of a byte of a text.
func PositionIn(text string, offset int) int {
	return utf8.RuneCountInString(text[:min(offset, len(text))]) + 1
}
