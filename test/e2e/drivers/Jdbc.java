import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;

/**
 * Connects to a server of test/e2e/drivers.sh as an application with pgJDBC does: in every way in which a client logs in, and with a
 * session of types, prepared statements, transactions, COPY, errors, metadata, notifications and cancellation.
 */
public class Jdbc {
    static final String PASSWORD = System.getenv("DRIVERS_PASSWORD");
    static final String PORT = System.getenv("DRIVERS_PORT");
    static final String CERTS = System.getenv("DRIVERS_CERTS");
    static final String OTHER = System.getenv("DRIVERS_OTHER");

    interface Case {
        void run() throws Exception;
    }

    interface Session {
        void run(Connection conn) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        boolean binds = Arrays.stream(new org.postgresql.Driver().getPropertyInfo("jdbc:postgresql:", new Properties()))
                .anyMatch(p -> p.name.equals("channelBinding"));
        System.out.println("     pgJDBC " + org.postgresql.util.DriverInfo.DRIVER_VERSION + (binds ? "" : ", which has no channel binding"));
        check("SCRAM in the clear", () -> login(clear("plain"), false));
        check("SCRAM over TLS", () -> login(encrypted("secured"), true));
        if (binds) {
            check("SCRAM over TLS without channel binding", () -> login(with(encrypted("secured"), "channelBinding", "disable"), true));
            check("SCRAM with channel binding", () -> login(with(encrypted("secured"), "channelBinding", "require"), true));
            check("channel binding without TLS", () -> refused(with(clear("plain"), "channelBinding", "require"), null));
        }
        check("client certificate", () -> login(certified(), true));
        check("wrong password", () -> refused(with(clear("plain"), "password", "wrong"), "28P01"));
        check("wrong password over TLS", () -> refused(with(encrypted("secured"), "password", "wrong"), "28P01"));
        check("no TLS where it is demanded", () -> refused(clear("secured"), "28000"));
        check("no client certificate", () -> refused(encrypted("certified"), "28000"));
        check("the server's name is wrong", () -> refused(with(encrypted("secured"), "PGHOST", "127.0.0.1"), "08006"));
        check("the server's authority is wrong", () -> refused(with(encrypted("secured"), "sslrootcert", OTHER + "/ca.crt"), "08006"));
        for (String mode : new String[] {"simple", "extended"}) {
            check("types, " + mode, () -> session(mode, Jdbc::types));
        }
        check("prepared statements", () -> session("extended", Jdbc::prepared));
        check("transactions", () -> session("extended", Jdbc::transactions));
        check("copy", () -> session("extended", Jdbc::copy));
        check("errors", () -> session("extended", Jdbc::failures));
        check("metadata", () -> session("extended", Jdbc::metadata));
        check("metadata of schemas", () -> session("extended", Jdbc::catalogs));
        check("notifications", () -> session("extended", Jdbc::notifications));
        check("cancel", () -> session("extended", Jdbc::cancelled));
    }

    static void check(String name, Case c) {
        try {
            c.run();
        } catch (Exception | AssertionError e) {
            System.out.println("FAIL pgJDBC: " + name + ": " + e);
            e.printStackTrace(System.out);
            System.exit(1);
        }
        System.out.println("ok   pgJDBC: " + name);
    }

    static Properties with(Properties p, String name, String value) {
        p.setProperty(name, value);
        return p;
    }

    static Properties clear(String user) {
        Properties p = new Properties();
        p.setProperty("user", user);
        p.setProperty("password", PASSWORD);
        p.setProperty("sslmode", "disable");
        return p;
    }

    static Properties encrypted(String user) {
        return with(with(clear(user), "sslmode", "verify-full"), "sslrootcert", CERTS + "/ca.crt");
    }

    /** The driver reads keys in DER. */
    static Properties certified() throws IOException {
        String pem = Files.readString(Path.of(CERTS, "client-certified.key")).replaceAll("-----[^-]*-----", "");
        Path der = Path.of(CERTS, "client-certified.pk8");
        Files.write(der, Base64.getMimeDecoder().decode(pem));
        return with(with(encrypted("certified"), "sslcert", CERTS + "/client-certified.crt"), "sslkey", der.toString());
    }

    static Connection connect(Properties p) throws SQLException {
        Properties rest = (Properties) p.clone();
        String host = Objects.requireNonNullElse((String) rest.remove("PGHOST"), "localhost");
        rest.setProperty("loginTimeout", "60");
        rest.setProperty("socketTimeout", "60");
        return DriverManager.getConnection("jdbc:postgresql://" + host + ":" + PORT + "/percodb", rest);
    }

    static void login(Properties p, boolean tls) throws SQLException {
        try (Connection conn = connect(p); Statement st = conn.createStatement();
                ResultSet rs = st.executeQuery("select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()")) {
            rs.next();
            same("user", rs.getString(1), p.getProperty("user"));
            same("TLS", rs.getBoolean(2), tls);
        }
    }

    /** Connects in vain. state is the SQLSTATE: the server's, or the driver's 08006; null for any of the driver. */
    static void refused(Properties p, String state) throws SQLException {
        try (Connection conn = connect(p)) {
            throw new AssertionError("the client is let in");
        } catch (SQLException e) {
            if (state != null && !state.equals(e.getSQLState())) {
                throw e;
            }
        }
    }

    static void session(String mode, Session s) throws Exception {
        try (Connection conn = connect(with(encrypted("secured"), "preferQueryMode", mode))) {
            s.run(conn);
        }
    }

    static void same(String what, Object got, Object want) {
        if (!Objects.deepEquals(got, want)) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    interface Get {
        Object from(ResultSet rs) throws SQLException;
    }

    static void roundTrip(Connection conn, String type, Object sent, Get get) throws SQLException {
        try (PreparedStatement st = conn.prepareStatement("select ?::" + type)) {
            st.setObject(1, sent);
            for (int i = 0; i < 7; i++) { // From the fifth on the statement has a name, and binary results.
                try (ResultSet rs = st.executeQuery()) {
                    rs.next();
                    same(type, get.from(rs), sent);
                }
            }
        }
    }

    static void types(Connection conn) throws SQLException {
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }
        roundTrip(conn, "int2", -32768, rs -> rs.getInt(1));
        roundTrip(conn, "int4", Integer.MAX_VALUE, rs -> rs.getInt(1));
        roundTrip(conn, "int8", Long.MIN_VALUE, rs -> rs.getLong(1));
        roundTrip(conn, "float8", 1.0000000000000002, rs -> rs.getDouble(1));
        roundTrip(conn, "bool", true, rs -> rs.getBoolean(1));
        roundTrip(conn, "text", "it's\ta \"text\" \\ with Ünïcode 🙂?\n", rs -> rs.getString(1));
        roundTrip(conn, "text", null, rs -> rs.getString(1));
        roundTrip(conn, "numeric", new BigDecimal("-12345678901234567890.123456789"), rs -> rs.getBigDecimal(1));
        roundTrip(conn, "bytea", all, rs -> rs.getBytes(1));
        roundTrip(conn, "uuid", UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), rs -> rs.getObject(1));
        roundTrip(conn, "timestamptz", OffsetDateTime.parse("2026-02-28T23:59:59.123456Z"), rs -> rs.getObject(1, OffsetDateTime.class));
        roundTrip(conn, "date", LocalDate.parse("1999-12-31"), rs -> rs.getObject(1, LocalDate.class));
        for (Object[] c : new Object[][] {{"int4", new Integer[] {1, null, -3}}, {"text", new String[] {"a \"quoted\", {text} \\", null, ""}}}) {
            Array sent = conn.createArrayOf((String) c[0], (Object[]) c[1]);
            try (PreparedStatement st = conn.prepareStatement("select ?::" + c[0] + "[]")) {
                st.setArray(1, sent);
                for (int i = 0; i < 7; i++) {
                    try (ResultSet rs = st.executeQuery()) {
                        rs.next();
                        same(c[0] + "[]", rs.getArray(1).getArray(), c[1]);
                    }
                }
            }
        }
    }

    static void table(Connection conn, String columns) throws SQLException {
        try (Statement st = conn.createStatement()) {
            st.execute("drop table if exists of_jdbc");
            st.execute("create table of_jdbc (" + columns + ")");
        }
    }

    static void count(Connection conn, int want) throws SQLException {
        try (Statement st = conn.createStatement(); ResultSet rs = st.executeQuery("select count(*) from of_jdbc")) {
            rs.next();
            same("rows", rs.getInt(1), want);
        }
    }

    static void prepared(Connection conn) throws SQLException {
        table(conn, "id serial primary key, name text");
        int first;
        try (PreparedStatement st = conn.prepareStatement("insert into of_jdbc (name) values (?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 1; i <= 1000; i++) {
                st.setString(1, "name " + i);
                st.addBatch();
            }
            same("batch", Arrays.stream(st.executeBatch()).sum(), 1000);
            List<Integer> keys = ints(st.getGeneratedKeys());
            same("keys", keys.size(), 1000);
            same("keys", keys, ints(conn.createStatement().executeQuery("select id from of_jdbc order by substr(name, 6)::int")));
            first = keys.get(0);
        }
        conn.setAutoCommit(false); // A portal is read in parts within a transaction.
        try (PreparedStatement st = conn.prepareStatement("select id, name from of_jdbc where id > ? order by id")) {
            st.setFetchSize(100);
            st.setInt(1, first);
            try (ResultSet rs = st.executeQuery()) {
                int n = 1;
                while (rs.next()) {
                    same("name", rs.getString("name"), "name " + ++n);
                }
                same("last", n, 1000);
            }
        }
        conn.commit();
    }

    static List<Integer> ints(ResultSet rs) throws SQLException {
        List<Integer> all = new ArrayList<>();
        while (rs.next()) {
            all.add(rs.getInt(1));
        }
        return all;
    }

    static void transactions(Connection conn) throws SQLException {
        table(conn, "id int primary key");
        conn.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        conn.setAutoCommit(false);
        try (Statement st = conn.createStatement()) {
            st.executeUpdate("insert into of_jdbc values (1)");
            count(conn, 1);
            conn.rollback();
            count(conn, 0);
            st.executeUpdate("insert into of_jdbc values (2)");
            Savepoint savepoint = conn.setSavepoint("s");
            fails(st, "23505", "insert into of_jdbc values (2)");
            fails(st, "25P02", "select 1");
            conn.rollback(savepoint);
            st.executeUpdate("insert into of_jdbc values (3)");
            conn.commit();
            count(conn, 2);
            conn.rollback();
        }
        conn.setReadOnly(true);
        try (Statement st = conn.createStatement()) {
            fails(st, "25006", "delete from of_jdbc");
        }
        conn.rollback();
    }

    static void copy(Connection conn) throws Exception {
        table(conn, "id int primary key, name text");
        StringBuilder rows = new StringBuilder();
        for (int i = 0; i < 1000; i++) {
            rows.append(i).append("\tname ").append(i).append('\n');
        }
        var api = conn.unwrap(PGConnection.class).getCopyAPI();
        same("rows copied in", api.copyIn("copy of_jdbc from stdin", new ByteArrayInputStream(rows.toString().getBytes(StandardCharsets.UTF_8))), 1000L);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        same("rows copied out", api.copyOut("copy (select * from of_jdbc order by id) to stdout", out), 1000L);
        same("rows", out.toString(StandardCharsets.UTF_8), rows.toString());
        try {
            api.copyIn("copy of_jdbc from stdin", new ByteArrayInputStream("1\tone\n".getBytes(StandardCharsets.UTF_8)));
            throw new AssertionError("a key was copied twice");
        } catch (SQLException e) {
            same("SQLSTATE", e.getSQLState(), "23505");
        }
        count(conn, 1000);
    }

    static void fails(Statement st, String state, String sql) {
        try {
            st.execute(sql);
        } catch (SQLException e) {
            same(sql, e.getSQLState(), state);
            return;
        }
        throw new AssertionError(sql + " does not fail");
    }

    static void failures(Connection conn) throws SQLException {
        table(conn, "id int primary key");
        try (Statement st = conn.createStatement()) {
            st.executeUpdate("insert into of_jdbc values (1)");
            fails(st, "23505", "insert into of_jdbc values (1)");
            fails(st, "22012", "select 1 / 0");
            fails(st, "42P01", "select * from no_such_table");
            fails(st, "42601", "selec 1");
            count(conn, 1);
        }
    }

    static void metadata(Connection conn) throws SQLException {
        table(conn, "id int primary key, name text not null, price numeric(10, 2)");
        var meta = conn.getMetaData();
        try (ResultSet rs = meta.getTables(null, "public", "of\\_jdbc", new String[] {"TABLE"})) {
            rs.next();
            same("table", rs.getString("TABLE_NAME"), "of_jdbc");
        }
        try (Statement st = conn.createStatement(); ResultSet rs = st.executeQuery("select * from of_jdbc")) {
            var columns = rs.getMetaData();
            StringBuilder found = new StringBuilder();
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                found.append(columns.getTableName(i)).append('.').append(columns.getColumnName(i)).append(' ').append(columns.getColumnTypeName(i))
                        .append(' ').append(columns.getPrecision(i)).append(' ').append(columns.isNullable(i)).append(';');
            }
            same("columns", found.toString(), "of_jdbc.id int4 10 0;of_jdbc.name text 2147483647 0;of_jdbc.price numeric 10 1;");
        }
    }

    interface Rows {
        ResultSet of(java.sql.DatabaseMetaData md) throws SQLException;
    }

    /** rows reads all rows of metadata, and returns a column of them, sorted. */
    static String rows(Connection conn, String column, Rows rows) throws SQLException {
        try (ResultSet rs = rows.of(conn.getMetaData())) {
            List<String> all = new ArrayList<>();
            while (rs.next()) {
                for (int i = 1; i <= rs.getMetaData().getColumnCount(); i++) {
                    rs.getString(i);
                }
                all.add(rs.getString(column));
            }
            all.sort(null);
            return String.join(" ", all);
        }
    }

    static void catalogs(Connection conn) throws SQLException {
        try (Statement st = conn.createStatement()) {
            st.execute("create schema meta");
            st.execute("create type meta.mood as enum ('calm', 'loud')");
            st.execute("create type meta.pair as (a int, b int)");
            st.execute("create table meta.t (id serial, m meta.mood, b int not null, a int not null unique, primary key (b, a))");
            st.execute("create view meta.v as select id, m from meta.t");
        }
        same("tables", rows(conn, "TABLE_NAME", md -> md.getTables(null, "meta", "%", new String[] {"TABLE", "VIEW"})), "t v");
        same("columns", rows(conn, "COLUMN_NAME", md -> md.getColumns(null, "meta", "t", "%")), "a b id m");
        same("types of columns", rows(conn, "DATA_TYPE", md -> md.getColumns(null, "meta", "t", "%")), "12 4 4 4");
        same("primary key", rows(conn, "COLUMN_NAME", md -> md.getPrimaryKeys(null, "meta", "t")), "a b");
        same("places in the key", rows(conn, "KEY_SEQ", md -> md.getPrimaryKeys(null, "meta", "t")), "1 2");
        same("best identifier", rows(conn, "COLUMN_NAME", md -> md.getBestRowIdentifier(null, "meta", "t", 1, true)).length(), 3);
        same("imported keys", rows(conn, "FKTABLE_NAME", md -> md.getImportedKeys(null, "meta", "t")), "");
        same("exported keys", rows(conn, "FKTABLE_NAME", md -> md.getExportedKeys(null, "meta", "t")), "");
        same("cross reference", rows(conn, "FKTABLE_NAME", md -> md.getCrossReference(null, "meta", "t", null, "meta", "t")), "");
        same("indexes", rows(conn, "INDEX_NAME", md -> md.getIndexInfo(null, "meta", "t", false, true)), "t_a_key t_pkey t_pkey");
        same("schemas", rows(conn, "TABLE_SCHEM", md -> md.getSchemas(null, "met%")), "meta");
        same("composite types", rows(conn, "TYPE_NAME", md -> md.getUDTs(null, "meta", "pair", null)), "pair");
        same("privileges", rows(conn, "PRIVILEGE", md -> md.getTablePrivileges(null, "meta", "v")).contains("SELECT"), true);
        same("privileges on columns", rows(conn, "PRIVILEGE", md -> md.getColumnPrivileges(null, "meta", "t", "a")).contains("SELECT"), true);
        same("functions", rows(conn, "FUNCTION_NAME", md -> md.getFunctions(null, "pg_catalog", "initcap")), "initcap");
        same("parameters", rows(conn, "COLUMN_NAME", md -> md.getFunctionColumns(null, "pg_catalog", "make_date", "%")), "day month returnValue year");
        same("procedures", rows(conn, "PROCEDURE_NAME", md -> md.getProcedures(null, "pg_catalog", "nosuch%")), "");
        same("types", (" " + rows(conn, "TYPE_NAME", md -> md.getTypeInfo()) + " ").contains(" mood "), true);
        same("kinds of tables", rows(conn, "TABLE_TYPE", md -> md.getTableTypes()).contains("VIEW"), true);
        try (Statement st = conn.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            try (ResultSet rs = st.executeQuery("select * from meta.t")) {
                rs.moveToInsertRow();
                rs.updateInt("a", 1);
                rs.updateInt("b", 2);
                rs.insertRow();
                rs.first();
                rs.updateInt("a", 3);
                rs.updateRow();
                same("updated", rs.getInt("a"), 3);
                rs.deleteRow();
            }
            st.execute("drop schema meta cascade");
        }
    }

    static void notifications(Connection conn) throws SQLException {
        try (Statement st = conn.createStatement()) {
            st.execute("listen of_jdbc");
            st.execute("notify of_jdbc, 'a payload'");
        }
        var got = conn.unwrap(PGConnection.class).getNotifications(60_000);
        same("notifications", got.length, 1);
        same("payload", got[0].getParameter(), "a payload");
    }

    /** Cancels a statement from another thread, until it ends. */
    static void cancelled(Connection conn) throws Exception {
        try (Statement st = conn.createStatement()) {
            Throwable[] failure = new Throwable[1];
            Thread runner = new Thread(() -> {
                try {
                    fails(st, "57014", "select pg_sleep(600)");
                } catch (Throwable e) {
                    failure[0] = e;
                }
            });
            runner.start();
            while (runner.isAlive()) {
                conn.unwrap(PGConnection.class).cancelQuery(); // Statement.cancel sends one request only, which may come before the statement.
                runner.join(100);
            }
            same("failure", failure[0], null);
        }
    }
}
