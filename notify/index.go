package notify

import (
	"hash/maphash"
	"slices"
	"sync"
)

// indexParts is the number of locks of an index: senders to different channels rarely share one.
const indexParts = 64

// index finds the receivers of a channel. Safe for concurrent use.
type index[T comparable] struct {
	seed  maphash.Seed
	parts [indexParts]struct {
		sync.RWMutex
		receivers map[string][]T
	}
}

func newIndex[T comparable]() *index[T] {
	x := &index[T]{seed: maphash.MakeSeed()}
	for i := range x.parts {
		x.parts[i].receivers = map[string][]T{}
	}
	return x
}

func (x *index[T]) part(channel string) int {
	return int(maphash.String(x.seed, channel) % indexParts)
}

// add adds a receiver of a channel, once.
func (x *index[T]) add(channel string, r T) {
	p := &x.parts[x.part(channel)]
	p.Lock()
	defer p.Unlock()
	if !slices.Contains(p.receivers[channel], r) {
		p.receivers[channel] = append(p.receivers[channel], r)
	}
}

// remove removes a receiver of a channel, if it is one.
func (x *index[T]) remove(channel string, r T) {
	p := &x.parts[x.part(channel)]
	p.Lock()
	defer p.Unlock()
	list := p.receivers[channel]
	at := slices.Index(list, r)
	switch {
	case at < 0:
	case len(list) == 1:
		delete(p.receivers, channel)
	default: // The order of receivers has no meaning.
		list[at] = list[len(list)-1]
		p.receivers[channel] = slices.Delete(list, len(list)-1, len(list))
	}
}

// each calls f with the receivers of a channel. f must not change the index.
func (x *index[T]) each(channel string, f func(T)) {
	p := &x.parts[x.part(channel)]
	p.RLock()
	defer p.RUnlock()
	for _, r := range p.receivers[channel] {
		f(r)
	}
}

// all calls f with the receivers of all channels, those of several several times. f must not change the index.
func (x *index[T]) all(f func(T)) {
	for i := range x.parts {
		p := &x.parts[i]
		p.RLock()
		for _, list := range p.receivers {
			for _, r := range list {
				f(r)
			}
		}
		p.RUnlock()
	}
}
