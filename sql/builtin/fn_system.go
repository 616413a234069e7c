package builtin

import (
	"crypto/rand"
	"errors"
	"math"
	"net"
	"strings"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// session adapts a function of the session.
func session(f func(s SessionInfo, a []types.Datum) (types.Datum, error)) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if env.Session == nil {
			return types.Null, errNoService("session information")
		}
		return f(env.Session, a)
	}
}

// address is the IP address of an end of the connection, NULL on a Unix socket.
func address(of func(SessionInfo) net.Addr) Func {
	return session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
		tcp, ok := of(s).(*net.TCPAddr)
		if !ok {
			return types.Null, nil
		}
		ip := tcp.IP
		if v4 := ip.To4(); v4 != nil {
			ip = v4
		}
		return types.NewInet(types.Inet{Addr: ip, Bits: 8 * len(ip)}), nil
	})
}

// port is the port of an end of the connection, NULL on a Unix socket.
func port(of func(SessionInfo) net.Addr) Func {
	return session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
		tcp, ok := of(s).(*net.TCPAddr)
		if !ok {
			return types.Null, nil
		}
		return types.Int(int64(tcp.Port)), nil
	})
}

func systemFuncs() []decl {
	text := func(f func(s SessionInfo) string) Func {
		return session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) { return types.Text(f(s)), nil })
	}
	user := text(SessionInfo.User)
	out := []decl{
		{sig: "version() text", flags: stable, fn: text(SessionInfo.Version)},
		{sig: "current_database() name", flags: stable, fn: text(SessionInfo.Database)},
		{sig: "current_catalog() name", flags: stable, fn: text(SessionInfo.Database)},
		{sig: "current_user() name", flags: stable, fn: user}, {sig: "user() name", flags: stable, fn: user},
		{sig: "current_role() name", flags: stable, fn: user},
		{sig: "session_user() name", flags: stable, fn: text(SessionInfo.SessionUser)},
		{sig: "current_schema() name", flags: stable, fn: currentSchema},
		{sig: "current_schemas(bool) name[]", flags: stable, fn: session(currentSchemas)},
		{sig: "pg_my_temp_schema() oid", flags: stable, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Int(int64(s.TemporarySchema())), nil
		})},
		{sig: "pg_is_other_temp_schema(oid) bool", flags: stable, fn: constant(types.Bool(false))}, // Those of others are not seen.
		{sig: "current_setting(text) text", flags: stable, fn: session(currentSetting)},
		{sig: "current_setting(text,bool) text", flags: stable, fn: session(currentSetting)},
		{sig: "pg_sequence_last_value(regclass) int8", flags: volatile, fn: sequenceLast},
		{sig: "pg_settings_get_flags(text) text[]", flags: stable, fn: session(settingFlags)},
		{sig: "set_config(text,text,bool) text", flags: volatile | nonStrict, fn: session(setConfig)},
		{sig: "pg_backend_pid() int4", flags: stable, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Int(int64(s.PID())), nil
		})},
		{sig: "pg_trigger_depth() int4", flags: stable, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Int(int64(s.TriggerDepth())), nil
		})},
		{sig: "pg_reload_conf() bool", flags: volatile, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			done, err := s.ReloadConfiguration()
			return types.Bool(done), err
		})},
		{sig: "pg_cancel_backend(int4) bool", flags: volatile, fn: session(func(s SessionInfo, a []types.Datum) (types.Datum, error) {
			ok, err := s.CancelBackend(int32(a[0].Int()))
			return types.Bool(ok), err
		})},
		{sig: "pg_terminate_backend(int4) bool", flags: volatile, fn: terminateBackend},
		{sig: "pg_terminate_backend(int4,int8) bool", flags: volatile, fn: terminateBackend},
		{sig: "pg_blocking_pids(int4) int4[]", flags: volatile, fn: blockingPIDs},
		{sig: "txid_current() int8", flags: stable, fn: session(txnID)},
		{sig: "pg_postmaster_start_time() timestamptz", flags: stable, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Int(s.ServerStart()), nil
		})},
		{sig: "pg_is_in_recovery() bool", flags: volatile, fn: constant(types.Bool(false))},
		{sig: "inet_server_addr() inet", flags: stable, fn: address(SessionInfo.ServerAddr)},
		{sig: "inet_client_addr() inet", flags: stable, fn: address(SessionInfo.ClientAddr)},
		{sig: "inet_server_port() int4", flags: stable, fn: port(SessionInfo.ServerAddr)},
		{sig: "inet_client_port() int4", flags: stable, fn: port(SessionInfo.ClientAddr)},
		{sig: "pg_client_encoding() name", flags: stable, fn: constant(types.Text("UTF8"))},
		{sig: "getdatabaseencoding() name", flags: stable, fn: constant(types.Text("UTF8"))},
		{sig: "pg_sleep(float8) void", flags: volatile, fn: pgSleep},
		{sig: "pg_sleep_for(interval) void", flags: volatile, fn: pgSleepFor},
		{sig: "pg_sleep_until(timestamptz) void", flags: volatile, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return pgSleep(env, []types.Datum{types.Float(float64(a[0].Int()-env.clock()) / 1e6)})
		}},
		{sig: "pg_notify(text,text) void", flags: volatile | nonStrict, fn: session(notify)},
		{sig: "pg_notification_queue_usage() float8", flags: volatile, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Float(s.NotificationQueueUsage()), nil
		})},
		{sig: "gen_random_uuid() uuid", flags: volatile, fn: genRandomUUID},
		{sig: "pg_typeof(any) regtype", flags: stable | nonStrict, bind: pgTypeof},
		{sig: "num_nulls(variadic any) int4", flags: nonStrict, fn: countNulls(true)},
		{sig: "num_nonnulls(variadic any) int4", flags: nonStrict, fn: countNulls(false)},
		{sig: "nextval(regclass) int8", flags: volatile, fn: nextVal}, {sig: "currval(regclass) int8", flags: volatile, fn: currVal},
		{sig: "lastval() int8", flags: volatile, fn: lastVal},
		{sig: "setval(regclass,int8) int8", flags: volatile, fn: setVal}, {sig: "setval(regclass,int8,bool) int8", flags: volatile, fn: setVal},
		{sig: "pg_column_size(any) int4", flags: stable, bind: columnSize},
	}
	return append(append(out, sizeFuncs()...), serverFuncs()...)
}

func constant(d types.Datum) Func {
	return func(*Env, []types.Datum) (types.Datum, error) { return d, nil }
}

func currentSchema(env *Env, _ []types.Datum) (types.Datum, error) {
	if env.Session == nil {
		return types.Null, errNoService("session information")
	}
	if schemas := env.Session.Schemas(false); len(schemas) > 0 {
		return types.Text(schemas[0]), nil
	}
	return types.Null, nil
}

func currentSchemas(s SessionInfo, a []types.Datum) (types.Datum, error) {
	out := &types.Array{Elem: types.TName, Elems: []types.Datum{}}
	for _, name := range s.Schemas(a[0].Bool()) {
		out.Elems = append(out.Elems, types.Text(name))
	}
	return types.NewArray(out), nil
}

func currentSetting(s SessionInfo, a []types.Datum) (types.Datum, error) {
	v, err := s.Setting(a[0].Text())
	var pg *pgerror.Error
	switch {
	case err == nil:
		return types.Text(v), nil
	case len(a) == 2 && a[1].Bool() && errors.As(err, &pg) && pg.Code == pgerror.UndefinedObject:
		return types.Null, nil
	}
	return types.Null, err
}

func settingFlags(s SessionInfo, a []types.Datum) (types.Datum, error) {
	flags, known := s.SettingFlags(a[0].Text())
	if !known {
		return types.Null, nil
	}
	list := &types.Array{Elem: types.TText}
	for _, f := range flags {
		list.Elems = append(list.Elems, types.Text(f))
	}
	return types.NewArray(list), nil
}

func setConfig(s SessionInfo, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "SET requires parameter name")
	}
	name, value := strings.Clone(a[0].Text()), ""
	if !a[1].IsNull() {
		value = strings.Clone(a[1].Text())
	}
	if err := s.SetSetting(name, value, a[2].Bool()); err != nil {
		return types.Null, err
	}
	v, err := s.Setting(name)
	return types.Text(v), err
}

func txnID(s SessionInfo, _ []types.Datum) (types.Datum, error) { return types.Int(s.TxnID(true)), nil }

// errCanceled is what a cancelled statement returns.
func errCanceled(env *Env) error {
	err := pgerror.New(pgerror.QueryCanceled, "canceling statement due to user request")
	err.Cause = env.Context().Err()
	return err
}

func pgSleep(env *Env, a []types.Datum) (types.Datum, error) {
	seconds := a[0].Float()
	if !(seconds > 0) {
		return types.Text(""), nil
	}
	const maxSleep = math.MaxInt64 / float64(time.Second)
	timer := time.NewTimer(time.Duration(min(seconds, maxSleep/2) * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return types.Text(""), nil
	case <-env.Context().Done():
		return types.Null, errCanceled(env)
	}
}

func pgSleepFor(env *Env, a []types.Datum) (types.Datum, error) {
	iv := a[0].Interval()
	seconds := float64(iv.Months)*30*86400 + float64(iv.Days)*86400 + float64(iv.Micros)/1e6
	return pgSleep(env, []types.Datum{types.Float(seconds)})
}

// notify is pg_notify, for which NULL is the empty text.
func notify(s SessionInfo, a []types.Datum) (types.Datum, error) {
	var texts [2]string
	for i := range texts {
		if !a[i].IsNull() {
			texts[i] = a[i].Text()
		}
	}
	return types.Text(""), s.Notify(strings.Clone(texts[0]), strings.Clone(texts[1]))
}

// genRandomUUID makes a version 4 UUID (RFC 9562).
func genRandomUUID(*Env, []types.Datum) (types.Datum, error) {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return types.Bytes(b), nil
}

func pgTypeof(o *Overload) Func {
	return constant(types.Int(int64(o.Args[0].OID)))
}

func countNulls(nulls bool) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		n := int64(0)
		for _, d := range a {
			if d.IsNull() == nulls {
				n++
			}
		}
		return types.Int(n), nil
	}
}

func nextVal(env *Env, a []types.Datum) (types.Datum, error) {
	if env.Sequences == nil {
		return types.Null, errNoService("nextval")
	}
	return intDatum(env.Sequences.NextVal(env.Context(), types.OID(a[0].Int())))
}

func currVal(env *Env, a []types.Datum) (types.Datum, error) {
	if env.Sequences == nil {
		return types.Null, errNoService("currval")
	}
	return intDatum(env.Sequences.CurrVal(env.Context(), types.OID(a[0].Int())))
}

func lastVal(env *Env, _ []types.Datum) (types.Datum, error) {
	if env.Sequences == nil {
		return types.Null, errNoService("lastval")
	}
	return intDatum(env.Sequences.LastVal(env.Context()))
}

func setVal(env *Env, a []types.Datum) (types.Datum, error) {
	if env.Sequences == nil {
		return types.Null, errNoService("setval")
	}
	called := len(a) < 3 || a[2].Bool()
	return a[1], env.Sequences.SetVal(env.Context(), types.OID(a[0].Int()), a[1].Int(), called)
}

// terminateBackend is pg_terminate_backend, with the milliseconds to wait for the session's end if given.
func blockingPIDs(env *Env, a []types.Datum) (types.Datum, error) {
	if env.Session == nil {
		return types.Null, errNoService("session information")
	}
	pids, err := env.Session.BlockingPIDs(env.Context(), int32(a[0].Int()))
	elems := make([]types.Datum, len(pids))
	for i, pid := range pids {
		elems[i] = types.Int(int64(pid))
	}
	return types.NewArray(&types.Array{Elem: types.TInt4, Elems: elems}), err
}

func terminateBackend(env *Env, a []types.Datum) (types.Datum, error) {
	if env.Session == nil {
		return types.Null, errNoService("session information")
	}
	timeout := time.Duration(0)
	if len(a) > 1 {
		timeout = time.Duration(min(max(a[1].Int(), -1), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	ok, err := env.Session.TerminateBackend(env.Context(), int32(a[0].Int()), timeout)
	return types.Bool(ok), err
}

// columnSize is pg_column_size: the bytes of a value as PostgreSQL has it in memory, where that follows from the value; else as percodb has it.
func columnSize(o *Overload) Func {
	const lengthWord = 4
	t := o.Args[0].Underlying()
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch info := t.Info(); {
		case info.Len > 0:
			return types.Int(int64(info.Len)), nil
		case a[0].Kind() == types.KindBytes:
			return types.Int(int64(len(a[0].Text()) + lengthWord)), nil
		}
		return types.Int(int64(a[0].Size())), nil
	}
}
