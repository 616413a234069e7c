package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
)

// UniqueViolation returns the client's error for a key that exists: 23505 with the constraint and the values. key is a
// row's or a unique entry's, as reported by *mvcc.KeyExistsError at commit. If the key's table cannot be found any more
// the error contains the key in hexadecimal. Values that the role may not read by the privileges of now are left out; role 0 may
// read all. now nil: the privileges in force are not known, and no values are shown.
func UniqueViolation(ctx context.Context, resolver, now catalog.Resolver, role uint32, key []byte) *pgerror.Error {
	e := pgerror.New(pgerror.UniqueViolation, "duplicate key value violates a unique constraint")
	name, err := rowenc.NameKey(ctx, resolver, key)
	if name == nil || err != nil {
		return unexplained(e, key, err)
	}
	e.Message = `duplicate key value violates unique constraint "` + name.Index.Name + `"`
	e.Schema, e.Table, e.Constraint = name.Table.Schema, name.Table.Name, name.Index.Name
	if !SeesKey(ctx, now, role, name) {
		return e
	}
	return e.WithDetail("Key (%s)=(%s) already exists.", name.Columns(), name.Texts())
}

// SeesKey reports whether a role may read the values of a key by the privileges of now; role 0 may read all. now nil: they are not known.
func SeesKey(ctx context.Context, now catalog.Resolver, role uint32, name *rowenc.KeyName) bool {
	if role == 0 {
		return true
	}
	a, t := accessNow(ctx, now, role, name.Table)
	return a != nil && a.SeesKey(t, name.Index)
}

// accessNow returns the access of a role by the schema in force, and the table with the owner and privileges that it has there; nil if they are
// not known.
func accessNow(ctx context.Context, now catalog.Resolver, role uint32, t *catalog.TableDescriptor) (*catalog.Access, *catalog.TableDescriptor) {
	if now == nil {
		return nil, nil
	}
	present, err := now.RelationByID(ctx, t.ID)
	if err != nil || present == nil {
		return nil, nil
	}
	return catalog.NewAccess(now, role), t.WithPrivilegesOf(present)
}

// inForce returns the schema whose privileges decide what messages may contain, nil if it is not known: what has happened matters more than
// the values.
func (rt *Runtime) inForce(ctx context.Context) catalog.Resolver {
	if rt.System == nil {
		return rt.Resolver
	}
	now, err := rt.System.InForce(ctx, rt.Resolver)
	if err != nil {
		return nil
	}
	return now
}

func unexplained(e *pgerror.Error, key []byte, cause error) *pgerror.Error {
	e.Cause = cause
	return e.WithDetail("Key %x already exists.", key)
}
