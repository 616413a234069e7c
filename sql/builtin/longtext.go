package builtin

import (
	"hash"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// pieceBytes is how much of a long text is processed between two calls of Env.Step.
const pieceBytes = 64 << 10

// piece returns the beginning of s to process next: whole characters.
func piece(s string) string {
	if len(s) <= pieceBytes {
		return s
	}
	n := pieceBytes
	for back := 0; back < utf8.UTFMax && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// mapPieces applies f, which may be stateful, to s piece by piece; stepsPerByte is its cost.
func mapPieces(env *Env, s string, stepsPerByte int, f func(string) string) (types.Datum, error) {
	if len(s) <= pieceBytes {
		return types.Text(f(s)), env.Step(len(s) * stepsPerByte)
	}
	out := valueBuilder{env: env}
	if err := out.grow(len(s)); err != nil {
		return types.Null, err
	}
	for s != "" {
		p := piece(s)
		s = s[len(p):]
		mapped := f(p)
		if err := out.grow(len(mapped)); err != nil {
			return types.Null, err
		}
		out.b = append(out.b, mapped...)
		if err := env.Step(len(p) * stepsPerByte); err != nil {
			return types.Null, err
		}
	}
	return types.Bytes(out.b), nil
}

// textMap adapts a function of one string that can be applied to its parts.
func textMap(f func(string) string) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) { return mapPieces(env, a[0].Text(), 8, f) }
}

// runeCount is the number of characters of s.
func runeCount(env *Env, s string) (int, error) {
	n := 0
	for len(s) > pieceBytes {
		p := piece(s)
		n += utf8.RuneCountInString(p)
		s = s[len(p):]
		if err := env.Step(len(p)); err != nil {
			return 0, err
		}
	}
	return n + utf8.RuneCountInString(s), nil
}

// index is strings.Index.
func index(env *Env, s, sub string) (int, error) {
	const window = 1 << 20
	at := 0
	for len(s)-at > window+len(sub) {
		if i := strings.Index(s[at:at+window+len(sub)-1], sub); i >= 0 {
			return at + i, nil
		}
		at += window
		if err := env.Step(window + len(sub)); err != nil {
			return 0, err
		}
	}
	if i := strings.Index(s[at:], sub); i >= 0 {
		return at + i, nil
	}
	return -1, nil
}

// cut calls visit with the parts of s between separators, and finally with the rest.
func cut(env *Env, s, separator string, visit func(part string) (more bool, err error)) error {
	for {
		i, err := index(env, s, separator)
		if err != nil {
			return err
		}
		if i < 0 {
			_, err := visit(s)
			return err
		}
		if more, err := visit(s[:i]); !more || err != nil {
			return err
		}
		s = s[i+len(separator):]
		if err := env.Step(stepCost + i/8); err != nil {
			return err
		}
	}
}

func replaceText(env *Env, a []types.Datum) (types.Datum, error) {
	s, from, to := a[0].Text(), a[1].Text(), a[2].Text()
	if from == "" {
		return a[0], nil
	}
	out := valueBuilder{env: env}
	some := false
	err := cut(env, s, from, func(part string) (bool, error) {
		n := len(part)
		if some {
			n += len(to)
		}
		if err := out.grow(n); err != nil {
			return false, err
		}
		if some {
			out.b = append(out.b, to...)
		}
		some = true
		out.b = append(out.b, part...)
		return true, nil
	})
	return types.Bytes(out.b), err
}

func translate(env *Env, a []types.Datum) (types.Datum, error) {
	to := []rune(a[2].Text())
	mapped := map[rune]rune{}
	i := 0
	for _, f := range a[1].Text() {
		if _, ok := mapped[f]; !ok {
			mapped[f] = -1
			if i < len(to) {
				mapped[f] = to[i]
			}
		}
		if i++; i%1024 == 0 {
			if err := env.Step(64 * 1024); err != nil {
				return types.Null, err
			}
		}
	}
	return mapPieces(env, a[0].Text(), 16, func(s string) string {
		return strings.Map(func(r rune) rune {
			if t, ok := mapped[r]; ok {
				return t
			}
			return r
		}, s)
	})
}

func repeat(env *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), max(a[1].Int(), 0)
	if n*int64(len(s)) > maxTextSize {
		return types.Null, errTextTooLarge()
	}
	b, err := fillBytes(env, s, int(n)*len(s))
	return types.Bytes(b), err
}

// fillBytes returns n bytes of repetitions of s.
func fillBytes(env *Env, s string, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if err := env.Reserve(n); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, n), s[:min(n, len(s))]...)
	for len(b) < n {
		// Copies of at most 1 MiB, a multiple of s long.
		from := b[:min(len(b), n-len(b))]
		if limit := max(1<<20/len(s), 1) * len(s); len(from) > limit {
			from = from[:limit]
		}
		b = append(b, from...)
		if err := env.Step(len(from) / 4); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// pad lengthens a string to a number of characters, or truncates it.
func pad(left bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		s, fill := a[0].Text(), " "
		if len(a) == 3 {
			fill = a[2].Text()
		}
		count, err := runeCount(env, s)
		if err != nil {
			return types.Null, err
		}
		want, have := max(a[1].Int(), 0), int64(count)
		if fill == "" {
			want = min(want, have)
		}
		if want*utf8.UTFMax > maxTextSize {
			return types.Null, errTextTooLarge()
		}
		if have >= want {
			cut, err := slice(env, s, 1, want+1, false)
			return types.Text(cut), err
		}
		fillCount, err := runeCount(env, fill)
		if err != nil {
			return types.Null, err
		}
		whole, part := (want-have)/int64(fillCount), (want-have)%int64(fillCount)
		rest, err := slice(env, fill, 1, part+1, false)
		if err != nil {
			return types.Null, err
		}
		size := int(whole)*len(fill) + len(rest)
		padding, err := fillBytes(env, fill, size)
		if err != nil {
			return types.Null, err
		}
		if s == "" {
			return types.Bytes(padding), nil
		}
		if err := env.Reserve(size + len(s)); err != nil {
			return types.Null, err
		}
		b := make([]byte, 0, size+len(s))
		if left {
			return types.Bytes(append(append(b, padding...), s...)), nil
		}
		return types.Bytes(append(append(b, s...), padding...)), nil
	}
}

func splitPart(env *Env, a []types.Datum) (types.Datum, error) {
	s, separator, n := a[0].Text(), a[1].Text(), a[2].Int()
	if n == 0 {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "field position must not be zero")
	}
	if s == "" || separator == "" {
		if n == 1 || n == -1 {
			return types.Text(s), nil
		}
		return types.Text(""), nil
	}
	count := int64(0)
	if n < 0 {
		if err := cut(env, s, separator, func(string) (bool, error) { count++; return true, nil }); err != nil {
			return types.Null, err
		}
		if n += count + 1; n < 1 {
			return types.Text(""), nil
		}
	}
	count = 0
	found := ""
	err := cut(env, s, separator, func(part string) (bool, error) {
		if count++; count == n {
			found = part
		}
		return count < n, nil
	})
	return types.Text(found), err
}

// hashSum adapts a hash function.
func hashSum(make func() hash.Hash, result func(sum []byte) types.Datum) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		h := make()
		for b := a[0].Bytes(); len(b) > 0; {
			n := min(len(b), pieceBytes)
			h.Write(b[:n]) // A hash.Hash never fails.
			b = b[n:]
			if err := env.Step(4 * n); err != nil {
				return types.Null, err
			}
		}
		return result(h.Sum(nil)), nil
	}
}

// positionBytes implements position on bytea.
func positionBytes(env *Env, a []types.Datum) (types.Datum, error) {
	i, err := index(env, a[0].Text(), a[1].Text())
	return types.Int(int64(i + 1)), err
}

func position(env *Env, a []types.Datum) (types.Datum, error) {
	s := a[0].Text()
	i, err := index(env, s, a[1].Text())
	if i < 0 || err != nil {
		return types.Int(0), err
	}
	n, err := runeCount(env, s[:i])
	return types.Int(int64(n + 1)), err
}

// trimFunc adapts trimming of the characters, or bytes, of a set.
func trimFunc(sides trimSides, inBytes bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		set := " "
		if len(a) == 2 {
			set = a[1].Text()
		}
		var canceled error
		seen := 0
		polled := func(in bool) bool {
			if seen++; seen%pieceBytes == 0 {
				canceled = env.Step(4 * pieceBytes)
			}
			return in && canceled == nil
		}
		if inBytes {
			var in [256]bool
			for i := range len(set) {
				in[set[i]] = true
			}
			b := a[0].Bytes()
			for sides.left && len(b) > 0 && polled(in[b[0]]) {
				b = b[1:]
			}
			for sides.right && len(b) > 0 && polled(in[b[len(b)-1]]) {
				b = b[:len(b)-1]
			}
			return types.Bytes(b), canceled
		}
		in := func(r rune) bool { return polled(strings.ContainsRune(set, r)) }
		if len(set) > 64 {
			runes := map[rune]bool{}
			for i, r := range set {
				runes[r] = true
				if i%1024 == 0 {
					if err := env.Step(64 * 1024); err != nil {
						return types.Null, err
					}
				}
			}
			in = func(r rune) bool { return polled(runes[r]) }
		}
		s := a[0].Text()
		if sides.left {
			s = strings.TrimLeftFunc(s, in)
		}
		if sides.right {
			s = strings.TrimRightFunc(s, in)
		}
		return types.Text(s), canceled
	}
}

// slice returns the characters start … end-1 of s, counted from 1.
func slice(env *Env, s string, start, end int64, inBytes bool) (string, error) {
	start = max(start, 1)
	if end <= start {
		return "", nil
	}
	if inBytes {
		if start > int64(len(s)) {
			return "", nil
		}
		return s[start-1 : min(end-1, int64(len(s)))], nil
	}
	from, err := charOffset(env, s, start-1)
	if err != nil || end-start >= int64(len(s)) {
		return s[from:], err
	}
	n, err := charOffset(env, s[from:], end-start)
	return s[from : from+n], err
}

// charOffset returns the length of the first n characters of s in bytes; len(s) if it has fewer.
func charOffset(env *Env, s string, n int64) (int, error) {
	if n >= int64(len(s)) {
		return len(s), nil
	}
	at := 0
	for n > pieceBytes {
		p := piece(s[at:])
		if len(p) == 0 {
			return len(s), nil
		}
		if err := env.Step(len(p)); err != nil {
			return 0, err
		}
		n -= int64(utf8.RuneCountInString(p))
		at += len(p)
	}
	for i := range s[at:] {
		if n == 0 {
			return at + i, nil
		}
		n--
	}
	return len(s), nil
}

// eachPiece calls f with parts of b of n bytes, the last one shorter, and checks for a cancel.
func eachPiece(env *Env, b []byte, n int, f func(part []byte) error) error {
	for len(b) > 0 {
		part := b[:min(n, len(b))]
		b = b[len(part):]
		if err := f(part); err != nil {
			return err
		}
		if err := env.Step(4 * len(part)); err != nil {
			return err
		}
	}
	return nil
}
