package catalog

import (
	"bytes"
	"context"
	"encoding/hex"
	"strconv"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// ObserverError is a row that an observer could not handle and has set aside (percodb.observer_errors).
type ObserverError struct {
	Observer uint64 `json:"-"`
	Key      []byte `json:"-"` // the row's
	Code     string // SQLSTATE of the last error
	Message  string
	Attempts int
	At       tso.Timestamp // of the last attempt
	CommitTS tso.Timestamp // of the newest change that it was for
	Hop      uint8         `json:",omitempty"` // of that change
}

// observerErrorsOf is the prefix of an observer's records. The row's key follows in hexadecimal, which keeps the order.
func observerErrorsOf(observer uint64) []byte {
	key := idKey(wordObserverError, observer)
	key[len(key)-1] = '/'
	return key
}

func observerErrorKey(observer uint64, row []byte) []byte {
	return append(hex.AppendEncode(observerErrorsOf(observer), row), 0)
}

// PutObserverError records that a row is set aside, or replaces the row's record.
func PutObserverError(w percolator.Writer, e *ObserverError) error {
	return w.Put(observerErrorKey(e.Observer, e.Key), encode(e))
}

// ForgetObserver removes what is stored for an observer outside of its table. Its notify cells are removed when all transactions
// that may still write some are over.
func (ch *Change) ForgetObserver(ctx context.Context, id uint64) error {
	if err := ch.DropSpan(ctx, DroppedSpan{Observer: id}); err != nil {
		return err
	}
	if err := DeleteSeeding(ch.txn, id); err != nil {
		return err
	}
	var keys [][]byte
	err := ObserverErrors(ctx, ch.txn, id, func(e *ObserverError) error {
		keys = append(keys, e.Key)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := DeleteObserverError(ch.txn, id, key); err != nil {
			return err
		}
	}
	return nil
}

// DeleteObserverError removes a row's record, if there is one.
func DeleteObserverError(w percolator.Writer, observer uint64, row []byte) error {
	return w.Delete(observerErrorKey(observer, row))
}

// ObserverErrorOf returns the record of a row, nil if it is not set aside.
func ObserverErrorOf(ctx context.Context, r percolator.Reader, observer uint64, row []byte) (*ObserverError, error) {
	key := observerErrorKey(observer, row)
	value, err := r.Get(ctx, key)
	if err != nil || value == nil {
		return nil, err
	}
	return decodeObserverError(key, value)
}

// ObserverErrors calls yield with the records of an observer, of all observers if it is 0, by observer and key.
func ObserverErrors(ctx context.Context, r percolator.Reader, observer uint64, yield func(*ObserverError) error) error {
	span := wordSpan(wordObserverError)
	if observer != 0 {
		span = observerErrorSpan(observer)
	}
	return observerErrors(ctx, r, span, yield)
}

// ObserverErrorsFrom calls yield with the records of an observer from a row's key on, by key.
func ObserverErrorsFrom(ctx context.Context, r percolator.Reader, observer uint64, row []byte, yield func(*ObserverError) error) error {
	span := observerErrorSpan(observer)
	span.Start = hex.AppendEncode(span.Start, row)
	return observerErrors(ctx, r, span, yield)
}

func observerErrorSpan(observer uint64) kv.Span {
	prefix := observerErrorsOf(observer)
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return kv.Span{Start: prefix, End: end}
}

func observerErrors(ctx context.Context, r percolator.Reader, span kv.Span, yield func(*ObserverError) error) error {
	it := r.Scan(ctx, span, percolator.ScanOptions{})
	defer it.Close()
	for it.Next(ctx) {
		e, err := decodeObserverError(it.Key(), it.Value())
		if err == nil {
			err = yield(e)
		}
		if err != nil {
			return err
		}
	}
	return it.Err()
}

func decodeObserverError(key, value []byte) (*ObserverError, error) {
	malformed := &CorruptionError{Key: bytes.Clone(key), Detail: "malformed key"}
	number := len(keySpace) + len(wordObserverError) + 1
	if len(key) < number+22 || key[number+20] != '/' {
		return nil, malformed
	}
	e := &ObserverError{}
	var err error
	if e.Observer, err = strconv.ParseUint(string(key[number:number+20]), 10, 64); err != nil {
		return nil, malformed
	}
	if e.Key, err = hex.AppendDecode(nil, key[number+21:len(key)-1]); err != nil {
		return nil, malformed
	}
	return e, decode(key, value, e)
}
