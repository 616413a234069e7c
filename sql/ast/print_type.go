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
	for range t.Array {
		p.str("[]")
	}
}

func (p *printer) baseType(t *TypeName) {
	if len(t.Name) != 1 {
		p.idents(t.Name, ".")
		p.typeMods(t.Mods)
		return
	}
	switch name := t.Name[0]; {
	case name == "interval":
		p.interval(t.Mods)
		return
	case name == "numeric" || name == "time" || name == "timestamp" || name == "varchar" || name == "bit" && t.Mods != nil:
		p.str(name)
	default:
		p.ident(name)
	}
	p.typeMods(t.Mods)
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
