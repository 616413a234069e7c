package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/sql/pgerror"
)

// buildsPause is how often builds of indexes are looked for that no process is at.
const buildsPause = 2 * time.Second

// IndexBuilds continues builds of indexes that have been interrupted, in this process or another one.
type IndexBuilds struct {
	deps   Deps
	log    *slog.Logger
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// StartIndexBuilds begins to look for such builds.
func StartIndexBuilds(deps Deps, log *slog.Logger) *IndexBuilds {
	if deps.Sessions == nil {
		deps.Sessions = func(func(*Session)) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &IndexBuilds{deps: deps, log: log, cancel: cancel}
	b.wg.Go(func() { b.loop(ctx) })
	return b
}

// Close ends the builds under way; others continue them.
func (b *IndexBuilds) Close() {
	b.cancel()
	b.wg.Wait()
}

func (b *IndexBuilds) loop(ctx context.Context) {
	ticker := time.NewTicker(buildsPause)
	defer ticker.Stop()
	for {
		if err := b.resumeAll(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("looking for interrupted builds of indexes", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// interruptedBuild is a build that this process is not at.
type interruptedBuild struct {
	index uint32
	rec   *catalog.BuildRecord
}

// resumeAll continues all builds that no process is at, one after the other.
func (b *IndexBuilds) resumeAll(ctx context.Context) error {
	all, err := b.interrupted(ctx)
	if err != nil {
		return err
	}
	for _, i := range all {
		if err := b.resume(ctx, i); err != nil && ctx.Err() == nil {
			b.log.Error("the build of an index has failed", "table", i.rec.Table, "index", i.index, "err", err)
		}
	}
	return nil
}

// interrupted lists the builds that this process is not at.
func (b *IndexBuilds) interrupted(ctx context.Context) (all []interruptedBuild, err error) {
	txn, err := b.deps.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	err = catalog.Builds(ctx, txn, func(index uint32, rec *catalog.BuildRecord) error {
		if !b.deps.Builds.Has(index) {
			all = append(all, interruptedBuild{index, rec})
		}
		return nil
	})
	return all, err
}

// resume continues a build in a session of the role that has begun it, unless another process is at it.
func (b *IndexBuilds) resume(ctx context.Context, i interruptedBuild) (err error) {
	deps := b.deps
	deps.Catalog = deps.Catalog.Database(i.rec.Database)
	present, err := deps.Catalog.Present(ctx)
	if errors.Is(err, catalog.ErrNoDatabase) {
		return nil
	}
	if err != nil {
		return err
	}
	role := present.Roles().ByOID(i.rec.Role)
	if role == nil {
		role = catalog.NewRoles().ByOID(catalog.BootstrapSuperuser)
	}
	s, err := open(ctx, deps, 0, Client{}, map[string]string{"application_name": "index build"}, present, role)
	if err != nil {
		return err
	}
	defer s.Close()
	s.env.Ctx = s.interrupts.begin(0)
	s.meter.Begin(s.env.Ctx)
	stop := context.AfterFunc(ctx, s.Cancel)
	defer func() {
		stop()
		if p := recover(); p != nil {
			err = ReportPanic(s.log, p)
		}
		s.endMessage()
	}()
	startStatement(&s.env)
	s.env.BeginTxn()
	return ddl.ResumeBuild(s.env.Ctx, s.commands.schema.dependencies(discarding{}), i.index)
}

// discarding is a ddl.Reporter that nobody listens to.
type discarding struct{}

func (discarding) Notice(*pgerror.Error)  {}
func (discarding) Progress(string, int64) {}

// IndexProgress implements catalog.SystemView. What is stored is read first: a build that this process begins to continue meanwhile is among
// its own then.
func (v *systemView) IndexProgress(ctx context.Context) ([]catalog.IndexProgress, error) {
	stored, err := v.storedProgress(ctx)
	if err != nil {
		return nil, err
	}
	all := v.deps.Builds.All()
	for _, p := range stored {
		if !slices.ContainsFunc(all, func(own catalog.IndexProgress) bool { return own.Index == p.Index }) {
			all = append(all, p)
		}
	}
	return all, nil
}

// storedProgress is the progress of all builds, as far as it is stored.
func (v *systemView) storedProgress(ctx context.Context) (all []catalog.IndexProgress, err error) {
	txn, err := v.deps.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	schema, err := v.deps.Catalog.At(ctx, txn)
	if err != nil {
		return nil, err
	}
	err = catalog.Builds(ctx, txn, func(index uint32, rec *catalog.BuildRecord) error {
		p := ddl.ProgressOf(index, rec)
		if d := schema.Databases().ByOID(rec.Database); d != nil {
			p.DatabaseName = d.Name
		}
		all = append(all, p)
		return nil
	})
	return all, err
}
