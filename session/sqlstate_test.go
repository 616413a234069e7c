package session

import (
	"errors"
	"fmt"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a statement on its own runs again inside the server if its commit has been settled as rolled back, and
// only if that is certain; a block's client is told which of both it was. Method: the errors of
// percolator.Txn.Commit, each with what a session makes of it.
func TestOutcomesOfACommit(t *testing.T) {
	lost := &kv.UnavailableError{Shard: "s1", Err: errors.New("connection lost")}
	for _, tc := range []struct {
		name  string
		err   error
		again bool
		code  pgerror.Code
		text  string
	}{
		{"settled as rolled back", &mvcc.WriteConflictError{StartTS: 16, Cause: mvcc.CauseRolledBack}, true,
			pgerror.SerializationFailure, "the transaction was rolled back because its locks had expired"},
		{"lock lost to another", &mvcc.WriteConflictError{StartTS: 16, Cause: mvcc.CauseLockLost}, true,
			pgerror.SerializationFailure, "a row lock was lost before the end of the transaction"},
		{"another was first", &mvcc.WriteConflictError{StartTS: 16, ConflictingCommitTS: 32}, true,
			pgerror.SerializationFailure, "could not serialize access due to concurrent update"},
		{"too late for the schema", percolator.ErrCommitTooLate, true, "", ""},
		{"outcome unknown", &percolator.UndeterminedError{StartTS: 16, Err: lost}, false,
			pgerror.TxnResolutionUnknown, "the outcome of the transaction is unknown: the answer to its commit was lost"},
		{"outcome unknown behind a lock", &percolator.UndeterminedError{StartTS: 16, Err: fmt.Errorf("gave up: %w", &mvcc.KeyLockedError{})}, false,
			pgerror.TxnResolutionUnknown, ""},
		{"outcome unknown after a conflict", &percolator.UndeterminedError{StartTS: 16, Err: &mvcc.WriteConflictError{StartTS: 16}}, false,
			pgerror.TxnResolutionUnknown, ""},
		{"a store is away", fmt.Errorf("gave up: %w", lost), false, pgerror.ConnectionFailure, "store s1 does not answer"},
		{"the directory is away", &kv.UnavailableError{Shard: "directory", Err: errors.New("connection lost")}, false,
			pgerror.ConnectionFailure, "the directory of ranges is not available"},
		{"Bigtable is away", &kv.UnavailableError{Shard: kv.BigtableShardID, Err: errors.New("connection lost")}, false,
			pgerror.ConnectionFailure, "Bigtable does not answer"},
		{"a quota", &kv.UnavailableError{Shard: kv.BigtableShardID, Err: errors.New("quota"), Quota: true}, false,
			pgerror.ConfigurationLimitExceeded, "a quota of bigtable is used up"},
		{"a large value", &kv.SizeLimitError{Size: 11, Limit: 10}, false, pgerror.ProgramLimitExceeded, "row is too big: size 11, maximum size 10"},
		{"a long key", &kv.SizeLimitError{Index: true, Size: 11, Limit: 10}, false, pgerror.ProgramLimitExceeded, "index row size 11 exceeds maximum 10"},
	} {
		if got := retryable(tc.err); got != tc.again {
			t.Errorf("%s: runs again %v", tc.name, got)
		}
		if tc.code == "" {
			continue
		}
		e := mapError(tc.err)
		c := errorContext{format: &types.Format{}}
		if _, explained := c.conflict(tc.err); explained != nil {
			e = explained
		}
		if e.Code != tc.code || tc.text != "" && e.Message != tc.text {
			t.Errorf("%s: %s %q", tc.name, e.Code, e.Message)
		}
	}
}
