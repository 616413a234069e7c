package session

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// portal is a statement bound to arguments, perhaps half run.
type portal struct {
	name     string
	prepared *prepared
	params   types.Row
	formats  []int16
	run      run
	started  bool // run has been planned
	done     bool
	view     uint64   // under which the plan was found to hold (transaction.views)
	cursor   bool     // made by DECLARE
	text     string   // of the DECLARE
	binary   bool     // it is DECLARE BINARY
	at       int64    // when it was declared, in microseconds since 2000-01-01 UTC; 0: by the protocol
	scroll   scroll   // of a cursor
	depth    int      // how many savepoints there were: ROLLBACK TO one of them leaves it open
	columns  []Column // of taken, in a portal without plan
	fresh    bool     // made in the running transaction, with which it goes if that fails
	outlives bool     // its run is detached from its transaction (WITH HOLD)
	pinned   bool     // of a loop in a function
	// counted are the bytes of large arguments and of a cursor's long text, drawn from memory until the portal is closed.
	counted int64
	memory  *memory.Account
	// taken are the rows of a statement without plan that is sent in parts.
	taken *executor.RowStore
}

// reads reports whether the portal may yet read in the open transaction.
func (po *portal) reads() bool { return po.run.runner != nil && !po.outlives }

func (po *portal) close() {
	// The transaction ends, or the client has closed the portal: the error has no recipient.
	_ = po.run.close()
	po.scroll.stop()
	if po.counted > 0 {
		po.memory.Shrink(po.counted)
		po.counted = 0
	}
	if po.taken != nil {
		_ = po.taken.Close()
	}
}

// sendTaken sends the next rows of those taken.
func (po *portal) sendTaken(maxRows int, w ResultWriter) error {
	if err := w.Columns(po.columns, po.formats, false); err != nil {
		return err
	}
	for sent := 0; maxRows == 0 || sent < maxRows; sent++ {
		row, err := po.taken.Next()
		if err != nil {
			return err
		}
		if row == nil {
			return w.Complete(po.run.tag)
		}
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return w.Suspended()
}

// parse reads an argument with read and counts it if it is large: before it is read, and as it is afterwards.
func (po *portal) parse(t types.Type, raw []byte, isBinary bool, read func() (types.Datum, error)) (types.Datum, error) {
	estimate := int64(len(raw))
	if t.Elem().Valid() {
		estimate += 2 * types.DatumBytes * elementsIn(raw, isBinary) // The list grows by doubling at most.
	}
	if err := po.memory.Grow(estimate); err != nil {
		return types.Null, err
	}
	d, err := read()
	size := int64(0)
	if err == nil {
		size = int64(d.Size())
	}
	if e := po.memory.Resize(estimate, size); e != nil {
		po.memory.Shrink(estimate)
		return types.Null, e
	}
	po.counted += size
	return d, err
}

// elementsIn is how many elements the array may have at most that raw holds.
func elementsIn(raw []byte, isBinary bool) int64 {
	if isBinary {
		return int64(types.BinaryElements(raw))
	}
	return int64(bytes.Count(raw, []byte{','})) + 1
}

// portals are a session's portals by name; cursors are portals, too.
type portals struct {
	byName map[string]*portal
	// spare is a closed one for the next Bind: most clients use one at a time.
	spare *portal
	// repeatable is one that may run again although it has been closed (the first of a pipeline), so it is not reused.
	repeatable *portal
}

func newPortals() portals { return portals{byName: map[string]*portal{}} }

// free makes the name free for a portal to come. The unnamed portal is closed; another one in use is an error.
func (m *portals) free(name string) error {
	switch {
	case m.byName[name] == nil:
	case name == "":
		m.remove(name)
	default:
		return pgerror.New(pgerror.DuplicateCursor, "cursor %q already exists", name)
	}
	return nil
}

// reuse returns the portal that was closed last, or a new one. The caller overwrites it.
func (m *portals) reuse() *portal {
	po := m.spare
	m.spare = nil
	if po == nil {
		po = &portal{}
	}
	return po
}

func (m *portals) add(po *portal) { m.byName[po.name] = po }

// cursor returns the cursor of that name; nil: there is none.
func (m *portals) cursor(name string) *portal {
	if po := m.byName[name]; po != nil && po.cursor {
		return po
	}
	return nil
}

// remove closes a portal; an unknown name is no error.
func (m *portals) remove(name string) {
	po := m.byName[name]
	if po == nil {
		return
	}
	delete(m.byName, name)
	po.close()
	if !po.cursor && po != m.repeatable {
		m.spare = po
	}
}

// removeCursors closes all cursors.
func (m *portals) removeCursors() {
	for name, po := range m.byName {
		if po.cursor {
			m.remove(name)
		}
	}
}

// endTransaction closes every portal at the end of its transaction, save those WITH HOLD of transactions that committed,
// which have all their rows.
func (m *portals) endTransaction(committed bool) {
	m.repeatable = nil // If it runs again, no other portal is bound before.
	for name, po := range m.byName {
		if po.outlives && (committed || !po.fresh) {
			po.fresh, po.depth = false, 0
			continue
		}
		m.remove(name)
	}
}

// releaseSavepoint makes what was opened within a savepoint, the depth'th, belong to what is around it.
func (m *portals) releaseSavepoint(depth int) {
	for _, po := range m.byName {
		po.depth = min(po.depth, depth)
	}
}

// rollbackTo closes what was opened within a savepoint.
func (m *portals) rollbackTo(depth int) {
	for name, po := range m.byName {
		if po.depth > depth {
			m.remove(name)
		}
	}
}

// reading reports whether any of them may yet read in the open transaction.
func (m *portals) reading() bool {
	for _, po := range m.byName {
		if po.reads() {
			return true
		}
	}
	return false
}

// hold makes the open queries of a transaction read what they have yet to show, before the statement of r changes rows: all but those
// that execute a function or a trigger with that statement. Their reads are none of that statement, and are not repeated when it runs again.
func (m *portals) hold(ctx context.Context, txn *percolator.Txn, r *run) error {
	for _, po := range m.byName {
		if &po.run == r || po.run.executing || !po.reads() {
			continue
		}
		err := po.run.runner.Hold(ctx)
		txn.KeepReads()
		if err != nil {
			return err
		}
	}
	return nil
}
