package jsonpath

import (
	"strconv"

	"github.com/percodb/percodb/sql/types/jsonb"
)

// String returns the text form.
func (p *Path) String() string {
	var b []byte
	if p.Strict {
		b = append(b, "strict "...)
	}
	return string(appendNode(b, p.Root, false, true))
}

// appendNode appends n; inKey is set behind another node, brackets where an operator needs them around it.
func appendNode(b []byte, n *Node, inKey, brackets bool) []byte {
	if n.Type == Key || n.Type == AnyKey || n.Type == Any {
		if inKey {
			b = append(b, '.')
		}
	}
	open := brackets && (n.Type.priority() < 6 || n.Type == LikeRegex) || n.Type == Number && n.Next != nil
	if open {
		b = append(b, '(')
	}
	b = appendItem(b, n)
	if open {
		b = append(b, ')')
	}
	if n.Next != nil {
		b = appendNode(b, n.Next, true, true)
	}
	return b
}

func appendItem(b []byte, n *Node) []byte {
	operand := func(x *Node) []byte { return appendNode(b, x, false, x.Type.priority() <= n.Type.priority()) }
	switch n.Type {
	case Null:
		return append(b, "null"...)
	case True:
		return append(b, "true"...)
	case False:
		return append(b, "false"...)
	case Number:
		return append(b, n.Text...)
	case String, Key:
		return jsonb.AppendString(b, n.Text)
	case Variable:
		return jsonb.AppendString(append(b, '$'), n.Text)
	case Root:
		return append(b, '$')
	case Current:
		return append(b, '@')
	case Last:
		return append(b, "last"...)
	case Not:
		return append(appendNode(append(b, "!("...), n.Left, false, false), ')')
	case IsUnknown:
		return append(appendNode(append(b, '('), n.Left, false, false), ") is unknown"...)
	case Exists:
		return append(appendNode(append(b, "exists ("...), n.Left, false, false), ')')
	case Filter:
		return append(appendNode(append(b, "?("...), n.Left, false, false), ')')
	case Plus, Minus:
		b = append(b, n.Type.Operator()...)
		return operand(n.Left)
	case LikeRegex:
		b = jsonb.AppendString(append(operand(n.Left), " like_regex "...), n.Text)
		if n.Flags != "" {
			b = append(append(append(b, " flag \""...), n.Flags...), '"')
		}
		return b
	case AnyKey:
		return append(b, '*')
	case AnyArray:
		return append(b, "[*]"...)
	case IndexArray:
		return appendSubscripts(b, n.Subscripts)
	case Any:
		return appendLevels(b, n.First, n.End)
	case Method:
		return append(append(append(b, '.'), n.Text...), "()"...)
	case Datetime:
		b = append(b, ".datetime("...)
		if n.Left != nil {
			b = appendNode(b, n.Left, false, false)
		}
		return append(b, ')')
	}
	b = append(append(append(operand(n.Left), ' '), n.Type.Operator()...), ' ')
	return operand(n.Right)
}

func appendSubscripts(b []byte, list []Subscript) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNode(b, s.From, false, false)
		if s.To != nil {
			b = appendNode(append(b, " to "...), s.To, false, false)
		}
	}
	return append(b, ']')
}

func appendLevels(b []byte, first, end uint32) []byte {
	b = append(b, "**"...)
	if first == 0 && end == LastLevel {
		return b
	}
	b = appendLevel(append(b, '{'), first)
	if first != end {
		b = appendLevel(append(b, " to "...), end)
	}
	return append(b, '}')
}

func appendLevel(b []byte, n uint32) []byte {
	if n == LastLevel {
		return append(b, "last"...)
	}
	return strconv.AppendUint(b, uint64(n), 10)
}
