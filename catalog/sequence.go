package catalog

import (
	"context"
	"errors"
	"sync"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// sequenceLimit is PostgreSQL's sequence_generator_limit_exceeded.
const sequenceLimit pgerror.Code = "2200H"

// sequenceValue is the stored state of a sequence: PostgreSQL's last_value and is_called. A sequence that was never used
// has none.
type sequenceValue struct {
	Last   int64
	Called bool
}

// sequences hands out values. Like PostgreSQL, which logs 32 values ahead, it makes
// Options.SequenceAhead values durable at once and hands them out from memory: after a crash those
// left are lost, after Close they are not. Values are taken in transactions of their own, so a
// rollback gives none back.
type sequences struct {
	catalog *Catalog
	mu      struct {
		sync.Mutex
		states map[uint64]*sequenceState // by value id
	}
}

// sequenceState is the cached state of a sequence. use is locked while a value is drawn or set, also during the
// transaction that makes further values durable.
type sequenceState struct {
	use     sync.Mutex
	now     sequenceValue
	durable int64 // the stored Last
	left    int   // values between now and durable
}

func (s *sequences) state(id uint64) *sequenceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.mu.states[id]
	if st == nil {
		if s.mu.states == nil {
			s.mu.states = map[uint64]*sequenceState{}
		}
		st = &sequenceState{}
		s.mu.states[id] = st
	}
	return st
}

// NextVal takes the next value of the sequence t.
func (c *Catalog) NextVal(ctx context.Context, t *TableDescriptor) (int64, error) {
	st := c.sequences.state(t.Sequence.ValueID)
	st.use.Lock()
	defer st.use.Unlock()
	if st.left == 0 {
		if err := c.sequences.fetch(ctx, t, st); err != nil {
			return 0, err
		}
		return st.now.Last, nil
	}
	st.left--
	st.now.Last += t.Sequence.Increment
	return st.now.Last, nil
}

// fetch makes further values durable and takes the first of them.
func (s *sequences) fetch(ctx context.Context, t *TableDescriptor, st *sequenceState) error {
	key := idKey(wordSequence, t.Sequence.ValueID)
	var first, last int64
	var count int
	err := s.catalog.retry(ctx, func(txn *percolator.Txn) error {
		stored, err := readSequence(ctx, txn, t)
		if err != nil {
			return err
		}
		if first, err = successor(t, stored); err != nil {
			return err
		}
		last, count = first, 1
		for count < s.catalog.opts.SequenceAhead {
			next, ok := step(t.Sequence, last)
			if !ok {
				break
			}
			last, count = next, count+1
		}
		return txn.Put(key, encode(sequenceValue{Last: last, Called: true}))
	})
	if err != nil {
		return err
	}
	st.now, st.durable, st.left = sequenceValue{Last: first, Called: true}, last, count-1
	return nil
}

// readSequence reads the stored value of t, or returns that of a sequence that was never used.
func readSequence(ctx context.Context, r percolator.Reader, t *TableDescriptor) (sequenceValue, error) {
	v := sequenceValue{Last: t.Sequence.First, Called: t.Sequence.FirstCalled}
	key := idKey(wordSequence, t.Sequence.ValueID)
	stored, err := r.Get(ctx, key)
	if err != nil || stored == nil {
		return v, err
	}
	return v, decode(key, stored, &v)
}

// step returns the value after v within the bounds.
func step(seq *SequenceDescriptor, v int64) (int64, bool) {
	next := v + seq.Increment
	if seq.Increment > 0 {
		return next, next > v && next <= seq.Max
	}
	return next, next < v && next >= seq.Min
}

// successor returns the value that nextval gives after v.
func successor(t *TableDescriptor, v sequenceValue) (int64, error) {
	seq := t.Sequence
	if !v.Called {
		return v.Last, nil
	}
	next, ok := step(seq, v.Last)
	switch {
	case ok:
		return next, nil
	case seq.Cycle && seq.Increment > 0:
		return seq.Min, nil
	case seq.Cycle:
		return seq.Max, nil
	case seq.Increment > 0:
		return 0, pgerror.New(sequenceLimit, "nextval: reached maximum value of sequence %q (%d)", t.Name, seq.Max)
	}
	return 0, pgerror.New(sequenceLimit, "nextval: reached minimum value of sequence %q (%d)", t.Name, seq.Min)
}

// SetVal sets the sequence's last value; called is set if it has been issued.
func (c *Catalog) SetVal(ctx context.Context, t *TableDescriptor, v int64, called bool) error {
	if v < t.Sequence.Min || v > t.Sequence.Max {
		return pgerror.New(pgerror.NumericValueOutOfRange, "setval: value %d is out of bounds for sequence %q (%d..%d)",
			v, t.Name, t.Sequence.Min, t.Sequence.Max)
	}
	st := c.sequences.state(t.Sequence.ValueID)
	st.use.Lock()
	defer st.use.Unlock()
	st.left = 0
	return c.retry(ctx, func(txn *percolator.Txn) error {
		return txn.Put(idKey(wordSequence, t.Sequence.ValueID), encode(sequenceValue{Last: v, Called: called}))
	})
}

// LastVal returns the last value handed out, or the one that will be when called is false.
func (c *Catalog) LastVal(ctx context.Context, t *TableDescriptor) (last int64, called bool, err error) {
	st := c.sequences.state(t.Sequence.ValueID)
	st.use.Lock()
	defer st.use.Unlock()
	if st.left > 0 {
		return st.now.Last, true, nil
	}
	txn, err := c.db.Begin(ctx)
	if err != nil {
		return 0, false, err
	}
	defer txn.Close()
	v, err := readSequence(ctx, txn, t)
	return v.Last, v.Called, err
}

// giveBack stores the values really handed out.
func (s *sequences) giveBack(ctx context.Context) error {
	s.mu.Lock()
	states := s.mu.states
	s.mu.states = nil
	s.mu.Unlock()
	var all error
	for id, st := range states {
		st.use.Lock()
		if st.left > 0 {
			all = errors.Join(all, s.giveBackOne(ctx, id, st))
		}
		st.left = 0
		st.use.Unlock()
	}
	return all
}

func (s *sequences) giveBackOne(ctx context.Context, id uint64, st *sequenceState) error {
	key := idKey(wordSequence, id)
	return s.catalog.retry(ctx, func(txn *percolator.Txn) error {
		stored, err := txn.Get(ctx, key)
		if err != nil || stored == nil {
			return err
		}
		var v sequenceValue
		if err := decode(key, stored, &v); err != nil {
			return err
		}
		if v.Last != st.durable {
			return nil // Another process has drawn values since.
		}
		return txn.Put(key, encode(st.now))
	})
}

// describeSequence makes a sequence readable by SELECT, as in PostgreSQL: one row of last_value, log_cnt and is_called.
func (c *Catalog) describeSequence(t *TableDescriptor) {
	t.Columns = []ColumnDescriptor{
		{ID: 1, Name: "last_value", Type: types.TInt8, NotNull: true},
		{ID: 2, Name: "log_cnt", Type: types.TInt8, NotNull: true},
		{ID: 3, Name: "is_called", Type: types.TBool, NotNull: true},
	}
	t.Rows = func(ctx context.Context, _ Resolver, _ SystemView, yield func(types.Row) error) error {
		last, called, err := c.LastVal(ctx, t)
		if err != nil {
			return err
		}
		return yield(types.Row{types.Int(last), types.Int(0), types.Bool(called)})
	}
}

// StoredSequenceValue reads a sequence through r: the last value made durable, or called=false if there is none.
func StoredSequenceValue(ctx context.Context, r percolator.Reader, t *TableDescriptor) (last int64, called bool, err error) {
	v, err := readSequence(ctx, r, t)
	return v.Last, v.Called, err
}
