package usage

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestChildThatEnds: the time of a server includes the time of a child that has ended, while the server
// runs, and after it was killed. The reference is the time that the kernel reports to its parent, this test.
func TestChildThatEnds(t *testing.T) {
	// The shell waits for its child, prints a line, and waits for its standard input.
	cmd := exec.Command("sh", "-c", `read go; sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read end`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "server.pid")
	if err := os.WriteFile(file, []byte(strconv.Itoa(cmd.Process.Pid)+"\n/some/where\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Open(ctx, Options{PIDs: []string{strconv.Itoa(cmd.Process.Pid), "@" + file}, Every: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	before, err := m.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	live, err := m.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	after, err := m.Read(ctx)
	if err == nil {
		t.Error("no word of the process that is gone")
	}
	used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if used < 0.05 {
		t.Fatalf("it used %v s only", used)
	}
	for name, r := range map[string]Reading{"alive": live.Since(before), "killed": after.Since(before)} {
		for _, n := range r.Nodes {
			if math.Abs(n.Seconds-used) > 0.1*used+0.04 {
				t.Errorf("%s, %s: %v s, the kernel says %v", name, n.Name, n.Seconds, used)
			}
		}
	}
}

// fake writes a fake /proc with the given processes: pid, parent, start, own and children's ticks.
func fake(t *testing.T, dir string, processes ...[5]int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range processes {
		sub := filepath.Join(dir, strconv.Itoa(p[0]))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d (a ) (b) S %d 1 1 0 -1 4194560 1 2 3 4 %d %d %d 0 20 0 1 0 %d 1 1", p[0], p[1], p[3]/2, p[3]-p[3]/2, p[4], p[2])
		if err := os.WriteFile(filepath.Join(sub, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTree tests how a tree of processes may change, with a fake /proc.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	tree, err := newTree(dir, "10")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what      string
		processes [][5]int
		want      float64
	}{
		{"a root, its child and a stranger", [][5]int{{10, 1, 5, 100, 0}, {11, 10, 6, 50, 0}, {12, 1, 7, 999, 0}}, 1.5},
		{"a grandchild", [][5]int{{10, 1, 5, 100, 0}, {11, 10, 6, 50, 0}, {13, 11, 8, 20, 0}}, 1.7},
		{"the child's parent waited for the grandchild, which had used more", [][5]int{{10, 1, 5, 100, 0}, {11, 10, 6, 50, 25}}, 1.75},
		{"a child whose parent does not wait for it", [][5]int{{10, 1, 5, 110, 0}, {14, 10, 9, 30, 0}}, 2.15},
		{"it ended, and its number came back as a stranger's", [][5]int{{10, 1, 5, 110, 0}, {14, 1, 99, 5000, 0}}, 2.15},
		{"two children", [][5]int{{10, 1, 5, 110, 0}, {15, 10, 10, 10, 0}, {16, 15, 11, 10, 0}}, 2.35},
		{"one ended, and its child has init for a parent", [][5]int{{10, 1, 5, 110, 10}, {16, 1, 11, 15, 0}}, 2.40},
		{"the root ended", [][5]int{{16, 1, 11, 20, 0}}, 2.45},
		{"all did", nil, 2.45},
	} {
		fake(t, dir, step.processes...)
		got, err := tree.seconds(context.Background())
		if math.Abs(got-step.want) > 1e-9 {
			t.Errorf("%s: %v s, not %v", step.what, got, step.want)
		}
		rooted := len(step.processes) > 0 && step.processes[0][0] == 10
		if (err == nil) != rooted {
			t.Errorf("%s: error %v", step.what, err)
		}
	}
}

// TestRestart: with a file that contains the root's number, counting continues after a restart of the server.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "pid")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("10\n")
	tree, err := newTree(dir, "@"+file)
	if err != nil {
		t.Fatal(err)
	}
	want := func(seconds float64) {
		t.Helper()
		if got, _ := tree.seconds(context.Background()); math.Abs(got-seconds) > 1e-9 {
			t.Errorf("%v s, not %v", got, seconds)
		}
	}
	fake(t, dir, [5]int{10, 1, 5, 100, 0})
	want(1)
	fake(t, dir)
	want(1)
	write("20\n")
	fake(t, dir, [5]int{20, 1, 6, 30, 0})
	want(1.3)
	for _, text := range []string{"", "x\n", "-1\n"} {
		write(text)
		if _, err := newTree(dir, "@"+file); err == nil {
			t.Errorf("%q was taken for the number of a process", text)
		}
	}
	for _, text := range []string{"", "0", "ten", "@/nowhere"} {
		if _, err := newTree(dir, text); err == nil {
			t.Errorf("%q was taken for a process", text)
		}
	}
}

// TestEndpointAndCgroup: counts are read, continue after a restart from 0, and an unavailable endpoint counts with
// its last value.
func TestEndpointAndCgroup(t *testing.T) {
	value, away := "1.5", false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "# HELP process_cpu_seconds_total Total.\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %s\nother 7\n", value)
	}))
	defer server.Close()
	dir := t.TempDir()
	group := func(us int) {
		if err := os.WriteFile(filepath.Join(dir, "cpu.stat"), fmt.Appendf(nil, "usage_usec %d\nuser_usec 1\n", us), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	group(1_000_000)
	ctx := context.Background()
	m, err := Open(ctx, Options{Cgroups: []string{dir}, MetricsURLs: []string{server.URL}, Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	read := func(wantGroup, wantServer float64, fails bool) {
		t.Helper()
		r, err := m.Read(ctx)
		if (err != nil) != fails || math.Abs(r.Nodes[0].Seconds-wantGroup) > 1e-9 || math.Abs(r.Nodes[1].Seconds-wantServer) > 1e-9 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	read(0, 0, false)
	value = "4"
	group(3_500_000)
	read(2.5, 2.5, false)
	away = true
	read(2.5, 2.5, true)
	away, value = false, "1" // restarted
	read(2.5, 3.5, false)
	r, _ := m.Read(ctx)
	if math.Abs(r.Server()-6) > 1e-9 || r.Driver <= 0 {
		t.Errorf("%+v", r)
	}
	for _, o := range []Options{{Cgroups: []string{"/nowhere"}}, {MetricsURLs: []string{"http://127.0.0.1:1/"}}, {PIDs: []string{"999999999"}}} {
		if m, err := Open(ctx, o); err == nil {
			m.Close()
			t.Errorf("%+v was opened", o)
		}
	}
}
