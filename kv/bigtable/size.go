package bigtable

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// sizeLife is how long the size of the table that was read last is reported: it changes slowly, and the request reads one row name for each part
// of a table that Bigtable has divided it into.
const sizeLife = time.Minute

// tableSize is the size of the table as Bigtable has stated it last.
type tableSize struct {
	asking chan struct{} // one token: its holder asks Bigtable
	bytes  int64
	read   time.Time
}

func newTableSize() tableSize {
	s := tableSize{asking: make(chan struct{}, 1)}
	s.asking <- struct{}{}
	return s
}

// size returns the bytes of the table, as Bigtable estimates them, at most sizeLife old. known is false for tables that are not Bigtable's. It
// is one request, SampleRowKeys, whose last answer says where the table ends.
func (c *Client) size(ctx context.Context) (bytes int64, known bool, err error) {
	if c.client == nil {
		return 0, false, nil
	}
	select {
	case <-c.tableSize.asking:
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
	defer func() { c.tableSize.asking <- struct{}{} }()
	if read := c.tableSize.read; !read.IsZero() && time.Since(read) < sizeLife {
		return c.tableSize.bytes, true, nil
	}
	r := c.beginWrite(ctx) // which has a deadline: the answer is short
	defer r.end()
	offset := &lastOffset{}
	if _, err := c.client.Open(c.opts.Table).SampleRowKeys(context.WithValue(r.ctx, offsetKey{}, offset)); err != nil {
		return 0, false, r.result(err)
	}
	c.tableSize.bytes, c.tableSize.read = offset.bytes, time.Now()
	return offset.bytes, true, nil
}

// lastOffset is the offset of the last row name of a SampleRowKeys under way, which the client library keeps to itself; offsetKey is its key in the
// request's context.
type (
	lastOffset struct{ bytes int64 }
	offsetKey  struct{}
)

// noteOffsets has the offsets of samples noted.
func noteOffsets(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, desc, conn, method, opts...)
	if offset, ok := ctx.Value(offsetKey{}).(*lastOffset); ok && err == nil {
		offset.bytes = 0 // It may be another attempt.
		return &sampleStream{stream, offset}, nil
	}
	return stream, err
}

type sampleStream struct {
	grpc.ClientStream
	offset *lastOffset
}

// RecvMsg implements grpc.ClientStream.
func (s *sampleStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if sample, ok := m.(*bigtablepb.SampleRowKeysResponse); ok && err == nil {
		s.offset.bytes = max(s.offset.bytes, sample.OffsetBytes)
	}
	return err
}

// rangeSizes is the size of the only range, missing if it is not known.
func (s *Shard) rangeSizes(ctx context.Context) (map[uint64]int64, error) {
	bytes, known, err := s.c.size(ctx)
	if err != nil || !known {
		return map[uint64]int64{}, err
	}
	return map[uint64]int64{theRange().ID: bytes}, nil
}

// RangeSizes implements kv.Router. The size is missing if Bigtable does not answer; a refusal is an error.
func (r *Router) RangeSizes(ctx context.Context) (map[uint64]int64, error) {
	sizes, err := r.shard.rangeSizes(ctx)
	if refused := (*PermanentError)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &refused) {
		return sizes, nil
	}
	return sizes, err
}
