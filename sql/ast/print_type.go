package ast

// The type modifiers of interval, as PostgreSQL has them: a mask of fields, IntervalFull without one,
// perhaps followed by the precision of seconds.
const (
	IntervalMonth  = 1 << 1
	IntervalYear   = 1 << 2
	IntervalDay    = 1 << 3
	IntervalHour   = 1 << 10
	IntervalMinute = 1 << 11
	IntervalSecond = 1 << 12
	IntervalFull   = 0x7fff
)

var intervalFields = [...]struct {
	mask int
	name string
}{
	{IntervalYear, "year"}, {IntervalMonth, "month"}, {IntervalDay, "day"},
	{IntervalHour, "hour"}, {IntervalMinute, "minute"}, {IntervalSecond, "second"},
}

// IntervalThrough is the mask of the fields from one to another, coarse to fine.
func IntervalThrough(from int, to string) int {
	mask := 0
	for _, f := range intervalFields {
		if mask != 0 || f.mask == from {
			mask |= f.mask
		}
		if f.name == to {
			break
		}
	}
	return mask
}

// String prints the type as it may be written.
func (t TypeName) String() string {
	var p printer
	p.typeName(&t)
	return p.String()
}

func (p *printer) typeName(t *TypeName) {
	p.when(t.SetOf, "SETOF ")
	p.baseType(t)
	p.when(t.Percent, "%TYPE")
	for i := range t.Array {
		p.str("[")
		if t.Bounds != nil && t.Bounds[i] >= 0 {
			p.int(int64(t.Bounds[i]))
		}
		p.str("]")
	}
}

// keywordTypes are the types that the grammar has words for.
var keywordTypes = map[string]string{
	"int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision", "bool": "boolean",
	"numeric": "numeric", "bpchar": "character", "varchar": "character varying", "bit": "bit", "varbit": "bit varying",
}

func (p *printer) baseType(t *TypeName) {
	if t.Keyword {
		p.keywordType(t)
		return
	}
	p.idents(t.Name, ".")
	p.modifiers(t)
}

func (p *printer) modifiers(t *TypeName) {
	if t.ModExprs != nil {
		p.parens(t.ModExprs)
		return
	}
	p.typeMods(t.Mods)
}

// keywordType writes a type by the grammar's words for it.
func (p *printer) keywordType(t *TypeName) {
	switch name := t.Name[0]; name {
	case "interval":
		p.interval(t.Mods)
	case "time", "timestamp":
		p.str(name)
		p.typeMods(t.Mods)
	case "timetz", "timestamptz":
		p.str(name[:len(name)-2])
		p.typeMods(t.Mods)
		p.str(" with time zone")
	default:
		p.str(keywordTypes[name])
		p.modifiers(t)
	}
}

func (p *printer) typeMods(mods []int) {
	for i, mod := range mods {
		if i == 0 {
			p.str("(")
		} else {
			p.str(",")
		}
		p.int(int64(mod))
	}
	p.when(len(mods) > 0, ")")
}

// interval writes an interval's fields and precision.
func (p *printer) interval(mods []int) {
	p.str("interval")
	if len(mods) == 0 {
		return
	}
	p.intervalFields(mods)
}

// intervalFields writes what follows the word interval.
func (p *printer) intervalFields(mods []int) {
	first, last := "", ""
	if mods[0] != IntervalFull {
		for _, f := range intervalFields {
			if mods[0]&f.mask == 0 {
				continue
			}
			if first == "" {
				first = f.name
			}
			last = f.name
		}
		p.str(" " + first)
		p.when(last != first, " to "+last)
	}
	if len(mods) > 1 {
		p.typeMods(mods[1:])
	}
}
