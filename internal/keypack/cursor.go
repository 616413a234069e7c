package keypack

import "bytes"

// Cursor walks over a map in either direction. A change of the map makes it invalid until the next seek. Key is
// valid until the next move. One goroutine's.
type Cursor struct {
	m     *Map
	at    *block
	recs  []record
	arena []byte
	i     int
	atB   uint64 // records of blocks without a B at or above are passed over
}

// NewCursor returns a cursor that stands nowhere.
func (m *Map) NewCursor() *Cursor { return &Cursor{m: m} }

// Valid reports whether the cursor stands on a record.
func (c *Cursor) Valid() bool { return c.at != nil && c.i >= 0 && c.i < len(c.recs) }

// Key is that of the present record.
func (c *Cursor) Key() []byte { return c.recs[c.i].key }

// Value is that of the present record.
func (c *Cursor) Value() Value { return c.recs[c.i].Value }

// SeekGE moves to the first record at or above key.
func (c *Cursor) SeekGE(key []byte) bool {
	if c.at = nil; c.m.blocks == nil {
		return false
	}
	c.load(c.m.blockOf(key))
	c.i, _ = search(c.recs, key)
	return c.forward()
}

// SeekLT moves to the last record below key; an empty key is no bound.
func (c *Cursor) SeekLT(key []byte) bool {
	if c.at = nil; c.m.blocks == nil {
		return false
	}
	if len(key) == 0 {
		last, _ := c.m.blocks.Max()
		c.load(last)
		c.i = len(c.recs)
	} else {
		c.load(c.m.blockOf(key))
		c.i, _ = search(c.recs, key)
	}
	c.i--
	return c.backward()
}

// Next moves to the following record.
func (c *Cursor) Next() bool {
	c.i++
	return c.forward()
}

// Prev moves to the preceding record.
func (c *Cursor) Prev() bool {
	c.i--
	return c.backward()
}

// forward moves to the next block while there are no more records in this one.
func (c *Cursor) forward() bool {
	for c.at != nil && c.i >= len(c.recs) {
		c.load(c.m.nextBlock(c.at))
		c.i = 0
	}
	return c.at != nil
}

// backward moves to the block before while there are no more records in this one.
func (c *Cursor) backward() bool {
	for c.at != nil && c.i < 0 {
		c.load(c.m.prevBlock(c.at))
		c.i = len(c.recs) - 1
	}
	return c.at != nil
}

// load reads a block, nil being the end.
func (c *Cursor) load(b *block) {
	c.at, c.recs = b, c.recs[:0]
	switch {
	case b == nil:
	case b == c.m.open.block:
		c.recs = append(c.recs, c.m.open.recs...)
	case b.maxB < c.atB:
	default:
		c.recs, c.arena = b.decode(c.recs, c.arena[:0])
	}
}

// KeysFrom returns copies of up to limit keys at or above start, in order, whose B is at or above least. Blocks without
// such keys cost next to nothing.
func (m *Map) KeysFrom(start []byte, least uint64, limit int) [][]byte {
	var keys [][]byte
	c := Cursor{m: m, atB: least}
	for ok := c.SeekGE(start); ok && len(keys) < limit; ok = c.Next() {
		if c.Value().B >= least {
			keys = append(keys, bytes.Clone(c.Key()))
		}
	}
	return keys
}
