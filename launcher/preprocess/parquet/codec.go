package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// A codec is a page's compression, by Parquet's numbers.
type codec int64

const (
	none codec = iota
	packedSnappy
	packedGzip
	packedZstd codec = 6
)

var codecs = []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

func (c codec) String() string {
	if c < 0 || int(c) >= len(codecs) {
		return fmt.Sprintf("codec %d", int64(c))
	}
	return codecs[c]
}

// most returns the largest size that so many packed bytes can unpack to: a copy of snappy's gives
// 64 bytes for 3, one of deflate's 258 for 2 bits, a block of zstd's 128 KiB for 4. Codecs that are
// not supported have no limit.
func (c codec) most(packed int64) int64 {
	switch c {
	case none:
		return packed
	case packedSnappy:
		return packed * 64 / 3
	case packedGzip:
		return packed * 1032
	}
	return packed << 15
}

// unpacker unpacks pages, one after the other.
type unpacker struct {
	gzip gzip.Reader
	zstd *zstd.Decoder
}

// do is the n bytes that were packed, at most a page: in buffer, which grows, or packed
// itself.
func (u *unpacker) do(c codec, packed []byte, buffer *[]byte, n int) (_ []byte, err error) {
	if int64(n) > c.most(int64(len(packed))) || c == none && n != len(packed) {
		return nil, fmt.Errorf("%d bytes, said to be %d when unpacked; %v cannot be", len(packed), n, c)
	}
	if c == none || n == 0 {
		return packed[:n], nil
	}
	b := sized(buffer, n)
	switch c {
	case packedSnappy:
		var k int
		if k, err = snappy.DecodedLen(packed); err == nil && k == n {
			_, err = snappy.Decode(b, packed)
		}
		if err == nil && k != n {
			err = errLength
		}
	case packedGzip:
		if err = u.gzip.Reset(bytes.NewReader(packed)); err == nil {
			_, err = io.ReadFull(&u.gzip, b)
		}
		if err == nil {
			if k, end := u.gzip.Read(make([]byte, 1)); k > 0 {
				err = errLength
			} else if !errors.Is(end, io.EOF) {
				err = end
			}
		}
	case packedZstd:
		if u.zstd == nil {
			// Without goroutines, and never more than there is room for.
			u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxPage))
			if err != nil {
				return nil, err
			}
		}
		var out []byte
		if out, err = u.zstd.DecodeAll(packed, b[:0:n]); err == nil && len(out) != n {
			err = errLength
		}
	default:
		return nil, fmt.Errorf("it is packed by %v, which is not read; write the file with UNCOMPRESSED, SNAPPY, GZIP or ZSTD", c)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	return b, nil
}

// sized is a buffer of a length, a new one if it was smaller.
func sized(buffer *[]byte, n int) []byte {
	if cap(*buffer) < n {
		*buffer = make([]byte, n)
	}
	return (*buffer)[:n]
}

var errLength = errors.New("it has another length when unpacked than its head says")
