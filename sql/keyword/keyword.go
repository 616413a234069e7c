// Package keyword is the list of PostgreSQL 15's SQL keywords with their categories. The lexer uses it
// to classify identifiers, the syntax tree's printer to know which names need quotes.
//
// Invariants: 1. Word values are dense and start at 1, so they index tables. 2. Lookup expects lower case.
// The package does not know any grammar.
package keyword

// Word is a keyword, None for an identifier that is not one.
type Word uint16

// Category says where a keyword may stand as a plain name.
type Category uint8

// The categories of PostgreSQL's kwlist.
const (
	NotKeyword Category = iota
	Unreserved          // any name
	ColumnName          // a column or table, but no function or type
	TypeFunc            // a function or type, but no column or table
	Reserved            // a label after AS only
)

// String returns the keyword in lower case, "" for None.
func (w Word) String() string { return words[w].text }

// Category returns the keyword's category, NotKeyword for None.
func (w Word) Category() Category { return words[w].category }

// BareLabel reports whether the word may follow a select item as its label without AS.
func (w Word) BareLabel() bool { return w == None || words[w].bareLabel }

// firstOf is the first word that does not sort before each letter; the last entry ends the list.
var firstOf = [27]Word{
	Abort, Backward, Cache, Data, Each, False,
	Generated, Handler, Identity, Join, Key, Label,
	Mapping, Name, Object, Parallel, Quote, Range,
	Savepoint, Table, Uescape, Vacuum, When, Xml,
	Year, Zone,
	count,
}

// Lookup finds the keyword that lower, an identifier folded to lower case, spells; None if none.
func Lookup(lower []byte) Word {
	if len(lower) < 2 || lower[0] < 'a' || lower[0] > 'z' {
		return None
	}
	lo, hi := firstOf[lower[0]-'a'], firstOf[lower[0]-'a'+1]
	for lo < hi {
		mid := (lo + hi) / 2
		switch text := words[mid].text; {
		case string(lower) == text:
			return mid
		case string(lower) < text:
			hi = mid
		default:
			lo = mid + 1
		}
	}
	return None
}

// Fold lower-cases letters of ASCII only, as PostgreSQL does in names and keywords, without allocation when there is nothing to do.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// EachWord calls yield with each keyword in alphabetical order.
func EachWord(yield func(Word) bool) {
	for w := None + 1; w < count; w++ {
		if !yield(w) {
			return
		}
	}
}
