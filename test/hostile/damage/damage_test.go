package damage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/process"
)

// rowsOf reads everything that the tests have written; an error is one that the server reported.
func rowsOf(t *testing.T, p *process.Process, addr string) (sum string, err error) {
	t.Helper()
	conn := connect(t, p, addr)
	if conn == nil {
		return "", fmt.Errorf("the server has ended")
	}
	err = conn.QueryRow(t.Context(), "select count(*) || ' ' || sum(n) || ' ' || sum(length(v)) || ' ' || max(id) from stock").Scan(&sum)
	return sum, err
}

// Goal: the rule of the package, for one bit flipped, one file cut, emptied or removed. Method: the files of a server
// that was stopped and of one that was killed, damaged at random, under percodb check and percodb start.
func TestDamagedDirectories(t *testing.T) {
	binary := build(t)
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	p := launch(t, binary, "--listen", addr, "--data", dir)
	conn := connect(t, p, addr)
	mustExec(t, conn, "create table stock (id int primary key, n int, v text)")
	mustExec(t, conn, "insert into stock select i, i % 7, repeat(md5(i::text), 20) from generate_series(1, 5000) i")
	end(t, p)
	p = launch(t, binary, "--listen", addr, "--data", dir)
	conn = connect(t, p, addr)
	mustExec(t, conn, "insert into stock select i, i % 7, md5(i::text) from generate_series(5001, 8000) i")
	mustExec(t, conn, "update stock set n = n + 1 where id <= 100")
	want, err := rowsOf(t, p, addr)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	states := []map[string]string{contents(t, dir)}
	p = launch(t, binary, "--listen", addr, "--data", dir)
	if got, err := rowsOf(t, p, addr); err != nil || got != want {
		t.Fatalf("after kill -9: %s, %v", got, err)
	}
	end(t, p)
	states = append(states, contents(t, dir))

	rng := rand.New(rand.NewPCG(*seed, 1))
	refused, told, whole := 0, 0, 0
	for round := range *rounds {
		files := maps.Clone(states[rng.IntN(len(states))])
		what := damageOne(rng, files)
		at := filepath.Join(t.TempDir(), fmt.Sprintf("d%d", round))
		writeFiles(t, at, files)
		said, _ := exec.Command(binary, "check", "--data", at).CombinedOutput() // it may find something
		if !maps.Equal(contents(t, at), files) {
			t.Errorf("%s: percodb check changed the directory\n%s", what, said)
		}
		p := launch(t, binary, "--listen", addr, "--data", at)
		got, err := rowsOf(t, p, addr)
		switch {
		case p.HasExited() && strings.Contains(p.Output(), "panic"):
			t.Errorf("%s: the server crashed\n%s", what, p.Output())
		case p.HasExited():
			refused++
			if !strings.Contains(p.Output(), "damaged") && !strings.Contains(p.Output(), "PERCODB_FORMAT") && !strings.Contains(p.Output(), "format") {
				t.Errorf("%s: the message does not say what to do:\n%s", what, p.Output())
			}
			if !maps.Equal(contents(t, at), files) {
				t.Errorf("%s: the directory that was refused has changed", what)
			}
		case err != nil:
			told++
		case got != want:
			t.Errorf("%s: the table reads %q, and was %q; check said\n%s", what, got, want, said)
		default:
			whole++
		}
		p.Kill()
	}
	t.Logf("of %d damaged directories %d were refused, %d reported the damage in a statement, %d had everything", *rounds, refused, told, whole)
}

// damageOne damages one of the files, and returns what it did.
func damageOne(rng *rand.Rand, files map[string]string) string {
	names := slices.Sorted(maps.Keys(files))
	name := names[rng.IntN(len(names))]
	text := files[name]
	switch kind := rng.IntN(8); {
	case kind == 0:
		delete(files, name)
		return name + " removed"
	case kind == 1 || len(text) == 0:
		files[name] = ""
		return name + " emptied"
	case kind == 2:
		files[name] = text[:rng.IntN(len(text))]
		return fmt.Sprintf("%s cut from %d to %d bytes", name, len(text), len(files[name]))
	}
	flipped := []byte(text)
	at := rng.IntN(len(flipped))
	flipped[at] ^= 1 << rng.IntN(8)
	files[name] = string(flipped)
	return fmt.Sprintf("%s, a bit of byte %d of %d", name, at, len(text))
}
