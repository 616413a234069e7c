package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
)

// Admin serves health, metrics and checks of the data over HTTP: /healthz, /metrics, /check, and profiles under
// /debug/pprof/ if enabled.
type Admin struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{}
}

// AdminOptions configure an Admin.
type AdminOptions struct {
	Listen string      // HOST:PORT
	TLS    *tls.Config // for HTTPS, which decides who is served; nil: HTTP
	Pprof  bool        // profiles too
	// Permit decides whether who has sent a role's name and password with a request is served; nil: everyone is served.
	Permit   func(r *http.Request, role, password string) bool
	Audit    *audit.Log // has the requests that are served over TLS; nil: nothing has them
	Registry *prometheus.Registry
	// Healthy reports whether the process can serve.
	Healthy func(context.Context) error
	// Check verifies the data that the process holds.
	Check  func(context.Context, CheckReport) error
	Logger *slog.Logger
}

// NewAdmin listens and serves until Close.
func NewAdmin(opts AdminOptions) (*Admin, error) {
	listener, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, &ListenError{Flag: "--admin-listen", Addr: opts.Listen, Err: err}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(opts.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := opts.Healthy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // The client may have disconnected.
	})
	mux.HandleFunc("/check", serveCheck(opts.Check))
	if opts.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	handler := refuseOtherSites(requirePassword(opts.Permit, audited(opts.Audit, mux)))
	if opts.TLS != nil {
		listener = tls.NewListener(listener, opts.TLS)
	} else { // with TLS, clients verify the name by which they reach the endpoint
		handler = checkHost(opts.Listen, handler)
	}
	a := &Admin{
		http: &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
			ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
		},
		listener: listener, done: make(chan struct{}),
	}
	go func() {
		defer close(a.done)
		if err := a.http.Serve(listener); err != http.ErrServerClosed {
			opts.Logger.Error("admin endpoint ended", "err", err)
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

// checkHost refuses requests whose Host is neither an address, localhost nor the name listened on. A web page can make
// its own name resolve to a loopback address and read the responses; its requests contain that name.
func checkHost(listen string, next http.Handler) http.Handler {
	own, _, err := net.SplitHostPort(listen)
	if err != nil {
		own = ""
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
		if net.ParseIP(bare) == nil && !strings.EqualFold(host, "localhost") && (own == "" || !strings.EqualFold(host, own)) {
			http.Error(w, "requests name this endpoint by its address, localhost, or the host of --admin-listen", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseOtherSites refuses what a page of another site has a browser request: whoever reads that page has not asked for a check
// or a profile, which take the server's time.
func refuseOtherSites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		origin, err := url.Parse(r.Header.Get("Origin"))
		if site != "" && site != "none" && site != "same-origin" || err != nil || r.Header.Get("Origin") != "" && origin.Host != r.Host {
			http.Error(w, "pages of other sites are not served", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// requirePassword serves those whom permit admits.
func requirePassword(permit func(r *http.Request, role, password string) bool, next http.Handler) http.Handler {
	if permit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		role, password, ok := r.BasicAuth()
		if !ok || !permit(r, role, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="percodb"`)
			http.Error(w, "a role's name and password are needed: a superuser's, or a member's of pg_monitor for metrics", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// audited writes who is served over TLS.
func audited(log *audit.Log, next http.Handler) http.Handler {
	if log == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			role, _, _ := r.BasicAuth()
			client := AdminClient(r, role)
			log.Write(client.Event(audit.Admin))
		}
		next.ServeHTTP(w, r)
	})
}

// AdminClient describes who has made a request, as a role.
func AdminClient(r *http.Request, role string) *auth.Client {
	c := &auth.Client{TLS: r.TLS, User: role, Database: catalog.FirstDatabaseName, Path: r.URL.Path}
	if addr, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.Addr = net.TCPAddrFromAddrPort(addr)
	}
	return c
}
