package builtin

import (
	"bytes"
	"strings"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// aclFuncs declares the functions on access lists.
func aclFuncs() []decl {
	out := []decl{
		{sig: "makeaclitem(oid,oid,text,bool) aclitem", fn: makeACLItem},
		{sig: "acldefault(char,oid) aclitem[]", fn: aclDefault},
		{sig: "aclcontains(aclitem[],aclitem) bool", fn: aclContains},
		{sig: "aclitemeq(aclitem,aclitem) bool", fn: equalACLItems},
	}
	for _, name := range []string{"aclinsert", "aclremove"} {
		out = append(out, decl{sig: name + "(aclitem[],aclitem) aclitem[]", fn: noLonger(name)})
	}
	return out
}

// aclOps declares the operators on access lists.
func aclOps() []decl {
	return []decl{
		{sig: "=(aclitem,aclitem) bool", fn: equalACLItems},
		{sig: "@>(aclitem[],aclitem) bool", fn: aclContains},
		{sig: "+(aclitem[],aclitem) aclitem[]", fn: noLonger("aclinsert")},
		{sig: "-(aclitem[],aclitem) aclitem[]", fn: noLonger("aclremove")},
	}
}

func equalACLItems(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Bool(bytes.Equal(a[0].Bytes(), a[1].Bytes())), nil
}

// noLonger makes a function that PostgreSQL only declares.
func noLonger(name string) Func {
	return func(*Env, []types.Datum) (types.Datum, error) {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "%s is no longer supported", name)
	}
}

// aclList reads an access list: an array that is not empty, without NULLs.
func aclList(d types.Datum) (acl.List, error) {
	elems := d.Array().Elems
	if len(elems) == 0 { // It has no dimension.
		return nil, pgerror.New(pgerror.InvalidParameterValue, "ACL arrays must be one-dimensional")
	}
	list := make(acl.List, len(elems))
	for i, e := range elems {
		if e.IsNull() {
			return nil, pgerror.New(pgerror.NullValueNotAllowed, "ACL arrays must not contain null values")
		}
		list[i] = e.ACLItem()
	}
	return list, nil
}

// aclContains reports whether an item of the list has the roles of the given one, and at least its rights.
func aclContains(env *Env, a []types.Datum) (types.Datum, error) {
	list, err := aclList(a[0])
	if err != nil {
		return types.Null, err
	}
	if err := env.Step(len(list)); err != nil {
		return types.Null, err
	}
	want := a[1].ACLItem()
	for _, it := range list {
		if it.Grantee == want.Grantee && it.Grantor == want.Grantor && it.Rights&want.Rights == want.Rights {
			return types.Bool(true), nil
		}
	}
	return types.Bool(false), nil
}

func makeACLItem(_ *Env, a []types.Datum) (types.Datum, error) {
	word := strings.ToUpper(a[2].Text())
	p := acl.Named(word)
	if p == acl.None && word != "RULE" { // RULE means nothing any more.
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: \"%s\"", a[2].Text())
	}
	if a[3].Bool() {
		p |= p.Options()
	}
	return types.ACLItem(acl.Item{Grantee: uint32(oidArg(a[0])), Grantor: uint32(oidArg(a[1])), Rights: p}), nil
}

func aclDefault(_ *Env, a []types.Datum) (types.Datum, error) {
	var k acl.Kind
	if letter := a[0].Text(); len(letter) == 1 {
		k = acl.KindOf(letter[0])
	}
	if k == 0 {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "unrecognized objtype abbreviation: %s", a[0].Text())
	}
	return types.ACL(acl.Default(k, uint32(oidArg(a[1])))), nil
}

// explodeFuncs declares aclexplode.
func explodeFuncs() []setDecl {
	return []setDecl{{sig: "aclexplode(aclitem[]) record", flags: stable, estimate: 10, open: opens(openACLExplode), columns: []SetColumn{
		{"grantor", types.TOid}, {"grantee", types.TOid}, {"privilege_type", types.TText}, {"is_grantable", types.TBool},
	}}}
}

// explodedList yields a record for each privilege of each item.
type explodedList struct {
	types []types.Type
	list  acl.List
	// done are the privileges of the first item that have been returned.
	done acl.Privileges
}

func openACLExplode(_ *Env, a []types.Datum) (SetRows, error) {
	list, err := aclList(a[0])
	return &explodedList{types: []types.Type{types.TOid, types.TOid, types.TText, types.TBool}, list: list}, err
}

func (s *explodedList) Next(*Env) (types.Datum, bool, error) {
	for ; len(s.list) > 0; s.list, s.done = s.list[1:], acl.None {
		it := s.list[0]
		rest := it.Rights.Plain() &^ s.done
		if rest == acl.None {
			continue
		}
		one := rest & -rest
		s.done |= one
		return types.NewRecord(s.types, types.Row{
			types.Int(int64(it.Grantor)), types.Int(int64(it.Grantee)), types.Text(one.Name()), types.Bool(it.Rights.Granted()&one != acl.None),
		}), true, nil
	}
	return types.Null, false, nil
}
