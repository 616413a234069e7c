package jsonpath

// Type is the kind of a node.
type Type uint8

// The nodes. Predicates are those from Or to Exists.
const (
	Null Type = iota
	True
	False
	Number   // Text is the numeric's text
	String   // Text
	Variable // $Text
	Root     // $
	Current  // @
	Last     // last
	Or       // Left || Right
	And      // Left && Right
	Not      // !(Left)
	IsUnknown
	Equal
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
	StartsWith
	LikeRegex // Left like_regex Text flag Flags
	Exists    // exists (Left)
	Add
	Sub
	Mul
	Div
	Mod
	Plus       // +Left
	Minus      // -Left
	Key        // .Text
	AnyKey     // .*
	AnyArray   // [*]
	IndexArray // [Subscripts]
	Any        // .**{First to End}
	Method     // .Text()
	Datetime   // .datetime(Left), Left may be nil
	Filter     // ?(Left)
)

// LastLevel is the level "last" of an Any.
const LastLevel = 1<<32 - 1

// Node is a part of a path. Next is what applies to its items.
type Node struct {
	Type        Type
	Text        string
	Flags       string // of like_regex, in the order ismxq
	Left, Right *Node
	Subscripts  []Subscript
	First, End  uint32 // of Any
	Next        *Node
}

// Subscript is a subscript of an array: From, or From to To.
type Subscript struct {
	From, To *Node // To may be nil
}

// Path is a jsonpath. It must not be changed.
type Path struct {
	Strict bool
	Root   *Node
}

func (n *Node) predicate() bool { return n.Next == nil && n.Type >= Or && n.Type <= Exists }

// operators are the texts of binary and unary operators.
var operators = map[Type]string{
	Or: "||", And: "&&", Equal: "==", NotEqual: "!=", Less: "<", LessOrEqual: "<=", Greater: ">", GreaterOrEqual: ">=",
	Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%", Plus: "+", Minus: "-", StartsWith: "starts with",
}

// Operator returns the operator's text, as errors name it.
func (t Type) Operator() string { return operators[t] }

// priority is how strongly an operator binds.
func (t Type) priority() int {
	switch t {
	case Or:
		return 0
	case And:
		return 1
	case Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, StartsWith:
		return 2
	case Add, Sub:
		return 3
	case Mul, Div, Mod:
		return 4
	case Plus, Minus:
		return 5
	}
	return 6
}
