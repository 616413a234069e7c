package session

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/audit"
	sqlast "github.com/percodb/percodb/sql/ast"
)

// unwritten are the statements that the audit log leaves out: those that change neither the schema, nor roles, nor the system.
const unwritten = `
	Query Insert Update Delete Merge Copy DeclareCursor Fetch CloseCursor Explain Prepare Execute Deallocate Begin Commit Rollback
	Savepoint ReleaseSavepoint RollbackTo SetTransaction SetConstraints Show Discard Listen Unlisten Notify NotifyObserver
	CallProcedure
	WaitObserver Analyze Vacuum Reindex LockTable Checkpoint`

// unsupported are those that percodb does not have.
const unsupported = `
	AlterExtension AlterStatistics AlterSubscription AlterTablespace AlterTextSearch Cluster
	CreateAccessMethod CreateCast CreateConversion CreateEventTrigger CreateExtension CreateForeignTable
	CreateLanguage CreateRule CreateStatistics CreateSubscription CreateTablespace CreateTransform
	CreateTrigger DataWrapper Do ImportForeignSchema Load MoveAll OperatorClass OperatorFamily PreparedTransaction Publication
	ReturnStatement SecurityLabel Server UserMapping`

// Goal: every statement that changes the schema, roles, privileges or the system has a class. Method: the statements of the syntax tree are
// read from its source; one that stands in no list fails.
func TestStatementsHaveAuditClasses(t *testing.T) {
	changed := &sqlast.Role{}
	written := map[string][]sqlast.Statement{
		audit.Roles: {
			&sqlast.CreateRole{}, &sqlast.AlterRole{}, &sqlast.AlterRoleSet{}, &sqlast.AlterDatabaseSet{}, &sqlast.GrantRole{}, &sqlast.Grant{},
			&sqlast.AlterDefaultPrivileges{}, &sqlast.OwnedBy{}, &sqlast.DropObjects{Objects: []sqlast.Object{{Role: changed}}},
			&sqlast.AlterObject{Object: sqlast.Object{Role: changed}}, &sqlast.AlterObject{Change: sqlast.ObjectChange{Owner: changed}},
		},
		audit.DDL: {
			&sqlast.DropObjects{Objects: []sqlast.Object{{Kind: "TYPE"}}}, &sqlast.AlterObject{Object: sqlast.Object{Kind: "POLICY"}},
			&sqlast.CreateTable{}, &sqlast.CreateIndex{}, &sqlast.CreateView{}, &sqlast.CreateSequence{}, &sqlast.CreateSchema{}, &sqlast.Drop{},
			&sqlast.AlterTable{}, &sqlast.Truncate{}, &sqlast.Comment{}, &sqlast.CreateObserver{}, &sqlast.AlterObserver{}, &sqlast.DropObserver{},
			&sqlast.CreatePolicy{}, &sqlast.AlterPolicy{}, &sqlast.CreateFunction{}, &sqlast.AlterFunction{}, &sqlast.Define{}, &sqlast.CreateType{}, &sqlast.AlterEnum{}, &sqlast.AlterType{}, &sqlast.RenameAttribute{},
			&sqlast.CreateDomain{}, &sqlast.AlterDomain{}, &sqlast.Database{}, &sqlast.CreateMaterializedView{}, &sqlast.RefreshMaterializedView{},
		},
		audit.System: {&sqlast.AlterSystem{}},
		audit.Acting: {&sqlast.Set{Name: "role"}, &sqlast.Set{Name: "session_authorization"}},
	}
	listed := append(strings.Fields(unwritten), strings.Fields(unsupported)...)
	a := &auditor{log: new(audit.Log), identity: &identity{}}
	for class, statements := range written {
		for _, s := range statements {
			listed = append(listed, strings.TrimPrefix(fmt.Sprintf("%T", s), "*ast."))
			if got := a.class(s); got != class {
				t.Errorf("%T: class %q, want %q", s, got, class)
			}
		}
	}
	paths, err := filepath.Glob("../sql/ast/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "statement" || f.Type.Params.NumFields() > 0 {
				continue
			}
			found++
			if name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !slices.Contains(listed, name) {
				t.Errorf("statement %s stands in no list: give it a class, or say that the audit log leaves it out", name)
			}
		}
	}
	if found == 0 {
		t.Error("no statement was found")
	}
}
