package builtin

import (
	"slices"

	"github.com/percodb/percodb/sql/pgcrypto"
	"github.com/percodb/percodb/sql/types"
)

// pgpFuncs declares pgcrypto's functions of OpenPGP messages. Those of texts and those of bytes differ in one type, and in a mark of the message.
func pgpFuncs() []decl {
	var out []decl
	for _, kind := range []struct {
		suffix, data string
		text         bool
	}{{"", "text", true}, {"_bytea", "bytea", false}} {
		for _, options := range []string{"", ",text"} {
			out = append(out,
				decl{sig: "pgp_sym_encrypt" + kind.suffix + "(" + kind.data + ",text" + options + ") bytea", flags: volatile, fn: pgpEncrypt(pgcrypto.SymEncrypt, kind.text)},
				decl{sig: "pgp_pub_encrypt" + kind.suffix + "(" + kind.data + ",bytea" + options + ") bytea", flags: volatile, fn: pgpEncrypt(pgcrypto.PubEncrypt, kind.text)},
				decl{sig: "pgp_sym_decrypt" + kind.suffix + "(bytea,text" + options + ") " + kind.data, fn: pgpSymDecrypt(kind.text)})
		}
		for _, more := range []string{"", ",text", ",text,text"} {
			out = append(out, decl{sig: "pgp_pub_decrypt" + kind.suffix + "(bytea,bytea" + more + ") " + kind.data, fn: pgpPubDecrypt(kind.text)})
		}
	}
	return out
}

// optionalText returns argument i, "" if there is none.
func optionalText(a []types.Datum, i int) string {
	if i >= len(a) {
		return ""
	}
	return a[i].Text()
}

// pgpEncrypt adapts a function whose arguments are the data, a password or key, and options.
func pgpEncrypt(f func(data []byte, text bool, key []byte, options string, poll pgcrypto.Poll) ([]byte, error), text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		// The message, and the data with longer ends of lines.
		if err := env.Reserve(4 * len(a[0].Bytes())); err != nil {
			return types.Null, err
		}
		message, err := f(a[0].Bytes(), text, a[1].Bytes(), optionalText(a, 2), func() error { return env.Step(stepsPerCheck) })
		if err != nil {
			return types.Null, err
		}
		return types.Bytes(message), nil
	}
}

// pgpWriter collects what a message contains, of which its own length says nothing.
type pgpWriter struct{ valueBuilder }

func (w *pgpWriter) Write(b []byte) (int, error) {
	if err := w.env.Step(len(b)); err != nil {
		return 0, err
	}
	if err := w.grow(len(b)); err != nil {
		return 0, err
	}
	w.b = append(w.b, b...)
	return len(b), nil
}

// result returns the data of a message that has been read to its end.
func (w *pgpWriter) result(text bool, err error) (types.Datum, error) {
	if err == nil && text {
		err = types.ValidateText(w.b)
	}
	if err != nil {
		return types.Null, err
	}
	return types.Bytes(slices.Clip(w.b)), nil
}

func pgpSymDecrypt(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		w := &pgpWriter{valueBuilder{env: env}}
		return w.result(text, pgcrypto.SymDecrypt(w, a[0].Bytes(), text, a[1].Bytes(), optionalText(a, 2)))
	}
}

func pgpPubDecrypt(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		var password []byte
		if len(a) > 2 {
			password = append([]byte{}, a[2].Bytes()...)
		}
		w := &pgpWriter{valueBuilder{env: env}}
		return w.result(text, pgcrypto.PubDecrypt(w, a[0].Bytes(), text, a[1].Bytes(), password, optionalText(a, 3)))
	}
}
