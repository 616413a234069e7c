package node

import (
	"context"
	"sync"
	"time"

	"github.com/percodb/percodb/readlease"
	"github.com/percodb/percodb/tso"
)

// lateLeases is an authority of leases that is created when it is first used, because its oracle may be on hold before.
type lateLeases struct {
	opts readlease.Options

	mu        sync.Mutex
	authority *readlease.Authority
}

var _ readlease.Service = (*lateLeases)(nil)

func (l *lateLeases) get(ctx context.Context) (*readlease.Authority, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.authority == nil {
		authority, err := readlease.New(ctx, l.opts)
		if err != nil {
			return nil, err
		}
		l.authority = authority
	}
	return l.authority, nil
}

// Renew implements readlease.Service.
func (l *lateLeases) Renew(ctx context.Context, id string, epoch uint64, wait time.Duration) (readlease.Grant, error) {
	a, err := l.get(ctx)
	if err != nil {
		return readlease.Grant{}, err
	}
	return a.Renew(ctx, id, epoch, wait)
}

// Hold implements readlease.Service.
func (l *lateLeases) Hold(ctx context.Context, owner string) (until tso.Timestamp, err error) {
	a, err := l.get(ctx)
	if err != nil {
		return 0, err
	}
	return a.Hold(ctx, owner)
}

// Release implements readlease.Service.
func (l *lateLeases) Release(ctx context.Context, owner string) error {
	a, err := l.get(ctx)
	if err != nil {
		return err
	}
	return a.Release(ctx, owner)
}
