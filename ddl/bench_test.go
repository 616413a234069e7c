package ddl

import (
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
)

// BenchmarkAddPrimaryKey re-keys a table of 100,000 rows like pgbench's accounts, in memory.
func BenchmarkAddPrimaryKey(b *testing.B) {
	s := newServer(b, catalog.Options{})
	s.chunk = 0
	c := s.session()
	for b.Loop() {
		b.StopTimer()
		c.exec("drop table if exists accounts")
		got := c.exec("create table accounts (aid int not null, bid int, abalance int, filler char(84)); " +
			"insert into accounts select g, 1, 0, '' from generate_series(1, 100000) g")
		if strings.Contains(got, "ERROR") {
			b.Fatal(got)
		}
		b.StartTimer()
		if got := c.exec("alter table accounts add primary key (aid)"); got != "ALTER TABLE\n" {
			b.Fatal(got)
		}
	}
}
