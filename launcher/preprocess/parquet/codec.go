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

// A codec is the compression method of a page, by its number in Parquet.
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

// most returns the maximum size to which this number of packed bytes can unpack. In snappy, a copy
// of 3 bytes gives 64 bytes; in deflate, 2 bits give 258 bytes; in zstd, a block of 4 bytes gives
// 128 KiB. Unsupported codecs have no limit.
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

// unpacker unpacks pages; it reuses its decoders and memory.
type unpacker struct {
	gzip gzip.Reader
	zstd *zstd.Decoder
}

// do unpacks a page to n bytes. The result is in buffer, which grows if needed, or packed itself if
// it is not compressed.
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
			// Use no goroutines, and limit the memory.
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

// sized returns a buffer of length n, and allocates a new one if the present one is too small.
func sized(buffer *[]byte, n int) []byte {
	if cap(*buffer) < n {
		*buffer = make([]byte, n)
	}
	return (*buffer)[:n]
}

var errLength = errors.New("it has another length when unpacked than its head says")
