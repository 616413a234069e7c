package wire_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Goal: simple queries produce PostgreSQL's messages: empty texts, several statements in one transaction, blocks,
// errors and their transaction status. Method: transcripts.
func TestSimpleTranscripts(t *testing.T) {
	r := open(t)
	r.query("drop table if exists simple_t")
	r.query("create table simple_t (id int primary key, v text)")
	cases := []struct{ name, text, want string }{
		{"empty", "", "emptyqueryresponse\nready I\n"},
		{"semicolons", " ;; ", "emptyqueryresponse\nready I\n"},
		{"comment", "-- nothing\n/* at /* all */ */", "emptyqueryresponse\nready I\n"},
		{"row", "select 1 as a, 'x' as b, null as c", `
			columns a:23/0 b:25/0 c:25/0
			row 1|x|
			complete SELECT 1
			ready I
			`},
		{"several", "insert into simple_t values (1, 'a'); insert into simple_t values (2, 'b'); select count(*) from simple_t", `
			complete INSERT 0 1
			complete INSERT 0 1
			columns count:20/0
			row 2
			complete SELECT 1
			ready I
			`},
		{"all rolled back", "insert into simple_t values (3, 'c'); select 1/(g-g) from generate_series(1, 1) g; insert into simple_t values (4, 'd')", `
			complete INSERT 0 1
			columns ?column?:23/0
			error 22012 division by zero
			ready I
			`},
		{"nothing left", "select count(*) from simple_t", "columns count:20/0\nrow 2\ncomplete SELECT 1\nready I\n"},
		{"syntax error anywhere", "insert into simple_t values (3, 'c'); selec", `
			error 42601 syntax error at or near "selec"
			ready I
			`},
		{"begin inside", "insert into simple_t values (5, 'e'); begin; insert into simple_t values (6, 'f')", `
			complete INSERT 0 1
			complete BEGIN
			complete INSERT 0 1
			ready T
			`},
		{"rolled back", "rollback", "complete ROLLBACK\nready I\n"},
		{"the block took all", "select count(*) from simple_t", "columns count:20/0\nrow 2\ncomplete SELECT 1\nready I\n"},
		{"commit inside", "insert into simple_t values (7, 'g'); commit; insert into simple_t values (8, 'h'); select 1/(g-g) from generate_series(1, 1) g", `
			complete INSERT 0 1
			warning 25P01 there is no transaction in progress
			complete COMMIT
			complete INSERT 0 1
			columns ?column?:23/0
			error 22012 division by zero
			ready I
			`},
		{"committed half", "select id from simple_t order by id", "columns id:23/0\nrow 1\nrow 2\nrow 7\ncomplete SELECT 3\nready I\n"},
		{"failing block", "begin; select 1/(g-g) from generate_series(1, 1) g", "complete BEGIN\ncolumns ?column?:23/0\nerror 22012 division by zero\nready E\n"},
		{"ignored", "select 1", "error 25P02 current transaction is aborted, commands ignored until end of transaction block\nready E\n"},
		{"still parsed", "selec", "error 42601 syntax error at or near \"selec\"\nready E\n"},
		{"empty in failed", "", "emptyqueryresponse\nready E\n"},
		{"commit rolls back", "commit", "complete ROLLBACK\nready I\n"},
		{"begin twice", "begin; begin", "complete BEGIN\nwarning 25001 there is already a transaction in progress\ncomplete BEGIN\nready T\n"},
		{"end", "end", "complete COMMIT\nready I\n"},
		{"rollback outside", "rollback", "warning 25P01 there is no transaction in progress\ncomplete ROLLBACK\nready I\n"},
		{"unique", "insert into simple_t values (1, 'again')", `
			error 23505 duplicate key value violates unique constraint "simple_t_pkey"
			ready I
			`},
		{"returning", "update simple_t set v = v || '!' where id < 3 returning id, v", `
			columns id:23/0 v:25/0
			row 1|a!
			row 2|b!
			complete UPDATE 2
			ready I
			`},
		{"parameter", "select $1::int", "error 42P02 there is no parameter $1\nready I\n"},
		{"not utf-8", "select '\xff'", "error 22021 invalid byte sequence for encoding \"UTF8\": 0xff\nready I\n"},
	}
	for _, c := range cases {
		expect(t, c.name, r.query(c.text), c.want)
	}
}

// Goal: the fields of an error besides its text. Method: ErrorResponse.
func TestErrorFields(t *testing.T) {
	r := open(t)
	r.query("drop table if exists fields_t")
	r.query("create table fields_t (id int primary key, n int not null, c int constraint positive check (c > 0), u int unique)")
	r.query("insert into fields_t values (1, 1, 1, 1)")
	cases := []struct {
		text string
		want pgproto3.ErrorResponse
	}{
		{"insert into fields_t values (1, 1, 1, 2)", pgproto3.ErrorResponse{Code: "23505", SchemaName: "public", TableName: "fields_t",
			ConstraintName: "fields_t_pkey", Detail: "Key (id)=(1) already exists."}},
		{"insert into fields_t values (2, 1, 1, 1)", pgproto3.ErrorResponse{Code: "23505", SchemaName: "public", TableName: "fields_t",
			ConstraintName: "fields_t_u_key", Detail: "Key (u)=(1) already exists."}},
		{"insert into fields_t values (2, null, 1, 2)", pgproto3.ErrorResponse{Code: "23502", SchemaName: "public", TableName: "fields_t",
			ColumnName: "n", Detail: "Failing row contains (2, null, 1, 2)."}},
		{"insert into fields_t values (2, 1, 0, 2)", pgproto3.ErrorResponse{Code: "23514", SchemaName: "public", TableName: "fields_t",
			ConstraintName: "positive", Detail: "Failing row contains (2, 1, 0, 2)."}},
		{"select nothing from fields_t", pgproto3.ErrorResponse{Code: "42703", Position: 8}},
		{"select * from no_such_t", pgproto3.ErrorResponse{Code: "42P01", Position: 15}},
		{"prepare fields_p as select * from no_such_t", pgproto3.ErrorResponse{Code: "42P01", Position: 35}},
		{"declare fields_c cursor for select nothing from fields_t", pgproto3.ErrorResponse{Code: "42703", Position: 36}},
		{"select 1 +", pgproto3.ErrorResponse{Code: "42601", Position: 11}},
		{"select é, 'ü' from from", pgproto3.ErrorResponse{Code: "42601", Position: 20}},
		{"select no_function(1)", pgproto3.ErrorResponse{Code: "42883", Position: 8,
			Hint: "No function matches the given name and argument types. You might need to add explicit type casts."}},
		{"select 'x'::int", pgproto3.ErrorResponse{Code: "22P02", Position: 8}},
	}
	for _, c := range cases {
		r.send(&pgproto3.Query{String: c.text})
		m, err := r.f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		e, ok := m.(*pgproto3.ErrorResponse)
		if !ok {
			t.Fatalf("%s: %T", c.text, m)
		}
		got := pgproto3.ErrorResponse{Code: e.Code, SchemaName: e.SchemaName, TableName: e.TableName, ColumnName: e.ColumnName,
			ConstraintName: e.ConstraintName, Position: e.Position, Detail: e.Detail, Hint: e.Hint}
		c.want.UnknownFields = got.UnknownFields
		if describeFields(got) != describeFields(c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.text, describeFields(got), describeFields(c.want))
		}
		if e.Severity != "ERROR" || e.SeverityUnlocalized != "ERROR" || e.Message == "" {
			t.Errorf("%s: %+v", c.text, e)
		}
		r.ready()
	}
}

// Goal: the settings that clients track are reported at the start, and whenever SET, RESET, a rollback or DISCARD
// changes them. Method: transcripts.
func TestSettings(t *testing.T) {
	r := dialRaw(t, map[string]string{"application_name": "me", "options": "-c TimeZone=Europe/Berlin -c search_path=\"a\\ b\",public --statement-timeout=5min"})
	expect(t, "greeting", r.ready(), `
		authenticationok
		setting application_name=me
		setting client_encoding=UTF8
		setting DateStyle=ISO, MDY
		setting default_transaction_read_only=off
		setting in_hot_standby=off
		setting integer_datetimes=on
		setting IntervalStyle=postgres
		setting is_superuser=on
		setting server_encoding=UTF8
		setting server_version=15.8
		setting session_authorization=postgres
		setting standard_conforming_strings=on
		setting TimeZone=Europe/Berlin
		backendkeydata
		ready I
		`)
	cases := []struct{ text, want string }{
		{"show statement_timeout", "columns statement_timeout:25/0\nrow 5min\ncomplete SHOW\nready I\n"},
		{"show search_path", "columns search_path:25/0\nrow \"a b\",public\ncomplete SHOW\nready I\n"},
		{"set timezone to 'UTC'", "complete SET\nsetting TimeZone=UTC\nready I\n"},
		{"set timezone to 'UTC'", "complete SET\nready I\n"},
		{"reset timezone", "complete RESET\nsetting TimeZone=Europe/Berlin\nready I\n"},
		{"begin; set timezone to 'Asia/Tokyo'; select '2024-01-01 00:00:00+00'::timestamptz", `
			complete BEGIN
			complete SET
			columns timestamptz:1184/0
			row 2024-01-01 09:00:00+09
			complete SELECT 1
			setting TimeZone=Asia/Tokyo
			ready T
			`},
		{"rollback", "complete ROLLBACK\nsetting TimeZone=Europe/Berlin\nready I\n"},
		{"select '2024-01-01 00:00:00+00'::timestamptz", "columns timestamptz:1184/0\nrow 2024-01-01 01:00:00+01\ncomplete SELECT 1\nready I\n"},
		{"begin; set local timezone to 'Asia/Tokyo'; savepoint a; set timezone to 'UTC'", "complete BEGIN\ncomplete SET\ncomplete SAVEPOINT\ncomplete SET\nsetting TimeZone=UTC\nready T\n"},
		{"rollback to a", "complete ROLLBACK\nsetting TimeZone=Asia/Tokyo\nready T\n"},
		{"commit; select '2024-01-01 00:00:00+00'::timestamptz", "complete COMMIT\ncolumns timestamptz:1184/0\nrow 2024-01-01 01:00:00+01\ncomplete SELECT 1\nsetting TimeZone=Europe/Berlin\nready I\n"},
		{"set timezone to 'UTC'; select 1/(g-g) from generate_series(1, 1) g", "complete SET\ncolumns ?column?:23/0\nerror 22012 division by zero\nready I\n"},
		{"show timezone", "columns TimeZone:25/0\nrow Europe/Berlin\ncomplete SHOW\nready I\n"},
		{"select set_config('application_name', 'you', false)", "columns set_config:25/0\nrow you\ncomplete SELECT 1\nsetting application_name=you\nready I\n"},
		{"set nothing_known = 1", "error 42704 unrecognized configuration parameter \"nothing_known\"\nready I\n"},
		{"set timezone to 'Middle/Earth'", "error 22023 invalid value for parameter \"TimeZone\": \"Middle/Earth\"\nready I\n"},
		{"set server_version to '16'", "error 55P02 parameter \"server_version\" cannot be changed\nready I\n"},
		{"set my.own = 'x'; show my.own", "complete SET\ncolumns my.own:25/0\nrow x\ncomplete SHOW\nready I\n"},
		{"prepare p as select 1; set application_name = 'third'", "complete PREPARE\ncomplete SET\nsetting application_name=third\nready I\n"},
		{"discard all", "complete DISCARD ALL\nsetting application_name=me\nready I\n"},
		{"execute p", "error 26000 prepared statement \"p\" does not exist\nready I\n"},
		{"set local timezone to 'UTC'", "warning 25P01 SET LOCAL can only be used in transaction blocks\ncomplete SET\nready I\n"},
	}
	for _, c := range cases {
		expect(t, c.text, r.query(c.text), c.want)
	}
	expect(t, "unknown at start", dialRaw(t, map[string]string{"no_such": "x"}).end(), "fatal 42704 unrecognized configuration parameter \"no_such\"\n")
	expect(t, "database", dialRaw(t, map[string]string{"database": "nowhere"}).end(), "fatal 3D000 database \"nowhere\" does not exist\n")
}
