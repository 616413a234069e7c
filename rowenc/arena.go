package rowenc

const (
	arenaFirstBytes = 512
	arenaMaxBytes   = 64 << 10
	// arenaMinBytes is the least space in which a key or a value is started.
	arenaMinBytes = 64
)

// Arena allocates byte slices that are never freed one by one: keys and values that a transaction keeps. Chunks grow
// with use, so one row costs one small allocation and a million rows cost a few hundred.
//
//	b := a.Start()
//	b = append(b, …)
//	b = a.Finish(b)
type Arena struct {
	free []byte // length 0; its capacity is the rest of the chunk
	next int
}

// Start returns an empty slice to append to.
func (a *Arena) Start() []byte {
	if cap(a.free) < arenaMinBytes {
		a.next = min(max(2*a.next, arenaFirstBytes), arenaMaxBytes)
		a.free = make([]byte, 0, a.next)
	}
	return a.free
}

// Finish reserves what was appended to the slice of the last Start. A slice that outgrew the chunk was moved by append
// and stays where it is.
func (a *Arena) Finish(b []byte) []byte {
	b = b[:len(b):len(b)]
	if n := len(b); n > 0 && n <= cap(a.free) && &b[0] == &a.free[:1][0] {
		a.free = a.free[n:n:cap(a.free)]
	}
	return b
}

// Keep copies b.
func (a *Arena) Keep(b []byte) []byte { return a.Finish(append(a.Start(), b...)) }
