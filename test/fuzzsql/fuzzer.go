package fuzzsql

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Options say what to run, and where.
type Options struct {
	Seed       uint64        // the first; each world takes the next
	Statements int           // how many units; 0: no limit
	Duration   time.Duration // for so long; 0: no limit
	Most       int           // stop after so many differences

	Plain, Small string // URLs of percodb; Small may be ""
	Postgres     string // the judge's URL, or ""
	Schema       string // in which the tables are made; it is dropped on PostgreSQL at the end

	Progress io.Writer
	// Alarm returns what else went wrong since it was last called, a panic in the log say, or "".
	Alarm func() string
}

// fuzzer runs units and collects differences.
type fuzzer struct {
	opts  Options
	conns map[place]*conn
	start time.Time
	told  time.Time
	seed  uint64
	world *world
	past  []*unit // of this world, that have committed
	// explained is set when the unit that was checked last had differences that are meant.
	explained bool
	found     []*Difference
	shapes    map[string]int // of the differences found, and how often
	counts    counts
}

type counts struct {
	units, unbuilt, runs, rows, errors, timeouts int
	explained                                    map[string]int
	// judged are the texts of the statements that were compared with PostgreSQL, by their hashes.
	judged map[uint64]struct{}
}

// Difference is one way's answer that is not the reference's.
type Difference struct {
	Seed    uint64
	Way     string // whose answer is wrong
	Against string // what it was compared with: a way or PostgreSQL
	Text    string // how it differs
	Script  string // that shows it, as small as it could be made

	stmt      string // the statement that differs, with the queries of the views it reads
	got, want *outcome
}

func (d *Difference) String() string {
	return fmt.Sprintf("seed %d, %s against %s: %s\n%s", d.Seed, d.Way, d.Against, d.Text, d.Script)
}

var codes = regexp.MustCompile(`\b[0-9A-Z]{5}\b`)

// kind is what stays the same while a difference is shrunk.
func (d *Difference) kind() string {
	first, _, _ := strings.Cut(d.Text, " ")
	return strings.Join(append([]string{d.Way, d.Against, first}, codes.FindAllString(d.Text, -1)...), " ")
}

// Run runs until the options' limits and returns the differences.
func Run(ctx context.Context, opts Options) ([]*Difference, error) {
	f := &fuzzer{opts: opts, start: time.Now(), told: time.Now(), conns: map[place]*conn{}, shapes: map[string]int{}}
	f.counts.explained, f.counts.judged = map[string]int{}, map[uint64]struct{}{}
	defer f.close()
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	for f.seed = opts.Seed; !f.done() && ctx.Err() == nil; f.seed++ {
		if err := f.runWorld(ctx); err != nil {
			return f.found, fmt.Errorf("seed %d: %w", f.seed, err)
		}
	}
	f.tell(true)
	return f.found, ctx.Err()
}

func (f *fuzzer) open(ctx context.Context) error {
	for p, dsn := range map[place]string{plain: f.opts.Plain, indexed: f.opts.Plain, small: f.opts.Small, judge: f.opts.Postgres} {
		if dsn == "" {
			continue
		}
		c := &conn{dsn: dsn, schema: f.opts.Schema + "_" + string(p)}
		f.conns[p] = c
		if err := c.must(ctx, "CREATE SCHEMA IF NOT EXISTS "+c.schema); err != nil {
			return err
		}
	}
	if c := f.conns[judge]; c != nil {
		o := c.simple(ctx, "SELECT datcollate, datctype FROM pg_database WHERE datname = current_database()")
		if len(o.rows) != 1 || o.rows[0][0] != "C" || o.rows[0][1] != "C.UTF-8" {
			return fmt.Errorf("%w, not %q: createdb -T template0 --lc-collate=C --lc-ctype=C.UTF-8", ErrLocale, o.rows)
		}
	}
	return nil
}

// ErrLocale says that PostgreSQL's database is not comparable.
var ErrLocale = errors.New("PostgreSQL's database must have percodb's locale, C and C.UTF-8")

func (f *fuzzer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if c := f.conns[judge]; c != nil {
		_ = c.must(ctx, "DROP SCHEMA IF EXISTS "+c.schema+" CASCADE") // What is left over does no harm.
	}
	for _, c := range f.conns {
		if c.pg != nil {
			_ = c.pg.Close(ctx)
		}
	}
}

func (f *fuzzer) done() bool {
	return f.opts.Statements > 0 && f.counts.units >= f.opts.Statements ||
		f.opts.Duration > 0 && time.Since(f.start) >= f.opts.Duration ||
		f.opts.Most > 0 && len(f.found) >= f.opts.Most
}

// unitsPerWorld is how many units run over one set of tables.
const unitsPerWorld = 60

func (f *fuzzer) runWorld(ctx context.Context) error {
	g := newGen(f.seed)
	g.world = g.newWorld()
	f.world, f.past = g.world, nil
	if err := f.build(ctx, f.world, ""); err != nil && len(f.world.views) > 0 {
		f.world.views = nil // A random query need not be a view.
	} else if err != nil {
		return err
	}
	if len(f.world.views) == 0 {
		var refused *pgconn.PgError
		if err := f.build(ctx, f.world, ""); errors.As(err, &refused) && refused.Code != "XX000" {
			f.counts.unbuilt++ // A random index or check need not be one.
			return nil
		} else if err != nil {
			return err
		}
	}
	for range unitsPerWorld {
		if f.done() || ctx.Err() != nil {
			return nil
		}
		u := g.unit()
		d, err := f.check(ctx, f.world, u, "")
		if err != nil {
			return err
		}
		f.counts.units++
		if d != nil {
			if err := f.report(ctx, u, d); err != nil {
				return err
			}
		}
		if u.commits && f.explained {
			// The servers may have done different things: go on as if the change had not been made.
			if err := f.restore(ctx); err != nil {
				return err
			}
		} else if u.commits && d == nil {
			f.past = append(f.past, u)
		}
		f.tell(false)
	}
	return nil
}

// places are those that a difference of a way involves; all for "".
func (f *fuzzer) places(of string) []place {
	var out []place
	for _, p := range []place{plain, indexed, small, judge} {
		if f.conns[p] == nil {
			continue
		}
		if of == "" || p == plain || p == judge || slices.ContainsFunc(ways, func(w way) bool { return w.name == of && w.place == p }) {
			out = append(out, p)
		}
	}
	return out
}

// build makes the tables anew in the places that a way needs.
func (f *fuzzer) build(ctx context.Context, w *world, of string) error {
	for _, p := range f.places(of) {
		c := f.conns[p]
		if c.pg != nil && !c.pg.IsClosed() && c.pg.TxStatus() != 'I' {
			if err := c.must(ctx, "ROLLBACK"); err != nil {
				return err
			}
		}
		if c.pg == nil || c.pg.IsClosed() {
			if err := c.connect(ctx); err != nil {
				return err
			}
		}
		if err := c.restyle(ctx, w.style); err != nil {
			return err
		}
		script := []string{"DROP VIEW IF EXISTS view2, view1", "DROP TABLE IF EXISTS t1, t2, t3"}
		script = append(append(script, undefinitions...), definitions...)
		for _, t := range w.tables {
			stmts := []*tree{t.create, t.insert}
			if p == indexed || p == small || p == judge {
				stmts = append(stmts, t.indexes...)
			}
			for _, s := range stmts {
				if s == nil || s.dropped {
					continue
				}
				script = append(script, s.String())
			}
			if p == indexed {
				script = append(script, "ANALYZE "+t.name)
			}
		}
		for _, v := range w.views {
			script = append(script, v.create.String())
		}
		// One query text is one transaction: a single sync of the disk.
		if err := c.must(ctx, strings.Join(script, ";\n")); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// check runs a unit by every way, or by one and its reference, and returns the first difference that
// has no explanation.
func (f *fuzzer) check(ctx context.Context, w *world, u *unit, only string) (*Difference, error) {
	f.explained = false
	var reference []*outcome
	var stmts []*tree
	for _, s := range u.stmts.kids {
		if !s.dropped {
			stmts = append(stmts, s)
		}
	}
	var found *Difference
	binary := []*outcome(nil)
	for i, way := range ways {
		if !f.runs(way, u, only) || slices.ContainsFunc(reference, isTimeout) {
			continue
		}
		got := f.runUnit(ctx, f.conns[way.place], w, way, stmts)
		if only == "" {
			f.count(got)
		}
		if i == 0 {
			reference = got
		}
		if way.name == "extended, binary" {
			binary = got
		}
		if i > 0 {
			c := comparison{ordered: u.ordered, position: !way.moved, tag: !way.moved}
			if d := f.difference(stmts, way.name, ways[0].name, got, reference, c); d != nil && found == nil {
				found = d
			}
		}
		for j, o := range got {
			if o.err != nil && o.err.Code == "XX000" || o.lost != "" {
				found = &Difference{Seed: f.seed, Way: way.name, Against: "sanity", Text: "internal: " + internalText(o), stmt: stmts[j].String(), got: o, want: o}
			}
		}
		if alarm := f.alarm(); alarm != "" {
			found = &Difference{Seed: f.seed, Way: way.name, Against: "sanity", Text: "alarm: " + alarm, stmt: u.stmts.String(), got: &outcome{}, want: &outcome{}}
		}
	}
	if found != nil && found.Against == "sanity" {
		return found, nil
	}
	if d := f.judge(ctx, w, u, stmts, reference, binary); d != nil && (found == nil || only == ways[0].name) {
		found = d
	}
	return found, ctx.Err()
}

func internalText(o *outcome) string {
	if o.lost != "" {
		return o.lost
	}
	return o.err.Message
}

func (f *fuzzer) alarm() string {
	if f.opts.Alarm == nil {
		return ""
	}
	return f.opts.Alarm()
}

// runs reports whether a unit runs by a way: by all that its seed has drawn, or by one and the reference.
func (f *fuzzer) runs(w way, u *unit, only string) bool {
	switch {
	case f.conns[w.place] == nil || u.commits && !w.commits || w.queriesOnly && !u.isQuery || w.moved && u.defines:
		return false
	case w.name == ways[0].name || u.commits:
		return only == "" || only == w.name || w.name == ways[0].name
	case only != "":
		return w.name == only
	}
	return u.ways == nil || slices.Contains(u.ways, w.name)
}

// judge compares the reference, and the way of binary results, with PostgreSQL.
func (f *fuzzer) judge(ctx context.Context, w *world, u *unit, stmts []*tree, reference, binary []*outcome) *Difference {
	c := f.conns[judge]
	if c == nil || slices.ContainsFunc(reference, isTimeout) {
		return nil
	}
	f.countJudged(stmts)
	want := f.runUnit(ctx, c, w, ways[0], stmts)
	if d := f.difference(stmts, ways[0].name, "PostgreSQL", reference, want, comparison{ordered: u.ordered, position: true, tag: true}); d != nil {
		return d
	}
	if binary == nil || u.commits {
		return nil
	}
	for i := range ways {
		if ways[i].name == "extended, binary" {
			want = f.runUnit(ctx, c, w, ways[i], stmts)
			return f.difference(stmts, ways[i].name, "PostgreSQL", binary, want, comparison{position: true, raw: true, tag: true})
		}
	}
	return nil
}

// runUnit runs statements on a place and leaves no block open.
func (f *fuzzer) runUnit(ctx context.Context, c *conn, w *world, way way, stmts []*tree) []*outcome {
	var out []*outcome
	if way.prologue != nil {
		for _, text := range way.prologue(w) {
			if err := c.must(ctx, text); err != nil {
				return []*outcome{{lost: "prologue: " + err.Error()}}
			}
		}
	}
	for _, s := range stmts {
		out = append(out, way.run(ctx, c, s))
	}
	if c.pg != nil && !c.pg.IsClosed() && c.pg.TxStatus() != 'I' {
		c.simple(ctx, "ROLLBACK")
	}
	return out
}

// difference is the first between two ways' outcomes that no explanation covers.
func (f *fuzzer) difference(stmts []*tree, way, against string, got, want []*outcome, c comparison) *Difference {
	for i := range min(len(got), len(want), len(stmts)) {
		if isTimeout(got[i]) || isTimeout(want[i]) {
			f.counts.timeouts++
			f.explained = true
			return nil
		}
		text := compare(got[i], want[i], c)
		if text == "" {
			continue
		}
		d := &Difference{Seed: f.seed, Way: way, Against: against, Text: text, stmt: f.world.expanded(stmts[i].String()), got: got[i], want: want[i]}
		if reason := explain(d); reason != "" {
			f.counts.explained[reason]++
			f.explained = true
			return nil // What follows in a block may follow from it.
		}
		return d
	}
	return nil
}

// isTimeout reports whether a statement took longer, or returned more rows, than is compared.
func isTimeout(o *outcome) bool { return o.err != nil && o.err.Code == "57014" || o.cut }

// countJudged counts statements that PostgreSQL runs, too; those that only begin and end transactions do not count.
func (f *fuzzer) countJudged(stmts []*tree) {
	for _, s := range stmts {
		if len(s.kids) == 0 {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(s.String())) // A hash returns no error.
		f.counts.judged[h.Sum64()] = struct{}{}
	}
}

func (f *fuzzer) count(got []*outcome) {
	for _, o := range got {
		f.counts.runs++
		if o.err != nil {
			f.counts.errors++
		} else if len(o.rows) > 0 {
			f.counts.rows++
		}
	}
}

// tell writes the progress line now and then.
func (f *fuzzer) tell(last bool) {
	if f.opts.Progress == nil || !last && time.Since(f.told) < 10*time.Second {
		return
	}
	f.told = time.Now()
	explained := 0
	for _, n := range f.counts.explained {
		explained += n
	}
	seconds := time.Since(f.start).Seconds()
	fmt.Fprintf(f.opts.Progress, "seed %d: %d units, %d runs (%.0f %% with rows, %.0f %% errors), %d distinct statements compared with PostgreSQL, %.0f runs/s, %d timeouts, %d tables not made, %d explained, %d differences\n",
		f.seed, f.counts.units, f.counts.runs, 100*float64(f.counts.rows)/float64(max(1, f.counts.runs)), 100*float64(f.counts.errors)/float64(max(1, f.counts.runs)),
		len(f.counts.judged), float64(f.counts.runs)/seconds, f.counts.timeouts, f.counts.unbuilt, explained, len(f.found))
	if last {
		for _, reason := range sortedKeys(f.counts.explained) {
			fmt.Fprintf(f.opts.Progress, "  %6d × %s\n", f.counts.explained[reason], reason)
		}
		for _, shape := range sortedKeys(f.shapes) {
			if f.shapes[shape] > 1 {
				fmt.Fprintf(f.opts.Progress, "  %6d × %s\n", f.shapes[shape], shape)
			}
		}
	}
}
