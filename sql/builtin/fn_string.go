package builtin

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxTextSize is the size PostgreSQL refuses to build a string of.
const maxTextSize = 1<<30 - 1

func errTextTooLarge() error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "requested length too large")
}

// text1 lifts a function of one string.
func text1(f func(string) string) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Text(f(a[0].Text())), nil }
}

// textInt lifts a measure of one string.
func textInt(f func(string) int) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Int(int64(f(a[0].Text()))), nil }
}

func stringFuncs() []decl {
	out := []decl{
		{sig: "lower(text) text", fn: text1(foldLower)}, {sig: "upper(text) text", fn: text1(foldUpper)},
		{sig: "initcap(text) text", fn: text1(initcap)}, {sig: "reverse(text) text", fn: text1(reverse)},
		{sig: "length(bytea) int4", fn: textInt(func(s string) int { return len(s) })},
		{sig: "left(text,int4) text", fn: leftText}, {sig: "right(text,int4) text", fn: rightText},
		{sig: "lpad(text,int4,text) text", fn: pad(true)}, {sig: "rpad(text,int4,text) text", fn: pad(false)},
		{sig: "lpad(text,int4) text", fn: pad(true)}, {sig: "rpad(text,int4) text", fn: pad(false)},
		{sig: "strpos(text,text) int4", fn: position}, {sig: "position(text,text) int4", fn: position},
		{sig: "position(bytea,bytea) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(int64(bytes.Index(a[0].Bytes(), a[1].Bytes()) + 1)), nil
		}},
		{sig: "replace(text,text,text) text", fn: replaceText}, {sig: "translate(text,text,text) text", fn: translate},
		{sig: "overlay(text,text,int4,int4) text", fn: overlay(false)}, {sig: "overlay(text,text,int4) text", fn: overlay(false)},
		{sig: "overlay(bytea,bytea,int4,int4) bytea", fn: overlay(true)}, {sig: "overlay(bytea,bytea,int4) bytea", fn: overlay(true)},
		{sig: "repeat(text,int4) text", fn: repeat}, {sig: "split_part(text,text,int4) text", fn: splitPart},
		{sig: "ascii(text) int4", fn: ascii}, {sig: "chr(int4) text", fn: chr},
		{sig: "starts_with(text,text) bool", fn: startsWith},
		{sig: "to_hex(int4) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Text(strconv.FormatUint(uint64(uint32(a[0].Int())), 16)), nil
		}},
		{sig: "to_hex(int8) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Text(strconv.FormatUint(uint64(a[0].Int()), 16)), nil
		}},
		{sig: "concat(variadic any) text", bind: concat, flags: nonStrict | stable},
		{sig: "concat_ws(text,variadic any) text", bind: concatWS, flags: nonStrict | stable},
		{sig: "md5(text) text", fn: md5Hex}, {sig: "md5(bytea) text", fn: md5Hex},
		{sig: "encode(bytea,text) text", fn: encodeBytes}, {sig: "decode(text,text) bytea", fn: decodeBytes},
		{sig: "like_escape(text,text) text", fn: likeEscapeFunc}, {sig: "like_escape(bytea,bytea) bytea", fn: likeEscapeBytes},
		{sig: "length(bytea,name) int4", fn: lengthInEncoding},
		{sig: "convert_from(bytea,name) text", fn: convertFrom}, {sig: "convert_to(text,name) bytea", fn: convertTo},
		{sig: "get_byte(bytea,int4) int4", fn: getByte}, {sig: "set_byte(bytea,int4,int4) bytea", fn: setByte},
		{sig: "get_bit(bytea,int8) int4", fn: getBit}, {sig: "set_bit(bytea,int8,int4) bytea", fn: setBit},
		{sig: "bit_count(bytea) int8", fn: bitCount},
	}
	out = append(out, lengthFuncs()...)
	out = append(out, trimFuncs()...)
	out = append(out, substringFuncs()...)
	return append(out, hashFuncs()...)
}

func lengthFuncs() []decl {
	var out []decl
	for _, name := range []string{"length", "char_length", "character_length"} {
		out = append(out, decl{sig: name + "(text) int4", fn: textInt(utf8.RuneCountInString)},
			decl{sig: name + "(bpchar) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Int(int64(utf8.RuneCount(types.TrimBPChar(a[0].Bytes())))), nil
			}})
	}
	for _, t := range []string{"text", "bytea", "bpchar"} {
		out = append(out, decl{sig: "octet_length(" + t + ") int4", fn: textInt(func(s string) int { return len(s) })})
	}
	for _, t := range []string{"text", "bytea"} {
		out = append(out, decl{sig: "bit_length(" + t + ") int4", fn: textInt(func(s string) int { return 8 * len(s) })})
	}
	return out
}

// trimSides says where to trim.
type trimSides struct{ left, right bool }

func trimFuncs() []decl {
	var out []decl
	for name, sides := range map[string]trimSides{"btrim": {true, true}, "ltrim": {true, false}, "rtrim": {false, true}} {
		out = append(out,
			decl{sig: name + "(text) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Text(trimChars(a[0].Text(), " ", sides)), nil
			}},
			decl{sig: name + "(text,text) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Text(trimChars(a[0].Text(), a[1].Text(), sides)), nil
			}},
			decl{sig: name + "(bytea,bytea) bytea", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Bytes(trimBytes(a[0].Bytes(), a[1].Bytes(), sides)), nil
			}})
	}
	return out
}

func trimChars(s, set string, sides trimSides) string {
	in := func(r rune) bool { return strings.ContainsRune(set, r) }
	if sides.left {
		s = strings.TrimLeftFunc(s, in)
	}
	if sides.right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

func trimBytes(b, set []byte, sides trimSides) []byte {
	for sides.left && len(b) > 0 && bytes.IndexByte(set, b[0]) >= 0 {
		b = b[1:]
	}
	for sides.right && len(b) > 0 && bytes.IndexByte(set, b[len(b)-1]) >= 0 {
		b = b[:len(b)-1]
	}
	return b
}

func substringFuncs() []decl {
	var out []decl
	for _, name := range []string{"substring", "substr"} {
		for _, t := range []string{"text", "bytea"} {
			out = append(out, decl{sig: name + "(" + t + ",int4) " + t, fn: substring(t == "bytea")},
				decl{sig: name + "(" + t + ",int4,int4) " + t, fn: substring(t == "bytea")})
		}
	}
	return out
}

// substring cuts the characters from start (1 is the first) for a length, both of which may reach
// beyond the string.
func substring(inBytes bool) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		start, end := a[1].Int(), int64(1)<<62
		if len(a) == 3 {
			if a[2].Int() < 0 {
				return types.Null, errNegativeSubstring()
			}
			end = start + a[2].Int()
		}
		return types.Text(slice(a[0].Text(), start, end, inBytes)), nil
	}
}

func errNegativeSubstring() error {
	return pgerror.New(pgerror.SubstringError, "negative substring length not allowed")
}

// slice returns the characters start … end-1 of s, counted from 1.
func slice(s string, start, end int64, inBytes bool) string {
	start = max(start, 1)
	if end <= start {
		return ""
	}
	if inBytes || len(s) == utf8.RuneCountInString(s) {
		if start > int64(len(s)) {
			return ""
		}
		return s[start-1 : min(end-1, int64(len(s)))]
	}
	from, to := len(s), len(s)
	n := int64(1)
	for i := range s {
		if n == start {
			from = i
		}
		if n == end {
			to = i
			break
		}
		n++
	}
	return s[from:to]
}

func hashFuncs() []decl {
	var out []decl
	for name, sum := range map[string]func([]byte) []byte{
		"sha224": func(b []byte) []byte { h := sha256.Sum224(b); return h[:] },
		"sha256": func(b []byte) []byte { h := sha256.Sum256(b); return h[:] },
		"sha384": func(b []byte) []byte { h := sha512.Sum384(b); return h[:] },
		"sha512": func(b []byte) []byte { h := sha512.Sum512(b); return h[:] },
	} {
		out = append(out, decl{sig: name + "(bytea) bytea", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bytes(sum(a[0].Bytes())), nil
		}})
	}
	return out
}

func md5Hex(_ *Env, a []types.Datum) (types.Datum, error) {
	h := md5.Sum(a[0].Bytes())
	return types.Text(hex.EncodeToString(h[:])), nil
}

// initcap capitalises each run of letters and digits.
func initcap(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		if inWord = unicode.IsLetter(r) || unicode.IsDigit(r); was {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

func reverse(s string) string {
	b := make([]byte, len(s))
	at := len(s)
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		at -= n
		copy(b[at:], s[i:i+n])
		i += n
	}
	return string(b)
}

// leftText takes n characters, or all but the last -n.
func leftText(_ *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), a[1].Int()
	if n < 0 {
		n += int64(utf8.RuneCountInString(s))
	}
	return types.Text(slice(s, 1, n+1, false)), nil
}

// rightText takes the last n characters, or all but the first -n.
func rightText(_ *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), a[1].Int()
	if n < 0 {
		return types.Text(slice(s, 1-n, 1<<62, false)), nil
	}
	return types.Text(slice(s, int64(utf8.RuneCountInString(s))-n+1, 1<<62, false)), nil
}

func pad(left bool) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		s, fill := a[0].Text(), " "
		if len(a) == 3 {
			fill = a[2].Text()
		}
		want, have := max(a[1].Int(), 0), int64(utf8.RuneCountInString(s))
		if fill == "" {
			want = min(want, have)
		}
		if want*utf8.UTFMax > maxTextSize {
			return types.Null, errTextTooLarge()
		}
		if have >= want {
			return types.Text(slice(s, 1, want+1, false)), nil
		}
		runes := []rune(fill)
		var b strings.Builder
		if !left {
			b.WriteString(s)
		}
		for i := range want - have {
			b.WriteRune(runes[i%int64(len(runes))])
		}
		if left {
			b.WriteString(s)
		}
		return types.Text(b.String()), nil
	}
}

func position(_ *Env, a []types.Datum) (types.Datum, error) {
	s := a[0].Text()
	i := strings.Index(s, a[1].Text())
	if i < 0 {
		return types.Int(0), nil
	}
	return types.Int(int64(utf8.RuneCountInString(s[:i]) + 1)), nil
}

func replaceText(_ *Env, a []types.Datum) (types.Datum, error) {
	s, from, to := a[0].Text(), a[1].Text(), a[2].Text()
	if from == "" {
		return a[0], nil
	}
	if grow := len(to) - len(from); grow > 0 && len(s)+strings.Count(s, from)*grow > maxTextSize {
		return types.Null, errTextTooLarge()
	}
	return types.Text(strings.ReplaceAll(s, from, to)), nil
}

func translate(_ *Env, a []types.Datum) (types.Datum, error) {
	from, to := []rune(a[1].Text()), []rune(a[2].Text())
	return types.Text(strings.Map(func(r rune) rune {
		for i, f := range from {
			if f == r {
				if i < len(to) {
					return to[i]
				}
				return -1
			}
		}
		return r
	}, a[0].Text())), nil
}

func overlay(inBytes bool) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		s, with, start := a[0].Text(), a[1].Text(), a[2].Int()
		length := int64(len(with))
		if !inBytes {
			length = int64(utf8.RuneCountInString(with))
		}
		if len(a) == 4 {
			length = a[3].Int()
		}
		if start <= 0 {
			return types.Null, errNegativeSubstring()
		}
		end, err := checkInt4(start + length)
		if err != nil {
			return types.Null, err
		}
		return types.Text(slice(s, 1, start, inBytes) + with + slice(s, end, 1<<62, inBytes)), nil
	}
}

func repeat(_ *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), max(a[1].Int(), 0)
	if n*int64(len(s)) > maxTextSize {
		return types.Null, errTextTooLarge()
	}
	return types.Text(strings.Repeat(s, int(n))), nil
}

func splitPart(_ *Env, a []types.Datum) (types.Datum, error) {
	s, sep, n := a[0].Text(), a[1].Text(), a[2].Int()
	if n == 0 {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "field position must not be zero")
	}
	if s == "" {
		return types.Text(""), nil
	}
	parts := []string{s}
	if sep != "" {
		parts = strings.Split(s, sep)
	}
	if n < 0 {
		n += int64(len(parts)) + 1
	}
	if n < 1 || n > int64(len(parts)) {
		return types.Text(""), nil
	}
	return types.Text(parts[n-1]), nil
}

func ascii(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].Text() == "" {
		return types.Int(0), nil
	}
	r, _ := utf8.DecodeRuneInString(a[0].Text())
	return types.Int(int64(r)), nil
}

func chr(_ *Env, a []types.Datum) (types.Datum, error) {
	n := a[0].Int()
	switch {
	case n < 0:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "character number must be positive")
	case n == 0:
		return types.Null, pgerror.New(pgerror.ProgramLimitExceeded, "null character not permitted")
	case n > utf8.MaxRune:
		return types.Null, pgerror.New(pgerror.ProgramLimitExceeded, "requested character too large for encoding: %d", n)
	case !utf8.ValidRune(rune(n)):
		return types.Null, pgerror.New(pgerror.ProgramLimitExceeded, "requested character not valid for encoding: %d", n)
	}
	return types.Text(string(rune(n))), nil
}

// concat joins the text forms of what is not NULL.
func concat(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		var b []byte
		for i, d := range a {
			if !d.IsNull() {
				b = types.AppendText(b, d, o.Args[i], &env.Format)
			}
		}
		return types.Bytes(b), nil
	}
}

func concatWS(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Null, nil
		}
		var b []byte
		first := true
		for i, d := range a[1:] {
			if d.IsNull() {
				continue
			}
			if !first {
				b = append(b, a[0].Bytes()...)
			}
			first = false
			b = types.AppendText(b, d, o.Args[i+1], &env.Format)
		}
		return types.Bytes(b), nil
	}
}

func likeEscapeFunc(_ *Env, a []types.Datum) (types.Datum, error) {
	s, err := LikeEscape(a[0].Text(), a[1].Text())
	return types.Text(s), err
}

// likeEscapeBytes is LikeEscape for bytes, which are characters here.
func likeEscapeBytes(_ *Env, a []types.Datum) (types.Datum, error) {
	pattern, escape := a[0].Bytes(), a[1].Bytes()
	if len(escape) > 1 {
		_, _, err := escapeChar("no character")
		return types.Null, err
	}
	if len(escape) == 1 && escape[0] == likeEscape {
		return a[0], nil
	}
	var out []byte
	escaped := false
	for _, c := range pattern {
		if len(escape) == 1 && c == escape[0] && !escaped {
			escaped = true
			out = append(out, likeEscape)
			continue
		}
		if c == likeEscape && !escaped {
			out = append(out, likeEscape)
		}
		out = append(out, c)
		escaped = false
	}
	return types.Bytes(out), nil
}

func lengthInEncoding(_ *Env, a []types.Datum) (types.Datum, error) {
	if err := checkEncoding(a[1].Text(), ""); err != nil {
		return types.Null, err
	}
	if err := types.ValidateText(a[0].Bytes()); err != nil {
		return types.Null, err
	}
	return types.Int(int64(utf8.RuneCount(a[0].Bytes()))), nil
}

func checkEncoding(name, which string) error {
	switch strings.ToLower(strings.ReplaceAll(name, "-", "")) {
	case "utf8", "unicode":
		return nil
	}
	return pgerror.New(pgerror.InvalidParameterValue, "invalid %sencoding name \"%s\"", which, name)
}

func convertFrom(_ *Env, a []types.Datum) (types.Datum, error) {
	if err := checkEncoding(a[1].Text(), "source "); err != nil {
		return types.Null, err
	}
	return a[0], types.ValidateText(a[0].Bytes())
}

func convertTo(_ *Env, a []types.Datum) (types.Datum, error) {
	return a[0], checkEncoding(a[1].Text(), "destination ")
}

func errIndexRange(i int64, last int) error {
	return pgerror.New(pgerror.ArraySubscriptError, "index %d out of valid range, 0..%d", i, last)
}

func getByte(_ *Env, a []types.Datum) (types.Datum, error) {
	b, i := a[0].Bytes(), a[1].Int()
	if i < 0 || i >= int64(len(b)) {
		return types.Null, errIndexRange(i, len(b)-1)
	}
	return types.Int(int64(b[i])), nil
}

func setByte(_ *Env, a []types.Datum) (types.Datum, error) {
	b, i := bytes.Clone(a[0].Bytes()), a[1].Int()
	if i < 0 || i >= int64(len(b)) {
		return types.Null, errIndexRange(i, len(b)-1)
	}
	b[i] = byte(a[2].Int())
	return types.Bytes(b), nil
}

func getBit(_ *Env, a []types.Datum) (types.Datum, error) {
	b, i := a[0].Bytes(), a[1].Int()
	if i < 0 || i >= 8*int64(len(b)) {
		return types.Null, errIndexRange(i, 8*len(b)-1)
	}
	return types.Int(int64(b[i/8] >> (i % 8) & 1)), nil
}

func setBit(_ *Env, a []types.Datum) (types.Datum, error) {
	b, i, v := bytes.Clone(a[0].Bytes()), a[1].Int(), a[2].Int()
	if i < 0 || i >= 8*int64(len(b)) {
		return types.Null, errIndexRange(i, 8*len(b)-1)
	}
	if v != 0 && v != 1 {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "new bit must be 0 or 1")
	}
	b[i/8] = b[i/8]&^(1<<(i%8)) | byte(v)<<(i%8)
	return types.Bytes(b), nil
}

func bitCount(_ *Env, a []types.Datum) (types.Datum, error) {
	n := 0
	for _, c := range a[0].Bytes() {
		n += bits.OnesCount8(c)
	}
	return types.Int(int64(n)), nil
}
