//go:build generate

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An operand of a walk over an image's pixels is dense, or has a gap behind each
// line, of as many numbers as the parameter of that name says.
type operand struct {
	name string
	gap  string // "": dense
	at   reg.GPVirtual
}

// parts returns how many vectors a group of channels takes.
func (s isa) parts() int { return group / s.lanes }

// walk goes over an image's pixels, a group of channels at a time: it calls begin
// for each group, with the group's offset in bytes, point for each of its pixels,
// with the operands' `at` there, and finish after the last.
func (s isa) walk(operands []*operand, begin, point, finish func(offset reg.GPVirtual)) {
	channels := elements("channels")
	offset := GP64()
	XORQ(offset, offset)
	Label("group")
	begin(offset)
	for _, o := range operands {
		o.at = load(o.name)
		ADDQ(offset, o.at)
	}
	lines := load("lines")
	repeat("line", lines, func() {
		repeat("point", load("points"), func() {
			point(offset)
			for _, o := range operands {
				ADDQ(channels, o.at)
			}
		})
		for _, o := range operands {
			if o.gap != "" {
				ADDQ(elements(o.gap), o.at)
			}
		}
	})
	finish(offset)
	ADDQ(U8(group*bytes), offset)
	CMPQ(offset, channels)
	JL(LabelRef("group"))
	end()
}

// row loads a group's coefficients from each of so many lists, which follow one
// another, into registers: [list][part].
func (s isa) row(lists int, offset, channels reg.GPVirtual) [][]reg.VecVirtual {
	base := load("coefficients")
	ADDQ(offset, base)
	all := make([][]reg.VecVirtual, lists)
	for i := range all {
		all[i] = s.vectors(s.parts())
		for j, v := range all[i] {
			VMOVUPS(s.pick(base, j), v)
		}
		if i < lists-1 {
			ADDQ(channels, base)
		}
	}
	return all
}

func nothing(reg.GPVirtual) {}

func (s isa) normalise(name string, add bool) {
	signature, x, y := "dst, x, coefficients *float32, lines, points, channels, dstGap int", &operand{name: "x"}, &operand{name: "dst", gap: "dstGap"}
	operands := []*operand{x, y}
	shortcut := &operand{name: "add", gap: "addGap"}
	if add {
		signature = "dst, x, add, coefficients *float32, lines, points, channels, dstGap, addGap int"
		operands = append(operands, shortcut)
	}
	s.begin(name, signature, "is Set.Normalise.")
	zero := s.vector()
	s.zero(zero)
	var c [][]reg.VecVirtual
	s.walk(operands, func(offset reg.GPVirtual) {
		c = s.row(3, offset, elements("channels"))
	}, func(reg.GPVirtual) {
		for i := range s.parts() {
			v := s.vector()
			VMOVUPS(s.pick(x.at, i), v)
			VSUBPS(c[0][i], v, v)
			VFMADD213PS(c[2][i], c[1][i], v)
			if add {
				VADDPS(s.pick(shortcut.at, i), v, v)
			}
			VMAXPS(v, zero, v) // in this order not-a-number stays
			VMOVUPS(v, s.pick(y.at, i))
		}
	}, nothing)
}

func (s isa) normGradient() {
	s.begin("normGradient", "dst, d, x, coefficients *float32, lines, points, channels, dstGap int", "is Set.NormGradient.")
	dst, g, x := &operand{name: "dst", gap: "dstGap"}, &operand{name: "d"}, &operand{name: "x"}
	var c [][]reg.VecVirtual
	s.walk([]*operand{dst, g, x}, func(offset reg.GPVirtual) {
		c = s.row(4, offset, elements("channels"))
	}, func(reg.GPVirtual) {
		for i := range s.parts() {
			v, d := s.vector(), s.vector()
			VMOVUPS(s.pick(x.at, i), v)
			VMOVUPS(s.pick(g.at, i), d)
			VSUBPS(c[0][i], v, v)
			VMULPS(c[2][i], v, v)
			VSUBPS(c[3][i], d, d)
			VFMADD231PS(d, c[1][i], v)
			VMOVUPS(v, s.pick(dst.at, i))
		}
	}, nothing)
}

// doubles loads or stores the sums of a group in double precision: [list][vector], with the lists one after the
// other in a parameter's memory.
func (s isa) doubles(offset reg.GPVirtual, sums [][]reg.VecVirtual, store bool) {
	base, channels := load("sums"), elements("channels")
	LEAQ(Mem{Base: base, Index: offset, Scale: 2}, base)
	for i, list := range sums {
		for j, v := range list {
			m := Mem{Base: base, Disp: j * s.lanes * bytes}
			if store {
				VMOVUPD(v, m)
			} else {
				VMOVUPD(m, v)
			}
		}
		if i < len(sums)-1 {
			LEAQ(Mem{Base: base, Index: channels, Scale: 2}, base)
		}
	}
}

// widen converts a vector to double precision, as two halves.
func (s isa) widen(v reg.VecVirtual) [2]reg.VecVirtual {
	low, high, upper := s.vector(), s.vector(), s.vector()
	VCVTPS2PD(s.half(v), low)
	if s.lanes == 16 {
		VEXTRACTF64X4(U8(1), v, upper.AsY())
	} else {
		VEXTRACTF128(U8(1), v, upper.AsX())
	}
	VCVTPS2PD(s.half(upper), high)
	return [2]reg.VecVirtual{low, high}
}

func (s isa) rectify(name string, add bool) {
	signature := "dst, d, y, x, mean *float32, sums *float64, lines, points, channels, yGap int"
	if add {
		signature = "dst, d, add, y, x, mean *float32, sums *float64, lines, points, channels, yGap int"
	}
	s.begin(name, signature, "is Set.Rectify.")
	dst, d, y, x := &operand{name: "dst"}, &operand{name: "d"}, &operand{name: "y", gap: "yGap"}, &operand{name: "x"}
	operands, shortcut := []*operand{dst, d, y, x}, &operand{name: "add"}
	if add {
		operands = append(operands, shortcut)
	}
	zero := s.vector()
	s.zero(zero)
	sums := [][]reg.VecVirtual{s.vectors(2 * s.parts()), s.vectors(2 * s.parts())}
	s.walk(operands, func(offset reg.GPVirtual) {
		s.doubles(offset, sums, false)
	}, func(offset reg.GPVirtual) {
		mean := load("mean")
		for i := range s.parts() {
			g, v := s.vector(), s.vector()
			VMOVUPS(s.pick(d.at, i), g)
			if add {
				VADDPS(s.pick(shortcut.at, i), g, g)
			}
			// Keep where not y ≤ 0: of what is not a number, too.
			const notLessOrEqual = 0x16
			VMOVUPS(s.pick(y.at, i), v)
			if s.lanes == 16 {
				k := K()
				VCMPPS(U8(notLessOrEqual), zero, v, k)
				VMOVAPS_Z(g, k, g)
			} else {
				VCMPPS(U8(notLessOrEqual), zero, v, v)
				VANDPS(v, g, g)
			}
			VMOVUPS(g, s.pick(dst.at, i))
			VMOVUPS(s.pick(x.at, i), v)
			VSUBPS(Mem{Base: mean, Index: offset, Scale: 1, Disp: i * s.lanes * bytes}, v, v)
			gs := s.widen(g)
			vs := s.widen(v)
			for j := range 2 {
				VADDPD(gs[j], sums[0][2*i+j], sums[0][2*i+j])
				VFMADD231PD(gs[j], vs[j], sums[1][2*i+j])
			}
		}
	}, func(offset reg.GPVirtual) { s.doubles(offset, sums, true) })
}

func (s isa) moments() {
	s.begin("moments", "x *float32, sums *float64, lines, points, channels int", "is Set.Moments; lines is 1.")
	x := &operand{name: "x"}
	sums := [][]reg.VecVirtual{s.vectors(2 * s.parts()), s.vectors(2 * s.parts())}
	s.walk([]*operand{x}, func(offset reg.GPVirtual) {
		s.doubles(offset, sums, false)
	}, func(reg.GPVirtual) {
		for j := range 2 * s.parts() {
			v := s.vector()
			VCVTPS2PD(Mem{Base: x.at, Disp: j * s.lanes / 2 * bytes}, v)
			VADDPD(v, sums[0][j], sums[0][j])
			VFMADD231PD(v, v, sums[1][j])
		}
	}, func(offset reg.GPVirtual) { s.doubles(offset, sums, true) })
}

// sgd avoids fused multiply-add, so that it gives the same bits as any other code.
func (s isa) sgd() {
	s.begin("sgd", "w, v, d *float32, n int, rate, momentum, decay float32", "is Set.SGD, for a multiple of 16.")
	w, v, g, n := load("w"), load("v"), load("d"), elements("n")
	rate, momentum, decay := s.broadcast("rate"), s.broadcast("momentum"), s.broadcast("decay")
	at := GP64()
	XORQ(at, at)
	here := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1} }
	Label("next")
	value, velocity, gradient := s.vector(), s.vector(), s.vector()
	VMOVUPS(here(w), value)
	VMULPS(value, decay, gradient)
	VADDPS(here(g), gradient, gradient)
	VMULPS(here(v), momentum, velocity)
	VADDPS(gradient, velocity, velocity)
	VMOVUPS(velocity, here(v))
	VMULPS(velocity, rate, velocity)
	VSUBPS(velocity, value, value)
	VMOVUPS(value, here(w))
	ADDQ(U8(s.lanes*bytes), at)
	CMPQ(at, n)
	JL(LabelRef("next"))
	end()
}
