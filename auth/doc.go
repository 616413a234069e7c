// Package auth decides whether a client may connect: rules in the form of PostgreSQL's pg_hba.conf, and the server's
// certificates. Package server/pgwire carries the decision out on a connection.
//
//	ParseRules   text → rules, with PostgreSQL's messages and line numbers
//	Match        rules and a connection → the first rule that matches; a pure function
//	Gate         the rules and certificates in force, replaced together by Reload
//
// Invariants:
//
//	A1 A file that cannot be used as a whole is not used at all: what was in force before stays in force.
//	A2 A word that percodb does not support is refused when a file is loaded. No rule is skipped or weakened.
//	A3 No error or log line contains a secret.
package auth
