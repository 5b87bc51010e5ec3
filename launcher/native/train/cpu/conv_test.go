package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
)

func normal(random *rand.Rand, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(random.NormFloat64())
	}
	return list
}

// pad gives an image its margin.
func pad(x []float32, s simd.Shape) []float32 {
	size, line := padded(s)
	dst := make([]float32, size)
	n := s.Points * s.Channels
	for y := range s.Lines {
		copy(dst[(y+1)*line+s.Channels:], x[y*n:(y+1)*n])
	}
	return dst
}

// oracle computes the convolution by its definition as a product of matrices, in double precision with gonum:
// one row per output pixel, with all inputs that it reads.
type oracle struct {
	in, out simd.Shape
	stride  int
	matrix  blas64.General
}

// each calls f for every element of the matrix that is inside the image.
func (o *oracle) each(f func(element, input int)) {
	for p := range o.out.Lines * o.out.Points {
		for tap := range taps * taps {
			y, x := p/o.out.Points*o.stride+tap/taps-1, p%o.out.Points*o.stride+tap%taps-1
			if y < 0 || y >= o.in.Lines || x < 0 || x >= o.in.Points {
				continue
			}
			for c := range o.in.Channels {
				f(p*o.matrix.Stride+tap*o.in.Channels+c, (y*o.in.Points+x)*o.in.Channels+c)
			}
		}
	}
}

func general(rows, columns int, data []float32) blas64.General {
	m := blas64.General{Rows: rows, Cols: columns, Stride: columns, Data: make([]float64, rows*columns)}
	for i, v := range data {
		m.Data[i] = float64(v)
	}
	return m
}

func product(tA, tB blas.Transpose, rows, columns int, a, b blas64.General) []float64 {
	c := general(rows, columns, nil)
	blas64.Gemm(tA, tB, 1, a, b, 0, c)
	return c.Data
}

// near compares got with want, which are sums of the given number of terms of size 1.
func near(t *testing.T, what string, got []float32, want []float64, terms int) {
	t.Helper()
	tolerance := 3e-7 * float64(terms)
	for i, v := range got {
		if !(math.Abs(float64(v)-want[i]) <= tolerance) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, v, want[i])
		}
	}
}

// A convolution and its two gradients, with each set of kernels, against gonum.
func TestConvolution(t *testing.T) {
	for _, kernels := range simd.Sets() {
		for _, c := range []struct{ h, w, in, out, stride int }{
			{5, 6, 3, 16, 1}, {6, 6, 1, 32, 2}, {7, 5, 16, 16, 2}, {6, 9, 32, 16, 2}, {8, 8, 16, 32, 2},
			{1, 1, 16, 48, 1}, {1, 1, 16, 16, 2}, {12, 33, 16, 16, 1}, {8, 8, 64, 64, 1}, {3, 20, 32, 32, 1}, {32, 32, 3, 16, 1},
		} {
			t.Run(fmt.Sprintf("%s/%d×%d×%d to %d, stride %d", kernels.Name(), c.h, c.w, c.in, c.out, c.stride), func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 2))
				l := newConv(kernels, simd.Shape{Lines: c.h, Points: c.w, Channels: c.in}, c.out, c.stride)
				k, pixels := l.rows(), l.out.Lines*l.out.Points
				x, dy, w := normal(random, l.in.Size()), normal(random, l.out.Size()), normal(random, c.out*k)
				o := &oracle{in: l.in, out: l.out, stride: c.stride, matrix: general(pixels, k, nil)}
				o.each(func(element, input int) { o.matrix.Data[element] = float64(x[input]) })
				weights, gradient := general(c.out, k, w), general(pixels, c.out, dy)

				l.pack(w, 0, l.groups())
				y := normal(random, l.out.Size())
				l.forward(pad(x, l.in), y)
				near(t, "forward", y, product(blas.NoTrans, blas.Trans, pixels, c.out, o.matrix, weights), k)

				total, dw := make([]float32, len(w)), normal(random, len(w))
				l.weights(pad(x, l.in), pad(dy, l.out), total)
				l.unpack(total, dw, 0, l.groups())
				near(t, "gradient by the weights", dw, product(blas.Trans, blas.NoTrans, c.out, k, gradient, o.matrix), pixels)

				if c.in%simd.Group != 0 {
					return
				}
				l.packGradient(w, 0, l.groups())
				dx, want := normal(random, l.in.Size()), make([]float64, l.in.Size())
				l.gradient(pad(dy, l.out), dx)
				elements := product(blas.NoTrans, blas.NoTrans, pixels, k, gradient, weights)
				o.each(func(element, input int) { want[input] += elements[element] })
				near(t, "gradient by the input", dx, want, taps*taps*c.out)
			})
		}
	}
}
