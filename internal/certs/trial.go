package certs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/percodb/percodb/internal/tlsfiles"
)

// Loopback are the names of this machine alone.
var Loopback = []string{"localhost", "127.0.0.1", "::1"}

// Trial describes the certificates of a server or a cluster for a trial, all of one authority.
type Trial struct {
	Hosts []string // names and addresses of the servers
	Users []string // roles of the database that have client certificates
}

// trialAuthority is the file name of the authority, without its extension.
const trialAuthority = "ca"

// ExistsError: a file that would be written exists.
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string { return e.Path + " exists, and nothing was overwritten" }

// WriteTrial writes the certificates NAME.crt with their keys NAME.key, and RulesFile, into dir, which is created if it is missing. It
// returns *ExistsError, and writes nothing, if one of the files exists.
func WriteTrial(dir string, t Trial) error {
	authority, err := NewAuthority("percodb trial authority")
	if err != nil {
		return err
	}
	names, pairs := []string{trialAuthority}, []Pair{authority.Pair()}
	issue := func(file string, req Request) {
		pair, issueErr := authority.Issue(req)
		err = errors.Join(err, issueErr)
		names, pairs = append(names, file), append(pairs, pair)
	}
	issue("server", Request{Name: t.Hosts[0], Hosts: t.Hosts})
	for _, user := range t.Users {
		if user == "" || strings.ContainsAny(user, "/\x00") {
			return fmt.Errorf("%q cannot be part of a file's name", user)
		}
		issue(clientFile(user), Request{Name: user})
	}
	for _, role := range []Role{TSO, KV, SQL, Operator} {
		issue(string(role), Request{Name: role.String(), Hosts: t.Hosts, Role: role})
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var files []file
	for i, name := range names {
		files = append(files, file{certPath(dir, name), pairs[i].Cert}, file{keyPath(dir, name), pairs[i].Key})
	}
	return writeAll(append(files, file{RulesFile(dir), []byte(trialRules)}))
}

// trialRules let clients in who show a certificate.
const trialRules = `# TYPE    DATABASE  USER  ADDRESS  METHOD
local     all       all            trust
hostssl   all       all   all      cert
`

// file is one that WriteTrial writes.
type file struct {
	path string
	text []byte
}

func writeAll(files []file) error {
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return &ExistsError{Path: f.path}
		}
	}
	for _, f := range files {
		if err := writeNew(f.path, f.text); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that does not exist.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return &ExistsError{Path: path}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func certPath(dir, name string) string { return filepath.Join(dir, name+".crt") }
func keyPath(dir, name string) string  { return filepath.Join(dir, name+".key") }

func clientFile(user string) string { return "client-" + user }

func trialFiles(dir, name string) tlsfiles.Files {
	return tlsfiles.Files{Cert: certPath(dir, name), Key: keyPath(dir, name), CA: certPath(dir, trialAuthority)}
}

// ProcessFiles returns the paths of a process of the cluster, as WriteTrial wrote them.
func ProcessFiles(dir string, role Role) tlsfiles.Files { return trialFiles(dir, string(role)) }

// RulesFile returns the path of rules, in the form of pg_hba.conf, by which clients need a certificate.
func RulesFile(dir string) string { return filepath.Join(dir, "hba.conf") }

// ServerFiles returns the paths of the server of SQL clients.
func ServerFiles(dir string) tlsfiles.Files { return trialFiles(dir, "server") }

// ClientFiles returns the paths of a role of the database.
func ClientFiles(dir, user string) tlsfiles.Files { return trialFiles(dir, clientFile(user)) }
