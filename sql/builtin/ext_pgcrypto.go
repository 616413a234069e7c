package builtin

import (
	"crypto/rand"
	"strings"

	"github.com/percodb/percodb/sql/pgcrypto"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// pgcryptoFuncs declares the functions of pgcrypto.
func pgcryptoFuncs() []decl {
	return append(pgpFuncs(), []decl{
		{sig: "digest(text,text) bytea", fn: cryptoDigest}, {sig: "digest(bytea,text) bytea", fn: cryptoDigest},
		{sig: "hmac(text,text,text) bytea", fn: cryptoHMAC}, {sig: "hmac(bytea,bytea,text) bytea", fn: cryptoHMAC},
		{sig: "crypt(text,text) text", fn: cryptoCrypt},
		{sig: "gen_salt(text) text", flags: volatile, fn: cryptoSalt}, {sig: "gen_salt(text,int4) text", flags: volatile, fn: cryptoSalt},
		{sig: "encrypt(bytea,bytea,text) bytea", fn: cryptoCipher(pgcrypto.Encrypt)},
		{sig: "decrypt(bytea,bytea,text) bytea", fn: cryptoCipher(pgcrypto.Decrypt)},
		{sig: "encrypt_iv(bytea,bytea,bytea,text) bytea", fn: cryptoCipher(pgcrypto.Encrypt)},
		{sig: "decrypt_iv(bytea,bytea,bytea,text) bytea", fn: cryptoCipher(pgcrypto.Decrypt)},
		{sig: "gen_random_bytes(int4) bytea", flags: volatile, fn: cryptoRandomBytes},
		{sig: "gen_random_uuid() uuid", flags: volatile, fn: genRandomUUID},
		{sig: "armor(bytea) text", fn: cryptoArmor}, {sig: "armor(bytea,text[],text[]) text", fn: cryptoArmor},
		{sig: "pgp_key_id(bytea) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			id, err := pgcrypto.KeyID(a[0].Bytes())
			return types.Text(id), err
		}},
		{sig: "dearmor(text) bytea", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return cryptoBytes(env, len(a[0].Text()), func() ([]byte, error) { return pgcrypto.Dearmor(a[0].Text()) })
		}},
	}...)
}

func pgcryptoSets() []setDecl {
	return []setDecl{{sig: "pgp_armor_headers(text) record", estimate: 10, columns: []SetColumn{{"key", types.TText}, {"value", types.TText}},
		open: opens(func(_ *Env, a []types.Datum) (SetRows, error) {
			list, err := pgcrypto.ArmorHeaders(a[0].Text())
			rows := make([]types.Datum, len(list))
			for i, h := range list {
				rows[i] = types.NewRecord([]types.Type{types.TText, types.TText}, []types.Datum{types.Text(h.Key), types.Text(h.Value)})
			}
			return &sliceRows{rows}, err
		})}}
}

// cryptoBytes evaluates a function whose result is about as long as n bytes.
func cryptoBytes(env *Env, n int, f func() ([]byte, error)) (types.Datum, error) {
	if err := env.Reserve(n); err != nil {
		return types.Null, err
	}
	out, err := f()
	if err != nil {
		return types.Null, err
	}
	return types.Bytes(out), nil
}

func cryptoDigest(_ *Env, a []types.Datum) (types.Datum, error) {
	sum, err := pgcrypto.Digest(a[0].Bytes(), a[1].Text())
	return types.Bytes(sum), err
}

func cryptoHMAC(_ *Env, a []types.Datum) (types.Datum, error) {
	sum, err := pgcrypto.HMAC(a[0].Bytes(), a[1].Bytes(), a[2].Text())
	return types.Bytes(sum), err
}

// cryptPollSteps is what passes between two polls of pgcrypto.Crypt, in steps.
const cryptPollSteps = stepsPerCheck

func cryptoCrypt(env *Env, a []types.Datum) (types.Datum, error) {
	hash, err := pgcrypto.Crypt(a[0].Text(), a[1].Text(), func() error { return env.Step(cryptPollSteps) })
	if err != nil {
		return types.Null, err
	}
	return types.Text(hash), nil
}

func cryptoSalt(_ *Env, a []types.Datum) (types.Datum, error) {
	rounds := 0
	if len(a) > 1 {
		rounds = int(a[1].Int())
	}
	salt, err := pgcrypto.GenSalt(a[0].Text(), rounds)
	if err != nil {
		return types.Null, err
	}
	return types.Text(salt), nil
}

func cryptoCipher(f func(data, key, iv []byte, how string) ([]byte, error)) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		var iv []byte
		if len(a) == 4 {
			iv = a[2].Bytes()
		}
		return cryptoBytes(env, len(a[0].Bytes()), func() ([]byte, error) { return f(a[0].Bytes(), a[1].Bytes(), iv, a[len(a)-1].Text()) })
	}
}

// maxRandomBytes is the most that gen_random_bytes returns.
const maxRandomBytes = 1024

func cryptoRandomBytes(_ *Env, a []types.Datum) (types.Datum, error) {
	n := a[0].Int()
	if n < 1 || n > maxRandomBytes {
		return types.Null, pgerror.New("39000", "Length not in range")
	}
	out := make([]byte, n)
	_, err := rand.Read(out)
	return types.Bytes(out), err
}

func cryptoArmor(env *Env, a []types.Datum) (types.Datum, error) {
	var headers []pgcrypto.Header
	if len(a) == 3 {
		var err error
		if headers, err = armorHeaders(a[1].Array(), a[2].Array()); err != nil {
			return types.Null, err
		}
	}
	if err := env.Reserve(2 * len(a[0].Bytes())); err != nil {
		return types.Null, err
	}
	return types.Text(pgcrypto.Armor(a[0].Bytes(), headers)), nil
}

// armorHeaders checks the keys and values of headers.
func armorHeaders(keys, values *types.Array) ([]pgcrypto.Header, error) {
	for _, a := range []*types.Array{keys, values} {
		if a.NDims() > 1 {
			return nil, pgerror.New("2202E", "wrong number of array subscripts")
		}
	}
	if len(keys.Elems) != len(values.Elems) {
		return nil, pgerror.New("2202E", "mismatched array dimensions")
	}
	headers := make([]pgcrypto.Header, len(keys.Elems))
	for i := range headers {
		for _, part := range []struct {
			d    types.Datum
			what string
			to   *string
		}{{keys.Elems[i], "key", &headers[i].Key}, {values.Elems[i], "value", &headers[i].Value}} {
			if part.d.IsNull() {
				return nil, pgerror.New("22004", "null value not allowed for header %s", part.what)
			}
			text := part.d.Text()
			why := ""
			switch {
			case strings.ContainsFunc(text, func(r rune) bool { return r > 127 }):
				why = "non-ASCII characters"
			case part.what == "key" && strings.Contains(text, ": "):
				why = "\": \""
			case strings.Contains(text, "\n"):
				why = "newlines"
			}
			if why != "" {
				return nil, pgerror.New(pgerror.InvalidParameterValue, "header %s must not contain %s", part.what, why)
			}
			*part.to = text
		}
	}
	return headers, nil
}
