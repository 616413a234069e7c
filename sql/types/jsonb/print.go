package jsonb

// AppendText appends v's text form.
func AppendText(dst []byte, v Value) []byte { return appendValue(dst, v, 0) }

func appendValue(dst []byte, v Value, depth int) []byte {
	switch v.Kind() {
	case String:
		return AppendString(dst, v.Text())
	case Number:
		return append(dst, v.Text()...)
	case True:
		return append(dst, "true"...)
	case False:
		return append(dst, "false"...)
	case Null:
		return append(dst, "null"...)
	}
	if depth++; depth > MaxDepth {
		return append(dst, "null"...)
	}
	begin, end := byte('['), byte(']')
	object := v.Kind() == Object
	if object {
		begin, end = '{', '}'
	}
	dst = append(dst, begin)
	first := true
	for key, member := range v.Members {
		if !first {
			dst = append(dst, ',', ' ')
		}
		first = false
		if object {
			dst = append(AppendString(dst, key), ':', ' ')
		}
		dst = appendValue(dst, member, depth)
	}
	return append(dst, end)
}

// AppendPretty appends v on several lines, indented by four blanks a level.
func AppendPretty(dst []byte, v Value) []byte { return appendPretty(dst, v, 0) }

func appendPretty(dst []byte, v Value, level int) []byte {
	if !v.IsContainer() || level >= MaxDepth {
		return AppendText(dst, v)
	}
	begin, end := byte('['), byte(']')
	object := v.Kind() == Object
	if object {
		begin, end = '{', '}'
	}
	dst = append(dst, begin)
	first := true
	for key, member := range v.Members {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = newLine(dst, level+1)
		if object {
			dst = append(AppendString(dst, key), ':', ' ')
		}
		dst = appendPretty(dst, member, level+1)
	}
	return append(newLine(dst, level), end)
}

func newLine(dst []byte, level int) []byte {
	dst = append(dst, '\n')
	for range level {
		dst = append(dst, "    "...)
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string.
func AppendString[S string | []byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '"', '\\':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// TextBytes estimates the length of the text form of a value with n bytes, without reading it.
func TextBytes(n int) int {
	const perByte = 4 // Each member has a table entry and a first byte, and takes a separator and perhaps quotes or a word.
	return perByte*n + 2
}
