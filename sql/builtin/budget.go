package builtin

import (
	"strings"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// A function that creates a large value reserves its bytes first; one that takes long for a large value, or for a few
// large numbers, calls Step regularly. The caller (planner/expr) counts a result that the function has not reserved;
// only memory beside the result is then not counted.
//
// Reserved bytes belong to the current row. They are released when the statement continues with its next row, except
// for those of rows that an operator keeps (Pin).

const (
	// MaxValueBytes is the maximum size of a value in PostgreSQL.
	MaxValueBytes = 1<<30 - 1
	// countedBytes is the minimum size of a counted value: the base account of each session covers smaller ones.
	countedBytes = types.LargeBytes
	// stepsPerCheck is the number of steps between two checks of the statement's context. A step is about a byte read
	// or written, or a nanosecond.
	stepsPerCheck = 1 << 20
	// constantBytes and constantSteps bound what is evaluated while a statement is planned.
	constantBytes = 64 << 10
	constantSteps = 4 << 20
)

// errNotConstant leaves a constant expression to be evaluated when the statement runs.
var errNotConstant = pgerror.New(pgerror.ProgramLimitExceeded, "expression too expensive to evaluate at planning")

// NewConstantEnv returns an Env that evaluates constant expressions while a statement is planned. Those that take long,
// or whose values are large, fail.
func NewConstantEnv() *Env {
	account := memory.NewAccount(memory.NewPool("a constant", constantBytes), 0)
	return &Env{Memory: &account, stepLimit: constantSteps}
}

// Reserve counts a value of n bytes before it is created. Errors: 54000 for a size that no value can have,
// *memory.ExceededError.
func (e *Env) Reserve(n int) error {
	if n < countedBytes {
		return nil
	}
	return e.reserveLarge(n)
}

// ReserveText reserves the text form of an array or a record.
func (e *Env) ReserveText(d types.Datum) error { return e.Reserve(d.TextBytes()) }

func (e *Env) reserveLarge(n int) error {
	if n > MaxValueBytes {
		return errTextTooLarge()
	}
	if err := e.Step(n / 16); err != nil { // Clearing and filling memory takes time, too.
		return err
	}
	return e.count(int64(n))
}

func (e *Env) count(n int64) error {
	if e.Memory == nil {
		return nil
	}
	if err := e.Memory.Grow(n); err != nil {
		return err
	}
	e.counted += n
	return nil
}

// Counted returns the number of reserved bytes.
func (e *Env) Counted() int64 { return e.counted }

// Release releases n reserved bytes.
func (e *Env) Release(n int64) {
	if n > 0 && e.Memory != nil {
		e.counted -= n
		e.Memory.Shrink(n)
	}
}

// Settle replaces what was reserved since Counted was before by a value of n bytes.
func (e *Env) Settle(before int64, n int) error {
	switch since := e.counted - before; {
	case n > MaxValueBytes:
		return errTextTooLarge()
	case n < countedBytes:
		e.Release(since)
	case int64(n) < since:
		e.Release(since - int64(n))
	default:
		return e.count(int64(n) - since)
	}
	return nil
}

// Pin keeps n reserved bytes beyond the statement's current row; Unpin releases them.
func (e *Env) Pin(n int64) { e.pinned += n }

// Unpin releases n pinned bytes.
func (e *Env) Unpin(n int64) {
	if n > 0 {
		e.pinned -= n
		e.Release(n)
	}
}

// PinAll pins what is reserved and not pinned, and returns the number of bytes: Pin with its negative value undoes it.
func (e *Env) PinAll() int64 {
	n := max(e.counted-e.pinned, 0)
	e.pinned += n
	return n
}

// NextRow releases what earlier rows have reserved.
func (e *Env) NextRow() {
	if e.counted > e.pinned {
		e.Release(e.counted - e.pinned)
	}
}

// Step counts n steps of work, and returns from time to time an error if the statement has been cancelled.
func (e *Env) Step(n int) error {
	if e.steps += n; e.steps < stepsPerCheck {
		return nil
	}
	return e.checkContext()
}

func (e *Env) checkContext() error {
	if e.stepLimit > 0 {
		if e.stepLimit -= e.steps; e.stepLimit <= 0 {
			return errNotConstant
		}
	}
	e.steps = 0
	if e.Ctx == nil {
		return nil
	}
	return e.Ctx.Err()
}

// elementBytes is the reservation for an element of a growing list: the datum, the array of a group, and the spare
// capacity of append.
const (
	elementBytes  = 96
	elementsAhead = 1024
)

// reserveElements reserves the next elements of a list of n that grows one by one.
func (e *Env) reserveElements(n int) error {
	if n%elementsAhead != 0 || n == 0 {
		return nil
	}
	return e.reserveLarge(elementsAhead * elementBytes)
}

// ParseText reads a value from its text form. The elements of a long array, which take more memory than their text, are
// reserved first, and a cancel ends the reading.
func (e *Env) ParseText(t types.Type, text string) (types.Datum, error) {
	switch {
	case len(text) < countedBytes:
		return types.ParseText(t, text, &e.Format)
	case t.OID == types.OIDJSON || t.OID == types.OIDJSONB:
		return e.parseLarge(jsonBytes(t, text), func(f *types.Format) (types.Datum, error) { return types.ParseText(t, text, f) })
	case !t.Elem().Valid():
		return types.ParseText(t, text, &e.Format)
	}
	return e.parseArray(strings.Count(text, ",")+1, func(f *types.Format) (types.Datum, error) { return types.ParseText(t, text, f) })
}

// ParseBinary is ParseText for the binary form.
func (e *Env) ParseBinary(t types.Type, b []byte) (types.Datum, error) {
	switch {
	case len(b) < countedBytes:
		return types.ParseBinary(t, b, &e.Format)
	case t.OID == types.OIDJSON || t.OID == types.OIDJSONB:
		return e.parseLarge(jsonBytes(t, types.Bytes(b).Text()), func(f *types.Format) (types.Datum, error) { return types.ParseBinary(t, b, f) })
	case !t.Elem().Valid():
		return types.ParseBinary(t, b, &e.Format)
	}
	return e.parseArray(types.BinaryElements(b), func(f *types.Format) (types.Datum, error) { return types.ParseBinary(t, b, f) })
}

// parseArray calls parse, which creates an array of at most n elements.
func (e *Env) parseArray(n int, parse func(*types.Format) (types.Datum, error)) (types.Datum, error) {
	return e.parseLarge(int64(n)*elementBytes, parse)
}

// jsonBytes estimates the memory that reading a JSON text takes beside it: for jsonb that of the members and of the value.
func jsonBytes(t types.Type, text string) int64 {
	if t.OID != types.OIDJSONB {
		return 0
	}
	members := strings.Count(text, ",") + strings.Count(text, ":") + strings.Count(text, "[") + strings.Count(text, "{") + 1
	return int64(members)*jsonb.ItemBytes + 2*int64(len(text))
}

// parseLarge calls parse, which takes n bytes of memory, with a format that polls for cancellation.
func (e *Env) parseLarge(n int64, parse func(*types.Format) (types.Datum, error)) (types.Datum, error) {
	before := e.Counted()
	if err := e.count(n); err != nil {
		return types.Null, err
	}
	format := e.Format
	format.Poll = func() error { return e.Step(stepsPerCheck / 4) }
	d, err := parse(&format)
	if err != nil {
		e.Release(e.Counted() - before)
	}
	return d, err
}

// valueBuilder builds a value of unknown size.
type valueBuilder struct {
	env      *Env
	b        []byte
	reserved int64
}

// grow makes space for n more bytes.
func (v *valueBuilder) grow(n int) error {
	if n <= cap(v.b)-len(v.b) {
		return nil
	}
	const fast = 32 << 20 // Up to here the capacity doubles.
	capacity := max(len(v.b)+n, 64, 2*cap(v.b))
	if cap(v.b) > fast {
		capacity = max(len(v.b)+n, cap(v.b)+cap(v.b)/4)
	}
	if len(v.b)+n <= MaxValueBytes {
		capacity = min(capacity, MaxValueBytes)
	}
	before := v.env.Counted()
	if err := v.env.Reserve(capacity); err != nil {
		return err
	}
	reserved := v.env.Counted() - before
	v.b = append(make([]byte, 0, capacity), v.b...)
	v.env.Release(v.reserved)
	v.reserved = reserved
	return nil
}

// reserveList reserves a list of n datums.
func (e *Env) reserveList(n int) error {
	if n < countedBytes/elementBytes {
		return nil
	}
	if err := e.Step(n); err != nil {
		return err
	}
	return e.count(int64(n) * types.DatumBytes)
}
