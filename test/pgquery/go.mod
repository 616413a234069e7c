module github.com/percodb/percodb/test/pgquery

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/pganalyze/pg_query_go/v5 v5.1.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	golang.org/x/text v0.42.0 // indirect
)

require (
	github.com/percodb/percodb v0.0.0
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/percodb/percodb => ../..
