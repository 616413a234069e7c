package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// encodeError makes a message of an error that package kv promises.
func encodeError(err error) *kvpb.Error {
	kind, typed := errkind.Find(err)
	switch kind {
	case errkind.Closed:
		return &kvpb.Error{Kind: &kvpb.Error_Closed{Closed: &kvpb.Closed{}}}
	case errkind.OracleClosed:
		return &kvpb.Error{Kind: &kvpb.Error_OracleClosed{OracleClosed: &kvpb.OracleClosed{}}}
	}
	if e := encodeRoutingError(typed); e != nil {
		return e
	}
	if e := encodeProtocolError(typed); e != nil {
		return e
	}
	return &kvpb.Error{Kind: &kvpb.Error_Other{Other: err.Error()}}
}

// encodeRoutingError encodes errors of kv and tso.
func encodeRoutingError(err error) *kvpb.Error {
	switch e := err.(type) {
	case *kv.StaleRangeError:
		return &kvpb.Error{Kind: &kvpb.Error_StaleRange{StaleRange: &kvpb.StaleRange{
			Refs: encodeRefs(e.Refs), Current: encodeDescriptors(e.Current)}}}
	case *kv.UnavailableError:
		return &kvpb.Error{Kind: &kvpb.Error_Unavailable{Unavailable: &kvpb.Unavailable{
			Shard: e.Shard, Reason: errorText(e.Err)}}}
	case *kv.CorruptionError:
		return &kvpb.Error{Kind: &kvpb.Error_Corruption{Corruption: &kvpb.Corruption{
			Key: e.Key, Detail: e.Detail, Cause: errorText(e.Err)}}}
	case *kv.LostRangesError:
		return &kvpb.Error{Kind: &kvpb.Error_LostRanges{LostRanges: &kvpb.LostRanges{
			Shard: e.Shard, Lost: encodeDescriptors(e.Lost)}}}
	case *kv.ShardReplacedError:
		return &kvpb.Error{Kind: &kvpb.Error_ShardReplaced{ShardReplaced: &kvpb.ShardReplaced{Shard: e.Shard, Addr: e.Addr}}}
	case *kv.DiskFullError:
		return &kvpb.Error{Kind: &kvpb.Error_DiskFull{DiskFull: &kvpb.DiskFull{Shard: e.Shard}}}
	case *tso.UnavailableError:
		return &kvpb.Error{Kind: &kvpb.Error_OracleUnavailable{OracleUnavailable: &kvpb.OracleUnavailable{
			Reason: errorText(e.Err)}}}
	}
	return nil
}

// encodeProtocolError encodes errors of kv/mvcc.
func encodeProtocolError(err error) *kvpb.Error {
	switch e := err.(type) {
	case *mvcc.KeyLockedError:
		return &kvpb.Error{Kind: &kvpb.Error_KeyLocked{KeyLocked: encodeLocked(e)}}
	case *mvcc.WriteConflictError:
		return &kvpb.Error{Kind: &kvpb.Error_WriteConflict{WriteConflict: &kvpb.WriteConflict{
			Key: e.Key, StartTs: uint64(e.StartTS),
			ConflictingStartTs: uint64(e.ConflictingStartTS), ConflictingCommitTs: uint64(e.ConflictingCommitTS),
			Cause: uint32(e.Cause)}}}
	case *mvcc.KeyExistsError:
		return &kvpb.Error{Kind: &kvpb.Error_KeyExists{KeyExists: &kvpb.KeyExists{Key: e.Key}}}
	case *mvcc.AlreadyCommittedError:
		return &kvpb.Error{Kind: &kvpb.Error_AlreadyCommitted{AlreadyCommitted: &kvpb.AlreadyCommitted{CommitTs: uint64(e.CommitTS)}}}
	case *mvcc.RolledBackError:
		return &kvpb.Error{Kind: &kvpb.Error_RolledBack{RolledBack: &kvpb.RolledBack{StartTs: uint64(e.StartTS)}}}
	case *mvcc.LockNotFoundError:
		return &kvpb.Error{Kind: &kvpb.Error_LockNotFound{LockNotFound: &kvpb.LockNotFound{
			Key: e.Key, StartTs: uint64(e.StartTS)}}}
	case *mvcc.CommitTSExpiredError:
		return &kvpb.Error{Kind: &kvpb.Error_CommitTsExpired{CommitTsExpired: &kvpb.CommitTSExpired{MinCommitTs: uint64(e.MinCommitTS)}}}
	case *mvcc.TxnNotFoundError:
		return &kvpb.Error{Kind: &kvpb.Error_TxnNotFound{TxnNotFound: &kvpb.TxnNotFound{StartTs: uint64(e.StartTS)}}}
	case *mvcc.PrimaryMismatchError:
		return &kvpb.Error{Kind: &kvpb.Error_PrimaryMismatch{PrimaryMismatch: &kvpb.KeyLocked{
			Key: e.Key, Lock: encodeLock(&e.Lock)}}}
	case *mvcc.TooOldError:
		return &kvpb.Error{Kind: &kvpb.Error_TooOld{TooOld: &kvpb.TooOld{
			Ts: uint64(e.TS), SafePoint: uint64(e.SafePoint)}}}
	case *mvcc.TSInFutureError:
		return &kvpb.Error{Kind: &kvpb.Error_TsInFuture{TsInFuture: &kvpb.TSInFuture{Ts: uint64(e.TS)}}}
	case *mvcc.InvalidRequestError:
		return &kvpb.Error{Kind: &kvpb.Error_InvalidRequest{InvalidRequest: &kvpb.InvalidRequest{Detail: e.Detail}}}
	case *mvcc.LockLostError:
		return &kvpb.Error{Kind: &kvpb.Error_LockLost{LockLost: &kvpb.LockLost{
			Key: e.Key, StartTs: uint64(e.StartTS), LockedAt: uint64(e.LockedAt)}}}
	case *mvcc.RefreshConflictError:
		return &kvpb.Error{Kind: &kvpb.Error_RefreshConflict{RefreshConflict: &kvpb.RefreshConflict{
			Key: e.Key, StartTs: uint64(e.StartTS), CommitTs: uint64(e.CommitTS)}}}
	case *mvcc.DeadlockError:
		return &kvpb.Error{Kind: &kvpb.Error_Deadlock{Deadlock: &kvpb.Deadlock{Key: e.Key,
			Waiter: uint64(e.Waiter), Holder: uint64(e.Holder), Cycle: encodeTimestamps(e.Cycle)}}}
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
			ConflictingCommitTS: tso.Timestamp(k.WriteConflict.ConflictingCommitTs),
			Cause:               mvcc.ConflictCause(k.WriteConflict.Cause)}
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

// serve executes a request and stores its error in the response. If the caller has gone, the answer may be lost.
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

// transportError describes why there is no answer. ctx is the caller's, bounded the request's, which may end earlier.
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
