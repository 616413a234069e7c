package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/check"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/tso"
)

// NoDataError: there is nothing to check in a directory.
type NoDataError struct{ Dir string }

func (e *NoDataError) Error() string { return fmt.Sprintf("%q holds no data of percodb", e.Dir) }

// CheckStopped verifies data directories whose servers are stopped: that of a single server, or any of a cluster's.
// Tables are checked if all their keys are available: in a single server's directory, and in those of a cluster if the
// oracle's is among them and no store's is missing; otherwise the report lists what was not checked. The directories are
// opened read-only: what a server's start would write stays in memory.
func CheckStopped(ctx context.Context, opts Options, dirs []string, r server.CheckReport) error {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.AcceptClockStep = true // data that has rested for long can be checked
	c := &stoppedCheck{Node: &Node{opts: opts, log: opts.Logger, registry: prometheus.NewRegistry()}, stores: map[string]*kv.Store{}, report: r}
	defer c.Close(ctx)
	var engines []*kv.Engine
	for _, dir := range dirs {
		if entries, err := os.ReadDir(dir); errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
			return &NoDataError{Dir: dir} // opening it would make a new one
		}
		engine, err := c.ownEngine(kv.EngineOptions{Dir: dir, CacheBytes: c.opts.CacheBytes, ReadOnly: true, Logger: c.log})
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		directory, err := engine.IsDirectory()
		if err == nil && directory {
			err = c.openDirectory(ctx, engine)
		} else {
			engines = append(engines, engine)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	for _, engine := range engines {
		if err := c.checkStore(ctx, engine); err != nil {
			return err
		}
	}
	return c.checkTables(ctx)
}

// stoppedCheck is a check of data directories: as much of a node as it takes.
type stoppedCheck struct {
	*Node
	report    server.CheckReport
	oracle    tso.Oracle // of the cluster, if its directory is among those given
	directory *kv.LocalDirectory
	stores    map[string]*kv.Store
	single    *kv.Store // of a server on its own
}

// openDirectory opens and checks the directory of a cluster.
func (c *stoppedCheck) openDirectory(ctx context.Context, engine *kv.Engine) (err error) {
	if c.directory != nil {
		return errors.New("the directory of a second cluster")
	}
	if c.oracle, err = c.openOracle(ctx, engine); err != nil {
		return err
	}
	c.directory, err = kv.OpenDirectory(kv.DirectoryOptions{
		Engine: engine, Logger: c.log,
		Dial: func(_ context.Context, info kv.ShardInfo) (kv.RangeOwner, error) {
			return nil, &kv.UnavailableError{Shard: info.ID, Err: errors.New("stopped")} // plans under way stay as they are
		},
	})
	if err != nil {
		return err
	}
	c.onClose(func(context.Context) {
		if err := c.directory.Close(); err != nil {
			c.log.Error("close the directory", "err", err)
		}
	})
	return checkDirectory(ctx, c.directory, c.report)
}

// checkDirectory reports inconsistencies of a cluster's ranges.
func checkDirectory(ctx context.Context, d kv.Directory, r server.CheckReport) error {
	findings, err := kv.CheckDirectory(ctx, d)
	for _, f := range findings {
		r.Finding("directory of ranges, " + f.String())
	}
	return err
}

// checkStore opens and checks a store. A cluster's store has no timestamps of its own: without the oracle's directory,
// they are taken from the clock.
func (c *stoppedCheck) checkStore(ctx context.Context, engine *kv.Engine) (err error) {
	oracle, foreign := c.oracle, false
	if oracle == nil {
		if single, err := engine.IsSingle(); err != nil {
			return err
		} else if foreign = !single; single {
			oracle, err = c.openOracle(ctx, engine)
			if err != nil {
				return err
			}
		} else if oracle, err = c.clockOracle(ctx); err != nil {
			return err
		}
	}
	store, err := kv.Open(ctx, kv.Options{Engine: engine, Oracle: oracle, EmbeddedOracle: true, Detached: true, Logger: c.log})
	if err != nil {
		return err
	}
	c.onClose(func(context.Context) { c.closeStore(store) })
	if err := checkStore(ctx, store, foreign, c.report); err != nil {
		return err
	}
	if store.Clustered() {
		c.stores[store.ShardID()] = store
	} else if len(store.Info().Ranges) > 0 {
		c.single, c.oracle = store, oracle
	}
	return nil
}

// clockOracle is an oracle without a saved window.
func (c *stoppedCheck) clockOracle(ctx context.Context) (tso.Oracle, error) {
	oracle, err := tso.NewLocal(ctx, &tso.MemoryWindow{}, tso.Options{Logger: c.log})
	if err == nil {
		c.onClose(func(context.Context) {
			if err := oracle.Close(); err != nil {
				c.log.Error("close the oracle", "err", err)
			}
		})
	}
	return oracle, err
}

// The parts of a cluster's data, as checks of its processes name them.
const (
	tablesPart        = "the tables (give the --admin-listen of a SQL process)"
	stoppedTablesPart = "the tables (give the directories of the tso process and of all stores)"
)

func storePart(shard string) string { return "store " + shard }

// expectCluster names the parts of a cluster's data.
func expectCluster(ctx context.Context, d kv.Directory, r server.CheckReport) error {
	infos, err := d.Shards(ctx)
	if err != nil {
		return fmt.Errorf("list the stores: %w", err)
	}
	for _, info := range infos {
		r.Expect(storePart(info.ID))
	}
	r.Expect(tablesPart)
	return nil
}

// checkStore reports inconsistencies of a store.
func checkStore(ctx context.Context, store *kv.Store, foreignOracle bool, r server.CheckReport) error {
	seen := map[string]int64{}
	findings, err := store.CheckWith(ctx, mvcc.CheckOptions{ForeignOracle: foreignOracle, Progress: func(what string, records int64) {
		seen[what] = max(seen[what], records)
		r.Progress(what, records)
	}})
	for _, f := range findings {
		r.Finding(fmt.Sprintf("store %s, %s", store.ShardID(), f))
	}
	if err != nil {
		return fmt.Errorf("check store %s: %w", store.ShardID(), err)
	}
	note := fmt.Sprintf("store %s: %s", store.ShardID(), plural.Count(len(store.Info().Ranges), "range"))
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		note += ", " + plural.Count(seen[what], strings.TrimSuffix(what, "s"))
	}
	r.Note(note)
	r.Verified(storePart(store.ShardID()))
	return nil
}

// checkTables checks tables if all their keys are at hand.
func (c *stoppedCheck) checkTables(ctx context.Context) error {
	var router kv.Router
	switch {
	case c.single != nil:
		router = c.single.Router()
	case c.directory == nil:
		if len(c.stores) > 0 {
			c.report.Expect(stoppedTablesPart)
		}
		return nil
	default:
		shards, err := c.directory.Shards(ctx)
		if err != nil {
			return err
		}
		whole := true
		for _, info := range shards {
			if c.stores[info.ID] == nil {
				c.report.Expect(storePart(info.ID))
				whole = false
			}
		}
		if !whole {
			c.report.Expect(stoppedTablesPart)
		}
		if !whole || len(shards) == 0 {
			return nil
		}
		router, err = kv.NewRouter(kv.RouterOptions{Directory: c.directory, Dial: func(_ context.Context, info kv.ShardInfo) (kv.Shard, error) {
			return c.stores[info.ID], nil
		}})
		if err != nil {
			return err
		}
	}
	data := &storage{router: router, oracle: c.oracle}
	d, err := c.openDatabase(ctx, c.openTransactions(data), data)
	if err != nil {
		return err
	}
	hub := notify.New(notify.Options{})
	return d.check(ctx, c.sessionDeps(d, data, hub), c.report)
}

// check reports inconsistencies of rows, index entries and descriptors of all databases, as of now, in sessions with deps.
func (d *database) check(ctx context.Context, deps session.Deps, r server.CheckReport) error {
	txn, err := d.db.BeginTxn(ctx, percolator.TxnOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer txn.Close()
	schema, err := d.catalog.At(ctx, txn)
	if err != nil {
		return fmt.Errorf("check the tables: %w", err)
	}
	var sum check.Summary
	var schemas []catalog.Resolver
	for _, database := range schema.Databases().All() {
		of := ""
		if database.OID != catalog.FirstDatabase {
			of = "database " + database.Name + ": "
		}
		deps.Catalog = d.catalog.Database(database.OID)
		found, err := checkDatabase(ctx, deps, of, r)
		if err != nil {
			return fmt.Errorf("%scheck the tables: %w", of, err)
		}
		sum.Tables, sum.Rows, sum.Entries = sum.Tables+found.Tables, sum.Rows+found.Rows, sum.Entries+found.Entries
		resolver, err := deps.Catalog.At(ctx, txn)
		if err != nil {
			return fmt.Errorf("%scheck the tables: %w", of, err)
		}
		schemas = append(schemas, resolver)
	}
	if err := check.Leftovers(ctx, schemas, txn, findings(ctx, "", r)); err != nil {
		return fmt.Errorf("check the keys of tables: %w", err)
	}
	r.Note(fmt.Sprintf("%s: %s, %s", plural.Count(sum.Tables, "table"), plural.Count(sum.Rows, "row"), plural.Count(sum.Entries, "index entry")))
	r.Verified(tablesPart)
	return nil
}

// checkDatabase checks the database of deps.Catalog, unless it has been dropped meanwhile.
func checkDatabase(ctx context.Context, deps session.Deps, of string, r server.CheckReport) (check.Summary, error) {
	c, err := session.NewChecking(ctx, deps)
	if errors.Is(err, catalog.ErrNoDatabase) {
		return check.Summary{}, nil
	}
	if err != nil {
		return check.Summary{}, err
	}
	defer c.Close()
	return c.Run(check.Report{Finding: findings(ctx, of, r), Note: func(f check.Finding) { r.Note(of + f.String()) }, Progress: r.Progress})
}

// findings passes findings on to a report.
func findings(ctx context.Context, of string, r server.CheckReport) func(check.Finding) error {
	return func(f check.Finding) error {
		r.Finding(of + f.String())
		return ctx.Err()
	}
}

// Check verifies the data of the running process: its store, its directory of ranges, the tables it can read.
func (n *Node) Check(ctx context.Context, r server.CheckReport) error {
	for _, check := range n.checks {
		if err := check(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
