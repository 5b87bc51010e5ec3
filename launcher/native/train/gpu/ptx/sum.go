package ptx

import (
	"math"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// Sums over a batch are computed in three steps. A kernel such as Moments or ColumnSums computes a
// row of sums for each chunk of rows. SumRows does the same with these rows. The kernel that uses
// the sums adds up the remaining rows, in order. If both steps use chunks of Chunk(rows) rows, no
// thread adds up more than that many values.

// Chunk returns the cube root of the rows, rounded up.
func Chunk(rows int32) int32 {
	return max(int32(math.Ceil(math.Cbrt(float64(rows)))), 1)
}

// Chunks returns the number of chunks in rows.
func Chunks(rows, chunk int32) int32 { return (rows-1)/chunk + 1 }

// ColumnSums computes the sum of each column over chunks of rows.
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
