// Package simd has the inner loops of the CPU trainer, in single precision: for
// AVX-512, for AVX2 with FMA, and in portable Go. A Set is one of the three; their
// results are equal up to rounding.
//
// Matrix products have the form that convolutions over NHWC images need: a window
// slides over the image in place, so nothing is copied first. Numbers of channels
// are multiples of Group, except on the side that is broadcast, so no kernel needs
// masked loads. Before a method calls assembly, it accesses the last element of each
// operand: an operand that is too short panics and is never read past its end.
//
//go:generate go run asm_main.go asm_elementwise.go asm_products.go -out kernels_amd64.s -stubs stubs_amd64.go -pkg simd
package simd

import (
	"fmt"
	"strings"
)

// Group divides every number of channels.
const Group = 16

// A Set is the kernels for one instruction set.
type Set struct {
	name       string
	correlates []correlate // the widest first; the last has one group of channels
	outers     []outer     // the widest first, then the highest; the last has one row
	dots       []dot       // the largest first; the last computes one product

	normalise    func(dst, x, coefficients *float32, lines, points, channels, dstGap int)
	normaliseAdd func(dst, x, add, coefficients *float32, lines, points, channels, dstGap, addGap int)
	rectify      func(dst, d, y, x, mean *float32, sums *float64, lines, points, channels, yGap int)
	rectifyAdd   func(dst, d, add, y, x, mean *float32, sums *float64, lines, points, channels, yGap int)
	normGradient func(dst, g, x, coefficients *float32, lines, points, channels, dstGap int)
	moments      func(x *float32, sums *float64, lines, points, channels int)
	sgd          func(w, v, g *float32, n int, rate, momentum, decay float32)
}

type correlate struct {
	channels int
	run      func(dst, src, weights *float32, windows, dstStep, srcStep, runs, run, runStep, step, block int)
}

type outer struct {
	channels, height int
	run              func(dst, a, b *float32, lines, points, aLine, aStep, bLine, bStep, step, block int)
}

type dot struct {
	rows, columns int
	run           func(dst, a, b *float32, n, dstStep, aStep, bStep int)
}

// Name returns the set's name for Choose.
func (s *Set) Name() string { return s.name }

// Sets returns the sets that this processor can run, the fastest first. The portable set is always
// included.
func Sets() []*Set { return append(native(), portable()) }

// Choose returns the set with this name; "" is the fastest that this processor can run.
func Choose(name string) (*Set, error) {
	var names []string
	for _, s := range Sets() {
		if name == "" || name == s.name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return nil, fmt.Errorf("there are no kernels %q for this processor; it can run: %s", name, strings.Join(names, ", "))
}

// A Matrix stores its rows Step apart in Data, and its columns in groups of 16 that
// are Block apart: element (i, j) is Data[i·Step + j/16·Block + j%16].
type Matrix struct {
	Data        []float32
	Step, Block int
}

// holds panics if a matrix of that size is longer than its data.
func (m Matrix) holds(rows, columns int) {
	_ = m.Data[(rows-1)*m.Step+(columns/Group-1)*m.Block+Group-1]
}

// A Window is the part of an image that a kernel reads at once: Runs runs of Run adjacent numbers, RunStep
// apart.
type Window struct{ Runs, Run, RunStep int }

// A Line is points of an image, Step apart.
type Line struct {
	Data []float32
	Step int
}

func multiple(channels int) {
	if channels%Group != 0 || channels < Group {
		panic(fmt.Sprintf("kernel: %d channels, want a multiple of %d", channels, Group))
	}
}

// Correlate multiplies the window at each of n places of src by the weights,
// whose rows are the window's numbers in order:
//
//	dst[p·dst.Step + c] = Σ over r, i: src[p·src.Step + r·RunStep + i] · weights(r·Run + i, c)
func (s *Set) Correlate(dst, src Line, n, channels int, w Window, weights Matrix) {
	if n <= 0 {
		return
	}
	multiple(channels)
	_ = dst.Data[(n-1)*dst.Step+channels-1]
	_ = src.Data[(n-1)*src.Step+(w.Runs-1)*w.RunStep+w.Run-1]
	weights.holds(w.Runs*w.Run, channels)
	k := 0
	for c := 0; c < channels; c += s.correlates[k].channels {
		for s.correlates[k].channels > channels-c {
			k++
		}
		s.correlates[k].run(&dst.Data[c], &src.Data[0], &weights.Data[c/Group*weights.Block], n, dst.Step, src.Step,
			w.Runs, w.Run, w.RunStep, weights.Step, weights.Block)
	}
}

// Points are lines of points of an image, LineStep and Step apart.
type Points struct {
	Data           []float32
	LineStep, Step int
}

// Outer adds the products of a's numbers and b's channels to dst, over lines
// of points:
//
//	dst(i, c) += Σ over y, x: a[y·LineStep + x·Step + i] · b[y·LineStep + x·Step + c]
func (s *Set) Outer(dst Matrix, height, channels int, a, b Points, lines, points int) {
	if lines <= 0 || points <= 0 || height <= 0 {
		return
	}
	multiple(channels)
	dst.holds(height, channels)
	_ = a.Data[(lines-1)*a.LineStep+(points-1)*a.Step+height-1]
	_ = b.Data[(lines-1)*b.LineStep+(points-1)*b.Step+channels-1]
	for c := 0; c < channels; {
		k := 0
		for s.outers[k].channels > channels-c {
			k++
		}
		width := s.outers[k].channels
		for i := 0; i < height; i += s.outers[k].height {
			for s.outers[k].height > height-i {
				k++
			}
			s.outers[k].run(&dst.Data[i*dst.Step+c/Group*dst.Block], &a.Data[i], &b.Data[c], lines, points,
				a.LineStep, a.Step, b.LineStep, b.Step, dst.Step, dst.Block)
		}
		c += width
	}
}

// Dot adds the inner products of rows of a and rows of b, each of n numbers, a
// multiple of Group: dst[i·dst.Step + j] += a(i)·b(j).
func (s *Set) Dot(dst Line, rows, columns, n int, a, b Line) {
	if rows <= 0 || columns <= 0 {
		return
	}
	multiple(n)
	_ = dst.Data[(rows-1)*dst.Step+columns-1]
	_, _ = a.Data[(rows-1)*a.Step+n-1], b.Data[(columns-1)*b.Step+n-1]
	for j := 0; j < columns; {
		k := 0
		for s.dots[k].columns > columns-j {
			k++
		}
		width := s.dots[k].columns
		for i := 0; i < rows; i += s.dots[k].rows {
			if s.dots[k].rows > rows-i {
				// The remaining rows are computed one product at a time.
				single := s.dots[len(s.dots)-1].run
				for ; i < rows; i++ {
					for l := j; l < j+width; l++ {
						single(&dst.Data[i*dst.Step+l], &a.Data[i*a.Step], &b.Data[l*b.Step], n, dst.Step, a.Step, b.Step)
					}
				}
				break
			}
			s.dots[k].run(&dst.Data[i*dst.Step+j], &a.Data[i*a.Step], &b.Data[j*b.Step], n, dst.Step, a.Step, b.Step)
		}
		j += width
	}
}
