package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/copydb"
	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/node"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/tso"
)

// drainTimeout is how long running statements may continue after the signal to stop.
const drainTimeout = 10 * time.Second

// startFlags are the flags of start.
type startFlags struct {
	role, listen, rpcListen, rpcAdvertise, adminListen, data, join, logLevel string
	cacheMB                                                                  int64
	memory                                                                   byteSize
	clusterTLS                                                               tlsfiles.Files
	timestampsAbove                                                          uint64
	acceptClockStep                                                          bool
	gcLife, gcInterval, gcLease                                              time.Duration
	acceptDataLoss                                                           bool
	maxConnections, reservedConnections                                      int
	insecure, adminPprof                                                     bool
	hba, socketDir, tlsCert, tlsKey, tlsCA, auditLog                         string
	authenticationTimeout                                                    time.Duration
	engine                                                                   engineFlags
}

func startCommand() *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a server",
		Long: `Start a server. Without flags: one process that does everything, for clients on
127.0.0.1:5433, with its data in ./percodb-data.

Split into processes, start one oracle, then stores, then SQL processes:

  percodb start --role=tso --rpc-listen 127.0.0.1:7000 --data tso-data
  percodb start --role=kv  --rpc-listen 127.0.0.1:7001 --data kv1-data --join 127.0.0.1:7000
  percodb start --role=kv  --rpc-listen 127.0.0.1:7002 --data kv2-data --join 127.0.0.1:7000
  percodb start --role=sql --listen 127.0.0.1:5433 --join 127.0.0.1:7000

Over Google's Bigtable, as many processes over one table as you like:

  percodb start --engine bigtable --project PROJECT --instance INSTANCE

On several machines the processes need certificates (--cluster-tls-cert), which percodb cert
makes for a trial. SIGHUP loads changed files of certificates.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.engine.check(cmd.Flags(), node.Role(f.role)); err != nil {
				return err
			}
			if err := checkRoleFlags(cmd.Flags(), node.Role(f.role), f.engine.flagUsable); err != nil {
				return err
			}
			if err := f.checkDurations(cmd.Flags()); err != nil {
				return &usageError{err: err}
			}
			f.forget(cmd.Flags())
			return start(cmd.Context(), f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.role, "role", "all", "all, tso, kv or sql")
	f.engine.add(flags, "is created if there is none")
	f.engine.addLimits(flags)
	flags.StringVar(&f.listen, "listen", "127.0.0.1:5433", "HOST:PORT for PostgreSQL clients (roles all and sql)")
	flags.StringVar(&f.rpcListen, "rpc-listen", "", "HOST:PORT for the other processes (roles tso and kv, and engine bigtable; default 127.0.0.1:7000 for tso, any free port of this machine for others)")
	flags.StringVar(&f.rpcAdvertise, "rpc-advertise", "", "HOST:PORT at which the other processes reach this one, if not --rpc-listen (role kv, and engine bigtable)")
	clusterTLSFlags(flags, &f.clusterTLS, "this process (roles tso, kv and sql, and engine bigtable, for which it is that of role sql)")
	flags.StringVar(&f.adminListen, "admin-listen", "", "HOST:PORT for health, metrics and percodb check --live, over HTTP; beyond this machine over HTTPS, for operators with a certificate of the cluster or, with --tls-cert, roles with a password (default: none)")
	flags.BoolVar(&f.adminPprof, "admin-pprof", false, "serve Go's profiles at --admin-listen as well, under /debug/pprof/")
	flags.BoolVar(&f.insecure, "insecure", false, "let everyone in who can connect, also from other machines, without a password")
	flags.StringVar(&f.hba, "hba", "", "file of rules that decide which clients are let in, in the form of PostgreSQL's pg_hba.conf (roles all and sql; default: everyone on this machine, others with a password)")
	flags.StringVar(&f.socketDir, "socket-dir", "", "directory of a Unix socket for clients of this machine, such as /tmp (roles all and sql; default: no socket)")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "PEM file of the certificate shown to clients, with those of intermediate authorities (roles all and sql; default: no TLS)")
	flags.StringVar(&f.tlsKey, "tls-key", "", "PEM file of its private key")
	flags.StringVar(&f.tlsCA, "tls-ca", "", "PEM file of the authorities whose certificates clients may show (default: none)")
	flags.StringVar(&f.auditLog, "audit-log", "", "file to which connections, refused logins, changes of the schema, roles and privileges are written, or - for the standard output (roles all and sql; default: none)")
	flags.DurationVar(&f.authenticationTimeout, "authentication-timeout", auth.DefaultTimeout, "how long a client may take to be let in, unless ALTER SYSTEM has said so (roles all and sql)")
	flags.IntVar(&f.maxConnections, "max-connections", defaultConnections, "how many clients are served at once, unless ALTER SYSTEM has said so (roles all and sql)")
	flags.IntVar(&f.reservedConnections, "superuser-reserved-connections", defaultReservedConnections,
		"how many of --max-connections are kept for superusers, unless ALTER SYSTEM has said so")
	flags.StringVar(&f.data, "data", "./percodb-data", "directory of the data (roles all, tso and kv)")
	flags.BoolVar(&f.acceptDataLoss, "accept-data-loss", false, "start although the log in --data is damaged, with what was committed before the damage; the damaged log is kept beside, as *.damaged")
	flags.StringVar(&f.join, "join", "", "HOST:PORT of the tso process (roles kv and sql)")
	f.memory = defaultMemory(availableMemory())
	flags.Var(&f.memory, "memory", "memory for the block cache, statements, messages of clients, uncommitted writes and row locks together, such as 2GB (default: half of the machine's or its container's, here "+f.memory.String()+")")
	flags.Lookup("memory").DefValue = "" // the text has it
	flags.Int64Var(&f.cacheMB, "cache-mb", 0, "size of the block cache in MiB, a part of --memory (default or 0: a quarter of it, 64 to 2048)")
	flags.BoolVar(&f.acceptClockStep, "accept-clock-step", false, "start although the clock is more than a day above the data's last timestamps: the server was stopped for so long, and the clock is right (roles all and tso)")
	flags.Uint64Var(&f.timestampsAbove, "timestamps-above", 0, "start the oracle above this timestamp, which a store has named that found the oracle behind its data (role tso)")
	flags.DurationVar(&f.gcLife, "gc-life", 0, "how long history is kept for AS OF SYSTEM TIME, unless ALTER SYSTEM SET percodb.gc_life has said so (roles all and tso, and engine bigtable; default 10m)")
	flags.DurationVar(&f.gcInterval, "gc-interval", 0, "time between two rounds of garbage collection (roles all and tso; default 1m)")
	flags.DurationVar(&f.gcLease, "gc-lease", 0, "how long a SQL process's word about its oldest transaction holds, the same in all processes (default 15s)")
	for _, name := range []string{"gc-interval", "gc-lease"} { // there is no reason to change them but tests
		flags.Lookup(name).Hidden = true
	}
	flags.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	return cmd
}

// flagRoles are the roles of the flags of start that not every role has.
var flagRoles = []struct {
	name  string
	roles []node.Role
}{
	{"listen", []node.Role{node.RoleAll, node.RoleSQL}},
	{"hba", []node.Role{node.RoleAll, node.RoleSQL}},
	{"socket-dir", []node.Role{node.RoleAll, node.RoleSQL}},
	{"tls-cert", []node.Role{node.RoleAll, node.RoleSQL}},
	{"tls-key", []node.Role{node.RoleAll, node.RoleSQL}},
	{"tls-ca", []node.Role{node.RoleAll, node.RoleSQL}},
	{"audit-log", []node.Role{node.RoleAll, node.RoleSQL}},
	{"authentication-timeout", []node.Role{node.RoleAll, node.RoleSQL}},
	{"max-connections", []node.Role{node.RoleAll, node.RoleSQL}},
	{"superuser-reserved-connections", []node.Role{node.RoleAll, node.RoleSQL}},
	{"rpc-listen", []node.Role{node.RoleTSO, node.RoleKV}},
	{"rpc-advertise", []node.Role{node.RoleKV}},
	{"data", []node.Role{node.RoleAll, node.RoleTSO, node.RoleKV}},
	{"join", []node.Role{node.RoleKV, node.RoleSQL}},
	{"cluster-tls-cert", []node.Role{node.RoleTSO, node.RoleKV, node.RoleSQL}},
	{"cluster-tls-key", []node.Role{node.RoleTSO, node.RoleKV, node.RoleSQL}},
	{"cluster-tls-ca", []node.Role{node.RoleTSO, node.RoleKV, node.RoleSQL}},
	{"accept-clock-step", []node.Role{node.RoleAll, node.RoleTSO}},
	{"timestamps-above", []node.Role{node.RoleTSO}},
	{"gc-life", []node.Role{node.RoleAll, node.RoleTSO}},
}

// checkDurations refuses durations that were given and that nothing could be done with.
func (f *startFlags) checkDurations(flags *pflag.FlagSet) error {
	for _, d := range []struct {
		name              string
		given             time.Duration
		least, most       time.Duration
		leastText, upText string
	}{
		{"authentication-timeout", f.authenticationTimeout, time.Second, 10 * time.Minute, "1s", "10m"},
		{"gc-life", f.gcLife, gc.MinLife, gc.MaxLife, "1s", fmt.Sprintf("%.0fh", gc.MaxLife.Hours())},
		{"gc-interval", f.gcInterval, 10 * time.Millisecond, 24 * time.Hour, "10ms", "24h"},
		{"gc-lease", f.gcLease, 100 * time.Millisecond, time.Hour, "100ms", "1h"},
	} {
		if flags.Changed(d.name) && (d.given < d.least || d.given > d.most) {
			return fmt.Errorf("--%s %v: use %s to %s", d.name, d.given, d.leastText, d.upText)
		}
	}
	if most := tso.FromPhysical(time.Now().Add(maxTimestampAhead).UnixMilli()); tso.Timestamp(f.timestampsAbove) > most {
		return fmt.Errorf("--timestamps-above %d: use the largest number that a store has named, which is less than %d", f.timestampsAbove, most)
	}
	return nil
}

// maxTimestampAhead is how far above the clock --timestamps-above may be: no oracle has issued such timestamps.
const maxTimestampAhead = 365 * 24 * time.Hour

const (
	defaultConnections         = 1000
	defaultReservedConnections = 3
	mostConnections            = 262143 // PostgreSQL's
)

// forget clears the values of flags that were not given, where ALTER SYSTEM can give one.
func (f *startFlags) forget(flags *pflag.FlagSet) {
	if !flags.Changed("max-connections") {
		f.maxConnections = notGiven
	}
	if !flags.Changed("superuser-reserved-connections") {
		f.reservedConnections = notGiven
	}
	if !flags.Changed("authentication-timeout") {
		f.authenticationTimeout = 0
	}
}

// notGiven is the value of a number that no flag gives.
const notGiven = math.MinInt

// checkRoleFlags refuses a flag that would have no effect with the role: --join without --role would else start a
// server on its own.
func checkRoleFlags(flags *pflag.FlagSet, role node.Role, usable func(flag string) bool) error {
	if !slices.Contains([]node.Role{node.RoleAll, node.RoleTSO, node.RoleKV, node.RoleSQL}, role) {
		return nil // package node lists the valid ones
	}
	for _, f := range flagRoles {
		if flags.Changed(f.name) && !slices.Contains(f.roles, role) && !usable(f.name) {
			var others []string
			for _, r := range f.roles {
				others = append(others, "--role="+string(r))
			}
			return fmt.Errorf("--%s has no effect with --role=%s: leave it out, or give %s", f.name, role, strings.Join(others, " or "))
		}
	}
	return nil
}

// defaultMemory is the default of --memory for a process that may use that many bytes, 0 if unknown. Most of the rest is
// for the operating system's cache of files, which are compressed.
func defaultMemory(available uint64) byteSize {
	const unknown, most = 4 << 30, 1 << 50
	if available == 0 {
		return unknown
	}
	return byteSize(max(min(available, most)/2, memory.LeastBytes)) &^ (1<<20 - 1)
}

// gcPercent: a server's live heap is small compared with its block cache, which is outside of it, so the collector may
// let more garbage accumulate than by Go's default. Close to the heap's share of --memory it runs more often.
const gcPercent = 400

// tuneRuntime sets the collector and the scheduler up, unless the environment does. Half as many threads
// again as there are processors may run Go code: where clients run on the same machine, a thread that
// the kernel has taken off its processor would else leave its connections waiting while that
// processor is idle (pgbench -S on two processors: an eighth more transactions).
func tuneRuntime(heapBytes int64) {
	if os.Getenv("GOMAXPROCS") == "" {
		n := runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(n + (n+1)/2)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapBytes)
	}
}

func start(ctx context.Context, f startFlags, out io.Writer) error {
	opts, err := f.options()
	if err != nil {
		return err
	}
	tuneRuntime(opts.Memory.HeapLimit())
	syscall.Umask(0o077) // files are accessible to their owner only: data, and temporary files of statements
	fatal := make(chan error, 1)
	opts.OnFatal = func(err error) {
		select {
		case fatal <- err:
		default:
		}
	}
	n, err := node.Start(ctx, opts)
	if err != nil {
		return &startError{flags: f, err: err}
	}
	announce(out, f, n)
	endReloads := reloadAtHangup(n.Reload)
	defer endReloads()
	select {
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "percodb: stopping; a second signal stops at once")
	case err = <-fatal:
		// The store has refused further writes, so a graceful shutdown is impossible.
		return &startError{flags: f, err: err}
	}
	stopAtSecondSignal()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	n.Close(drain)
	return nil
}

func (f *startFlags) options() (node.Options, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return node.Options{}, fmt.Errorf("--log-level %s: use debug, info, warn or error", f.logLevel)
	}
	switch total := int64(f.memory); {
	case total < memory.LeastBytes:
		return node.Options{}, fmt.Errorf("--memory %s: use 256MB or more", f.memory.String())
	case f.cacheMB < 0:
		return node.Options{}, fmt.Errorf("--cache-mb %d: use 1 or more, or 0 for the default", f.cacheMB)
	case f.cacheMB > total>>20/4*3:
		return node.Options{}, fmt.Errorf("--cache-mb %d: use at most three quarters of --memory, which is %s", f.cacheMB, f.memory.String())
	}
	switch {
	case (f.maxConnections < 1 || f.maxConnections > mostConnections) && f.maxConnections != notGiven:
		return node.Options{}, fmt.Errorf("--max-connections %d: use 1 to %d", f.maxConnections, mostConnections)
	case f.reservedConnections == notGiven:
	case f.reservedConnections < 0 || f.maxConnections != notGiven && f.reservedConnections >= f.maxConnections:
		return node.Options{}, fmt.Errorf("--superuser-reserved-connections %d: use 0 or more, and less than --max-connections, which is %d", f.reservedConnections, f.maxConnections)
	}
	shares := memory.Divide(int64(f.memory), f.cacheMB<<20)
	opts := node.Options{
		Role: node.Role(f.role), Data: f.data, Listen: f.listen, RPCListen: f.rpcListen, RPCAdvertise: f.rpcAdvertise,
		ClusterTLS: f.clusterTLS,
		SocketDir:  f.socketDir, AcceptDataLoss: f.acceptDataLoss, AdminListen: f.adminListen, Join: f.join, Bigtable: f.engine.options(), Version: postgresVersion + " (percodb " + version + ")",
		CacheBytes: shares.Cache, RecentBytes: shares.Recent, ScanCacheBytes: shares.Scans, Memory: memory.NewServerPool(shares.Pool, shares.Heap),
		GC:     node.GCOptions{Life: f.gcLife, Interval: f.gcInterval, Lease: f.gcLease},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),

		Audit: f.auditLog, AuditOut: os.Stdout,

		MaxConnections: max(f.maxConnections, 0), ReservedConnections: max(f.reservedConnections, -1), AdminPprof: f.adminPprof,
		AcceptClockStep: f.acceptClockStep, TimestampsAbove: tso.Timestamp(f.timestampsAbove),
	}
	opts.RPCListen = f.engine.rpcListen(opts.RPCListen)
	opts.AdminTLS = opts.AdminListen != "" && !isLoopback(opts.AdminListen)
	switch opts.Role {
	case node.RoleTSO, node.RoleKV:
		if opts.RPCListen == "" {
			opts.RPCListen = "127.0.0.1:0"
			if opts.Role == node.RoleTSO {
				opts.RPCListen = "127.0.0.1:7000"
			}
		}
	}
	if (opts.Role == node.RoleKV || opts.Role == node.RoleSQL) && opts.Join == "" {
		return opts, fmt.Errorf("--role=%s needs --join HOST:PORT, the address of the tso process", f.role)
	}
	if err := f.checkReach(&opts); err != nil {
		return opts, err
	}
	var err error
	if opts.Role == node.RoleAll || opts.Role == node.RoleSQL {
		opts.NeedPassword = f.hba == "" && !f.insecure && !isLoopback(f.listen)
		opts.Access, err = f.access()
	}
	return opts, err
}

// access has the rules and certificates for clients.
func (f *startFlags) access() (opts auth.Options, err error) {
	switch {
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return opts, errors.New("--tls-cert and --tls-key belong together: give both")
	case f.tlsCA != "" && f.tlsCert == "":
		return opts, errors.New("--tls-ca has no effect without --tls-cert and --tls-key")
	case f.insecure && f.hba != "":
		return opts, errors.New("--insecure lets everyone in, whatever --hba says: give one of them")
	}
	opts = auth.Options{
		RulesFile: f.hba, Timeout: f.authenticationTimeout, Certificates: tlsfiles.Files{Cert: f.tlsCert, Key: f.tlsKey, CA: f.tlsCA},
	}
	if f.insecure {
		opts.Rules = auth.TrustEverything
	}
	return opts, nil
}

// describeAccess says which clients are let in. stored: the rules are those of ALTER SYSTEM.
func (f *startFlags) describeAccess(stored bool) string {
	switch {
	case stored:
		return "Clients are let in by the rules of ALTER SYSTEM SET percodb.hba."
	case f.hba != "":
		return "Clients are let in by the rules in " + f.hba + "."
	case f.insecure:
		return "Everyone who can connect is let in (--insecure)."
	case isLoopback(f.listen):
		return "Everyone on this machine is let in; --hba FILE sets other rules."
	}
	return "Connections over loopback are let in, others with a password; --hba FILE sets other rules."
}

// announce prints the line with the command to connect.
func announce(out io.Writer, f startFlags, n *node.Node) {
	if addr := n.Addr(); addr != nil {
		host, port, _ := net.SplitHostPort(addr.String()) // net.Addr of a TCP listener always splits.
		if host == "::" || host == "0.0.0.0" {
			host = "127.0.0.1"
		}
		fmt.Fprintln(out, readyLine(n.AccessOf, host, port, f.socketDir))
		fmt.Fprintln(out, f.describeAccess(n.StoredRules()))
		return
	}
	line := fmt.Sprintf("percodb %s is ready on %s", f.role, n.RPCAddr())
	if f.role == string(node.RoleTSO) {
		line += fmt.Sprintf(": percodb start --role=kv --join %s --data DIR", n.RPCAddr())
	}
	fmt.Fprintln(out, line)
}

// readyLine says how the superuser gets in from this machine: by a command that the rules let in, if there is one.
func readyLine(access func(user string, from netip.Addr, tls bool) auth.Method, host, port, socketDir string) string {
	const user = catalog.BootstrapSuperuserName
	from, _ := netip.ParseAddr(host) // The listener's own, which is that of a client on this machine.
	command := func(host, more string) string {
		return fmt.Sprintf("percodb is ready: psql %s", shellQuote("host="+conninfoQuote(host)+" port="+port+" user="+user+" dbname=percodb"+more))
	}
	plain, encrypted, local := access(user, from, false), access(user, from, true), auth.Reject
	if socketDir != "" {
		local = access(user, netip.Addr{}, false)
	}
	switch {
	case plain == auth.Trust:
		return fmt.Sprintf("percodb is ready: psql -h %s -p %s -U %s -d percodb", host, port, user)
	case local == auth.Trust:
		return fmt.Sprintf("percodb is ready: psql -h %s -p %s -U %s -d percodb", shellQuote(socketDir), port, user)
	case plain == auth.Password:
		return fmt.Sprintf("percodb is ready: psql -h %s -p %s -U %s -d percodb (asks for the password)", host, port, user)
	case encrypted == auth.Trust:
		return command(host, " sslmode=require")
	case encrypted == auth.Password:
		return command(host, " sslmode=require") + " (asks for the password)"
	case local == auth.Password:
		return fmt.Sprintf("percodb is ready: psql -h %s -p %s -U %s -d percodb (asks for the password)", shellQuote(socketDir), port, user)
	}
	return "percodb is ready on " + net.JoinHostPort(host, port)
}

// startError is an error of start with the flags that could mend it.
type startError struct {
	flags startFlags
	err   error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// explain converts an error to one line that states what to do.
func explain(err error) string {
	var (
		start  *startError
		format *storage.FormatError
		listen *server.ListenError
		damage *storage.DamageError
		open   *storage.PermissionsError
		empty  *node.NoDataError
		mode   *kv.ModeError
		load   *importFailure
		setup  *bigtable.SetupError
		left   *copydb.RefusedError
		differ *copydb.DifferenceError
		clock  *tso.ClockAheadError
		behind *kv.OracleBehindError
		locked *node.NoPasswordError
		served *node.TableServedError
	)
	data := "the data directory"
	if errors.As(err, &start) {
		data = "data directory " + strconv.Quote(start.flags.data)
	}
	switch {
	case errors.As(err, &served):
		return served.Error() + ": stop all processes of the table, or check it as they run: percodb check --live HOST:PORT, the --admin-listen of one"
	case errors.As(err, &locked):
		return fmt.Sprintf("--listen %v; start the server on 127.0.0.1 first and set a password: percodb user admin --superuser", locked)
	case errors.Is(err, storage.ErrLocked):
		return data + " is in use by another percodb process; stop it, or give --data another directory (to check it as it runs: percodb check --live HOST:PORT, its --admin-listen)"
	case errors.As(err, &behind):
		return fmt.Sprintf("%v; restore the oracle's directory, or start the tso process once with --timestamps-above %d (the largest number that any store names)", behind, uint64(behind.Above()))
	case errors.As(err, &clock):
		return clock.Error() + ": set the clock right, or, if the server was stopped for so long, start it once with --accept-clock-step (timestamps cannot be taken back)"
	case errors.As(err, &empty):
		return empty.Error() + "; give --data the directory of a server, as at its start"
	case errors.As(err, &load), errors.As(err, &setup), errors.As(err, &left), errors.As(err, &differ):
		return err.Error() // in several lines
	case errors.As(err, &mode):
		return data + strings.TrimPrefix(mode.Error(), "the data directory") + "; give --data another directory, or the --role that it belongs to"
	case errors.As(err, &open):
		return fmt.Sprintf("%s has permissions %04o, which let other users in, and they cannot be changed (%v); use chmod 700 on the data directory and 600 on its files as their owner", open.Path, open.Mode.Perm(), open.Err)
	case errors.As(err, &damage) && damage.Log:
		return fmt.Sprintf("data directory %q is damaged, and was left as it is: %s; restore it from a backup, or start once with --accept-data-loss, which loses what was committed after the damage", damage.Dir, damage.Detail)
	case errors.As(err, &damage):
		return fmt.Sprintf("data directory %q is damaged, and was left as it is: %s; restore it from a backup, with all its files, those without contents included", damage.Dir, damage.Detail)
	case errors.As(err, &format) && format.Found == "":
		return fmt.Sprintf("directory %q holds files but no PERCODB_FORMAT, and was left as it is: if it is a data directory, restore that file from a backup; if not, give --data an empty or new directory", format.Dir)
	case errors.As(err, &format):
		return fmt.Sprintf("%s has another format (%v); use the percodb release that wrote it, or give --data a new directory", data, format)
	case errors.Is(err, syscall.ENOSPC):
		return "the disk of " + data + " is full; free some space and start again: committed data is safe"
	case errors.Is(err, os.ErrPermission) && start != nil && !errors.As(err, &listen):
		return fmt.Sprintf("no permission for %s: %v; run as its owner, or give --data another directory", data, err)
	case errors.As(err, &listen):
		return listen.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
