package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// cluster is CLUSTER: it notes the index that is named, and leaves the rows in the order of the primary key.
func (r *run) cluster(ctx context.Context, n *ast.Cluster) error {
	for _, o := range n.Options {
		if o.Name = strings.ToLower(o.Name); o.Name != "verbose" {
			return pgerror.New(pgerror.SyntaxError, "unrecognized CLUSTER option %q", o.Name)
		}
		if _, err := types.ParseText(types.TBool, orTrue(o.Value), nil); err != nil {
			return pgerror.New(pgerror.SyntaxError, "verbose requires a Boolean value")
		}
	}
	if n.Table == nil {
		return nil
	}
	t, err := r.mustFind(ctx, *n.Table)
	if err != nil {
		return unplaced(err)
	}
	if t.Kind != catalog.KindTable {
		return pgerror.New(pgerror.WrongObjectType, "%q is not a table or materialized view", t.Name)
	}
	if err := r.mustOwn(t); err != nil {
		return err
	}
	if n.Index == "" {
		if clusteredIndex(t) == nil {
			return pgerror.New(pgerror.UndefinedObject, "there is no previously clustered index for table %q", t.Name)
		}
	} else if ix, err := clusterable(t, n.Index); err != nil || ix.Clustered {
		return err
	} else if !t.IsPartitioned() {
		if err := r.setClustered(ctx, t, n.Index); err != nil {
			return err
		}
	}
	r.notice(pgerror.SuccessfulCompletion, "the rows of table %q stay in the order of its primary key", t.Name)
	return nil
}

// setClustered is ALTER TABLE … CLUSTER ON, or SET WITHOUT CLUSTER if index is "".
func (r *run) setClustered(ctx context.Context, t *catalog.TableDescriptor, index string) error {
	if t.IsPartitioned() {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot mark index clustered in partitioned table")
	}
	next := t.Clone()
	if old := clusteredIndex(next); old != nil {
		old.Clustered = false
	}
	if index != "" {
		ix, err := clusterable(next, index)
		if err != nil {
			return err
		}
		ix.Clustered = true
	}
	return r.update(ctx, t, next, false)
}

func clusteredIndex(t *catalog.TableDescriptor) *catalog.IndexDescriptor {
	if t.Primary.Clustered {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].Clustered {
			return &t.Indexes[i]
		}
	}
	return nil
}

// clusterable finds an index of t by whose order PostgreSQL can store rows.
func clusterable(t *catalog.TableDescriptor, name string) (*catalog.IndexDescriptor, error) {
	ix := t.IndexNamed(name)
	switch {
	case ix == nil:
		return nil, pgerror.New(pgerror.UndefinedObject, "index %q for table %q does not exist", name, t.Name)
	case ix.Method != "" && ix.Method != "gist" || ix.Method == "" && ix.Inverted != nil:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot cluster on index %q because access method does not support clustering", name)
	case ix.Where != nil:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot cluster on partial index %q", name)
	case ix.State != catalog.IndexPublic:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot cluster on invalid index %q", name)
	}
	return ix, nil
}
