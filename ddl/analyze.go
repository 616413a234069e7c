package ddl

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

const (
	// sampleRows is the number of rows that ANALYZE samples: PostgreSQL's 300 for each of 100 buckets.
	sampleRows = 30_000
	// histogramBuckets is the number of equal-height buckets.
	histogramBuckets = 100
	// maxStatBytes is the length above which values are left out of extremes and histograms, where they cost more than
	// they are worth.
	maxStatBytes = 1024
	// commonValues is the greatest number of common values that are kept of a column.
	commonValues = 100
	// maxTerms bounds the terms of an inverted index that are counted.
	maxTerms = 1 << 20
	// sampleGroup is how many sampled rows are fetched at once.
	sampleGroup = 1024
)

// analyzeAlone is ANALYZE outside of a block: tables are read without keeping other schema changes
// waiting, and their statistics stored one by one.
func analyzeAlone(ctx context.Context, d *Deps, names []ast.TableName, columns [][]string) error {
	txn, err := d.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	resolver, err := d.Catalog.At(ctx, txn)
	if err != nil {
		return err
	}
	r := &run{Deps: d, txn: txn, alone: true}
	r.see(d.Temporary.Over(resolver))
	tables, err := r.analyzed(ctx, names, columns)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if r.txn, err = d.DB.Begin(ctx); err != nil {
			return err
		}
		stats, err := r.collect(ctx, t)
		r.txn.Close()
		if err != nil {
			return err
		}
		if err := storeStats(ctx, d, t.ID, stats); err != nil {
			return err
		}
	}
	return nil
}

// storeStats stores the statistics of a table that may have changed or been dropped in the meantime.
func storeStats(ctx context.Context, d *Deps, id uint64, stats *catalog.TableStats) error {
	_, err := runAlone(ctx, d, func(r *run) (string, error) {
		now, err := r.r.RelationByID(ctx, id)
		if err != nil || now == nil {
			return "", err
		}
		return "", r.ch.PutStats(ctx, now, stats)
	})
	return err
}

// analyze is ANALYZE inside a block.
func (r *run) analyze(ctx context.Context, names []ast.TableName, columns [][]string) error {
	tables, err := r.analyzed(ctx, names, columns)
	if err != nil {
		return err
	}
	for _, t := range tables {
		stats, err := r.collect(ctx, t)
		if err != nil {
			return err
		}
		now, err := r.current(ctx, t)
		if err != nil {
			return err
		}
		if err := r.ch.PutStats(ctx, now, stats); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// analyzed lists the tables that ANALYZE names, or all; columns are those that it names of each, which must exist.
func (r *run) analyzed(ctx context.Context, names []ast.TableName, columns [][]string) ([]*catalog.TableDescriptor, error) {
	var tables []*catalog.TableDescriptor
	if len(names) == 0 {
		all, err := r.r.Relations(ctx)
		for _, t := range all {
			if t.Kind == catalog.KindTable && r.mayAnalyze(t, "analyze") {
				tables = append(tables, t)
			}
		}
		return tables, err
	}
	for i, name := range names {
		t, err := r.mustFind(ctx, name)
		if err != nil {
			return nil, err
		}
		if columns != nil {
			if err := requireAnalyzable(t, columns[i]); err != nil {
				return nil, err
			}
		}
		if t.IsPartitioned() {
			leaves, err := r.analyzedLeaves(ctx, t)
			if err != nil {
				return nil, err
			}
			tables = append(tables, leaves...)
			continue
		}
		if t.Kind != catalog.KindTable {
			r.notice(pgerror.SuccessfulCompletion, "skipping %q --- cannot analyze non-tables or special system tables", t.Name)
			continue
		}
		if !r.mayAnalyze(t, "analyze") {
			continue
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func requireAnalyzable(t *catalog.TableDescriptor, columns []string) error {
	for i, name := range columns {
		if t.ColumnNamed(name) < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", name, t.Name)
		}
		if slices.Contains(columns[:i], name) {
			return pgerror.New(pgerror.DuplicateColumn, "column %q of relation %q appears more than once", name, t.Name)
		}
	}
	return nil
}

// vacuumAlone only analyzes: garbage collection removes old versions of rows.
func vacuumAlone(ctx context.Context, d *Deps, n *ast.Vacuum) error {
	if n.Analyze {
		return analyzeAlone(ctx, d, n.Tables, n.Columns)
	}
	return nil
}

// collect counts the rows of t by their keys, and computes column statistics from a random sample.
func (r *run) collect(ctx context.Context, t *catalog.TableDescriptor) (*catalog.TableStats, error) {
	keys, rows, deleted, err := r.sampleKeys(ctx, t)
	if err != nil {
		return nil, err
	}
	sample, err := r.fetchSample(ctx, t, keys)
	if err != nil {
		return nil, err
	}
	stats := &catalog.TableStats{Rows: float64(rows), Deleted: float64(deleted), Columns: map[uint32]catalog.ColumnStats{}}
	values := make([]types.Datum, 0, len(sample))
	for i := range t.Columns {
		values = values[:0]
		for _, row := range sample {
			values = append(values, row[i])
		}
		if stats.Columns[t.Columns[i].ID], err = columnStats(values, t.Columns[i].Type, float64(rows)); err != nil {
			return nil, err
		}
	}
	return stats, r.collectComputed(ctx, t, sample, stats)
}

// collectComputed computes the statistics of the expressions of t's indexes, over the sampled rows for which an index holds them. Outside of a session no
// functions of users are executed: the statistics of expressions that call them stay those of the last ANALYZE.
func (r *run) collectComputed(ctx context.Context, t *catalog.TableDescriptor, sample []types.Row, stats *catalog.TableStats) error {
	if len(t.Computed) == 0 {
		return nil
	}
	analyzing := *r
	if r.Env == nil {
		deps := *r.Deps
		deps.Env = &builtin.Env{}
		analyzing.Deps = &deps
	}
	make, err := analyzing.entryMaker(ctx, t)
	if err != nil {
		return err
	}
	defer r.actAsOwner(t)()
	var before *catalog.TableStats
	if r.Env == nil {
		if before, err = r.r.Stats(ctx, t.ID); err != nil {
			return err
		}
	}
	for i := range t.Computed {
		c := &t.Computed[i]
		var s catalog.ColumnStats
		if c.Expr == nil {
			s, err = r.collectTerms(t, make, c.ID, sample, stats)
		} else {
			s, err = collectValues(t, make, i, sample, stats)
		}
		var e *pgerror.Error
		if before != nil && errors.As(err, &e) && e.Code == pgerror.FeatureNotSupported {
			if s, ok := before.Columns[c.ID]; ok {
				stats.Columns[c.ID] = s
			}
			continue
		}
		if err != nil {
			return err
		}
		stats.Columns[c.ID] = s
	}
	return nil
}

// collectValues computes the statistics of the i-th expression.
func collectValues(t *catalog.TableDescriptor, make *entries.Maker, i int, sample []types.Row, stats *catalog.TableStats) (catalog.ColumnStats, error) {
	c := &t.Computed[i]
	at := slices.IndexFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return holdsColumn(&ix, c.ID) })
	var values []types.Datum
	for _, row := range sample {
		make.Begin(row)
		held, ok, err := make.Entry(at)
		if err != nil {
			return catalog.ColumnStats{}, err
		}
		if ok {
			values = append(values, held[len(t.Columns)+i].Clone())
		}
	}
	return columnStats(values, c.Type, stats.Rows)
}

// collectTerms computes how frequent the terms of an inverted index are, over the sampled rows.
func (r *run) collectTerms(t *catalog.TableDescriptor, make *entries.Maker, column uint32, sample []types.Row, stats *catalog.TableStats) (s catalog.ColumnStats, err error) {
	at := slices.IndexFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return ix.Inverted != nil && holdsColumn(&ix, column) })
	counts, total := map[string]int{}, 0
	for _, row := range sample {
		make.Begin(row)
		_, ok, err := make.Entry(at)
		if err != nil {
			return s, err
		}
		if !ok {
			continue
		}
		terms, err := make.Terms(at)
		if err != nil {
			return s, err
		}
		for _, term := range terms {
			if _, known := counts[string(term)]; known || len(counts) < maxTerms {
				counts[string(term)]++
			}
			total++
		}
	}
	s = catalog.ColumnStats{Distinct: float64(len(counts)), Type: types.OIDBytea}
	if len(sample) > 0 {
		s.Terms = float64(total) / float64(len(sample))
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	once := 0
	for _, n := range counts {
		if n == 1 {
			once++
		}
	}
	if len(sample) > 0 && stats.Rows > float64(len(sample)) {
		s.Distinct += float64(once) * (stats.Rows/float64(len(sample)) - 1) // Terms seen once stand for others that were not seen.
	}
	for _, term := range frequent[:min(len(frequent), commonValues)] {
		if counts[term] < 2 {
			break
		}
		value, err := rowenc.EncodeDatum(types.Bytes([]byte(term)))
		if err != nil {
			return s, err
		}
		s.Common = append(s.Common, catalog.CommonValue{Value: value, Fraction: float64(counts[term]) / float64(len(sample))})
	}
	return s, nil
}

// sampleKeys scans the table's keys and keeps a random sample of them, in order. deleted is the number of keys of
// deleted rows in it.
func (r *run) sampleKeys(ctx context.Context, t *catalog.TableDescriptor) (keys [][]byte, rows int64, deleted uint64, err error) {
	start, end := rowenc.IndexSpan(t.ID, t.Primary.ID)
	it := r.txn.Scan(ctx, kv.Span{Start: start, End: end}, percolator.ScanOptions{KeysOnly: true, ReadAhead: true, Deleted: &deleted})
	defer it.Close()
	rng := rand.New(rand.NewPCG(t.ID, uint64(r.txn.StartTS())))
	for it.Next(ctx) {
		rows++
		switch at := rng.Int64N(rows); {
		case len(keys) < sampleRows:
			keys = append(keys, slices.Clone(it.Key()))
		case at < sampleRows:
			keys[at] = append(keys[at][:0], it.Key()...)
		}
		if rows%r.ProgressRows == 0 {
			r.Report.Progress("analyzing "+t.Name, rows)
		}
	}
	slices.SortFunc(keys, slices.Compare)
	return keys, rows, deleted, it.Err()
}

// fetchSample reads the sampled rows.
func (r *run) fetchSample(ctx context.Context, t *catalog.TableDescriptor, keys [][]byte) ([]types.Row, error) {
	ordinals := make([]int, len(t.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	var d rowenc.Decoder
	if err := d.Init(t, &t.Primary, ordinals); err != nil {
		return nil, err
	}
	sample := make([]types.Row, 0, len(keys))
	for group := range slices.Chunk(keys, sampleGroup) {
		values, err := r.txn.BatchGet(ctx, group)
		if err != nil {
			return nil, err
		}
		for i, value := range values {
			row := make(types.Row, len(ordinals))
			if err := d.Decode(group[i], value, row); err != nil {
				return nil, err
			}
			sample = append(sample, row)
		}
	}
	return sample, nil
}

// columnStats computes the statistics of a column of which values is a sample out of rows.
func columnStats(values []types.Datum, t types.Type, rows float64) (catalog.ColumnStats, error) {
	stats := catalog.ColumnStats{Type: t.OID}
	if len(values) == 0 {
		return stats, nil
	}
	kept := slices.DeleteFunc(slices.Clone(values), types.Datum.IsNull)
	stats.NullFraction = float64(len(values)-len(kept)) / float64(len(values))
	stats.Correlation = correlation(kept, t)
	slices.SortFunc(kept, func(a, b types.Datum) int { return types.Compare(a, b, t) })
	stats.Distinct = estimateDistinct(kept, t, rows*(1-stats.NullFraction))
	kept = slices.DeleteFunc(kept, func(d types.Datum) bool {
		switch d.Kind() {
		case types.KindArray:
			return true
		case types.KindBytes:
			return len(d.Bytes()) > maxStatBytes
		case types.KindRange:
			return d.Size() > maxStatBytes
		}
		return false
	})
	if len(kept) == 0 {
		return stats, nil
	}
	buckets := min(histogramBuckets, len(kept)-1)
	for i := 0; i <= buckets; i++ {
		at := 0
		if buckets > 0 {
			at = i * (len(kept) - 1) / buckets
		}
		bound, err := rowenc.EncodeDatum(kept[at])
		if err != nil {
			return stats, err
		}
		stats.Histogram = append(stats.Histogram, bound)
	}
	stats.Low, stats.High = stats.Histogram[0], stats.Histogram[buckets]
	var err error
	stats.Common, err = mostCommon(kept, t, len(values))
	return stats, err
}

// correlation is Pearson's coefficient between the places of values, which are in the order of the primary key, and their ranks among them.
func correlation(values []types.Datum, t types.Type) float64 {
	n := len(values)
	if n < 2 {
		return 0
	}
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return types.Compare(values[a], values[b], t) })
	// Both series are 0 … n-1, so that their means and deviations are known.
	var products float64
	mean := float64(n-1) / 2
	for rank, place := range places {
		products += (float64(rank) - mean) * (float64(place) - mean)
	}
	return products / (float64(n) * (float64(n)*float64(n) - 1) / 12)
}

// mostCommon returns the values of a sorted sample without NULLs that are more frequent than chance explains: a value of average frequency m
// would be seen more than m + 3·√m times in one of a thousand samples. total is the size of the sample with NULLs.
func mostCommon(sorted []types.Datum, t types.Type, total int) ([]catalog.CommonValue, error) {
	type group struct{ at, n int }
	var groups []group
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && types.Compare(sorted[i], sorted[j], t) == 0 {
			j++
		}
		groups = append(groups, group{i, j - i})
		i = j
	}
	mean := float64(len(sorted)) / float64(len(groups))
	least := max(1.25*mean, mean+3*math.Sqrt(mean), 2)
	groups = slices.DeleteFunc(groups, func(g group) bool { return float64(g.n) <= least })
	slices.SortStableFunc(groups, func(a, b group) int { return b.n - a.n })
	common := make([]catalog.CommonValue, 0, min(len(groups), commonValues))
	for _, g := range groups[:min(len(groups), commonValues)] {
		value, err := rowenc.EncodeDatum(sorted[g.at])
		if err != nil {
			return nil, err
		}
		common = append(common, catalog.CommonValue{Value: value, Fraction: float64(g.n) / float64(total)})
	}
	return common, nil
}

// estimateDistinct estimates how many distinct values rows have of which sorted is a sample: the
// estimator of Haas and Stokes (1998) that PostgreSQL uses, n·d / (n - f1 + f1·n/N), f1 being the
// number of values seen once.
func estimateDistinct(sorted []types.Datum, t types.Type, rows float64) float64 {
	n := float64(len(sorted))
	if n == 0 {
		return 0
	}
	var distinct, once float64
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && types.Compare(sorted[i], sorted[j], t) == 0 {
			j++
		}
		distinct++
		if j == i+1 {
			once++
		}
		i = j
	}
	if n >= rows || once == 0 {
		return distinct
	}
	if once == n {
		return rows // No value repeats: the column is assumed to be unique.
	}
	estimate := n * distinct / (n - once + once*n/rows)
	return math.Round(min(max(estimate, distinct), rows))
}

// analyzedLeaves lists the tables with the rows of a partitioned one. Its statistics are those of them together.
func (r *run) analyzedLeaves(ctx context.Context, t *catalog.TableDescriptor) ([]*catalog.TableDescriptor, error) {
	tree, err := catalog.PartitionTree(ctx, r.r, t)
	return slices.DeleteFunc(tree, func(part *catalog.TableDescriptor) bool {
		return part.IsPartitioned() || !r.mayAnalyze(part, "analyze")
	}), err
}
