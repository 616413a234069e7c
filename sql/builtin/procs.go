package builtin

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// The rows of pg_proc, pg_operator and pg_cast are those of PostgreSQL for what this package declares: procSet selects them.

// Proc is a function as pg_proc has it.
type Proc struct {
	OID  types.OID
	Name string
	Kind byte        // prokind: f, a, w
	Args []types.OID // proargtypes: an array for a variadic argument
	Ret  types.OID
	// Signature names the function among objects with privileges, as Overload.Signature does.
	Signature string

	row int       // in pgdata.Procs; -1: PostgreSQL has no such function
	own *Overload // nil unless row is -1
	set bool      // own returns a set

	user *UserProc // of a user; nil unless row is -1
}

// procSet is what there is of functions, operators and casts. It is built at first use and only read afterwards.
type procSet struct {
	procs       []*Proc // by OID
	byName      map[string][]*Proc
	bySignature map[string]*Proc
	operators   []int // rows of pgdata.Operators
	casts       []int // rows of pgdata.Casts
	amops       []int // rows of pgdata.AmOps
}

// procTable is set by init, since functions that it lists read it.
var procTable func() *procSet

func init() { procTable = sync.OnceValue(buildProcs) }

// Procs returns all functions by OID. The slice must not be changed.
func Procs() []*Proc { return procTable().procs }

// ProcByOID returns the function with an OID, nil if there is none.
func ProcByOID(oid types.OID) *Proc {
	if oid >= pgdata.FirstExtensionOID {
		return extensionProcByOID(oid)
	}
	return procTable().byOID(oid)
}

func (s *procSet) byOID(oid types.OID) *Proc {
	all := s.procs
	i, ok := slices.BinarySearchFunc(all, oid, func(p *Proc, oid types.OID) int { return int(p.OID) - int(oid) })
	if !ok {
		return nil
	}
	return all[i]
}

// ProcsNamed returns the functions with a name, by OID.
func ProcsNamed(name string) []*Proc { return procTable().byName[name] }

// ProcBySignature returns the function of an overload's Signature, nil if it has no row.
func ProcBySignature(signature string) *Proc { return procTable().bySignature[signature] }

// operatorFunction returns the signature of the function that evaluates an operator, "" if it has none of its own.
func operatorFunction(o *Overload) string {
	if row, ok := operatorRow(o.Name, o.Args); ok {
		if p := ProcByOID(types.OID(pgdata.Operators().Number(row, "oprcode"))); p != nil {
			return p.Signature
		}
	}
	return ""
}

// Signature returns that of the function by which the cast converts, "" if it needs none.
func (c *Cast) Signature() string {
	if c.inner != nil {
		return c.inner.Signature()
	}
	if c.user != nil {
		if c.user.System != nil {
			return c.user.System.Signature()
		}
		return ""
	}
	row, ok := pgdata.Casts().Find(formatOID(c.From.Underlying().OID), formatOID(c.To.Underlying().OID))
	if !ok {
		return ""
	}
	if p := ProcByOID(types.OID(pgdata.Casts().Number(row, "castfunc"))); p != nil {
		return p.Signature
	}
	return ""
}

// OperatorRows returns the rows of pgdata.Operators that there are. The slice must not be changed.
func OperatorRows() []int { return procTable().operators }

// CastRows returns the rows of pgdata.Casts that there are. The slice must not be changed.
func CastRows() []int { return procTable().casts }

// AmOpRows returns the rows of pgdata.AmOps that there are. The slice must not be changed.
func AmOpRows() []int { return procTable().amops }

// OperatorShown reports whether a row of pgdata.Operators is that of an operator that there is.
func OperatorShown(row int) bool {
	_, ok := slices.BinarySearch(procTable().operators, row)
	return ok
}

// Schema returns the name of the schema that contains the function.
func (p *Proc) Schema() string {
	if p.user != nil {
		return p.user.Routine.Schema
	}
	if p.own != nil && p.own.ext == informationSchema {
		return informationSchema.Schema
	}
	return systemSchema
}

// Value returns a column of the function's row in pg_proc, pgdata.Null for NULL.
func (p *Proc) Value(column string) string {
	if p.row >= 0 {
		return pgdata.Procs().Value(p.row, column)
	}
	return p.Values(nil)[pgdata.Procs().Column(column)]
}

// Values appends the values of all columns of pgdata.Procs.
func (p *Proc) Values(dst []string) []string {
	if p.row >= 0 {
		return pgdata.Procs().Values(p.row, dst)
	}
	for _, column := range pgdata.Procs().Columns {
		if p.user != nil {
			dst = append(dst, p.user.value(column))
			continue
		}
		dst = append(dst, p.ownValue(column))
	}
	return dst
}

// ownValue returns a column of a function that PostgreSQL does not have.
func (p *Proc) ownValue(column string) string {
	o := p.own
	switch column {
	case "oid":
		return formatOID(p.OID)
	case "proname", "prosrc":
		return p.Name
	case "proargtypes":
		return oidList(p.Args)
	case "prorettype":
		return formatOID(p.Ret)
	case "prokind":
		return string(rune(p.Kind))
	case "prolang":
		return "12"
	case "procost":
		return "1"
	case "prorows":
		if p.set {
			return "1000"
		}
	case "provariadic":
		if o.variadic {
			return formatOID(o.Args[len(o.Args)-1].OID)
		}
	case "proisstrict":
		return boolLetter(o.Strict)
	case "proretset":
		return boolLetter(p.set)
	case "provolatile":
		return "isv"[o.Volatility : o.Volatility+1]
	case "proparallel":
		return "s"
	case "pronargs":
		return strconv.Itoa(len(p.Args))
	case "prosecdef", "proleakproof":
		return "f"
	case "proallargtypes", "proargmodes", "proargnames", "proargdefaults", "prosqlbody", "description":
		return pgdata.Null
	}
	return "0"
}

func formatOID(oid types.OID) string { return strconv.FormatUint(uint64(oid), 10) }

func boolLetter(v bool) string {
	if v {
		return "t"
	}
	return "f"
}

// oidList returns OIDs as an oidvector is written.
func oidList(oids []types.OID) string {
	var b strings.Builder
	for i, oid := range oids {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(formatOID(oid))
	}
	return b.String()
}

func parseOIDList(list string) []types.OID {
	var oids []types.OID
	for word := range strings.FieldsSeq(list) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			panic("builtin: OIDs " + list)
		}
		oids = append(oids, types.OID(n))
	}
	return oids
}
