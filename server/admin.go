package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Admin serves health, metrics, profiles and checks of the data over HTTP: /healthz, /metrics,
// /debug/pprof/, /check.
type Admin struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{}
}

// NewAdmin listens on addr and serves until Close. healthy says whether the process can do its job; check
// verifies the data it holds.
func NewAdmin(addr string, registry *prometheus.Registry, healthy func(context.Context) error,
	check func(context.Context, CheckReport) error, log *slog.Logger) (*Admin, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, &ListenError{Addr: addr, Err: err}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := healthy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // The client may be gone.
	})
	mux.HandleFunc("/check", serveCheck(check))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	a := &Admin{
		http:     &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		listener: listener, done: make(chan struct{}),
	}
	go func() {
		defer close(a.done)
		if err := a.http.Serve(listener); err != http.ErrServerClosed {
			log.Error("admin endpoint ended", "err", err)
		}
	}()
	return a, nil
}

// Addr is where the endpoint listens.
func (a *Admin) Addr() net.Addr { return a.listener.Addr() }

// Close ends the endpoint.
func (a *Admin) Close() {
	a.http.Close()
	<-a.done
}
