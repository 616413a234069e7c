package memory

// An Account draws from its pool in chunks, so that Grow is an addition and a comparison. chunkBytes is
// the smallest; an account that holds much draws an eighth of that at once.
const chunkBytes = 64 << 10

// Account counts the memory of one statement, transaction or connection. The zero Account counts and has no limit. Not
// safe for concurrent use.
type Account struct {
	pool *Pool
	// allowance is the size up to which the account reserves nothing from the pool, because it is accounted for
	// elsewhere.
	allowance int64
	used      int64
	drawn     int64 // from the pool
}

// NewAccount makes an account over p that draws beyond its allowance only. p may be nil.
func NewAccount(p *Pool, allowance int64) Account { return Account{pool: p, allowance: allowance} }

// Sibling returns an empty account over the same pool; a may be nil.
func (a *Account) Sibling() Account {
	if a == nil {
		return Account{}
	}
	return Account{pool: a.pool}
}

// Grow adds n bytes; the error is an *ExceededError.
func (a *Account) Grow(n int64) error {
	if used := a.used + n; used <= a.drawn+a.allowance {
		a.used = used
		return nil
	}
	return a.draw(n)
}

// draw is Grow if another chunk is needed. If the pool has no whole chunk left, it reserves exactly what is needed.
func (a *Account) draw(n int64) error {
	if a.pool != nil {
		need := a.used + n - a.drawn - a.allowance
		chunk := max(need, chunkBytes, a.used/8)
		err := a.pool.Reserve(chunk)
		if err != nil && chunk > need {
			chunk = need
			err = a.pool.Reserve(chunk)
		}
		if err != nil {
			return err
		}
		a.drawn += chunk
	}
	a.used += n
	return nil
}

// Shrink subtracts n bytes. It returns unneeded chunks to the pool, except one.
func (a *Account) Shrink(n int64) {
	a.used -= n
	if spare := a.drawn + a.allowance - a.used; spare > 2*chunkBytes+a.used/4 && a.drawn > 0 {
		back := min(spare-chunkBytes, a.drawn)
		a.drawn -= back
		a.pool.Release(back)
	}
}

// Resize changes a part of the account from old bytes to size bytes.
func (a *Account) Resize(old, size int64) error {
	if size <= old {
		a.Shrink(old - size)
		return nil
	}
	return a.Grow(size - old)
}

// PoolLimit is the most that the account's pool may hold; 0 where there is none.
func (a *Account) PoolLimit() int64 {
	if a == nil {
		return 0
	}
	return a.pool.Limit()
}

// Scarce reports whether the account's pool, or one above, is nearly exhausted: owners that can work with less memory
// should.
func (a *Account) Scarce() bool {
	if a == nil {
		return false
	}
	for p := a.pool; p != nil; p = p.parent {
		if p.used.Load() > p.limit/8*7 {
			return true
		}
	}
	return false
}

// Used is the sum of what was added and not subtracted.
func (a *Account) Used() int64 { return a.used }

// Close returns all to the pool. The account is empty then, and may be used again.
func (a *Account) Close() {
	if a.drawn > 0 {
		a.pool.Release(a.drawn)
	}
	a.used, a.drawn = 0, 0
}
