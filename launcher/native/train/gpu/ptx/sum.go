package ptx

import (
	"math"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// Sums over a batch take three steps: a kernel such as Moments or ColumnSums makes a
// row of sums for each chunk of so many rows; SumRows makes fewer of those rows; and
// the kernel that uses the sums adds up the few that are left, in order. With chunks
// of Chunk(rows) in both steps, no thread of the three adds up more than that many.

// Chunk returns the cube root of the rows, rounded up.
func Chunk(rows int32) int32 {
	return max(int32(math.Ceil(math.Cbrt(float64(rows)))), 1)
}

// Chunks returns how many chunks of chunk rows there are in rows.
func Chunks(rows, chunk int32) int32 { return (rows-1)/chunk + 1 }

// ColumnSums sums each column over chunks of rows.
type ColumnSums struct {
	From                 cuda.Pointer // [Rows][Columns]
	To                   cuda.Pointer // [chunk][Columns] float64
	Rows, Columns, Chunk int32
}

func (s *Set) ColumnSums(stream cuda.Stream, args ColumnSums) error {
	a := &arguments{kernel: "column_sums"}
	a.need(args.From, args.To)
	a.size(args.Rows, args.Columns)
	return launch(s, a, a.size(a.chunks(args.Rows, args.Chunk), args.Columns), stream, &args)
}

// SumRows is ColumnSums for float64.
type SumRows struct {
	From                 cuda.Pointer // [Rows][Columns] float64
	To                   cuda.Pointer // [chunk][Columns] float64; not From
	Rows, Columns, Chunk int32
}

func (s *Set) SumRows(stream cuda.Stream, args SumRows) error {
	a := &arguments{kernel: "sum_rows"}
	a.need(args.From, args.To)
	a.size(args.Rows, args.Columns)
	if args.From == args.To {
		a.refuse("sums in place of what is summed")
	}
	return launch(s, a, a.size(a.chunks(args.Rows, args.Chunk), args.Columns), stream, &args)
}

// SquaredNorm computes the sum of squares in several parts.
type SquaredNorm struct {
	From         cuda.Pointer // [Count]
	To           cuda.Pointer // [Parts] float64
	Count, Parts int32
}

func (s *Set) SquaredNorm(stream cuda.Stream, args SquaredNorm) error {
	a := &arguments{kernel: "squared_norm"}
	a.need(args.From, args.To)
	a.size(args.Count)
	return launch(s, a, a.size(args.Parts), stream, &args)
}
