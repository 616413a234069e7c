package types

import (
	"bytes"
	"sort"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// DefinedKind is PostgreSQL's typtype of a user-defined type.
type DefinedKind byte

// The kinds of user-defined types.
const (
	Enum   DefinedKind = 'e'
	Domain DefinedKind = 'd'
	// Composite is the type of rows of attributes.
	Composite DefinedKind = 'c'
	// RangeKind and MultirangeKind are a range type and the multirange type that is created with it.
	RangeKind      DefinedKind = 'r'
	MultirangeKind DefinedKind = 'm'
)

// Defined is a user-defined type as of one version of the schema. NewDefined makes it; it is immutable then.
type Defined struct {
	OID   OID
	Array OID // of its arrays
	Kind  DefinedKind
	// Version is the schema version that last changed the type: equal OIDs and versions mean equal types.
	Version         uint64
	Schema          string
	Name, ArrayName string
	// Labels are those of an enum, in their order.
	Labels []EnumLabel
	// Parent is the type over which a domain is declared, with its modifier; it may be a domain itself.
	Parent Type
	// Default is the text of a domain's default, "" for none; that of a domain over another includes the other's.
	Default string
	// NotNull and Checks are a domain's own constraints; those of its parent apply as well.
	NotNull bool
	Checks  []DomainCheck

	// Fields are the attributes of a composite type, by ID. Of a row type they are the columns of the relation with the number Relation.
	Fields   []Field
	Relation uint64

	base          Type // below all domains
	constrained   bool // the domain, or one below, has constraints
	scalar, array Info
	byName        map[string]int // places of Labels
	types         []Type         // of Fields
	names         []string       // of Fields
	ids           []uint32       // of Fields
	ranges        *RangeTypes    // of a range or multirange type
}

// EnumLabel is a value of an enum. Its datum is Position, of KindBytes: positions order as the labels do, and that of a label never
// changes, so that keys stay in order whatever labels are added between them.
type EnumLabel struct {
	OID      OID
	Name     string
	Position []byte
	// Order is pg_enum.enumsortorder. Labels may be numbered anew.
	Order float32
	// Added is the schema version that added the label, 0 if the type was created with it.
	Added uint64 `json:",omitempty"`
}

// DomainCheck is a CHECK constraint of a domain: an expression over VALUE.
type DomainCheck struct {
	OID  OID
	Name string
	Expr string // SQL text
	// NotValid: values that were stored before it may violate it.
	NotValid bool   `json:",omitempty"`
	Comment  string `json:",omitempty"`
}

// Field is an attribute of a composite type. ID never changes and is never used again: it identifies the attribute in what is stored.
type Field struct {
	ID   uint32
	Name string
	Type Type
}

// NewDefined completes d. A domain's parent and the types of fields must be complete.
func NewDefined(d *Defined) *Defined {
	name := keyword.QuoteIdent(d.Name)
	if d.Schema != "public" && d.Schema != "pg_catalog" && !strings.HasPrefix(d.Schema, "pg_temp") { // A session sees its own temporary schema alone.
		name = keyword.QuoteIdent(d.Schema) + "." + name
	}
	d.scalar = Info{OID: d.OID, Name: d.Name, SQLName: name, Array: d.Array, Len: 4, Category: CategoryEnum, Kind: KindBytes}
	d.array = Info{OID: d.Array, Name: d.ArrayName, SQLName: name + "[]", Elem: d.OID, Len: -1, Category: CategoryArray, Kind: KindArray}
	if d.Kind == Domain {
		d.base = d.Parent.Underlying()
		d.constrained = d.NotNull || len(d.Checks) > 0 || d.Parent.IsDomain() && d.Parent.Def.constrained
		below := d.base.Info()
		d.scalar.Len, d.scalar.Category, d.scalar.Kind = below.Len, below.Category, below.Kind
	}
	if d.Kind == Composite {
		d.scalar.Len, d.scalar.Category, d.scalar.Kind = -1, CategoryRow, KindRow
		d.types, d.names, d.ids = make([]Type, len(d.Fields)), make([]string, len(d.Fields)), make([]uint32, len(d.Fields))
		for i := range d.Fields {
			d.types[i], d.names[i], d.ids[i] = d.Fields[i].Type, d.Fields[i].Name, d.Fields[i].ID
		}
	}
	switch d.Kind {
	case RangeKind:
		d.scalar.Len, d.scalar.Category, d.scalar.Kind = -1, CategoryRange, KindRange
	case MultirangeKind:
		d.scalar.Len, d.scalar.Category, d.scalar.Kind = -1, CategoryRange, KindArray
	}
	d.byName = make(map[string]int, len(d.Labels))
	for i := range d.Labels {
		d.byName[d.Labels[i].Name] = i
	}
	return d
}

// PairRanges completes a range type and its multirange type, whose bounds have type sub.
func PairRanges(rng, multi *Defined, sub Type) {
	rt := &RangeTypes{Range: rng.Type(), Multi: multi.Type(), Sub: sub.Base().Collated(sub.Coll)}
	rng.ranges, multi.ranges = rt, rt
}

// Type returns the type, without modifier; of a domain with its collation.
func (d *Defined) Type() Type {
	t := Type{OID: d.OID, Mod: -1, Def: d}
	if d.Kind == Domain {
		t.Coll = d.Parent.Coll
	}
	return t
}

// ArrayType returns the type of its arrays.
func (d *Defined) ArrayType() Type { return Type{OID: d.Array, Mod: -1, Def: d} }

func (d *Defined) info(oid OID) *Info {
	if oid == d.Array {
		return &d.array
	}
	return &d.scalar
}

// IsDomain reports whether t is a domain.
func (t Type) IsDomain() bool { return t.Def != nil && t.Def.Kind == Domain && t.OID == t.Def.OID }

// Underlying returns the type below a domain, and below all domains under it, with its modifier; any other type is its own.
func (t Type) Underlying() Type {
	if t.IsDomain() {
		base := t.Def.base
		if t.Coll != nil {
			base.Coll = t.Coll
		}
		return base
	}
	return t
}

// Constrained reports whether values of a domain must satisfy constraints, its own or those of a domain below.
func (d *Defined) Constrained() bool { return d.constrained }

// HasDomain reports whether t is a domain with constraints, or has values of one within its values.
func (t Type) HasDomain() bool {
	if elem := t.Elem(); elem.Valid() {
		return elem.HasDomain()
	}
	if t.IsComposite() {
		for i := range t.Def.Fields {
			if t.Def.Fields[i].Type.HasDomain() {
				return true
			}
		}
		return false
	}
	if rt := t.Ranges(); rt != nil {
		return rt.Sub.HasDomain()
	}
	return t.IsDomain() && (t.Def.constrained || t.Def.base.HasDomain())
}

// IsEnum reports whether t is an enum.
func (t Type) IsEnum() bool { return t.Def != nil && t.Def.Kind == Enum && t.OID == t.Def.OID }

// Label returns the enum's label of a datum, and its place among Labels; false for bytes that no label has.
func (d *Defined) Label(v Datum) (label *EnumLabel, place int, ok bool) {
	b := v.Bytes()
	i := sort.Search(len(d.Labels), func(i int) bool { return bytes.Compare(d.Labels[i].Position, b) >= 0 })
	if i == len(d.Labels) || !bytes.Equal(d.Labels[i].Position, b) {
		return nil, 0, false
	}
	return &d.Labels[i], i, true
}

// LabelNamed returns the label of that name, nil if there is none.
func (d *Defined) LabelNamed(name string) *EnumLabel {
	i, ok := d.byName[name]
	if !ok {
		return nil
	}
	return &d.Labels[i]
}

// Usable fails for a label that the transaction itself has added.
func (d *Defined) Usable(l *EnumLabel, f *Format) error {
	if l.Added == 0 || f.Uncommitted == nil || !f.Uncommitted(l.Added) {
		return nil
	}
	return pgerror.New(unsafeNewEnumValue, "unsafe use of new value \"%s\" of enum type %s", l.Name, d.scalar.SQLName).
		WithHint("New enum values must be committed before they can be used.")
}

// unsafeNewEnumValue is the SQLSTATE of a label that the transaction itself has added.
const unsafeNewEnumValue pgerror.Code = "55P04"

// CheckNull fails if NULL is no value of the type.
func CheckNull(t Type, f *Format) error {
	if !t.IsDomain() || !t.Def.constrained {
		return nil
	}
	return f.checkDomain(t.Def, Null)
}

// checked returns a value of the type under a domain, which has been read without error, if the domain's constraints permit it.
func checked(d *Defined, v Datum, err error, f *Format) (Datum, error) {
	if err == nil && d.constrained {
		err = f.checkDomain(d, v)
	}
	return v, err
}

// parseDefined reads the text form of a value of a user-defined type that is no domain.
func parseDefined(d *Defined, s string, f *Format) (Datum, error) {
	switch d.Kind {
	case Composite:
		return parseRecord(d, s, f)
	case RangeKind:
		return d.ranges.parse(s, f)
	case MultirangeKind:
		return d.ranges.parseMulti(s, f)
	}
	l := d.LabelNamed(s)
	if l == nil {
		return Null, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input value for enum %s: \"%s\"", d.scalar.SQLName, s)
	}
	if err := d.Usable(l, f); err != nil {
		return Null, err
	}
	return Bytes(l.Position), nil
}

func appendDefined(dst []byte, d *Defined, v Datum, f *Format) []byte {
	switch d.Kind {
	case RangeKind:
		return d.ranges.append(dst, v.Range(), f)
	case MultirangeKind:
		return d.ranges.appendMulti(dst, v, f)
	}
	if l, _, ok := d.Label(v); ok {
		return append(dst, l.Name...)
	}
	return dst
}

// Enum positions are an integer, the byte 0x80 + n for -112 ≤ n < 112 and five bytes beyond, and a fraction in base 252 of digits
// 0x04…0xFF that does not end with 0x04. Labels that are appended or put first cost no precision: only those between two others have
// fractions.
const (
	smallPositions    = 112
	digitMin          = 0x04
	digitMid          = 0x81
	positionZero      = 0x80
	positionsAfter    = positionZero + smallPositions
	positionsBefore   = positionZero - smallPositions - 1
	wholePositionSize = 5
)

// EnumPosition returns a position between two others; nil: before a or after b there is none. a orders before b.
func EnumPosition(a, b []byte) []byte {
	switch {
	case a == nil && b == nil:
		return appendWhole(nil, 0)
	case a == nil:
		n, _ := splitPosition(b)
		return appendWhole(nil, n-1)
	case b == nil:
		n, _ := splitPosition(a)
		return appendWhole(nil, n+1)
	}
	low, lowDigits := splitPosition(a)
	high, highDigits := splitPosition(b)
	if low+1 < high {
		return appendWhole(nil, low+1)
	}
	if low < high {
		if len(highDigits) > 0 {
			return appendWhole(nil, high)
		}
		highDigits = nil
	}
	return append(appendWhole(nil, low), digitsBetween(lowDigits, highDigits)...)
}

// digitsBetween returns a fraction between low and high; an empty high is 1.
func digitsBetween(low, high []byte) []byte {
	var out []byte
	for i := 0; ; i++ {
		l, h := digitMin, 0x100
		if i < len(low) {
			l = int(low[i])
		}
		if i < len(high) {
			h = int(high[i])
		}
		switch {
		case h-l > 1:
			return append(out, byte(l+(h-l)/2))
		case l < h: // Everything that begins with l is below high.
			high = nil
		}
		out = append(out, byte(l))
		if i >= len(low) && len(high) == 0 {
			return append(out, digitMid)
		}
	}
}

func appendWhole(dst []byte, n int64) []byte {
	switch {
	case n >= smallPositions:
		return append(dst, positionsAfter, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	case n < -smallPositions:
		n += 1 << 32
		return append(dst, positionsBefore, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(dst, byte(positionZero+n))
}

func splitPosition(b []byte) (whole int64, digits []byte) {
	switch {
	case b[0] == positionsAfter:
		whole = int64(b[1])<<24 | int64(b[2])<<16 | int64(b[3])<<8 | int64(b[4])
	case b[0] == positionsBefore:
		whole = (int64(b[1])<<24 | int64(b[2])<<16 | int64(b[3])<<8 | int64(b[4])) - 1<<32
	default:
		return int64(b[0]) - positionZero, b[1:]
	}
	return whole, b[wholePositionSize:]
}
