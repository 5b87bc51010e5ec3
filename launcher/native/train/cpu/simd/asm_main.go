//go:build generate

// This command writes the assembly of package simd and its Go declarations.
// Each kernel is written once, over vectors of 16 or of 8 numbers, and comes out
// for AVX-512 and for AVX2 with FMA.
//
// It is run by go generate; a test holds what is checked in against what it
// writes.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// group is the unit of channels: kernels process a multiple of it at once.
const group = 16

const bytes = 4 // of a number

// An isa is an instruction set.
type isa struct {
	name  string
	lanes int // numbers in a vector
}

var (
	avx512 = isa{"AVX512", 16}
	avx2   = isa{"AVX2", 8}
)

func main() {
	ConstraintExpr("amd64")
	for _, s := range []isa{avx512, avx2} {
		s.normalise("normalise", false)
		s.normalise("normaliseAdd", true)
		s.rectify("rectify", false)
		s.rectify("rectifyAdd", true)
		s.normGradient()
		s.moments()
		s.sgd()
	}
	// Sizes fit the number of registers: 32 with AVX-512, 16 with AVX2.
	avx512.correlate(1, 16)
	avx512.correlate(2, 8)
	avx2.correlate(1, 4)
	avx512.outer(1, 24)
	avx512.outer(1, 9)
	avx512.outer(1, 1)
	avx512.outer(2, 12)
	avx512.outer(2, 1)
	avx2.outer(1, 6)
	avx2.outer(1, 1)
	avx512.dot(4, 4)
	avx512.dot(1, 1)
	avx2.dot(4, 2)
	avx2.dot(1, 1)
	Generate()
}

// begin opens a function of the instruction set.
func (s isa) begin(name, signature, doc string, a ...any) {
	name += s.name
	TEXT(name, NOSPLIT, "func("+signature+")")
	Pragma("noescape")
	Doc(name + " " + fmt.Sprintf(doc, a...))
}

func end() {
	VZEROUPPER()
	RET()
}

func (s isa) vector() reg.VecVirtual {
	if s.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

func (s isa) vectors(n int) []reg.VecVirtual {
	list := make([]reg.VecVirtual, n)
	for i := range list {
		list[i] = s.vector()
	}
	return list
}

func (s isa) zero(v reg.VecVirtual) {
	if s.lanes == 16 {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// half returns the vector register of half the size that is the lower part of v.
func (s isa) half(v reg.VecVirtual) reg.Register {
	if s.lanes == 16 {
		return v.AsY()
	}
	return v.AsX()
}

// pick returns the memory operand of the i-th vector from a base.
func (s isa) pick(base reg.Register, i int) Mem {
	return Mem{Base: base, Disp: i * s.lanes * bytes}
}

// broadcast fills a vector with a scalar parameter.
func (s isa) broadcast(parameter string) reg.VecVirtual {
	x, v := XMM(), s.vector()
	Load(Param(parameter), x)
	VBROADCASTSS(x, v)
	return v
}

// elements loads a parameter that counts numbers, as bytes.
func elements(parameter string) reg.GPVirtual {
	r := GP64()
	Load(Param(parameter), r)
	SHLQ(U8(2), r)
	return r
}

func load(parameter string) reg.GPVirtual {
	r := GP64()
	Load(Param(parameter), r)
	return r
}

func copied(r reg.Register) reg.GPVirtual {
	c := GP64()
	MOVQ(r, c)
	return c
}

// repeat runs the body as often as the counter says, at least once.
func repeat(label string, counter reg.Register, body func()) {
	Label(label)
	body()
	DECQ(counter)
	JNZ(LabelRef(label))
}
