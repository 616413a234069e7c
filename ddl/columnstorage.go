package ddl

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxStatisticsTarget is PostgreSQL's.
const maxStatisticsTarget = 10000

// storageKinds are the kinds of SET STORAGE, as pg_attribute.attstorage has them.
var storageKinds = map[string]string{"plain": "p", "external": "e", "extended": "x", "main": "m"}

// alterColumnStorage is ALTER COLUMN … SET STATISTICS, SET STORAGE, SET COMPRESSION, SET (…) and RESET (…) of a table or view.
func (r *run) alterColumnStorage(ctx context.Context, t *catalog.TableDescriptor, n *ast.SetStorage) error {
	if n.Number != "" {
		if _, err := columnNumber(n.Number); err != nil {
			return err
		}
		return pgerror.New(pgerror.FeatureNotSupported, "cannot refer to non-index column by number")
	}
	ord, err := mustColumn(t, n.Column, 0)
	if err != nil {
		return err
	}
	next := t.Clone()
	if err := r.setPhysical(&next.Columns[ord], n); err != nil {
		return err
	}
	return r.update(ctx, t, next, false)
}

// alterIndexStatistics is ALTER INDEX … ALTER COLUMN number SET STATISTICS.
func (r *run) alterIndexStatistics(ctx context.Context, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, n *ast.SetStorage) error {
	if n.Action != "SET STATISTICS" {
		return pgerror.New(pgerror.WrongObjectType, "ALTER action ALTER COLUMN ... %s cannot be performed on relation %q", n.Action, ix.Name).
			WithDetail("This operation is not supported for indexes.")
	}
	if n.Number == "" {
		return pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", n.Column, ix.Name)
	}
	number, err := columnNumber(n.Number)
	if err != nil {
		return err
	}
	keys := ix.ElementIDs()
	all := append(slices.Clone(keys), ix.Include...)
	if number > len(all) {
		return pgerror.New(pgerror.UndefinedColumn, "column number %d of relation %q does not exist", number, ix.Name)
	}
	next := t.Clone()
	c := next.ColumnByID(all[number-1])
	cannot := func(kind string) error {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot alter statistics on %s column %q of index %q", kind, c.Name, ix.Name)
	}
	switch {
	case number > len(keys):
		return cannot("included")
	case c.Expr == nil:
		return cannot("non-expression").(*pgerror.Error).WithHint("Alter statistics on table column instead.")
	}
	if err := r.setPhysical(c, n); err != nil {
		return err
	}
	return r.update(ctx, t, next, false)
}

func columnNumber(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > 32767 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "column number must be in range from 1 to %d", 32767)
	}
	return number, nil
}

// setPhysical changes what a column has of statistics and storage.
func (r *run) setPhysical(c *catalog.ColumnDescriptor, n *ast.SetStorage) (err error) {
	next := catalog.ColumnStorage{}
	if c.Physical != nil {
		next = *c.Physical
	}
	switch n.Action {
	case "SET STATISTICS":
		next.Statistics, err = r.statisticsTarget(n.Value)
	case "SET STORAGE":
		next.Storage, err = storageOf(c.Type, n.Name)
	case "SET COMPRESSION":
		next.Compression, err = compressionOf(c.Type, n.Name)
	case "SET":
		next.Options, err = columnOptions(next.Options, n.Options)
	case "RESET":
		next.Options = slices.Clone(next.Options)
		for _, o := range n.Options {
			next.Options = withoutOption(next.Options, strings.ToLower(o.Name))
		}
	default:
		return pgerror.New(pgerror.InternalError, "action %s of ALTER COLUMN", n.Action)
	}
	c.Physical = &next
	return err
}

func (r *run) statisticsTarget(value string) (*int16, error) {
	target, err := strconv.ParseInt(value, 10, 32)
	switch {
	case err != nil:
		return nil, pgerror.New(pgerror.SyntaxError, "invalid statistics target %s", value)
	case target == -1:
		return nil, nil
	case target < -1:
		return nil, pgerror.New(pgerror.InvalidParameterValue, "statistics target %d is too low", target)
	case target > maxStatisticsTarget:
		r.Report.Notice(pgerror.New(pgerror.Warning, "lowering statistics target to %d", maxStatisticsTarget))
		target = maxStatisticsTarget
	}
	kept := int16(target)
	return &kept, nil
}

// storageOf is a kind of storage by its name; "" for the one of the type.
func storageOf(t types.Type, name string) (string, error) {
	kind, ok := storageKinds[strings.ToLower(name)]
	switch info := t.Info(); {
	case !ok:
		return "", pgerror.New(pgerror.InvalidParameterValue, "invalid storage type %q", name)
	case kind != "p" && info != nil && info.Len != -1:
		return "", pgerror.New(pgerror.FeatureNotSupported, "column data type %s can only have storage PLAIN", builtin.TypeName(t))
	}
	return kind, nil
}

// compressionOf is a method of compression as pg_attribute.attcompression has it, by its name.
func compressionOf(t types.Type, name string) (string, error) {
	if strings.EqualFold(name, "default") {
		return "", nil
	}
	if info := t.Info(); info != nil && info.Len != -1 {
		return "", pgerror.New(pgerror.FeatureNotSupported, "column data type %s does not support compression", builtin.TypeName(t))
	}
	switch name {
	case "pglz":
		return "p", nil
	case "lz4":
		return "l", nil
	}
	return "", pgerror.New(pgerror.InvalidParameterValue, "invalid compression method %q", name)
}

// columnOptions adds options of a column to those that it has.
func columnOptions(have []string, options []ast.StorageOption) ([]string, error) {
	have = slices.Clone(have)
	for _, o := range options {
		name := strings.ToLower(o.Name)
		if name != "n_distinct" && name != "n_distinct_inherited" {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter %q", o.Name)
		}
		v, err := strconv.ParseFloat(o.Value, 64)
		if err != nil {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid value for floating point option %q: %s", name, o.Value)
		}
		if v < -1 {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "value %s out of bounds for option %q", o.Value, name).
				WithDetail("Valid values are between \"-1.000000\" and \"%s\".", strconv.FormatFloat(1.7976931348623157e308, 'f', 6, 64))
		}
		have = append(withoutOption(have, name), name+"="+o.Value)
	}
	return have, nil
}

// alterLogged is SET LOGGED and SET UNLOGGED, which are shown.
func (r *run) alterLogged(ctx context.Context, t *catalog.TableDescriptor, unlogged bool) error {
	if t.Temporary() {
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot change logged status of table %q because it is temporary", t.Name)
	}
	if t.Unlogged == unlogged {
		return nil
	}
	if err := r.requireSameLogging(ctx, t, unlogged); err != nil {
		return err
	}
	next := t.Clone()
	next.Unlogged = unlogged
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	for i := range t.Columns {
		if t.Columns[i].Sequence == 0 {
			continue
		}
		seq, err := r.r.RelationByID(ctx, t.Columns[i].Sequence)
		if err != nil {
			return err
		}
		changed := seq.Clone()
		changed.Unlogged = unlogged
		if err := r.update(ctx, seq, changed, false); err != nil {
			return err
		}
	}
	return nil
}

// requireSameLogging refuses a logged table with a foreign key to one that is not.
func (r *run) requireSameLogging(ctx context.Context, t *catalog.TableDescriptor, unlogged bool) error {
	if !unlogged {
		for i := range t.ForeignKeys {
			parent, err := r.r.RelationByID(ctx, t.ForeignKeys[i].Parent)
			if err != nil {
				return err
			}
			if parent.Unlogged && parent.ID != t.ID {
				return pgerror.New(pgerror.InvalidTableDefinition, "could not change table %q to logged because it references unlogged table %q", t.Name, parent.Name)
			}
		}
		return nil
	}
	for _, id := range t.Referencing {
		child, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if !child.Unlogged {
			return pgerror.New(pgerror.InvalidTableDefinition, "could not change table %q to unlogged because it references logged table %q", t.Name, child.Name)
		}
	}
	return nil
}
