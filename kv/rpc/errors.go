package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// encodeError makes a message of an error that package kv promises.
func encodeError(err error) *kvpb.Error {
	if e := encodeRoutingError(err); e != nil {
		return e
	}
	if e := encodeProtocolError(err); e != nil {
		return e
	}
	return &kvpb.Error{Kind: &kvpb.Error_Other{Other: err.Error()}}
}

// encodeRoutingError encodes errors of kv and tso.
func encodeRoutingError(err error) *kvpb.Error {
	var (
		stale       *kv.StaleRangeError
		unavailable *kv.UnavailableError
		corruption  *kv.CorruptionError
		lost        *kv.LostRangesError
		replaced    *kv.ShardReplacedError
		diskFull    *kv.DiskFullError
		noTimestamp *tso.UnavailableError
	)
	switch {
	case errors.As(err, &stale):
		return &kvpb.Error{Kind: &kvpb.Error_StaleRange{StaleRange: &kvpb.StaleRange{
			Refs: encodeRefs(stale.Refs), Current: encodeDescriptors(stale.Current)}}}
	case errors.Is(err, kv.ErrClosed):
		return &kvpb.Error{Kind: &kvpb.Error_Closed{Closed: &kvpb.Closed{}}}
	case errors.As(err, &unavailable):
		return &kvpb.Error{Kind: &kvpb.Error_Unavailable{Unavailable: &kvpb.Unavailable{
			Shard: unavailable.Shard, Reason: errorText(unavailable.Err)}}}
	case errors.As(err, &corruption):
		return &kvpb.Error{Kind: &kvpb.Error_Corruption{Corruption: &kvpb.Corruption{
			Key: corruption.Key, Detail: corruption.Detail, Cause: errorText(corruption.Err)}}}
	case errors.As(err, &lost):
		return &kvpb.Error{Kind: &kvpb.Error_LostRanges{LostRanges: &kvpb.LostRanges{
			Shard: lost.Shard, Lost: encodeDescriptors(lost.Lost)}}}
	case errors.As(err, &replaced):
		return &kvpb.Error{Kind: &kvpb.Error_ShardReplaced{ShardReplaced: &kvpb.ShardReplaced{Shard: replaced.Shard, Addr: replaced.Addr}}}
	case errors.As(err, &diskFull):
		return &kvpb.Error{Kind: &kvpb.Error_DiskFull{DiskFull: &kvpb.DiskFull{Shard: diskFull.Shard}}}
	case errors.As(err, &noTimestamp):
		return &kvpb.Error{Kind: &kvpb.Error_OracleUnavailable{OracleUnavailable: &kvpb.OracleUnavailable{
			Reason: errorText(noTimestamp.Err)}}}
	case errors.Is(err, tso.ErrClosed):
		return &kvpb.Error{Kind: &kvpb.Error_OracleClosed{OracleClosed: &kvpb.OracleClosed{}}}
	}
	return nil
}

// encodeProtocolError encodes errors of kv/mvcc.
func encodeProtocolError(err error) *kvpb.Error {
	var (
		locked     *mvcc.KeyLockedError
		conflict   *mvcc.WriteConflictError
		exists     *mvcc.KeyExistsError
		committed  *mvcc.AlreadyCommittedError
		rolledBack *mvcc.RolledBackError
		missing    *mvcc.LockNotFoundError
		expired    *mvcc.CommitTSExpiredError
		unknown    *mvcc.TxnNotFoundError
		mismatch   *mvcc.PrimaryMismatchError
		tooOld     *mvcc.TooOldError
		future     *mvcc.TSInFutureError
		invalid    *mvcc.InvalidRequestError
		lost       *mvcc.LockLostError
		changed    *mvcc.RefreshConflictError
		deadlock   *mvcc.DeadlockError
	)
	switch {
	case errors.As(err, &locked):
		return &kvpb.Error{Kind: &kvpb.Error_KeyLocked{KeyLocked: encodeLocked(locked)}}
	case errors.As(err, &conflict):
		return &kvpb.Error{Kind: &kvpb.Error_WriteConflict{WriteConflict: &kvpb.WriteConflict{
			Key: conflict.Key, StartTs: uint64(conflict.StartTS),
			ConflictingStartTs: uint64(conflict.ConflictingStartTS), ConflictingCommitTs: uint64(conflict.ConflictingCommitTS)}}}
	case errors.As(err, &exists):
		return &kvpb.Error{Kind: &kvpb.Error_KeyExists{KeyExists: &kvpb.KeyExists{Key: exists.Key}}}
	case errors.As(err, &committed):
		return &kvpb.Error{Kind: &kvpb.Error_AlreadyCommitted{AlreadyCommitted: &kvpb.AlreadyCommitted{CommitTs: uint64(committed.CommitTS)}}}
	case errors.As(err, &rolledBack):
		return &kvpb.Error{Kind: &kvpb.Error_RolledBack{RolledBack: &kvpb.RolledBack{StartTs: uint64(rolledBack.StartTS)}}}
	case errors.As(err, &missing):
		return &kvpb.Error{Kind: &kvpb.Error_LockNotFound{LockNotFound: &kvpb.LockNotFound{
			Key: missing.Key, StartTs: uint64(missing.StartTS)}}}
	case errors.As(err, &expired):
		return &kvpb.Error{Kind: &kvpb.Error_CommitTsExpired{CommitTsExpired: &kvpb.CommitTSExpired{MinCommitTs: uint64(expired.MinCommitTS)}}}
	case errors.As(err, &unknown):
		return &kvpb.Error{Kind: &kvpb.Error_TxnNotFound{TxnNotFound: &kvpb.TxnNotFound{StartTs: uint64(unknown.StartTS)}}}
	case errors.As(err, &mismatch):
		return &kvpb.Error{Kind: &kvpb.Error_PrimaryMismatch{PrimaryMismatch: &kvpb.KeyLocked{
			Key: mismatch.Key, Lock: encodeLock(&mismatch.Lock)}}}
	case errors.As(err, &tooOld):
		return &kvpb.Error{Kind: &kvpb.Error_TooOld{TooOld: &kvpb.TooOld{
			Ts: uint64(tooOld.TS), SafePoint: uint64(tooOld.SafePoint)}}}
	case errors.As(err, &future):
		return &kvpb.Error{Kind: &kvpb.Error_TsInFuture{TsInFuture: &kvpb.TSInFuture{Ts: uint64(future.TS)}}}
	case errors.As(err, &invalid):
		return &kvpb.Error{Kind: &kvpb.Error_InvalidRequest{InvalidRequest: &kvpb.InvalidRequest{Detail: invalid.Detail}}}
	case errors.As(err, &lost):
		return &kvpb.Error{Kind: &kvpb.Error_LockLost{LockLost: &kvpb.LockLost{
			Key: lost.Key, StartTs: uint64(lost.StartTS), LockedAt: uint64(lost.LockedAt)}}}
	case errors.As(err, &changed):
		return &kvpb.Error{Kind: &kvpb.Error_RefreshConflict{RefreshConflict: &kvpb.RefreshConflict{
			Key: changed.Key, StartTs: uint64(changed.StartTS), CommitTs: uint64(changed.CommitTS)}}}
	case errors.As(err, &deadlock):
		return &kvpb.Error{Kind: &kvpb.Error_Deadlock{Deadlock: &kvpb.Deadlock{Key: deadlock.Key,
			Waiter: uint64(deadlock.Waiter), Holder: uint64(deadlock.Holder), Cycle: encodeTimestamps(deadlock.Cycle)}}}
	}
	return nil
}

// decodeError turns a message back into the error it was made of; nil stays nil.
func decodeError(e *kvpb.Error) error {
	if e == nil {
		return nil
	}
	switch k := e.Kind.(type) {
	case *kvpb.Error_StaleRange:
		return &kv.StaleRangeError{Refs: decodeRefs(k.StaleRange.Refs), Current: decodeDescriptors(k.StaleRange.Current)}
	case *kvpb.Error_Closed:
		return kv.ErrClosed
	case *kvpb.Error_Unavailable:
		return &kv.UnavailableError{Shard: k.Unavailable.Shard, Err: textError(k.Unavailable.Reason)}
	case *kvpb.Error_Corruption:
		return &kv.CorruptionError{Key: k.Corruption.Key, Detail: k.Corruption.Detail, Err: textError(k.Corruption.Cause)}
	case *kvpb.Error_LostRanges:
		return &kv.LostRangesError{Shard: k.LostRanges.Shard, Lost: decodeDescriptors(k.LostRanges.Lost)}
	case *kvpb.Error_ShardReplaced:
		return &kv.ShardReplacedError{Shard: k.ShardReplaced.Shard, Addr: k.ShardReplaced.Addr}
	case *kvpb.Error_DiskFull:
		return &kv.DiskFullError{Shard: k.DiskFull.Shard}
	case *kvpb.Error_OracleUnavailable:
		return &tso.UnavailableError{Err: textError(k.OracleUnavailable.Reason)}
	case *kvpb.Error_OracleClosed:
		return tso.ErrClosed
	case *kvpb.Error_Other:
		return errors.New(k.Other)
	}
	return decodeProtocolError(e)
}

func decodeProtocolError(e *kvpb.Error) error {
	switch k := e.Kind.(type) {
	case *kvpb.Error_KeyLocked:
		locked := decodeLocked(k.KeyLocked)
		return &locked
	case *kvpb.Error_WriteConflict:
		return &mvcc.WriteConflictError{Key: k.WriteConflict.Key, StartTS: tso.Timestamp(k.WriteConflict.StartTs),
			ConflictingStartTS:  tso.Timestamp(k.WriteConflict.ConflictingStartTs),
			ConflictingCommitTS: tso.Timestamp(k.WriteConflict.ConflictingCommitTs)}
	case *kvpb.Error_KeyExists:
		return &mvcc.KeyExistsError{Key: k.KeyExists.Key}
	case *kvpb.Error_AlreadyCommitted:
		return &mvcc.AlreadyCommittedError{CommitTS: tso.Timestamp(k.AlreadyCommitted.CommitTs)}
	case *kvpb.Error_RolledBack:
		return &mvcc.RolledBackError{StartTS: tso.Timestamp(k.RolledBack.StartTs)}
	case *kvpb.Error_LockNotFound:
		return &mvcc.LockNotFoundError{Key: k.LockNotFound.Key, StartTS: tso.Timestamp(k.LockNotFound.StartTs)}
	case *kvpb.Error_CommitTsExpired:
		return &mvcc.CommitTSExpiredError{MinCommitTS: tso.Timestamp(k.CommitTsExpired.MinCommitTs)}
	case *kvpb.Error_TxnNotFound:
		return &mvcc.TxnNotFoundError{StartTS: tso.Timestamp(k.TxnNotFound.StartTs)}
	case *kvpb.Error_PrimaryMismatch:
		locked := decodeLocked(k.PrimaryMismatch)
		return &mvcc.PrimaryMismatchError{Key: locked.Key, Lock: locked.Lock}
	case *kvpb.Error_TooOld:
		return &mvcc.TooOldError{TS: tso.Timestamp(k.TooOld.Ts), SafePoint: tso.Timestamp(k.TooOld.SafePoint)}
	case *kvpb.Error_TsInFuture:
		return &mvcc.TSInFutureError{TS: tso.Timestamp(k.TsInFuture.Ts)}
	case *kvpb.Error_InvalidRequest:
		return &mvcc.InvalidRequestError{Detail: k.InvalidRequest.Detail}
	case *kvpb.Error_LockLost:
		return &mvcc.LockLostError{Key: k.LockLost.Key, StartTS: tso.Timestamp(k.LockLost.StartTs),
			LockedAt: tso.Timestamp(k.LockLost.LockedAt)}
	case *kvpb.Error_RefreshConflict:
		return &mvcc.RefreshConflictError{Key: k.RefreshConflict.Key, StartTS: tso.Timestamp(k.RefreshConflict.StartTs),
			CommitTS: tso.Timestamp(k.RefreshConflict.CommitTs)}
	case *kvpb.Error_Deadlock:
		return &mvcc.DeadlockError{Key: k.Deadlock.Key, Waiter: tso.Timestamp(k.Deadlock.Waiter),
			Holder: tso.Timestamp(k.Deadlock.Holder), Cycle: decodeTimestamps(k.Deadlock.Cycle)}
	}
	return errors.New("kv/rpc: an error of a kind that this version does not know")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func textError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// serve runs a request and puts its error where the client looks for it. If the caller has gone, so
// may the answer.
func serve[T any](ctx context.Context, err error, res T, fail func(*kvpb.Error) T) (T, error) {
	if err == nil {
		return res, nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		var zero T
		return zero, status.FromContextError(ctxErr).Err()
	}
	return fail(encodeError(err)), nil
}

// transportError names what kept an answer from coming. ctx is the caller's, bounded the request's,
// which may end earlier.
func transportError(ctx, bounded context.Context, shard string, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	code := status.Code(err)
	if deadline, ok := ctx.Deadline(); ok && code == codes.DeadlineExceeded {
		// The other side's clock may be a little ahead of the caller's timer.
		if ends, _ := bounded.Deadline(); !ends.Before(deadline) {
			return context.DeadlineExceeded
		}
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Unknown, codes.Internal:
		return &kv.UnavailableError{Shard: shard, Err: err, NotSent: tsorpc.NotSent(err)}
	}
	return err
}
