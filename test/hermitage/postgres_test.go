package hermitage

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// postgresEnv names a running PostgreSQL by its URL; its table test is dropped.
const postgresEnv = "PERCODB_TEST_POSTGRES"

// startPostgres returns the PostgreSQL that the environment names, or a throwaway one that ends with
// the test, and skips the test where there is none.
func startPostgres(t *testing.T) *server {
	t.Helper()
	s := &server{
		url:     os.Getenv(postgresEnv),
		waiting: "select cardinality(pg_blocking_pids($1::int)) > 0",
	}
	if s.url != "" {
		return s
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skipf("no PostgreSQL: set %s to the URL of one, or install Debian's package postgresql", postgresEnv)
	}
	slices.Sort(found)
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "percodb-hermitage")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	owner := ownerOf(t, dir)
	port := freePort(t)
	data := filepath.Join(dir, "data")
	must := func(name string, args ...string) {
		t.Helper()
		if out, err := owner.command(filepath.Join(bin, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	must("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
	must("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o",
		fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c fsync=off", port, dir), "start")
	t.Cleanup(func() { must("pg_ctl", "-D", data, "-m", "fast", "stop") })
	s.url = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	return s
}

// account is who runs PostgreSQL's programs: they refuse to be run by root.
type account struct{ credential *syscall.Credential }

func (a account) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	if a.credential != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	}
	return cmd
}

// ownerOf gives dir to the account that will use it: postgres if we are root, else ourselves.
func ownerOf(t *testing.T, dir string) account {
	t.Helper()
	if os.Getuid() != 0 {
		return account{}
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("PostgreSQL does not run as root: %v", err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("user postgres has ids %q and %q", u.Uid, u.Gid)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
