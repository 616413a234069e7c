package bigtable

import (
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/process"
)

// certificates makes an authority with certificates, and returns the flags by which a process uses them.
func certificates(t *testing.T, role certs.Role) []string {
	t.Helper()
	dir := t.TempDir()
	if err := certs.WriteTrial(dir, certs.Trial{Hosts: certs.Loopback}); err != nil {
		t.Fatal(err)
	}
	f := certs.ProcessFiles(dir, role)
	return []string{"--cluster-tls-cert", f.Cert, "--cluster-tls-key", f.Key, "--cluster-tls-ca", f.CA}
}

// Goal: processes over one table speak TLS with each other and serve nobody else; so does the next coordinator. Method: real processes with certificates of one authority;
// two more, with those of another authority and without any, are refused by the coordinator and serve no client; a certificate of another role is not accepted at the start.
func TestProcessesSpeakTLS(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	flags := certificates(t, certs.SQL)
	first, addr1 := startSQL(t, emulator, flags...)
	_, addr2 := startSQL(t, emulator, flags...)
	a, b := connect(t, addr1), connect(t, addr2)
	mustExec(t, a, "CREATE TABLE t (id int PRIMARY KEY, n int)")
	mustExec(t, b, "INSERT INTO t VALUES (1, 1)")
	mustExec(t, a, "UPDATE t SET n = n + 1")

	table := []string{"start", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", emulator, "--listen", "127.0.0.1:0"}
	const refused = "a connection was refused that is not of a process of the cluster"
	for _, strange := range [][]string{certificates(t, certs.SQL), nil} {
		before := strings.Count(first.Output(), refused)
		p, err := process.Start(binary, nil, append(table, strange...)...)
		if err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); strings.Count(first.Output(), refused) == before; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > waitTimeout {
				t.Fatalf("%v is not refused", strange)
			}
		}
		if p.IsReady() {
			t.Errorf("%v serves clients", strange)
		}
		p.Kill()
	}
	p, err := process.Start(binary, nil, append(table, certificates(t, certs.KV)...)...)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if !strings.Contains(p.Output(), "not percodb:sql") && !strings.Contains(p.Output(), "not sql") {
		t.Errorf("a store's certificate: %s", p.Output())
	}

	first.Kill()
	mustExec(t, b, "UPDATE t SET n = n + 1")
	_, addr3 := startSQL(t, emulator, flags...)
	if got := mustInt(t, connect(t, addr3), "SELECT n FROM t"); got != 3 {
		t.Errorf("%d", got)
	}
}
