package server

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAdminHostAndProfiles(t *testing.T) {
	// Goal: the admin endpoint answers requests that name it by address, by localhost or by the host it
	// was told, and no others; profiles are there only if asked for.
	for _, pprof := range []bool{false, true} {
		a, err := NewAdmin(AdminOptions{
			Listen: "localhost:0", Pprof: pprof, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
			Healthy: func(context.Context) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		get := func(host, path string) int {
			t.Helper()
			r, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://%s%s", a.Addr(), path), nil)
			if err != nil {
				t.Fatal(err)
			}
			if host != "" {
				r.Host = host
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return answer.StatusCode
		}
		for host, want := range map[string]int{
			"": 200, "localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1": 200, "[::1]": 200, "[::1]:80": 200, "10.1.2.3:80": 200,
			"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		} {
			if got := get(host, "/metrics"); got != want {
				t.Errorf("Host %q: %d, want %d", host, got, want)
			}
		}
		want := http.StatusNotFound
		if pprof {
			want = http.StatusOK
		}
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline"} {
			if got := get("", path); got != want {
				t.Errorf("%s with pprof=%v: %d, want %d", path, pprof, got, want)
			}
		}
	}
}

// Goal: a page that a browser shows cannot have it request anything here; requests that read change nothing by another method.
func TestAdminRefusesOtherSites(t *testing.T) {
	checks := make(chan struct{}, 10)
	a, err := NewAdmin(AdminOptions{
		Listen: "127.0.0.1:0", Pprof: true, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		Healthy: func(context.Context) error { return nil },
		Check: func(context.Context, CheckReport) error {
			checks <- struct{}{}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	own := "http://" + a.Addr().String()
	for _, c := range []struct {
		method, path, header, value string
		want                        int
	}{
		{"POST", "/check", "", "", 200},
		{"POST", "/check", "Origin", own, 200},
		{"POST", "/check", "Origin", "https://evil.example", 403},
		{"POST", "/check", "Origin", "null", 403},
		{"POST", "/check", "Origin", "http://127.0.0.1:1", 403},
		{"POST", "/check", "Origin", "%", 403},
		{"POST", "/check", "Sec-Fetch-Site", "cross-site", 403},
		{"POST", "/check", "Sec-Fetch-Site", "same-site", 403},
		{"GET", "/check", "", "", 405},
		{"PUT", "/check", "", "", 405},
		{"GET", "/metrics", "Sec-Fetch-Site", "none", 200},
		{"GET", "/metrics", "Sec-Fetch-Site", "same-origin", 200},
		{"GET", "/metrics", "Sec-Fetch-Site", "cross-site", 403},
		{"GET", "/debug/pprof/profile?seconds=1000", "Sec-Fetch-Site", "cross-site", 403},
		{"POST", "/metrics", "", "", 405},
		{"DELETE", "/healthz", "", "", 405},
	} {
		r, err := http.NewRequest(c.method, own+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s %s, %s %q: %d, want %d", c.method, c.path, c.header, c.value, answer.StatusCode, c.want)
		}
	}
	if len(checks) != 2 {
		t.Errorf("%d checks ran", len(checks))
	}
}

// Goal: who has read the end of a check can begin the next one. Method: many, one after the other.
func TestChecksFollowEachOther(t *testing.T) {
	a, err := NewAdmin(AdminOptions{
		Listen: "127.0.0.1:0", Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		Healthy: func(context.Context) error { return nil },
		Check:   func(context.Context, CheckReport) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	for i := range 500 {
		answer, err := http.Post("http://"+a.Addr().String()+"/check", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(answer.Body).ReadString('\n') // and not the end of the answer
		answer.Body.Close()
		if answer.StatusCode != 200 || err != nil {
			t.Fatalf("check %d: %d, %q, %v", i, answer.StatusCode, line, err)
		}
	}
}
