package builtin

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxTextSize is the maximum size of a string in PostgreSQL.
const maxTextSize = 1<<30 - 1

func errTextTooLarge() error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "requested length too large")
}

// text1 adapts a function of one string.
func text1(f func(string) string) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Text(f(a[0].Text())), nil }
}

// textInt adapts a measure of one string.
func textInt(f func(string) int) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Int(int64(f(a[0].Text()))), nil }
}

func stringFuncs() []decl {
	out := []decl{
		{sig: "lower(text) text", fn: textMap(types.FoldLower)}, {sig: "upper(text) text", fn: textMap(foldUpper)},
		{sig: "initcap(text) text", fn: initcap}, {sig: "reverse(text) text", fn: reverse},
		{sig: "length(bytea) int4", fn: textInt(func(s string) int { return len(s) })},
		{sig: "left(text,int4) text", fn: leftText}, {sig: "right(text,int4) text", fn: rightText},
		{sig: "lpad(text,int4,text) text", fn: pad(true)}, {sig: "rpad(text,int4,text) text", fn: pad(false)},
		{sig: "lpad(text,int4) text", fn: pad(true)}, {sig: "rpad(text,int4) text", fn: pad(false)},
		{sig: "strpos(text,text) int4", fn: position}, {sig: "position(text,text) int4", fn: position},
		{sig: "position(bytea,bytea) int4", fn: positionBytes},
		{sig: "replace(text,text,text) text", fn: replaceText}, {sig: "translate(text,text,text) text", fn: translate},
		{sig: "overlay(text,text,int4,int4) text", fn: overlay(false)}, {sig: "overlay(text,text,int4) text", fn: overlay(false)},
		{sig: "overlay(bytea,bytea,int4,int4) bytea", fn: overlay(true)}, {sig: "overlay(bytea,bytea,int4) bytea", fn: overlay(true)},
		{sig: "repeat(text,int4) text", fn: repeat}, {sig: "split_part(text,text,int4) text", fn: splitPart},
		{sig: "ascii(text) int4", fn: ascii}, {sig: "chr(int4) text", fn: chr},
		{sig: "unistr(text) text", fn: unistr},
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
		out = append(out, decl{sig: name + "(text) int4", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			n, err := runeCount(env, a[0].Text())
			return types.Int(int64(n)), err
		}},
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

// trimSides selects the sides to trim.
type trimSides struct{ left, right bool }

func trimFuncs() []decl {
	var out []decl
	for name, sides := range map[string]trimSides{"btrim": {true, true}, "ltrim": {true, false}, "rtrim": {false, true}} {
		out = append(out,
			decl{sig: name + "(text) text", fn: trimFunc(sides, false)},
			decl{sig: name + "(text,text) text", fn: trimFunc(sides, false)},
			decl{sig: name + "(bytea,bytea) bytea", fn: trimFunc(sides, true)})
	}
	return out
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

// substring returns the characters from start (1 is the first) for a length; both may reach beyond the string.
func substring(inBytes bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		start, end := a[1].Int(), int64(1)<<62
		if len(a) == 3 {
			if a[2].Int() < 0 {
				return types.Null, errNegativeSubstring()
			}
			end = start + a[2].Int()
		}
		s, err := slice(env, a[0].Text(), start, end, inBytes)
		return types.Text(s), err
	}
}

func errNegativeSubstring() error {
	return pgerror.New(pgerror.SubstringError, "negative substring length not allowed")
}

func hashFuncs() []decl {
	var out []decl
	for name, f := range map[string]func() hash.Hash{
		"sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	} {
		out = append(out, decl{sig: name + "(bytea) bytea", fn: hashSum(f, types.Bytes)})
	}
	return out
}

// initcap capitalises each run of letters and digits.
func initcap(env *Env, a []types.Datum) (types.Datum, error) {
	inWord := false
	return mapPieces(env, a[0].Text(), 8, func(s string) string {
		return strings.Map(func(r rune) rune {
			was := inWord
			if inWord = unicode.IsLetter(r) || unicode.IsDigit(r); was {
				return unicode.ToLower(r)
			}
			return unicode.ToUpper(r)
		}, s)
	})
}

func reverse(env *Env, a []types.Datum) (types.Datum, error) {
	s := a[0].Text()
	if err := env.Reserve(len(s)); err != nil {
		return types.Null, err
	}
	b := make([]byte, len(s))
	at := len(s)
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		at -= n
		copy(b[at:], s[i:i+n])
		i += n
		if i%pieceBytes < n {
			if err := env.Step(4 * pieceBytes); err != nil {
				return types.Null, err
			}
		}
	}
	return types.Bytes(b), nil
}

var md5Hex = hashSum(md5.New, func(sum []byte) types.Datum { return types.Text(hex.EncodeToString(sum)) })

// leftText returns the first n characters, or all but the last -n.
func leftText(env *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), a[1].Int()
	if n < 0 {
		count, err := runeCount(env, s)
		if err != nil {
			return types.Null, err
		}
		n += int64(count)
	}
	s, err := slice(env, s, 1, n+1, false)
	return types.Text(s), err
}

// rightText returns the last n characters, or all but the first -n.
func rightText(env *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), a[1].Int()
	start := 1 - n
	if n >= 0 {
		count, err := runeCount(env, s)
		if err != nil {
			return types.Null, err
		}
		start += int64(count)
	}
	s, err := slice(env, s, start, 1<<62, false)
	return types.Text(s), err
}

func overlay(inBytes bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
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
		before, err := slice(env, s, 1, start, inBytes)
		if err != nil {
			return types.Null, err
		}
		after, err := slice(env, s, end, 1<<62, inBytes)
		if err != nil {
			return types.Null, err
		}
		return types.Text(before + with + after), nil
	}
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

// concat joins the text forms of the arguments that are not NULL.
func concat(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		var b []byte
		for i, d := range a {
			if d.IsNull() {
				continue
			}
			if err := env.ReserveText(d); err != nil {
				return types.Null, err
			}
			b = types.AppendText(b, d, o.Args[i], &env.Format)
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
			if err := env.ReserveText(d); err != nil {
				return types.Null, err
			}
			b = types.AppendText(b, d, o.Args[i+1], &env.Format)
		}
		return types.Bytes(b), nil
	}
}

func likeEscapeFunc(env *Env, a []types.Datum) (types.Datum, error) {
	return escapeLike(env, a[0].Text(), a[1].Text(), false)
}

func likeEscapeBytes(env *Env, a []types.Datum) (types.Datum, error) {
	return escapeLike(env, a[0].Text(), a[1].Text(), true)
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

func bitCount(env *Env, a []types.Datum) (types.Datum, error) {
	n := 0
	err := eachPiece(env, a[0].Bytes(), pieceBytes, func(part []byte) error {
		for _, c := range part {
			n += bits.OnesCount8(c)
		}
		return nil
	})
	return types.Int(int64(n)), err
}
