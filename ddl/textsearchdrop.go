package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// dropTextSearch is DROP TEXT SEARCH ….
func (r *run) dropTextSearch(ctx context.Context, n *ast.DropObjects) error {
	var targets []*catalog.TextSearchDescriptor
	for i := range n.Objects {
		o := &n.Objects[i]
		d, err := r.droppedTextSearch(ctx, o)
		if absent, ok := err.(*absentTextSearch); ok {
			if !n.IfExists {
				return absent.err
			}
			r.noticeAbsent("%s", absent.notice)
			continue
		}
		if err != nil {
			return err
		}
		if !slices.Contains(targets, d) {
			targets = append(targets, d)
		}
	}
	return r.dropTextSearchList(ctx, targets, n.Cascade)
}

// droppedTextSearch finds an object that the user may drop.
func (r *run) droppedTextSearch(ctx context.Context, o *ast.Object) (*catalog.TextSearchDescriptor, error) {
	t, name := textSearchType(o.Kind), o.Name[len(o.Name)-1]
	required := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s %s because it is required by the database system",
		strings.ToLower(o.Kind), ast.QuoteIdent(name))
	if t == 0 {
		delivered := o.Kind == "TEXT SEARCH PARSER" && name == textsearch.ParserName || o.Kind == "TEXT SEARCH TEMPLATE" && textsearch.TemplateNamed(name) != nil
		if delivered {
			return nil, required
		}
		e := pgerror.New(pgerror.UndefinedObject, "%s %q does not exist", strings.ToLower(o.Kind), strings.Join(o.Name, "."))
		return nil, &absentTextSearch{e, e.Message + ", skipping"}
	}
	oid, err := r.findTextSearch(ctx, t, o.Name)
	if err != nil {
		return nil, err
	}
	d := r.r.TextSearch().ByOID(types.OID(oid))
	switch {
	case d == nil && !r.access.Superuser():
		return nil, mustBeOwner(strings.ToLower(o.Kind), name)
	case d == nil:
		return nil, required
	case !r.access.Owns(d.OwnerOID()) && !r.access.OwnsSchema(d.Schema):
		return nil, mustBeOwner(d.Kind(), d.Name)
	}
	return d, nil
}

// dropTextSearchList drops configurations and dictionaries, with cascade what depends on them as well.
func (r *run) dropTextSearchList(ctx context.Context, targets []*catalog.TextSearchDescriptor, cascade bool) error {
	if len(targets) == 0 {
		return nil
	}
	all := r.withConfigurations(targets)
	found, err := r.textSearchUses(ctx, all, "")
	if err != nil {
		return err
	}
	var lines []string
	for _, d := range all[len(targets):] {
		for _, t := range targets {
			if d.Uses(uint32(t.ID)) {
				lines = append(lines, d.Kind()+" "+r.textSearchName(d)+" depends on "+t.Kind()+" "+r.textSearchName(t))
			}
		}
	}
	if lines = append(lines, found.lines...); len(lines) > 0 && !cascade {
		e := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s %s because other objects depend on it", targets[0].Kind(), r.textSearchName(targets[0]))
		if len(targets) > 1 {
			e = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
		}
		return e.WithDetail("%s", joinLines(lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	var others []string
	for _, line := range lines {
		if what, _, _ := strings.Cut(line, " depends on "); !slices.Contains(others, what) {
			others = append(others, what)
		}
	}
	r.noticeCascade(others)
	if err := r.dropDependents(ctx, &found.typeDropping); err != nil {
		return err
	}
	for _, d := range all {
		if err := r.ch.DropTextSearch(ctx, d); err != nil {
			return err
		}
	}
	return r.look(ctx)
}

// withConfigurations returns the objects, and then the configurations of others that consult one of them.
func (r *run) withConfigurations(targets []*catalog.TextSearchDescriptor) []*catalog.TextSearchDescriptor {
	all := slices.Clone(targets)
	for _, d := range r.r.TextSearch().All() {
		uses := slices.ContainsFunc(targets, func(t *catalog.TextSearchDescriptor) bool { return d.Uses(uint32(t.ID)) })
		if uses && !slices.Contains(targets, d) {
			all = append(all, d)
		}
	}
	return all
}

// textSearchUses finds what depends on configurations and dictionaries: stored expressions and queries that name them, outside of a schema that
// is dropped.
func (r *run) textSearchUses(ctx context.Context, targets []*catalog.TextSearchDescriptor, dropped string) (*extensionDropping, error) {
	if len(targets) == 0 {
		return &extensionDropping{}, nil
	}
	return r.boundUses(ctx, func(use builtin.Use) bool {
		return use.TextSearch != 0 && slices.ContainsFunc(targets, func(d *catalog.TextSearchDescriptor) bool { return uint32(d.ID) == use.TextSearch })
	}, nil, dropped)
}

// textSearchName returns the name of an object as messages have it: with its schema unless the search path finds it.
func (r *run) textSearchName(d *catalog.TextSearchDescriptor) string {
	if catalog.FindTextSearch(r.r, d.Type, "", d.Name) == uint32(d.ID) {
		return ast.QuoteIdent(d.Name)
	}
	return qualifiedText(d.Schema, d.Name)
}

// textSearchWhere lists the configurations and dictionaries for which a condition holds.
func (r *run) textSearchWhere(is func(d *catalog.TextSearchDescriptor) bool) (found []*catalog.TextSearchDescriptor) {
	for _, d := range r.r.TextSearch().All() {
		if is(d) {
			found = append(found, d)
		}
	}
	return found
}

// dropFoundTextSearch drops configurations and dictionaries with what is dropped, as far as they are still there.
func (r *run) dropFoundTextSearch(ctx context.Context, found []*catalog.TextSearchDescriptor) error {
	now := r.textSearchWhere(func(d *catalog.TextSearchDescriptor) bool {
		return slices.ContainsFunc(found, func(f *catalog.TextSearchDescriptor) bool { return f.ID == d.ID })
	})
	if err := r.quiet().dropTextSearchList(ctx, now, true); err != nil {
		return err
	}
	return r.look(ctx)
}
