package types

// OIDRefcursor is the type of names of cursors.
const (
	OIDRefcursor      OID = 1790
	oidRefcursorArray OID = 2201
)

// TRefcursor is the type of names of cursors.
var TRefcursor = Type{OID: OIDRefcursor, Mod: -1}

func init() {
	register(&Methods{
		Info:       Info{OIDRefcursor, "refcursor", "refcursor", oidRefcursorArray, 0, -1, CategoryUser, false, KindBytes},
		Parse:      func(s string, _ int32, _ *Format) (Datum, error) { return Text(s), nil },
		Append:     func(dst []byte, d Datum, _ *Format) []byte { return append(dst, d.Text()...) },
		Receive:    func(b []byte, _ int32, f *Format) (Datum, error) { return ParseBinary(TText, b, f) },
		Send:       func(dst []byte, d Datum) []byte { return append(dst, d.Bytes()...) },
		NoEquality: true, Unordered: true,
	})
}
