package kv

import (
	"context"
	"time"

	"github.com/percodb/percodb/internal/errkind"
)

// register reports the store's ranges to the directory, and adopts the ranges it is given.
func (s *Store) register(ctx context.Context) error {
	for {
		adopt, err := s.opts.Directory.RegisterShard(ctx, s.registration())
		if err != nil {
			return err
		}
		if s.accepted != s.incarnation {
			if err := s.saveIncarnation(s.incarnation); err != nil {
				return err
			}
			s.accepted = s.incarnation
		}
		if len(adopt) == 0 {
			return nil
		}
		for i := range adopt {
			if err := s.adopt(adopt[i]); err != nil {
				return err
			}
		}
	}
}

func (s *Store) requestReport() {
	select {
	case s.report <- struct{}{}:
	default: // one is pending, and will report the newest state
	}
}

// reportLoop reports splits to the directory. The directory may be unavailable: routers learn of splits from the shard
// itself, so nothing waits for this.
func (s *Store) reportLoop() {
	const retry = time.Second
	for {
		select {
		case <-s.stopped.Done():
			return
		case <-s.report:
		}
		err := s.opts.Directory.ReportRanges(s.stopped, s.shardID, s.incarnation, s.ownedRanges())
		if err == nil || s.stopped.Err() != nil {
			continue
		}
		if errkind.Of(err) == errkind.Excluded && s.opts.OnFatal != nil {
			s.opts.OnFatal(err) // two processes must not serve one shard's ranges
			return
		}
		s.opts.Logger.Warn("directory was not told about ranges", "err", err)
		select {
		case <-s.stopped.Done():
			return
		case <-time.After(retry):
			s.requestReport()
		}
	}
}
