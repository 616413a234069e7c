"""Connects to a server of test/e2e/drivers.sh as an application with psycopg or psycopg2 (the argument) does: in every way in which a
client logs in, and with a session of types, prepared statements, transactions, COPY, errors, notifications and cancellation."""

import datetime
import decimal
import importlib
import io
import os
import sys
import threading
import uuid

driver = importlib.import_module(sys.argv[1])
new = driver.__name__ == "psycopg"  # version 3
certs, password = os.environ["DRIVERS_CERTS"], os.environ["DRIVERS_PASSWORD"]


def common(user, more):
    params = dict(host="localhost", port=os.environ["DRIVERS_PORT"], dbname="percodb", user=user, password=password, connect_timeout=60)
    return {**params, **more}


def clear(user, **more):
    return common(user, {"sslmode": "disable", **more})


def encrypted(user, **more):
    return common(user, {"sslmode": "verify-full", "sslrootcert": certs + "/ca.crt", **more})


def check(name, run, *args):
    try:
        run(*args)
    except BaseException as e:
        print(f"FAIL {driver.__name__}: {name}: {type(e).__name__}: {e}")
        raise
    print(f"ok   {driver.__name__}: {name}", flush=True)


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, want {want!r}")


def login(params, tls):
    conn = driver.connect(**params)
    cur = conn.cursor()
    cur.execute("select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()")
    same("user and TLS", tuple(cur.fetchone()), (params["user"], tls))
    conn.close()


def refused(params, message):
    """Connects in vain. libpq has no SQLSTATE of a login, but its message."""
    try:
        driver.connect(**params)
    except driver.OperationalError as e:
        if message not in str(e):
            raise
    else:
        raise AssertionError("the client is let in")


def session(run):
    conn = driver.connect(**encrypted("secured", channel_binding="require"))
    run(conn, conn.cursor())
    conn.close()


def types(conn, cur):
    binary = driver.Binary if not new else bytes
    cases = [
        ("int2", -32768), ("int4", 2147483647), ("int8", -9223372036854775808), ("float8", 1.0000000000000002), ("bool", True),
        ("text", "it's\ta \"text\" \\ with Ünïcode 🙂 %\n"), ("text", None),
        ("numeric", decimal.Decimal("-12345678901234567890.123456789")), ("bytea", bytes(range(256))),
        ("timestamptz", datetime.datetime(2026, 2, 28, 23, 59, 59, 123456, datetime.timezone.utc)), ("date", datetime.date(1999, 12, 31)),
        ("interval", datetime.timedelta(days=3, seconds=7, microseconds=11)),
        ("int[]", [1, None, -3]), ("text[]", ['a "quoted", {text} \\', None, ""]),
    ]
    if new:
        cases.append(("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")))
    for binary_format in (False, True) if new else (False,):
        if new:
            cur = conn.cursor(binary=binary_format)
        for name, value in cases:
            sent = binary(value) if isinstance(value, bytes) else value
            cur.execute(f"select cast(%s as {name})", (sent,))
            got = cur.fetchone()[0]
            same(name, bytes(got) if isinstance(value, bytes) else got, value)
    conn.rollback()


def prepared(conn, cur):
    for i in range(10):
        text = "select %s::int * 2, %s || '!'"
        cur.execute(text, (i, "x"), prepare=True) if new else cur.execute(text, (i, "x"))
        same("row", tuple(cur.fetchone()), (2 * i, "x!"))
    if new and driver.Pipeline.is_supported():
        with conn.pipeline():
            cursors = [conn.execute("select %s::int", (i,)) for i in range(20)]
            same("pipeline", [c.fetchone()[0] for c in cursors], list(range(20)))
    named = conn.cursor(name="a cursor")
    named.itersize = 100
    named.execute("select generate_series(1, 1000)")
    same("a named cursor", sum(row[0] for row in named), 500500)
    named.close()
    conn.rollback()


def table(conn, cur, columns):
    cur.execute("drop table if exists of_python")
    cur.execute(f"create table of_python ({columns})")
    conn.commit()


def count(cur, want):
    cur.execute("select count(*) from of_python")
    same("rows", cur.fetchone()[0], want)


def fails(cur, code, sql, *args):
    try:
        cur.execute(sql, args or None)
    except driver.Error as e:
        same(sql, e.sqlstate if new else e.pgcode, code)
    else:
        raise AssertionError(f"{sql} does not fail")


def transactions(conn, cur):
    table(conn, cur, "id int primary key")
    cur.execute("insert into of_python values (1)")
    count(cur, 1)
    conn.rollback()
    count(cur, 0)
    conn.rollback()
    conn.isolation_level = driver.IsolationLevel.SERIALIZABLE if new else driver.extensions.ISOLATION_LEVEL_SERIALIZABLE
    cur.execute("savepoint s")
    fails(cur, "23505", "insert into of_python values (2), (2)")
    fails(cur, "25P02", "select 1")
    cur.execute("rollback to s")
    cur.execute("insert into of_python values (3)")
    conn.commit()
    count(cur, 1)
    conn.rollback()


def copy(conn, cur):
    table(conn, cur, "id int primary key, name text")
    rows = [(i, f"name\t{i}") for i in range(1000)]
    lines = "".join("{}\tname\\t{}\n".format(i, i) for i in range(1000))
    if new:
        for form in ("", " (format binary)"):
            with cur.copy("copy of_python from stdin" + form) as c:
                if form:
                    c.set_types(["int4", "text"])
                for row in rows:
                    c.write_row(row)
            count(cur, 1000)
            with cur.copy("copy of_python to stdout") as c:
                same("rows copied out", "".join(bytes(block).decode() for block in c), lines)
            conn.rollback()
    else:
        cur.copy_expert("copy of_python from stdin", io.StringIO(lines))
        out = io.StringIO()
        cur.copy_expert("copy of_python to stdout", out)
        same("rows copied out", out.getvalue(), lines)
        conn.rollback()
    count(cur, 0)
    conn.rollback()


def failures(conn, cur):
    table(conn, cur, "id int primary key")
    conn.autocommit = True
    cur.execute("insert into of_python values (1)")
    fails(cur, "23505", "insert into of_python values (%s)", 1)
    fails(cur, "22012", "select 1 / %s", 0)
    fails(cur, "42P01", "select * from no_such_table")
    fails(cur, "42601", "selec 1")
    count(cur, 1)


def notifications(conn, cur):
    conn.autocommit = True
    got = []
    if new:
        conn.add_notify_handler(got.append)
    cur.execute("listen of_python")
    cur.execute("notify of_python, 'a payload'")
    while not (got or not new and conn.notifies):
        cur.execute("select 1")
    same("payload", (got or conn.notifies)[0].payload, "a payload")


def cancelled(conn, cur):
    """Cancels a statement from another thread, until it ends."""
    ended = threading.Event()

    def cancel():
        while not ended.wait(0.1):
            conn.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        fails(cur, "57014", "select pg_sleep(600)")
    finally:
        ended.set()
        canceller.join()


certified = dict(sslcert=certs + "/client-certified.crt", sslkey=certs + "/client-certified.key")
print(f"     {driver.__name__} {driver.__version__}")
check("SCRAM in the clear", login, clear("plain"), False)
check("SCRAM over TLS without channel binding", login, encrypted("secured", channel_binding="disable"), True)
check("SCRAM with channel binding", login, encrypted("secured", channel_binding="require"), True)
check("client certificate", login, encrypted("certified", **certified), True)
check("wrong password", refused, clear("plain", password="wrong"), 'password authentication failed for user "plain"')
check("wrong password with channel binding", refused, encrypted("secured", password="wrong", channel_binding="require"),
      'password authentication failed for user "secured"')
check("no TLS where it is demanded", refused, clear("secured"), "no encryption")
check("channel binding without TLS", refused, clear("plain", channel_binding="require"), "channel binding")
check("no client certificate", refused, encrypted("certified"), "connection requires a valid client certificate")
check("the server's name is wrong", refused, encrypted("secured", host="127.0.0.1"), "127.0.0.1")
check("the server's authority is wrong", refused, encrypted("secured", sslrootcert=os.environ["DRIVERS_OTHER"] + "/ca.crt"), "certificate verify failed")
check("types", session, types)
check("prepared statements", session, prepared)
check("transactions", session, transactions)
check("copy", session, copy)
check("errors", session, failures)
check("notifications", session, notifications)
check("cancel", session, cancelled)
