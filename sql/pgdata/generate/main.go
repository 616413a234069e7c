// Command generate writes the tables of package pgdata: what PostgreSQL 15's system catalogs say of the functions, operators, casts and
// operator classes on the types that percodb has. It reads a running server:
//
//	PGDATA_SOURCE=postgres://postgres@127.0.0.1:5432/postgres go generate ./sql/pgdata
//
// With the argument own it numbers the functions that are not in these tables. A number that a function once has it keeps.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "own" {
		return numberOwn()
	}
	ctx := context.Background()
	source := os.Getenv("PGDATA_SOURCE")
	if source == "" {
		return errors.New("set PGDATA_SOURCE to the URL of a PostgreSQL 15 server")
	}
	conn, err := pgx.Connect(ctx, source)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var oids []uint32
	for _, info := range types.Infos() {
		oids = append(oids, uint32(info.OID))
		if info.Array != 0 {
			oids = append(oids, uint32(info.Array))
		}
	}
	for _, q := range queries {
		if err := q.write(ctx, conn, oids); err != nil {
			return fmt.Errorf("%s: %w", q.table, err)
		}
	}
	return nil
}

// query reads one table. The rows are sorted by the first column.
type query struct {
	table string
	keys  int    // the first columns, which have no default
	text  string // $1 is the OIDs of percodb's types
}

var queries = []query{
	{"pg_proc", 3, `SELECT oid, proname, proargtypes, prorettype, prokind, prolang, procost, prorows, provariadic, prosupport::oid, prosecdef, proleakproof,
			proisstrict, proretset, provolatile, proparallel, pronargs, pronargdefaults, proallargtypes, proargmodes, proargnames,
			pg_get_expr(proargdefaults, 0) AS proargdefaults, prosrc, pg_get_function_sqlbody(oid) AS prosqlbody,
			obj_description(oid, 'pg_proc') AS description
		FROM pg_proc WHERE pronamespace = 11 AND prorettype = ANY ($1) AND proargtypes::oid[] <@ $1 AND coalesce(proallargtypes, '{}') <@ $1`},
	{"pg_operator", 4, `SELECT oid, oprname, oprleft, oprright, oprkind, oprcanmerge, oprcanhash, oprresult, oprcom, oprnegate, oprcode::oid,
			oprrest::oid, oprjoin::oid, obj_description(oid, 'pg_operator') AS description
		FROM pg_operator WHERE (oprleft = 0 OR oprleft = ANY ($1)) AND oprright = ANY ($1) AND oprresult = ANY ($1)`},
	{"pg_cast", 3, `SELECT oid, castsource, casttarget, castfunc, castcontext, castmethod FROM pg_cast
		WHERE castsource = ANY ($1) AND casttarget = ANY ($1)`},
	{"pg_aggregate", 1, `SELECT aggfnoid::oid, aggkind, aggnumdirectargs, aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid, aggserialfn::oid,
			aggdeserialfn::oid, aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggfinalextra, aggmfinalextra, aggfinalmodify,
			aggmfinalmodify, aggsortop, aggtranstype, aggtransspace, aggmtranstype, aggmtransspace, agginitval, aggminitval
		FROM pg_aggregate a JOIN pg_proc p ON p.oid = aggfnoid WHERE prorettype = ANY ($1) AND proargtypes::oid[] <@ $1`},
	{"pg_opclass", 1, `SELECT oid, opcmethod, opcname, opcfamily, opcintype, opcdefault, opckeytype
		FROM pg_opclass WHERE opcmethod = 403 AND opcintype = ANY ($1)`},
	{"pg_opfamily", 1, `SELECT oid, opfmethod, opfname FROM pg_opfamily
		WHERE oid IN (SELECT opcfamily FROM pg_opclass WHERE opcmethod = 403 AND opcintype = ANY ($1))`},
	{"pg_amop", 1, `SELECT oid, amopfamily, amoplefttype, amoprighttype, amopstrategy, amoppurpose, amopopr, amopmethod, amopsortfamily
		FROM pg_amop WHERE amopmethod = 403 AND amoplefttype = ANY ($1) AND amoprighttype = ANY ($1)`},
	{"pg_amproc", 1, `SELECT a.oid, amprocfamily, amproclefttype, amprocrighttype, amprocnum, amproc::oid
		FROM pg_amproc a JOIN pg_opfamily f ON f.oid = amprocfamily
		WHERE opfmethod = 403 AND amproclefttype = ANY ($1) AND amprocrighttype = ANY ($1)`},
	{"pg_range", 1, `SELECT rngtypid, rngsubtype, rngmultitypid, rngcollation, rngsubopc, rngcanonical::oid, rngsubdiff::oid
		FROM pg_range WHERE rngtypid = ANY ($1)`},
	{"pg_type", 1, `SELECT oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined, typdelim, typelem, typarray,
			typalign, typstorage, typtypmod, typcollation, typsubscript::oid, typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, typmodout::oid,
			typanalyze::oid, obj_description(oid, 'pg_type') AS description
		FROM pg_type WHERE oid = ANY ($1)`},
}

// write writes the result of the query.
func (q *query) write(ctx context.Context, conn *pgx.Conn, oids []uint32) error {
	rows, err := conn.Query(ctx, q.text, pgx.QueryResultFormats{pgx.TextFormatCode}, oids)
	if err != nil {
		return err
	}
	defer rows.Close()
	var columns []string
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	var table [][]string
	for rows.Next() {
		row := make([]string, len(columns))
		for i, v := range rows.RawValues() {
			if row[i] = pgdata.Null; v != nil {
				row[i] = string(v)
			}
		}
		table = append(table, row)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	slices.SortFunc(table, func(a, b []string) int { return cmp.Compare(parseNumber(a[0]), parseNumber(b[0])) })
	return os.WriteFile(q.table+".tsv", []byte(pgdata.Encode(columns, table, q.keys)), 0o644)
}

func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("the key of a table is no number: " + s)
	}
	return n
}

// numberOwn gives the functions that PostgreSQL does not have their OIDs, and those of extensions.
func numberOwn() error {
	if err := number(pgdata.Own(), "own.tsv", builtin.OwnSignatures(), pgdata.FirstOwnOID, pgdata.LastOwnOID); err != nil {
		return err
	}
	return number(pgdata.Extension(), "extension.tsv", builtin.ExtensionSignatures(), pgdata.FirstExtensionOID, int(types.LastExtensionOID))
}

// number adds the signatures that a table lacks, numbered from first on.
func number(own *pgdata.Table, file string, signatures []string, first, last int) error {
	numbers := map[string]int{}
	next := first
	for i, oid := range own.OIDs {
		numbers[own.Value(i, "signature")] = int(oid)
		next = max(next, int(oid)+1)
	}
	for _, signature := range signatures {
		if _, known := numbers[signature]; !known {
			numbers[signature] = next
			next++
		}
	}
	if next > last+1 {
		return errors.New("there are no OIDs left")
	}
	var table [][]string
	for signature, oid := range numbers {
		table = append(table, []string{strconv.Itoa(oid), signature})
	}
	slices.SortFunc(table, func(a, b []string) int { return cmp.Compare(parseNumber(a[0]), parseNumber(b[0])) })
	return os.WriteFile(file, []byte(pgdata.Encode([]string{"oid", "signature"}, table, 2)), 0o644)
}
