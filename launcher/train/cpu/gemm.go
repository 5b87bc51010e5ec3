package cpu

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gonum's Sgemm starts goroutines of its own, as many as the process may use,
// when the result has four or more blocks of 64 by 64. Tiles of at most
// tileRows by tileColumns stay below that, so that the threads of this package
// are the only ones.
const (
	tileRows    = 64
	tileColumns = 192
)

// gemm computes c = op(a)·op(b) + beta·c, where c is m×n with rows ldc apart,
// on the calling goroutine.
func gemm(transA, transB blas.Transpose, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	for i := 0; i < m; i += tileRows {
		rows := min(tileRows, m-i)
		at := i * lda
		if transA == blas.Trans {
			at = i
		}
		for j := 0; j < n; j += tileColumns {
			columns := min(tileColumns, n-j)
			bt := j
			if transB == blas.Trans {
				bt = j * ldb
			}
			gonum.Implementation{}.Sgemm(transA, transB, rows, columns, k, 1, a[at:], lda, b[bt:], ldb, beta, c[i*ldc+j:], ldc)
		}
	}
}
