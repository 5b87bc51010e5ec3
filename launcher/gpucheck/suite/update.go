//go:build cgo

package suite

import (
	"math"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

func singles(list []float64) []float32 {
	rounded := make([]float32, len(list))
	for i, v := range list {
		rounded[i] = float32(v)
	}
	return rounded
}

// Steps of SGD equal the CPU engine's, bit for bit.
func sgd(b *bench) {
	const n = 1003
	w, v, g := singles(b.draw(n)), singles(b.draw(n)), singles(b.draw(n))
	weights, velocity, gradients := put(b, w), put(b, v), put(b, g)
	set, err := simd.Choose("portable")
	b.did(err)
	for range 3 {
		set.SGD(w, v, g, 0.1, 0.9, 1e-4)
		b.did(b.SGD(b.stream, ptx.SGD{Weights: weights, Velocity: velocity, Gradients: gradients, Count: n, Rate: 0.1, Momentum: 0.9, Decay: 1e-4}))
	}
	same(b, "weights of the CPU engine", weights, w)
	same(b, "velocities of the CPU engine", velocity, v)
}

// Steps of Adam and AdamW, as their papers have them: with bias-corrected means m̂ and
// v̂, w ← w − rate·m̂/(√v̂ + ε).
func adam(b *bench) {
	const n, rate, beta1, beta2, small, decay = 517, 0.01, 0.9, 0.999, 1e-8, 0.1
	for _, decoupled := range []bool{false, true} {
		w, m, v := b.draw(n), make([]float64, n), make([]float64, n)
		args := ptx.Adam{Weights: b.single(w), Mean: b.single(m), Squares: b.single(v), Count: n,
			Beta1: beta1, Rest1: 1 - beta1, Beta2: beta2, Rest2: float32(1 - 0.999), Coupled: decay, Keep: 1, Epsilon: small}
		if decoupled {
			args.Coupled, args.Keep = 0, 1-rate*decay
		}
		for step := 1; step <= 4; step++ {
			g := b.draw(n)
			first, second := 1-math.Pow(beta1, float64(step)), 1-math.Pow(beta2, float64(step))
			for i := range w {
				own := g[i]
				if decoupled {
					w[i] -= rate * decay * w[i]
				} else {
					own += decay * w[i]
				}
				m[i] = beta1*m[i] + (1-beta1)*own
				v[i] = beta2*v[i] + (1-beta2)*own*own
				w[i] -= rate * (m[i] / first) / (math.Sqrt(v[i]/second) + small)
			}
			args.Gradients, args.Size, args.Root = b.single(g), float32(rate/first), float32(math.Sqrt(second))
			b.did(b.Adam(b.stream, args))
		}
		near[float32](b, "weights", args.Weights, w, 3e-6)
		near[float32](b, "means", args.Mean, m, 1e-6)
		near[float32](b, "squares", args.Squares, v, 1e-6)
	}
}

func squaredNorm(b *bench) {
	for _, n := range []int32{1, 255, 1000, 4097} {
		x := b.draw(int(n))
		chunk := ptx.Chunk(n)
		parts := ptx.Chunks(n, chunk)
		to := room[float64](b, int(parts))
		b.did(b.SquaredNorm(b.stream, ptx.SquaredNorm{From: b.single(x), To: to, Count: n, Parts: parts}))
		sums, left := b.reduced(to, parts, 1, parts)
		if left != 1 {
			b.Fatalf("%d sums are left", left)
		}
		near[float64](b, "squared norm", sums, []float64{dot(x, x)}, 1e-12)
	}
}

// The nearest bfloat16, and of two equally near the one that is even, found by trying
// both neighbours.
func bfloat16(b *bench) {
	x := append(singles(b.draw(2000)), 0, float32(math.Copysign(0, -1)), 1e-40, -3e-42, math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.Float32frombits(0x7f800001), math.Float32frombits(0xffffffff))
	for upper := range uint32(300) {
		x = append(x, math.Float32frombits(upper<<20|0x8000), math.Float32frombits(upper<<20|0x18000), math.Float32frombits(upper<<20|0x7fff), math.Float32frombits(upper<<20|0x8001))
	}
	n := int32(len(x))
	to, back := room[uint16](b, len(x)), room[float32](b, len(x))
	b.did(b.ToBfloat16(b.stream, ptx.ToBfloat16{From: put(b, x), To: to, Count: n}))
	b.did(b.FromBfloat16(b.stream, ptx.FromBfloat16{From: to, To: back, Count: n}))
	got := get[float32](b, back, len(x))
	for i, v := range x {
		if v != v {
			if got[i] == got[i] {
				b.Errorf("NaN became %v", got[i])
			}
			continue
		}
		bits := math.Float32bits(v) &^ 0xffff
		down, up := math.Float32frombits(bits), math.Float32frombits(bits+0x10000) // towards 0, and away from it
		want := down
		if !math.IsInf(float64(v), 0) {
			far := float64(up)
			if math.IsInf(far, 0) {
				far = math.Copysign(0x1p128, far) // the value after the largest finite one
			}
			below, above := math.Abs(float64(v)-float64(down)), math.Abs(far-float64(v))
			if above < below || above == below && bits&0x10000 != 0 {
				want = up
			}
		}
		if math.Float32bits(got[i]) != math.Float32bits(want) {
			b.Errorf("%v (%#x) became %v, want %v", v, math.Float32bits(v), got[i], want)
		}
	}
}
