package settings

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// definitions lists the parameters. Those without apply are accepted because clients set them at connect; each note says so
// where the value has no effect.
func definitions() map[string]*definition {
	defs := map[string]*definition{}
	add := func(d *definition) { defs[strings.ToLower(d.name)] = d }
	for _, d := range reportedSettings() {
		d.reported = true
		add(d)
	}
	for _, d := range behaviourSettings() {
		add(d)
	}
	for _, d := range acceptedSettings() {
		add(d)
	}
	for _, d := range guideSettings() {
		add(d)
	}
	for _, d := range extensionSettings() {
		add(d)
	}
	for _, d := range collectionSettings() {
		add(d)
	}
	for _, d := range connectionSettings() {
		add(d)
	}
	return defs
}

// reportedSettings are the 13 that every client is sent at start (PostgreSQL 15, 55.2.7).
func reportedSettings() []*definition {
	return []*definition{
		{name: "application_name", note: "Sets the application name to be reported in statistics and logs."},
		{name: "client_encoding", initial: "UTF8", check: CheckEncoding, note: "Sets the client's character set encoding."},
		{name: "DateStyle", initial: "ISO, MDY", checkIn: checkDateStyle, apply: applyDateStyle, note: "Sets the display format for date and time values."},
		{name: "default_transaction_read_only", initial: "off", check: CheckBool, apply: applyReadOnly, note: "Sets the default read-only status of new transactions."},
		{name: "in_hot_standby", initial: "off", fixed: true, note: "Shows whether hot standby is currently active."},
		{name: "integer_datetimes", initial: "on", fixed: true, note: "Datetimes are integer based."},
		{name: "IntervalStyle", initial: "postgres", check: checkEnum(intervalStyles...), apply: applyIntervalStyle, note: "Sets the display format for interval values."},
		{name: "is_superuser", initial: "on", fixed: true, note: "Shows whether the current user is a superuser."},
		{name: "server_encoding", initial: "UTF8", fixed: true, note: "Shows the server (database) character set encoding."},
		{name: "server_version", fixed: true, note: "Shows the server version."},
		{name: SessionAuthorization, role: true, apply: applySessionAuthorization, note: "Sets the session user name."},
		{name: "standard_conforming_strings", initial: "on", check: CheckBool, apply: applyConformingStrings, note: "Causes '...' strings to treat backslashes literally."},
		{name: "TimeZone", initial: "UTC", check: checkTimeZone, apply: applyTimeZone, note: "Sets the time zone for displaying and interpreting time stamps."},
	}
}

// The parameters whose values are roles.
const (
	SessionAuthorization = "session_authorization"
	Role                 = "role"
	// NoRole is the value of Role after RESET ROLE.
	NoRole = "none"
)

func behaviourSettings() []*definition {
	return []*definition{
		{name: Role, initial: NoRole, role: true, apply: applyRole, note: "Sets the current role."},
		{name: "default_text_search_config", initial: "pg_catalog.english", checkIn: checkTextSearch, note: "Sets default text search configuration."},
		{name: "statement_timeout", initial: "0", check: checkMillis, apply: applyStatementTimeout, note: "Sets the maximum allowed duration of any statement."},
		{name: "search_path", initial: `"$user", public`, apply: applySearchPath, note: "Sets the schema search order for names that are not schema-qualified."},
		{name: "extra_float_digits", initial: "1", check: checkInt(-15, 3), apply: applyFloatDigits, note: "Sets the number of digits displayed for floating-point values."},
		{name: "bytea_output", initial: "hex", check: checkEnum("escape", "hex"), apply: applyByteaOutput, note: "Sets the output format for bytea."},
		{name: "default_transaction_isolation", initial: "repeatable read", check: canonicalIsolation, apply: applyIsolation, note: "Sets the transaction isolation level of each new transaction."},
		{name: "transaction_isolation", ofTransaction: true, initial: "repeatable read", check: canonicalIsolation, note: "Sets the current transaction's isolation level."},
		{name: "transaction_read_only", ofTransaction: true, initial: "off", check: CheckBool, note: "Sets the current transaction's read-only status."},
		{name: "transaction_deferrable", ofTransaction: true, initial: "off", check: CheckBool, note: "Snapshots never wait here: no effect."},
		{name: "default_transaction_deferrable", initial: "off", check: CheckBool, apply: applyDeferrable, note: "Snapshots never wait here: no effect."},
		{name: "row_security", initial: "on", check: CheckBool, apply: applyRowSecurity, note: "Refuses statements that row level security would affect, if off."},
		{name: "session_replication_role", super: true, initial: "origin", check: checkEnum("origin", "replica", "local"), apply: applyReplicationRole, note: "Sets the session's behavior for triggers and rewrite rules."},
		{name: "plan_cache_mode", initial: "auto", check: checkEnum("auto", "force_generic_plan", "force_custom_plan"), apply: applyPlanCacheMode,
			note: "Controls the planner's selection of custom or generic plan."},
		{name: "percodb.dialect", initial: "postgresql", check: checkEnum("mysql", "postgresql"), apply: applyDialect, note: "Sets the language of the client's texts."},
		{name: "lock_timeout", initial: "0", check: checkMillis, apply: applyLockTimeout, note: "Sets the maximum allowed duration of any wait for a lock."},
		{name: "idle_in_transaction_session_timeout", initial: "0", check: checkMillis, apply: applyIdleTimeout, note: "Sets the maximum allowed idle time between queries, when in a transaction."},
		{name: "idle_session_timeout", initial: "0", check: checkMillis, apply: applyIdleSessionTimeout, note: "Sets the maximum allowed idle time between queries, when not in a transaction."},
		{name: "password_encryption", initial: "scram-sha-256", check: checkPasswordEncryption, note: "Chooses the algorithm for encrypting passwords."},
		{name: "transaction_timeout", initial: "0", check: checkMillis, apply: applyTransactionTimeout, note: "Sets the maximum allowed duration of any transaction within a session (not a prepared transaction)."},
		{name: "client_connection_check_interval", initial: "0", check: checkConnectionInterval, apply: applyConnectionInterval, note: "Sets the time interval between checks for disconnection while running queries."},
		{name: "tcp_keepalives_idle", initial: "0", check: checkSeconds, apply: applyKeepAliveIdle, note: "Time between issuing TCP keepalives; 0: 30 seconds."},
		{name: "tcp_keepalives_interval", initial: "0", check: checkSeconds, apply: applyKeepAliveInterval, note: "Time between TCP keepalive retransmits; 0: 30 seconds."},
		{name: "tcp_keepalives_count", initial: "0", check: checkInt(0, 127), apply: applyKeepAliveCount, note: "Maximum number of TCP keepalive retransmits; 0: 9."},
	}
}

// acceptedSettings are set by clients as a matter of course and change nothing in percodb.
func acceptedSettings() []*definition {
	return []*definition{
		{name: "deadlock_timeout", super: true, initial: "1s", check: checkPositiveMillis, note: "Deadlocks are found as soon as they arise: no effect."},
		{name: "client_min_messages", initial: "notice", check: checkEnum("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"), note: "Sets the message levels that are sent to the client."},
		{name: "log_min_messages", super: true, initial: "warning", note: "Accepted: no effect."},
		{name: "synchronous_commit", initial: "on", check: checkSynchronousCommit, note: "Every commit is synced: no effect."},
		{name: "work_mem", initial: "4MB", check: memory(1<<10, 64, math.MaxInt32).check, note: "Accepted: no effect."},
		{name: "maintenance_work_mem", initial: "64MB", check: memory(1<<10, 1024, math.MaxInt32).check, note: "Accepted: no effect."},
		{name: "synchronize_seqscans", initial: "on", check: CheckBool, note: "Scans are in key order: no effect."},
		{name: "quote_all_identifiers", initial: "off", check: CheckBool, note: "Accepted: no effect."},
		{name: "escape_string_warning", initial: "on", check: CheckBool, apply: applyEscapeWarning, note: "Warn about backslash escapes in ordinary string literals."},
		{name: "default_with_oids", initial: "off", check: onlyOff, note: "Tables have no OIDs."},
		{name: "check_function_bodies", initial: "on", check: CheckBool},
		{name: "xmloption", initial: "content", check: checkEnum("content", "document"), note: "Accepted: there is no xml type."},
		{name: "default_tablespace", note: "Accepted: there are no tablespaces."},
		{name: "default_table_access_method", initial: "heap", note: "Accepted: no effect."},
		{name: "jit", initial: "off", check: CheckBool, note: "Accepted: there is no JIT."},
		{name: "max_identifier_length", initial: "63", fixed: true, note: "Shows the maximum identifier length."},
		{name: "max_index_keys", initial: "32", fixed: true, note: "Shows the maximum number of index keys."},
		{name: "server_version_num", initial: "150000", fixed: true, note: "Shows the server version as an integer."},
		{name: "lc_collate", initial: "C", fixed: true, note: "Shows the collation order locale."},
		{name: "lc_ctype", initial: "C.UTF-8", fixed: true, note: "Shows the character classification and case conversion locale."},
		{name: "lc_messages", super: true, initial: "C", note: "Accepted: no effect."},
		{name: "lc_monetary", initial: "C", note: "Accepted: no effect."},
		{name: "lc_numeric", initial: "C", note: "Accepted: no effect."},
		{name: "lc_time", initial: "C", note: "Accepted: no effect."},
		{name: MaxConnections, initial: "1000", fixed: true, atStart: true, stored: true, flag: "--max-connections", check: checkInt(1, 262143), note: "Sets the maximum number of concurrent connections."},
		{name: ReservedConnections, initial: "3", fixed: true, atStart: true, stored: true, flag: "--superuser-reserved-connections", check: checkInt(0, 262143), note: "Sets the number of connection slots reserved for superusers."},
		{name: "wal_level", initial: "replica", fixed: true, note: "Accepted: no effect."},
		{name: "fsync", initial: "on", fixed: true, note: "Every commit is synced."},
	}
}

// connectionSettings decide how clients are let in.
func connectionSettings() []*definition {
	return []*definition{
		{name: AuthenticationTimeout, initial: "1min", fixed: true, atReload: true, stored: true, flag: "--authentication-timeout", check: checkSecondsIn(1, 600), note: "Sets the maximum allowed time to complete client authentication."},
		{name: Rules, fixed: true, atReload: true, stored: true, hidden: true, note: "Rules that decide which clients are let in, in the form of pg_hba.conf, for servers without --hba."},
		{name: "hba_file", fixed: true, atStart: true, hidden: true, flag: "--hba", note: "Location of the file of rules that decide which clients are let in."},
		{name: "ssl", initial: "off", fixed: true, atStart: true, flag: "--tls-cert", note: "Enables SSL connections."},
		{name: "ssl_ca_file", fixed: true, atStart: true, flag: "--tls-ca", note: "Location of the SSL certificate authority file."},
		{name: "ssl_cert_file", fixed: true, atStart: true, flag: "--tls-cert", note: "Location of the SSL server certificate file."},
		{name: "ssl_ciphers", fixed: true, note: "Shows the list of SSL ciphers of TLS 1.2."},
		{name: "ssl_crl_dir", fixed: true, note: "There are no SSL certificate revocation lists."},
		{name: "ssl_crl_file", fixed: true, note: "There are no SSL certificate revocation lists."},
		{name: "ssl_key_file", fixed: true, atStart: true, flag: "--tls-key", note: "Location of the SSL server private key file."},
		{name: "ssl_library", fixed: true, note: "Shows the name of the SSL library."},
		{name: "ssl_max_protocol_version", fixed: true, note: "Shows the maximum SSL/TLS protocol version to use."},
		{name: "ssl_min_protocol_version", initial: "TLSv1.2", fixed: true, note: "Shows the minimum SSL/TLS protocol version to use."},
		{name: "ssl_prefer_server_ciphers", initial: "on", fixed: true, note: "Gives priority to server ciphersuite order."},
	}
}

// Settings that show the state of garbage collection. They do not belong to a session, so SET cannot change them.
const (
	SafePoint         = "percodb.safe_point"
	OldestTransaction = "percodb.oldest_transaction"
	GCLife            = "percodb.gc_life"
	GCStage           = "percodb.gc_stage"
)

func collectionSettings() []*definition {
	return []*definition{
		{name: SafePoint, fixed: true, note: "Shows the time up to which history may be gone."},
		{name: OldestTransaction, fixed: true, note: "Shows a time at or before the begin of the oldest transaction of all processes."},
		{name: GCLife, fixed: true, note: "Shows how long history is kept; ALTER SYSTEM changes it."},
		{name: GCStage, fixed: true, note: "Shows what garbage collection is at, and why its last round stopped early, if it did."},
	}
}

func canonicalIsolation(value string) (string, error) {
	level, err := ParseIsolation(value)
	return level.String(), err
}

func applySessionAuthorization(s *Settings, value string) error {
	s.SessionUser = value
	return nil
}

func applyRole(s *Settings, value string) error {
	s.CurrentRole = value
	return nil
}

func applyDialect(s *Settings, value string) error {
	s.MySQL = value == "mysql"
	return nil
}

// CheckEncoding returns the canonical name of a character set that clients may use.
func CheckEncoding(value string) (string, error) {
	switch strings.ToUpper(strings.NewReplacer("-", "", "_", "", "'", "").Replace(value)) {
	case "UTF8", "UNICODE":
		return "UTF8", nil
	case "SQLASCII":
		return "SQL_ASCII", nil
	}
	return "", fmt.Errorf("percodb speaks UTF8 only")
}

// dateStyles and dateOrders are the words of DateStyle as it prints them, by types' constants.
var (
	dateStyles = []string{types.DateISO: "ISO", types.DateSQL: "SQL", types.DatePostgres: "Postgres", types.DateGerman: "German"}
	dateOrders = []string{types.OrderMDY: "MDY", types.OrderDMY: "DMY", types.OrderYMD: "YMD"}
)

// checkDateStyle reads the words of a DateStyle, a format, an order or both, over those in force.
func checkDateStyle(s *Settings, value string) (string, error) {
	refused := func(detail string, args ...any) error {
		return pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter \"DateStyle\": \"%s\"", value).WithDetail(detail, args...)
	}
	style, order := int(s.Format.DateStyle), int(s.Format.DateOrder)
	haveStyle, haveOrder := false, false
	conflict := func(have *bool, at *int, to int) bool {
		clash := *have && *at != to
		*have, *at = true, to
		return clash
	}
	for _, word := range SplitNames(value) {
		clash := false
		switch {
		case word == "":
		case word == "iso":
			clash = conflict(&haveStyle, &style, int(types.DateISO))
		case word == "sql":
			clash = conflict(&haveStyle, &style, int(types.DateSQL))
		case strings.HasPrefix(word, "postgres"):
			clash = conflict(&haveStyle, &style, int(types.DatePostgres))
		case strings.HasPrefix(word, "german"):
			if clash = conflict(&haveStyle, &style, int(types.DateGerman)); !haveOrder {
				order = int(types.OrderDMY)
			}
		case word == "ymd":
			clash = conflict(&haveOrder, &order, int(types.OrderYMD))
		case word == "dmy" || strings.HasPrefix(word, "euro"):
			clash = conflict(&haveOrder, &order, int(types.OrderDMY))
		case word == "mdy" || word == "us" || strings.HasPrefix(word, "noneuro"):
			clash = conflict(&haveOrder, &order, int(types.OrderMDY))
		default:
			return "", refused("Unrecognized key word: \"%s\".", word)
		}
		if clash {
			return "", refused("Conflicting \"datestyle\" specifications.")
		}
	}
	return dateStyles[style] + ", " + dateOrders[order], nil
}

// applyDateStyle takes the canonical form.
func applyDateStyle(s *Settings, value string) error {
	style, order, _ := strings.Cut(value, ", ")
	s.Format.DateStyle = types.DateStyle(slices.Index(dateStyles, style))
	s.Format.DateOrder = types.DateOrder(slices.Index(dateOrders, order))
	return nil
}

// intervalStyles are the values of IntervalStyle, by types' constants.
var intervalStyles = []string{
	types.IntervalPostgres: "postgres", types.IntervalPostgresVerbose: "postgres_verbose",
	types.IntervalSQLStandard: "sql_standard", types.IntervalISO8601: "iso_8601",
}

func applyIntervalStyle(s *Settings, value string) error {
	s.Format.Interval = types.IntervalStyle(slices.Index(intervalStyles, value))
	return nil
}

func applyByteaOutput(s *Settings, value string) error {
	s.Format.ByteaText = value == "escape"
	return nil
}

func applyConformingStrings(s *Settings, value string) error {
	s.BackslashStrings = value == "off"
	return nil
}

func applyEscapeWarning(s *Settings, value string) error {
	s.EscapeStringWarning = value == "on"
	return nil
}

func checkPasswordEncryption(value string) (string, error) {
	if strings.EqualFold(strings.TrimSpace(value), "md5") {
		return "", pgerror.Unsupported("password_encryption = md5", "Use scram-sha-256.")
	}
	return checkEnum("scram-sha-256")(value)
}

// onlyOff refuses what PostgreSQL no longer has either.
func onlyOff(value string) (string, error) {
	v, err := CheckBool(value)
	if err == nil && v != "off" {
		err = pgerror.New(pgerror.FeatureNotSupported, "tables declared WITH OIDS are not supported")
	}
	return v, err
}

func applyReadOnly(s *Settings, value string) error {
	s.Modes.ReadOnly = value == "on"
	return nil
}

func applyDeferrable(s *Settings, value string) error {
	s.Modes.Deferrable = value == "on"
	return nil
}

// applyReplicationRole decides which triggers are executed.
func applyReplicationRole(s *Settings, value string) error {
	s.Replica = value == "replica"
	return nil
}

func applyRowSecurity(s *Settings, value string) error {
	s.RowSecurityOff = value == "off"
	return nil
}

func applyPlanCacheMode(s *Settings, value string) error {
	s.GenericPlans = value == "force_generic_plan"
	return nil
}

func applyIsolation(s *Settings, value string) (err error) {
	s.Modes.Isolation, err = ParseIsolation(value)
	return err
}

func applyLockTimeout(s *Settings, value string) (err error) {
	s.LockTimeout, err = ParseMillis(value)
	return err
}

func applyIdleTimeout(s *Settings, value string) (err error) {
	s.IdleInTransactionTimeout, err = ParseMillis(value)
	return err
}

func applyIdleSessionTimeout(s *Settings, value string) (err error) {
	s.IdleSessionTimeout, err = ParseMillis(value)
	return err
}

func applyTransactionTimeout(s *Settings, value string) (err error) {
	s.TransactionTimeout, err = ParseMillis(value)
	return err
}

func applyConnectionInterval(s *Settings, value string) (err error) {
	s.ConnectionCheckInterval, err = ParseMillis(value)
	return err
}

// checkConnectionInterval refuses checks where they are not possible.
func checkConnectionInterval(value string) (string, error) {
	canonical, err := checkMillis(value)
	if err == nil && canonical != "0" && runtime.GOOS != "linux" {
		err = fmt.Errorf("client_connection_check_interval must be set to 0 on platforms that do not support closing socket polling")
	}
	return canonical, err
}

func applyKeepAliveIdle(s *Settings, value string) (err error) {
	s.KeepAlive.Idle, err = parseSeconds(value)
	return err
}

func applyKeepAliveInterval(s *Settings, value string) (err error) {
	s.KeepAlive.Interval, err = parseSeconds(value)
	return err
}

func applyKeepAliveCount(s *Settings, value string) (err error) {
	s.KeepAlive.Count, err = strconv.Atoi(value)
	return err
}

func applyStatementTimeout(s *Settings, value string) error {
	d, err := ParseMillis(value)
	s.StatementTimeout = d
	return err
}

func applyFloatDigits(s *Settings, value string) error {
	digits, err := strconv.Atoi(value)
	s.Format.FloatCut = max(0, 1-digits)
	return err
}

// applySearchPath reads a comma-separated list of possibly quoted names.
func applySearchPath(s *Settings, value string) error {
	path := []string{}
	for _, name := range SplitNames(value) {
		if name != "" && name != "$user" {
			path = append(path, name)
		}
	}
	s.SearchPath = path
	return nil
}

// SplitNames reads a comma-separated list of names: folded to lower case, or in double quotes.
func SplitNames(list string) []string {
	var names []string
	var name strings.Builder
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"' && quoted && i+1 < len(list) && list[i+1] == '"':
			name.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
			name.WriteByte(c)
		case c == ',':
			names = append(names, name.String())
			name.Reset()
		case c != ' ' && c != '\t' && c != '\n':
			name.WriteString(strings.ToLower(list[i : i+1]))
		}
	}
	return append(names, name.String())
}
