package gen

import (
	"iter"
	"strconv"
	"time"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// batchBytes is the size at which a batch is full. A change requires a new GeneratorVersion: a resumed load
// identifies its batches by name.
const batchBytes = 2 << 20

// Rows are rows of one table in COPY's text format. Fields are written in the order of the columns. Strings are not
// escaped, because the generator creates none with a tab, line end or backslash.
type Rows struct {
	Data  []byte
	Count int64
}

func (r *Rows) int(v int64) *Rows {
	r.Data = append(strconv.AppendInt(r.Data, v, 10), '\t')
	return r
}

func (r *Rows) str(s string) *Rows {
	r.Data = append(append(r.Data, s...), '\t')
	return r
}

func (r *Rows) null() *Rows { return r.str(`\N`) }

func (r *Rows) bool(b bool) *Rows {
	if b {
		return r.str("t")
	}
	return r.str("f")
}

// cents writes an amount with two decimals.
func (r *Rows) cents(v int64) *Rows { return r.decimal(v, 2) }

// decimal writes v / 10^digits.
func (r *Rows) decimal(v int64, digits int) *Rows {
	if v < 0 {
		r.Data = append(r.Data, '-')
		v = -v
	}
	scale := int64(1)
	for range digits {
		scale *= 10
	}
	r.Data = append(strconv.AppendInt(r.Data, v/scale, 10), '.')
	for rest := v % scale; scale > 1; rest %= scale {
		scale /= 10
		r.Data = append(r.Data, byte('0'+rest/scale))
	}
	r.Data = append(r.Data, '\t')
	return r
}

func (r *Rows) date(t time.Time) *Rows {
	r.Data = append(t.AppendFormat(r.Data, time.DateOnly), '\t')
	return r
}

func (r *Rows) time(t time.Time) *Rows {
	r.Data = append(t.AppendFormat(r.Data, "2006-01-02 15:04:05.000000"), '\t')
	return r
}

// end ends the row.
func (r *Rows) end() {
	r.Data[len(r.Data)-1] = '\n'
	r.Count++
}

// Batch is a set of rows that are loaded together. Its receiver owns it.
type Batch struct {
	Name string // of the part and the batch's number in it
	Rows [schema.Count]Rows
}

// Count returns the number of rows.
func (b *Batch) Count() int64 {
	var n int64
	for i := range b.Rows {
		n += b.Rows[i].Count
	}
	return n
}

// Part is a part of the data that is generated independently of all others.
type Part struct {
	Name    string
	Batches iter.Seq[*Batch]
}

// batcher divides the rows of a part into batches.
type batcher struct {
	part    string
	next    int
	batch   *Batch
	yield   func(*Batch) bool
	stopped bool // the receiver has stopped the part
}

// newPart returns a part whose rows write writes; write calls cut wherever a batch may end.
func newPart(name string, write func(*batcher)) Part {
	return Part{Name: name, Batches: func(yield func(*Batch) bool) {
		b := &batcher{part: name, yield: yield, batch: &Batch{}}
		write(b)
		if !b.stopped && b.batch.Count() > 0 {
			b.flush()
		}
	}}
}

func (b *batcher) to(t schema.Table) *Rows { return &b.batch.Rows[t] }

// cut delivers the batch if it is full, and returns false if the writer must stop.
func (b *batcher) cut() bool {
	size := 0
	for i := range b.batch.Rows {
		size += len(b.batch.Rows[i].Data)
	}
	if size >= batchBytes && !b.stopped {
		b.flush()
	}
	return !b.stopped
}

func (b *batcher) flush() {
	b.batch.Name = b.part + "/" + strconv.Itoa(b.next)
	b.next++
	full := b.batch
	b.batch = &Batch{}
	for i := range full.Rows { // the next batch has about the same sizes
		b.batch.Rows[i].Data = make([]byte, 0, len(full.Rows[i].Data)*9/8)
	}
	b.stopped = !b.yield(full)
}
