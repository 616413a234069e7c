package session

import (
	"github.com/percodb/percodb/executor"
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
	view     uint64   // under which the plan was found to hold (Session.views)
	cursor   bool     // made by DECLARE
	depth    int      // how many savepoints there were: ROLLBACK TO one of them leaves it open
	columns  []Column // of taken, in a portal without plan
	fresh    bool     // made in the running transaction, with which it goes if that fails
	outlives bool     // its run is detached from its transaction (WITH HOLD)
	// taken are the rows of a statement without plan that is sent in parts.
	taken *executor.RowStore
}

// reads reports whether the portal may yet read in the open transaction.
func (po *portal) reads() bool { return po.run.runner != nil && !po.outlives }

func (po *portal) close() {
	// The transaction ends, or the client has closed the portal: nobody waits for its error.
	_ = po.run.close()
	if po.taken != nil {
		_ = po.taken.Close()
	}
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
	for name, po := range m.byName {
		if po.outlives && (committed || !po.fresh) {
			po.fresh = false
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
