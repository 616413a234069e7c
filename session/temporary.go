package session

import (
	"context"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/ddl"
)

// dropTimeout bounds the removal of temporary relations at the end of a session.
const dropTimeout = 10 * time.Second

// dropTemporary drops the session's temporary relations. No transaction is open.
func (t *transaction) dropTemporary() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.env.Ctx), dropTimeout)
	defer cancel()
	t.resolver = nil
	return t.guard.Temporary.Drop(ctx)
}

// temporary returns the schema of the session's temporary relations. Those have no past.
func (t *transaction) temporary() *catalog.Temporary {
	if t.guard == nil || t.asOf != 0 {
		return nil
	}
	return t.guard.Temporary
}

// endTemporary does what ON COMMIT says of temporary tables.
func (t *transaction) endTemporary(ctx context.Context) error {
	drop, empty := t.temporary().AtCommit()
	if len(drop)+len(empty) == 0 {
		return nil
	}
	return ddl.EndTemporary(ctx, t.temporaryDeps())
}

// discardTemporary is DISCARD TEMP.
func (t *transaction) discardTemporary(ctx context.Context) error {
	if !t.phase.shared() && t.pipeline.executed <= 1 {
		t.abort() // It has read nothing but the schema.
		return t.dropTemporary()
	}
	if err := t.use(ctx); err != nil {
		return err
	}
	t.resolver = nil
	return ddl.DropTemporary(ctx, t.temporaryDeps())
}

// temporaryDeps are what package ddl needs to change temporary relations in the open transaction.
func (t *transaction) temporaryDeps() ddl.Deps {
	return ddl.Deps{
		DB: t.db, Catalog: t.catalog, Env: t.env, Txn: t.txn, Guard: t.guard, Temporary: t.temporary(),
		User: t.acting.current, SessionUser: t.acting.session, Database: t.acting.audit.identity.database, Logger: t.log,
	}
}
