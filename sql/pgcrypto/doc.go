// Package pgcrypto is what the functions of PostgreSQL's extension pgcrypto compute: digests, password hashes, encryption with a key, and
// OpenPGP messages, by package openpgp. Package builtin declares the functions.
//
// Errors are *pgerror.Error with PostgreSQL's SQLSTATE and message. What takes long because its caller asks for it (Crypt) polls.
package pgcrypto

import "github.com/percodb/percodb/sql/pgerror"

// externalRoutine is the SQLSTATE of most failures.
const externalRoutine pgerror.Code = "39000"

// cannotUse is the error for the name of an algorithm.
func cannotUse(name, why string) error {
	return pgerror.New(pgerror.InvalidParameterValue, "Cannot use \"%s\": %s", name, why)
}
