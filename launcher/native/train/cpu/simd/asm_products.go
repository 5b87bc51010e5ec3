//go:build generate

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// accumulate adds scalar times vectors to a row of accumulators.
func (s isa) accumulate(scalar Mem, vectors, sums []reg.VecVirtual) {
	if s.lanes == 16 && len(vectors) == 1 {
		VFMADD231PS_BCST(scalar, vectors[0], sums[0])
		return
	}
	b := s.vector()
	VBROADCASTSS(scalar, b)
	for i, v := range vectors {
		VFMADD231PS(v, b, sums[i])
	}
}

// block is the memory of vector i of a row of groups of columns.
func (s isa) block(base, blockStep reg.Register, i int) Mem {
	m := Mem{Base: base, Disp: i * s.lanes % group * bytes}
	if i*s.lanes >= group {
		m.Index, m.Scale = blockStep, 1
	}
	return m
}

// multiples are registers with odd multiples of a step. Each is an index that can be scaled
// by a power of two, so that those up to 7 reach eight windows from one base.
type multiples map[int]reg.Register

func oddMultiples(step reg.Register, windows int) multiples {
	m := multiples{1: step}
	for _, odd := range []int{3, 5, 7} {
		if odd < windows {
			m[odd] = GP64()
		}
	}
	if r := m[3]; r != nil {
		LEAQ(Mem{Base: step, Index: step, Scale: 2}, r)
	}
	if r := m[5]; r != nil {
		LEAQ(Mem{Base: step, Index: step, Scale: 4}, r)
		LEAQ(Mem{Base: r, Index: step, Scale: 2}, m[7])
	}
	return m
}

// at is the memory of the window that is so many steps from a base, up to 7.
func (m multiples) at(base reg.Register, steps int) Mem {
	at := Mem{Base: base}
	if steps > 0 {
		odd, scale := steps, 1
		for odd%2 == 0 {
			odd, scale = odd/2, 2*scale
		}
		at.Index, at.Scale = m[odd], uint8(scale)
	}
	return at
}

// correlate makes a kernel that has that many windows at a time, and single ones
// for the rest. The sums stay in registers over the whole window.
func (s isa) correlate(groups, windows int) {
	s.begin(fmt.Sprintf("correlate%d", groups*group),
		"dst, src, weights *float32, windows, dstStep, srcStep, runs, run, runStep, step, block int",
		"is Set.Correlate for %d channels, %d windows at a time.", groups*group, windows)
	dst, src, left := load("dst"), load("src"), load("windows")
	srcStep, step := elements("srcStep"), elements("step")
	var blockStep reg.Register
	if groups > 1 {
		blockStep = elements("block")
	}
	starts := oddMultiples(srcStep, windows)
	for _, count := range []int{windows, 1} {
		tile, done := fmt.Sprintf("tile%d", count), fmt.Sprintf("done%d", count)
		Label(tile)
		CMPQ(left, U8(count))
		JL(LabelRef(done))
		sums := s.vectors(count * groups * group / s.lanes)
		for _, v := range sums {
			s.zero(v)
		}
		width := groups * group / s.lanes
		w, from, runs := load("weights"), copied(src), load("runs")
		repeat(fmt.Sprintf("run%d", count), runs, func() {
			bases := []reg.GPVirtual{copied(from)}
			if count > 8 {
				second := GP64()
				LEAQ(Mem{Base: from, Index: srcStep, Scale: 8}, second)
				bases = append(bases, second)
			}
			repeat(fmt.Sprintf("element%d", count), load("run"), func() {
				row := s.vectors(width)
				for i, v := range row {
					VMOVUPS(s.block(w, blockStep, i), v)
				}
				for i := range count {
					s.accumulate(starts.at(bases[i/8], i%8), row, sums[i*width:(i+1)*width])
				}
				ADDQ(step, w)
				for _, b := range bases {
					ADDQ(U8(bytes), b)
				}
			})
			ADDQ(elements("runStep"), from)
		})
		dstStep := elements("dstStep")
		for i := range count {
			for j, v := range sums[i*width : (i+1)*width] {
				VMOVUPS(v, s.pick(dst, j))
			}
			ADDQ(dstStep, dst)
			ADDQ(srcStep, src)
		}
		SUBQ(U8(count), left)
		JMP(LabelRef(tile))
		Label(done)
	}
	end()
}

// outer makes a kernel for so many rows of the result, which stay in registers
// over all points.
func (s isa) outer(groups, height int) {
	s.begin(fmt.Sprintf("outer%dx%d_", groups*group, height),
		"dst, a, b *float32, lines, points, aLine, aStep, bLine, bStep, step, block int",
		"is Set.Outer for %d channels and a height of %d.", groups*group, height)
	a, b := load("a"), load("b")
	aStep, bStep := elements("aStep"), elements("bStep")
	width := groups * group / s.lanes
	sums := s.vectors(height * width)
	// each visits the result's vectors.
	each := func(f func(v reg.VecVirtual, m Mem)) {
		dst, step := load("dst"), elements("step")
		var blockStep reg.Register
		if groups > 1 {
			blockStep = elements("block")
		}
		for i := range height {
			for j := range width {
				f(sums[i*width+j], s.block(dst, blockStep, j))
			}
			if i < height-1 {
				ADDQ(step, dst)
			}
		}
	}
	each(func(v reg.VecVirtual, m Mem) { VMOVUPS(m, v) })
	repeat("line", load("lines"), func() {
		pa, pb := copied(a), copied(b)
		repeat("point", load("points"), func() {
			row := s.vectors(width)
			for i, v := range row {
				VMOVUPS(s.pick(pb, i), v)
			}
			for i := range height {
				s.accumulate(Mem{Base: pa, Disp: i * bytes}, row, sums[i*width:(i+1)*width])
			}
			ADDQ(aStep, pa)
			ADDQ(bStep, pb)
		})
		ADDQ(elements("aLine"), a)
		ADDQ(elements("bLine"), b)
	})
	each(func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
	end()
}

// dot makes a kernel for a rectangle of inner products.
func (s isa) dot(rows, columns int) {
	s.begin(fmt.Sprintf("dot%dx%d_", rows, columns), "dst, a, b *float32, n, dstStep, aStep, bStep int",
		"is Set.Dot for %d by %d products.", rows, columns)
	a, b, n := load("a"), load("b"), elements("n")
	aStep, bStep := elements("aStep"), elements("bStep")
	starts := func(first reg.GPVirtual, step reg.Register, count int) []reg.GPVirtual {
		list := []reg.GPVirtual{first}
		for range count - 1 {
			next := GP64()
			LEAQ(Mem{Base: list[len(list)-1], Index: step, Scale: 1}, next)
			list = append(list, next)
		}
		return list
	}
	as, bs := starts(a, aStep, rows), starts(b, bStep, columns)
	sums := s.vectors(rows * columns)
	for _, v := range sums {
		s.zero(v)
	}
	at := GP64()
	XORQ(at, at)
	Label("next")
	right := s.vectors(columns)
	for j, v := range right {
		VMOVUPS(Mem{Base: bs[j], Index: at, Scale: 1}, v)
	}
	for i := range rows {
		left := s.vector()
		VMOVUPS(Mem{Base: as[i], Index: at, Scale: 1}, left)
		for j := range columns {
			VFMADD231PS(right[j], left, sums[i*columns+j])
		}
	}
	ADDQ(U8(s.lanes*bytes), at)
	CMPQ(at, n)
	JL(LabelRef("next"))
	dst, dstStep := load("dst"), elements("dstStep")
	for i := range rows {
		for j := range columns {
			// Halves are added up, down to one number.
			v, y, x := sums[i*columns+j], YMM(), XMM()
			if s.lanes == 16 {
				VEXTRACTF64X4(U8(1), v, y)
				VADDPS(y, v.AsY(), y)
				VEXTRACTF32X4(U8(1), y, x)
				VADDPS(y.AsX(), x, x)
			} else {
				VEXTRACTF128(U8(1), v, x)
				VADDPS(v.AsX(), x, x)
			}
			for _, order := range []U8{0b1110, 0b01} {
				other := XMM()
				VPERMILPS(order, x, other)
				VADDPS(other, x, x)
			}
			m := Mem{Base: dst, Disp: j * bytes}
			VADDSS(m, x, x)
			VMOVSS(x, m)
		}
		if i < rows-1 {
			ADDQ(dstStep, dst)
		}
	}
	end()
}
