package wire_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// step is messages of the extended protocol and the answers up to ReadyForQuery.
type step struct {
	name string
	send []pgproto3.FrontendMessage
	want string
}

func runSteps(t *testing.T, r *raw, steps []step) {
	t.Helper()
	for _, s := range steps {
		r.send(s.send...)
		expect(t, s.name, r.ready(), s.want)
	}
}

// The messages, abbreviated.

func messages(m ...pgproto3.FrontendMessage) []pgproto3.FrontendMessage { return m }

func parse(name, text string, oids ...uint32) *pgproto3.Parse {
	return &pgproto3.Parse{Name: name, Query: text, ParameterOIDs: oids}
}

func bind(portal, statement string, params ...string) *pgproto3.Bind {
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: statement}
	for _, p := range params {
		b.Parameters = append(b.Parameters, []byte(p))
	}
	return b
}

func execute(portal string, rows uint32) *pgproto3.Execute {
	return &pgproto3.Execute{Portal: portal, MaxRows: rows}
}

func describeS(name string) *pgproto3.Describe {
	return &pgproto3.Describe{ObjectType: 'S', Name: name}
}
func describeP(name string) *pgproto3.Describe {
	return &pgproto3.Describe{ObjectType: 'P', Name: name}
}
func closeS(name string) *pgproto3.Close { return &pgproto3.Close{ObjectType: 'S', Name: name} }
func closeP(name string) *pgproto3.Close { return &pgproto3.Close{ObjectType: 'P', Name: name} }

var syncing = &pgproto3.Sync{}

// Goal: types of parameters and columns are inferred as PostgreSQL infers them, and described by Describe.
func TestDescribe(t *testing.T) {
	r := open(t)
	r.query("drop table if exists describe_t")
	r.query("create table describe_t (id int primary key, big bigint, n numeric(10,2), s varchar(5), at timestamptz, u uuid)")
	cases := []struct{ text, want string }{
		{"select * from describe_t where id = $1", "params [23]\ncolumns id:23/0 big:20/0 n:1700/0 s:1043/0 at:1184/0 u:2950/0\n"},
		{"select $1", "params [25]\ncolumns ?column?:25/0\n"},
		{"select $1 + 1", "params [23]\ncolumns ?column?:23/0\n"},
		{"select $1 + big from describe_t", "params [20]\ncolumns ?column?:20/0\n"},
		{"select $1::text, $2::date", "params [25 1082]\ncolumns text:25/0 date:1082/0\n"},
		{"select id from describe_t where id = any($1)", "params [1007]\ncolumns id:23/0\n"},
		{"select id from describe_t where s = $1 and n > $2 and at < $3 and u = $4", "params [25 1700 1184 2950]\ncolumns id:23/0\n"},
		{"select id from describe_t where id in ($1, $2) and big between $3 and $4", "params [23 23 20 20]\ncolumns id:23/0\n"},
		{"insert into describe_t (id, n, s, at) values ($1, $2, $3, $4)", "params [23 1700 1043 1184]\nnodata\n"},
		{"insert into describe_t (id) values ($1) returning id, n", "params [23]\ncolumns id:23/0 n:1700/0\n"},
		{"update describe_t set big = $1, s = $2 where id = $3", "params [20 1043 23]\nnodata\n"},
		{"delete from describe_t where at < $1", "params [1184]\nnodata\n"},
		{"select id from describe_t limit $1 offset $2", "params [20 20]\ncolumns id:23/0\n"},
		{"select coalesce($1, 5), case when $2 then 1 else 2 end", "params [23 16]\ncolumns coalesce:23/0 case:23/0\n"},
		{"select sum(id), avg(id), count(*), max(s), sum(big) from describe_t", "params []\ncolumns sum:20/0 avg:1700/0 count:20/0 max:25/0 sum:1700/0\n"},
		{"select at + $1, at - at from describe_t", "params [1186]\ncolumns ?column?:1184/0 ?column?:1186/0\n"},
		{"select $1 || 'x', length($2)", "params [25 25]\ncolumns ?column?:25/0 length:23/0\n"},
		{"values ($1::int), (2)", "params [23]\ncolumns column1:23/0\n"},
		{"begin", "params []\nnodata\n"},
		{"show timezone", "params []\ncolumns TimeZone:25/0\n"},
		{"create table describe_other (a int)", "params []\nnodata\n"},
		{"", "params []\nnodata\n"},
	}
	for _, c := range cases {
		r.send(parse("", c.text), describeS(""), syncing)
		expect(t, c.text, r.ready(), "parsecomplete\n"+c.want+"ready I\n")
	}
	r.send(parse("", "select $1, $2 + 1", 20, 0), describeS(""), syncing)
	expect(t, "declared", r.ready(), "parsecomplete\nparams [20 23]\ncolumns ?column?:20/0 ?column?:23/0\nready I\n")
	r.send(parse("", "select $2::int"), describeS(""), syncing)
	expect(t, "a gap", r.ready(), "error 42P18 could not determine data type of parameter $1\nready I\n")
}

// Goal: statements and portals are created and destroyed as 55.2.3 specifies.
func TestStatementsAndPortals(t *testing.T) {
	r := open(t)
	series := "select g from generate_series(1, 5) g"
	runSteps(t, r, []step{
		{"unnamed", messages(parse("", "select $1::int + 1"), bind("", "", "41"), describeP(""), execute("", 0), syncing), `
			parsecomplete
			bindcomplete
			columns ?column?:23/0
			row 42
			complete SELECT 1
			ready I
			`},
		{"again", messages(bind("", "", "1"), execute("", 0), syncing), "bindcomplete\nrow 2\ncomplete SELECT 1\nready I\n"},
		{"named", messages(parse("s", series), parse("s", series), syncing), "parsecomplete\nerror 42P05 prepared statement \"s\" already exists\nready I\n"},
		{"missing statement", messages(bind("", "nope"), execute("", 0), syncing), "error 26000 prepared statement \"nope\" does not exist\nready I\n"},
		{"missing portal", messages(execute("nope", 0), syncing), "error 34000 portal \"nope\" does not exist\nready I\n"},
		{"describe missing", messages(describeS("nope"), syncing), "error 26000 prepared statement \"nope\" does not exist\nready I\n"},
		{"describe missing portal", messages(describeP("nope"), syncing), "error 34000 portal \"nope\" does not exist\nready I\n"},
		{"close missing", messages(closeS("nope"), closeP("nope"), syncing), "closecomplete\nclosecomplete\nready I\n"},
		{"limits", messages(bind("p", "s"), execute("p", 2), execute("p", 2), execute("p", 2), execute("p", 0), syncing), `
			bindcomplete
			row 1
			row 2
			portalsuspended
			row 3
			row 4
			portalsuspended
			row 5
			complete SELECT 1
			complete SELECT 0
			ready I
			`},
		{"a portal ends with its transaction", messages(execute("p", 0), syncing), "error 34000 portal \"p\" does not exist\nready I\n"},
		{"exact limit", messages(bind("p", "s"), execute("p", 5), execute("p", 1), syncing), `
			bindcomplete
			row 1
			row 2
			row 3
			row 4
			row 5
			portalsuspended
			complete SELECT 0
			ready I
			`},
		{"two portals at once", messages(bind("a", "s"), bind("b", "s"), execute("a", 1), execute("b", 2), execute("a", 1), syncing), `
			bindcomplete
			bindcomplete
			row 1
			portalsuspended
			row 1
			row 2
			portalsuspended
			row 2
			portalsuspended
			ready I
			`},
		{"taken portal", messages(bind("a", "s"), bind("a", "s"), syncing), "bindcomplete\nerror 42P03 cursor \"a\" already exists\nready I\n"},
		{"begin", messages(parse("", "begin"), bind("", ""), execute("", 0), syncing), "parsecomplete\nbindcomplete\ncomplete BEGIN\nready T\n"},
		{"portal over Sync", messages(bind("p", "s"), execute("p", 1), syncing), "bindcomplete\nrow 1\nportalsuspended\nready T\n"},
		{"goes on", messages(execute("p", 2), closeP("p"), execute("p", 1), syncing), "row 2\nrow 3\nportalsuspended\nclosecomplete\nerror 34000 portal \"p\" does not exist\nready E\n"},
		{"failed block", messages(bind("p", "s"), syncing), "error 25P02 current transaction is aborted, commands ignored until end of transaction block\nready E\n"},
		{"parse in failed block", messages(parse("", "select 1"), syncing), "error 25P02 current transaction is aborted, commands ignored until end of transaction block\nready E\n"},
		{"rollback", messages(parse("", "rollback"), bind("", ""), execute("", 0), syncing), "parsecomplete\nbindcomplete\ncomplete ROLLBACK\nready I\n"},
		{"closed", messages(closeS("s"), bind("", "s"), syncing), "closecomplete\nerror 26000 prepared statement \"s\" does not exist\nready I\n"},
		{"empty", messages(parse("", " ; "), bind("", ""), execute("", 0), syncing), "parsecomplete\nbindcomplete\nemptyqueryresponse\nready I\n"},
		{"several", messages(parse("", "select 1; select 2"), syncing), "error 42601 cannot insert multiple commands into a prepared statement\nready I\n"},
		{"too few", messages(parse("", "select $1::int"), bind("", ""), syncing), "parsecomplete\nerror 08P01 bind message supplies 0 parameters, but prepared statement \"\" requires 1\nready I\n"},
		{"too many", messages(bind("", "", "1", "2"), syncing), "error 08P01 bind message supplies 2 parameters, but prepared statement \"\" requires 1\nready I\n"},
		{"bad text", messages(bind("", "", "x"), syncing), "error 22P02 invalid input syntax for type integer: \"x\"\nready I\n"},
		{"formats", messages(&pgproto3.Bind{Parameters: [][]byte{[]byte("1")}, ParameterFormatCodes: []int16{0, 0}}, syncing), "error 08P01 bind message has 2 parameter formats but 1 parameters\nready I\n"},
		{"result formats", messages(&pgproto3.Bind{Parameters: [][]byte{[]byte("1")}, ResultFormatCodes: []int16{0, 0}}, syncing), "error 08P01 bind message has 2 result formats but query has 1 columns\nready I\n"},
		{"unknown format", messages(&pgproto3.Bind{Parameters: [][]byte{[]byte("1")}, ParameterFormatCodes: []int16{7}}, syncing), "error 22023 unsupported format code: 7\nready I\n"},
		{"a query drops the unnamed statement", messages(parse("", "select 1"), syncing), "parsecomplete\nready I\n"},
	})
	r.query("select 2")
	r.send(bind("", ""), syncing)
	expect(t, "unnamed is gone", r.ready(), "error 26000 unnamed prepared statement does not exist\nready I\n")
}

// Goal: a completed portal does not run again; a statement without rows ignores result formats; Parse checks a text
// before its name, and a refused text replaces the unnamed statement all the same.
func TestPortalsRunOnce(t *testing.T) {
	r := open(t)
	r.query("drop table if exists once_t")
	r.query("create table once_t (id int primary key, n int)")
	r.query("insert into once_t values (1, 0)")
	formats := func(codes ...int16) *pgproto3.Bind { return &pgproto3.Bind{ResultFormatCodes: codes} }
	update, show := "update once_t set n = n + 1", "show statement_timeout"
	runSteps(t, r, []step{
		{"a change", messages(parse("", update), bind("", ""), execute("", 0), execute("", 0), syncing), `
			parsecomplete
			bindcomplete
			complete UPDATE 1
			error 55000 portal "" cannot be run
			ready I
			`},
		{"a setting", messages(parse("", "set application_name = 'a'"), bind("p", ""), execute("p", 1), execute("p", 0), syncing), `
			parsecomplete
			bindcomplete
			complete SET
			error 55000 portal "p" cannot be run
			ready I
			`},
		{"begin", messages(parse("", "begin"), bind("", ""), execute("", 0), execute("", 0), syncing), `
			parsecomplete
			bindcomplete
			complete BEGIN
			error 55000 portal "" cannot be run
			ready E
			`},
		{"rollback", messages(parse("", "rollback"), bind("", ""), execute("", 0), syncing), "parsecomplete\nbindcomplete\ncomplete ROLLBACK\nready I\n"},
		{"rows of a setting", messages(parse("", show), bind("", ""), execute("", 0), execute("", 0), syncing), `
			parsecomplete
			bindcomplete
			row 0
			complete SHOW
			complete SHOW
			ready I
			`},
		{"the empty query", messages(parse("", ""), bind("", ""), execute("", 0), execute("", 0), syncing), `
			parsecomplete
			bindcomplete
			emptyqueryresponse
			emptyqueryresponse
			ready I
			`},
		{"formats of no rows", messages(parse("", update), formats(0, 1, 3), execute("", 0), syncing), "parsecomplete\nbindcomplete\ncomplete UPDATE 1\nready I\n"},
		{"tag", messages(parse("", "start transaction"), bind("", ""), execute("", 0), parse("", "end"), bind("", ""), execute("", 0), syncing), `
			parsecomplete
			bindcomplete
			complete START TRANSACTION
			parsecomplete
			bindcomplete
			complete COMMIT
			ready I
			`},
		{"name", messages(parse("s", "select 1"), parse("s", "selec"), syncing), "parsecomplete\nerror 42601 syntax error at or near \"selec\"\nready I\n"},
		{"unnamed", messages(parse("", "select 1"), parse("", "selec"), syncing), "parsecomplete\nerror 42601 syntax error at or near \"selec\"\nready I\n"},
		{"and gone", messages(bind("", ""), syncing), "error 26000 unnamed prepared statement does not exist\nready I\n"},
		{"counted once each", messages(parse("", "select n from once_t"), bind("", ""), execute("", 0), syncing), "parsecomplete\nbindcomplete\nrow 1\ncomplete SELECT 1\nready I\n"},
	})
}

// Goal: DISCARD ALL is refused in a shared transaction.
func TestDiscardAllIsAlone(t *testing.T) {
	r := open(t)
	r.send(&pgproto3.Query{String: "discard all; select 1"})
	expect(t, "in a text", r.ready(), "error 25001 DISCARD ALL cannot run inside a transaction block\nready I\n")
	r.send(parse("", "select 1"), bind("", ""), execute("", 0), parse("", "discard all"), bind("", ""), execute("", 0), syncing)
	expect(t, "in a pipeline", r.ready(), `
		parsecomplete
		bindcomplete
		row 1
		complete SELECT 1
		parsecomplete
		bindcomplete
		error 25001 DISCARD ALL cannot be executed within a pipeline
		ready I
		`)
	r.send(parse("", "discard all"), bind("", ""), execute("", 0), syncing)
	expect(t, "alone", r.ready(), "parsecomplete\nbindcomplete\ncomplete DISCARD ALL\nready I\n")
}

// Goal: a pipeline is a transaction; after an error everything up to Sync is skipped.
func TestPipelines(t *testing.T) {
	r := open(t)
	r.query("drop table if exists pipe_t")
	r.query("create table pipe_t (id int primary key)")
	insert := func(v string) []pgproto3.FrontendMessage { return messages(bind("", "ins", v), execute("", 0)) }
	join := func(parts ...[]pgproto3.FrontendMessage) (all []pgproto3.FrontendMessage) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return append(all, syncing)
	}
	count := messages(bind("", "cnt"), execute("", 0))
	runSteps(t, r, []step{
		{"prepare", messages(parse("ins", "insert into pipe_t values ($1)"), parse("cnt", "select count(*) from pipe_t"), syncing), "parsecomplete\nparsecomplete\nready I\n"},
		{"two", join(insert("1"), insert("2")), "bindcomplete\ncomplete INSERT 0 1\nbindcomplete\ncomplete INSERT 0 1\nready I\n"},
		{"sees its own", join(insert("3"), count), "bindcomplete\ncomplete INSERT 0 1\nbindcomplete\nrow 3\ncomplete SELECT 1\nready I\n"},
		{"error undoes all and skips", join(insert("4"), insert("x"), insert("5"), messages(parse("", "selec")), count), `
			bindcomplete
			complete INSERT 0 1
			error 22P02 invalid input syntax for type integer: "x"
			ready I
			`},
		{"nothing came of it", join(count), "bindcomplete\nrow 3\ncomplete SELECT 1\nready I\n"},
		{"unique violation alone", join(insert("1")), "bindcomplete\nerror 23505 duplicate key value violates unique constraint \"pipe_t_pkey\"\nready I\n"},
		{"and closed", join(insert("1"), messages(closeP(""))), "bindcomplete\nerror 23505 duplicate key value violates unique constraint \"pipe_t_pkey\"\nready I\n"},
		{"unique violation first", join(insert("1"), insert("6")), "bindcomplete\nerror 23505 duplicate key value violates unique constraint \"pipe_t_pkey\"\nready I\n"},
		{"unique violation second", join(insert("6"), insert("1")), "bindcomplete\ncomplete INSERT 0 1\nbindcomplete\nerror 23505 duplicate key value violates unique constraint \"pipe_t_pkey\"\nready I\n"},
		{"still nothing", join(count), "bindcomplete\nrow 3\ncomplete SELECT 1\nready I\n"},
		{"block within", join(messages(parse("", "begin"), bind("", ""), execute("", 0)), insert("7")), "parsecomplete\nbindcomplete\ncomplete BEGIN\nbindcomplete\ncomplete INSERT 0 1\nready T\n"},
		{"error in block", join(insert("7"), insert("8")), "bindcomplete\nerror 23505 duplicate key value violates unique constraint \"pipe_t_pkey\"\nready E\n"},
		{"ends", join(messages(parse("", "rollback"), bind("", ""), execute("", 0)), insert("8"), count), `
			parsecomplete
			bindcomplete
			complete ROLLBACK
			bindcomplete
			complete INSERT 0 1
			bindcomplete
			row 4
			complete SELECT 1
			ready I
			`},
	})
	// Flush returns answers before Sync.
	r.send(bind("", "ins", "9"), execute("", 0), &pgproto3.Flush{})
	if a, b := r.next(), r.next(); a != "bindcomplete" || b != "complete INSERT 0 1" {
		t.Errorf("Flush brought %s, %s", a, b)
	}
	r.send(bind("", "cnt"), execute("", 0), syncing)
	expect(t, "after Flush", r.ready(), "bindcomplete\nrow 5\ncomplete SELECT 1\nready I\n")
	// RETURNING with a row limit makes all its changes at once.
	r.send(parse("", "insert into pipe_t select g from generate_series(20, 29) g returning id"), bind("", ""), execute("", 2), syncing)
	expect(t, "limited RETURNING", r.ready(), "parsecomplete\nbindcomplete\nrow 20\nrow 21\nportalsuspended\nready I\n")
	r.send(bind("", "cnt"), execute("", 0), syncing)
	expect(t, "all inserted", r.ready(), "bindcomplete\nrow 15\ncomplete SELECT 1\nready I\n")
}

// Goal: statements prepared by name or by PREPARE survive schema changes, and are refused if the columns that were
// described have changed.
func TestReplan(t *testing.T) {
	r := open(t)
	r.query("drop table if exists replan_t")
	r.query("create table replan_t (id int primary key, v text)")
	r.query("insert into replan_t values (1, 'a')")
	r.send(parse("s", "select v from replan_t where id = $1"), parse("all", "select * from replan_t"), syncing)
	r.ready()
	r.query("prepare q(int) as select v from replan_t where id = $1")
	run := func(name string, params ...string) string {
		r.send(bind("", name, params...), execute("", 0), syncing)
		return r.ready()
	}
	row := "bindcomplete\nrow a\ncomplete SELECT 1\nready I\n"
	expect(t, "before", run("s", "1"), row)
	for _, ddl := range []string{"alter table replan_t add column w int", "create index on replan_t (v)", "alter table replan_t alter column w set default 1"} {
		r.query(ddl)
		expect(t, ddl, run("s", "1"), row)
		expect(t, ddl, r.query("execute q(1)"), "columns v:25/0\nrow a\ncomplete SELECT 1\nready I\n")
	}
	for range 2 {
		expect(t, "all", run("all"), "error 0A000 cached plan must not change result type\nready I\n")
	}
	r.query("drop table replan_t")
	expect(t, "dropped", run("s", "1"), "error 42P01 relation \"replan_t\" does not exist\nready I\n")
	r.query("create table replan_t (id int, v text)")
	r.query("insert into replan_t values (1, 'a')")
	expect(t, "another table", run("s", "1"), row)
}

// Goal: PREPARE, EXECUTE, DEALLOCATE, cursors and savepoints, in both protocols.
func TestPreparedAndCursors(t *testing.T) {
	r := open(t)
	cases := []struct{ text, want string }{
		{"prepare p(int) as select $1 + 1 as n", "complete PREPARE\nready I\n"},
		{"execute p(1)", "columns n:23/0\nrow 2\ncomplete SELECT 1\nready I\n"},
		{"execute p(1+1)", "columns n:23/0\nrow 3\ncomplete SELECT 1\nready I\n"},
		{"execute p", "error 42601 wrong number of parameters for prepared statement \"p\"\nready I\n"},
		{"execute p('x')", "error 22P02 invalid input syntax for type integer: \"x\"\nready I\n"},
		{"prepare p as select 1", "error 42P05 prepared statement \"p\" already exists\nready I\n"},
		{"declare c cursor for select 1", "error 25P01 DECLARE CURSOR can only be used in transaction blocks\nready I\n"},
		{"begin; declare c cursor for select g from generate_series(1, 10) g; savepoint a; declare d cursor for select 1", "complete BEGIN\ncomplete DECLARE CURSOR\ncomplete SAVEPOINT\ncomplete DECLARE CURSOR\nready T\n"},
		{"fetch 2 from c", "columns g:23/0\nrow 1\nrow 2\ncomplete FETCH 2\nready T\n"},
		{"fetch d", "columns ?column?:23/0\nrow 1\ncomplete FETCH 1\nready T\n"},
		{"select 1/(g-g) from generate_series(1, 1) g", "columns ?column?:23/0\nerror 22012 division by zero\nready E\n"},
		{"fetch c", "error 25P02 current transaction is aborted, commands ignored until end of transaction block\nready E\n"},
		{"savepoint b", "error 25P02 current transaction is aborted, commands ignored until end of transaction block\nready E\n"},
		{"rollback to a", "complete ROLLBACK\nready T\n"},
		{"move 1 from c", "complete MOVE 1\nready T\n"},
		{"fetch forward all from c", "columns g:23/0\nrow 4\nrow 5\nrow 6\nrow 7\nrow 8\nrow 9\nrow 10\ncomplete FETCH 7\nready T\n"},
		{"fetch c", "columns g:23/0\ncomplete FETCH 0\nready T\n"},
		{"close c", "complete CLOSE CURSOR\nready T\n"},
		{"fetch d", "error 34000 cursor \"d\" does not exist\nready E\n"},
		{"rollback to nowhere", "error 3B001 savepoint \"nowhere\" does not exist\nready E\n"},
		{"rollback", "complete ROLLBACK\nready I\n"},
		{"savepoint a", "error 25P01 SAVEPOINT can only be used in transaction blocks\nready I\n"},
		{"begin; declare h cursor with hold for select g from generate_series(1, 3) g; commit", "complete BEGIN\ncomplete DECLARE CURSOR\ncomplete COMMIT\nready I\n"},
		{"fetch 2 from h", "columns g:23/0\nrow 1\nrow 2\ncomplete FETCH 2\nready I\n"},
		{"begin; declare k cursor with hold for select 1; rollback", "complete BEGIN\ncomplete DECLARE CURSOR\ncomplete ROLLBACK\nready I\n"},
		{"fetch k", "error 34000 cursor \"k\" does not exist\nready I\n"},
	}
	for _, c := range cases {
		expect(t, c.text, r.query(c.text), c.want)
	}
	binary := func(text string) *pgproto3.Bind { return &pgproto3.Bind{ResultFormatCodes: []int16{1}} }
	runSteps(t, r, []step{
		{"fetch in binary", messages(parse("", "fetch h"), describeS(""), binary(""), describeP(""), execute("", 0), syncing),
			"parsecomplete\nparams []\ncolumns g:23/0\nbindcomplete\ncolumns g:23/1\nrow \x00\x00\x00\x03\ncomplete FETCH 1\nready I\n"},
		{"execute in binary", messages(parse("", "execute p(4)"), describeS(""), binary(""), execute("", 0), syncing),
			"parsecomplete\nparams []\ncolumns n:23/0\nbindcomplete\nrow \x00\x00\x00\x05\ncomplete SELECT 1\nready I\n"},
	})
	expect(t, "deallocate", r.query("deallocate p"), "complete DEALLOCATE\nready I\n")
	expect(t, "gone", r.query("execute p(1)"), "error 26000 prepared statement \"p\" does not exist\nready I\n")
	expect(t, "discard all", r.query("discard all"), "complete DISCARD ALL\nready I\n")
	expect(t, "held cursor gone", r.query("fetch h"), "error 34000 cursor \"h\" does not exist\nready I\n")
}

// Goal: results sent after Flush are final: a statement that is alone so far has acquired its locks and checked its
// unique keys. Later statements share its transaction.
func TestFlushIsFinal(t *testing.T) {
	r := open(t)
	r.query("drop table if exists flush_t")
	r.query("create table flush_t (id int primary key, v int)")
	r.query("insert into flush_t values (1, 0)")
	flush := &pgproto3.Flush{}
	const inserted = "parsecomplete\nbindcomplete\ncomplete INSERT 0 1\n"
	through := func(n int) (got string) {
		t.Helper()
		for range n {
			got += r.next() + "\n"
		}
		return got
	}
	r.send(parse("", "insert into flush_t values (1, 1)"), bind("", ""), execute("", 0), flush)
	expect(t, "duplicate", through(3), "parsecomplete\nbindcomplete\nerror 23505 duplicate key value violates unique constraint \"flush_t_pkey\"\n")
	r.send(syncing)
	expect(t, "sync", r.ready(), "ready I\n")
	r.send(parse("", "insert into nowhere values (1)"), describeS(""), flush)
	expect(t, "error before it", through(1), "error 42P01 relation \"nowhere\" does not exist\n")
	r.send(syncing)
	expect(t, "sync", r.ready(), "ready I\n")
	r.send(parse("", "insert into flush_t values (2, 1)"), bind("", ""), execute("", 0), flush)
	expect(t, "insert", through(3), inserted)
	r.send(parse("", "insert into flush_t values (3, 1)"), bind("", ""), execute("", 0), flush)
	expect(t, "another", through(3), inserted)
	r.send(parse("", "insert into flush_t values (2, 1)"), bind("", ""), execute("", 0), flush)
	expect(t, "duplicate of its own", through(3), "parsecomplete\nbindcomplete\nerror 23505 duplicate key value violates unique constraint \"flush_t_pkey\"\n")
	r.send(syncing)
	expect(t, "sync", r.ready(), "ready I\n")
	expect(t, "all or nothing", r.query("select count(*) from flush_t"), "columns count:20/0\nrow 1\ncomplete SELECT 1\nready I\n")

	other := open(t)
	other.query("begin")
	other.query("update flush_t set v = v + 1 where id = 1")
	r.send(parse("", "update flush_t set v = v + 10 where id = 1"), bind("", ""), execute("", 0), flush)
	other.query("select pg_sleep(0.1)")
	other.query("commit")
	expect(t, "waits", through(3), "parsecomplete\nbindcomplete\ncomplete UPDATE 1\n")
	other.send(&pgproto3.Query{String: "update flush_t set v = v + 100 where id = 1"}) // It waits for r.
	r.send(syncing)
	expect(t, "sync", r.ready(), "ready I\n")
	expect(t, "the other waits", other.ready(), "complete UPDATE 1\nready I\n")
	expect(t, "sum", r.query("select v from flush_t"), "columns v:23/0\nrow 111\ncomplete SELECT 1\nready I\n")
}
