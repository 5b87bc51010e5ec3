package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// numbers returns random numbers followed by a margin that must not change.
func numbers(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(r.NormFloat64())
	}
	return list
}

// agree compares results with sums of the given number of terms in double precision.
func agree(t *testing.T, what string, got []float32, want []float64, terms int) {
	t.Helper()
	tolerance := 2e-7 * float64(terms+8)
	for i, v := range got {
		if !(math.Abs(float64(v)-want[i]) <= tolerance*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, v, want[i])
		}
	}
}

func doubles(list []float32) []float64 {
	d := make([]float64, len(list))
	for i, v := range list {
		d[i] = float64(v)
	}
	return d
}

// eachSet runs a test on all kernels that this processor has.
func eachSet(t *testing.T, f func(t *testing.T, s *Set)) {
	for _, s := range Sets() {
		t.Run(s.Name(), func(t *testing.T) { f(t, s) })
	}
}

func TestChoose(t *testing.T) {
	best, err := Choose("")
	if err != nil || best != nil && best.Name() != Sets()[0].Name() {
		t.Errorf("the best is %v, %v", best, err)
	}
	if s, err := Choose("portable"); err != nil || s.Name() != "portable" {
		t.Errorf("portable: %v, %v", s, err)
	}
	if _, err := Choose("neon2"); err == nil || err.Error()[:len(`there are no kernels "neon2"`)] != `there are no kernels "neon2"` {
		t.Errorf("unknown: %v", err)
	}
}

func TestCorrelate(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		for _, channels := range []int{16, 32, 48, 64} {
			for _, places := range []int{1, 3, 8, 16, 21, 35} {
				for _, w := range []Window{{3, 9, 200}, {1, 17, 0}, {2, 32, 150}} {
					for _, wide := range []bool{false, true} {
						const srcStep = 5
						src := numbers(1, (places-1)*srcStep+(w.Runs-1)*w.RunStep+w.Run)
						k := w.Runs * w.Run
						m := Matrix{numbers(2, k*channels), Group, Group * k}
						if wide { // plain rows
							m.Step, m.Block = channels, Group
						}
						dstStep := channels + 3
						dst := numbers(3, places*dstStep)
						want := doubles(dst)
						for p := range places {
							for c := range channels {
								sum := 0.0
								for r := range w.Runs {
									for i := range w.Run {
										sum += float64(src[p*srcStep+r*w.RunStep+i]) * float64(m.Data[(r*w.Run+i)*m.Step+c/Group*m.Block+c%Group])
									}
								}
								want[p*dstStep+c] = sum
							}
						}
						s.Correlate(Line{dst, dstStep}, Line{src, srcStep}, places, channels, w, m)
						agree(t, fmt.Sprintf("%d channels, %d places, %+v", channels, places, w), dst, want, k)
					}
				}
			}
		}
	})
}

func TestOuter(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		for _, channels := range []int{16, 32, 48} {
			for _, height := range []int{1, 9, 27, 48, 50} {
				for _, wide := range []bool{false, true} {
					const lines, points, aStep, bStep = 3, 5, 4, 50
					a := Points{numbers(1, (lines-1)*40+(points-1)*aStep+height), 40, aStep}
					b := Points{numbers(2, (lines-1)*260+(points-1)*bStep+channels), 260, bStep}
					m := Matrix{numbers(3, height*channels), Group, Group * height}
					if wide {
						m.Step, m.Block = channels, Group
					}
					want := doubles(m.Data)
					for y := range lines {
						for x := range points {
							for i := range height {
								for c := range channels {
									want[i*m.Step+c/Group*m.Block+c%Group] += float64(a.Data[y*40+x*aStep+i]) * float64(b.Data[y*260+x*bStep+c])
								}
							}
						}
					}
					s.Outer(m, height, channels, a, b, lines, points)
					agree(t, fmt.Sprintf("%d channels, height %d", channels, height), m.Data, want, lines*points)
				}
			}
		}
	})
}

func TestDot(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		for _, size := range [][2]int{{1, 1}, {4, 4}, {5, 10}, {7, 3}, {128, 9}} {
			const n = 48
			a, b := Line{numbers(1, size[0]*51), 51}, Line{numbers(2, size[1]*53), 53}
			dst := Line{numbers(3, size[0]*(size[1]+2)), size[1] + 2}
			want := doubles(dst.Data)
			for i := range size[0] {
				for j := range size[1] {
					for k := range n {
						want[i*dst.Step+j] += float64(a.Data[i*51+k]) * float64(b.Data[j*53+k])
					}
				}
			}
			s.Dot(dst, size[0], size[1], n, a, b)
			agree(t, fmt.Sprint(size), dst.Data, want, n)
		}
	})
}

// The element-wise kernels are compared with their formulas, in double precision.
func TestElementwise(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		for _, shape := range []Shape{{1, 1, 16}, {3, 5, 16}, {4, 2, 48}, {2, 3, 64}} {
			n, c := shape.Size(), shape.Channels
			const gap = 7
			padded := shape.Lines*(shape.line()+gap) - gap
			place := func(i int) int { return i + i/shape.line()*gap }
			k, x, d := numbers(1, 4*c), numbers(2, n), numbers(3, n)
			coefficient := func(list, i int) float64 { return float64(k[list*c+i%c]) }
			what := fmt.Sprint(shape)
			for _, add := range [][]float32{nil, numbers(4, padded)} {
				dst := numbers(5, padded)
				want := doubles(dst)
				for i := range n {
					v := coefficient(1, i)*(float64(x[i])-coefficient(0, i)) + coefficient(2, i)
					if add != nil {
						v += float64(add[place(i)])
					}
					want[place(i)] = max(v, 0)
				}
				s.Normalise(Image{dst, gap}, x, Image{add, gap}, k, shape)
				agree(t, "Normalise "+what, dst, want, 4)
			}
			y := numbers(6, padded)
			y[place(0)] = 0
			for _, add := range [][]float32{nil, numbers(4, n)} {
				dst, want := make([]float32, n), make([]float64, n)
				sums, wantSums := make([]float64, 2*c), make([]float64, 2*c)
				for i := range sums {
					sums[i], wantSums[i] = float64(i), float64(i)
				}
				for i := range n {
					v := float64(d[i])
					if add != nil {
						v = float64(d[i] + add[i])
					}
					if y[place(i)] <= 0 {
						v = 0
					}
					want[i] = v
					wantSums[i%c] += v
					wantSums[c+i%c] += v * float64(x[i]-k[i%c])
				}
				s.Rectify(dst, d, add, Image{y, gap}, x, k, sums, shape)
				agree(t, "Rectify "+what, dst, want, 1)
				for i := range sums {
					if math.Abs(sums[i]-wantSums[i]) > 1e-12*max(1, wantSums[i]) {
						t.Fatalf("Rectify %s: sum %d is %v, want %v", what, i, sums[i], wantSums[i])
					}
				}
			}
			dst := numbers(7, padded)
			want := doubles(dst)
			for i := range n {
				want[place(i)] = coefficient(1, i)*(float64(d[i])-coefficient(3, i)) + coefficient(2, i)*(float64(x[i])-coefficient(0, i))
			}
			s.NormGradient(Image{dst, gap}, d, x, k, shape)
			agree(t, "NormGradient "+what, dst, want, 4)

			sums := make([]float64, 2*c)
			s.Moments(x, sums, n/c, c)
			for i := range c {
				var sum, square float64
				for j := i; j < n; j += c {
					sum, square = sum+float64(x[j]), square+float64(x[j])*float64(x[j])
				}
				if math.Abs(sums[i]-sum) > 1e-12 || math.Abs(sums[c+i]-square) > 1e-12*square {
					t.Fatalf("Moments %s: channel %d has %v and %v, want %v and %v", what, i, sums[i], sums[c+i], sum, square)
				}
			}
		}
	})
}

// Slices that are too short panic in Go, in every set, before the kernel reads or writes.
func TestTooShort(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		short, long := make([]float32, 31), make([]float32, 1000)
		shape := Shape{1, 2, 16}
		for what, f := range map[string]func(){
			"Correlate, result":   func() { s.Correlate(Line{short, 16}, Line{long, 1}, 2, 16, Window{1, 1, 0}, Matrix{long, 16, 16}) },
			"Correlate, image":    func() { s.Correlate(Line{long, 16}, Line{short, 30}, 2, 16, Window{1, 2, 0}, Matrix{long, 16, 16}) },
			"Correlate, weights":  func() { s.Correlate(Line{long, 16}, Line{long, 1}, 2, 16, Window{1, 2, 0}, Matrix{short, 16, 32}) },
			"Correlate, channels": func() { s.Correlate(Line{long, 16}, Line{long, 1}, 2, 17, Window{1, 2, 0}, Matrix{long, 16, 32}) },
			"Outer, result":       func() { s.Outer(Matrix{short, 16, 32}, 2, 16, Points{long, 1, 1}, Points{long, 16, 16}, 1, 2) },
			"Outer, a":            func() { s.Outer(Matrix{long, 16, 32}, 2, 16, Points{short, 1, 30}, Points{long, 16, 16}, 1, 2) },
			"Outer, b":            func() { s.Outer(Matrix{long, 16, 32}, 2, 16, Points{long, 1, 1}, Points{short, 16, 16}, 1, 2) },
			"Dot":                 func() { s.Dot(Line{long, 2}, 2, 2, 16, Line{short, 16}, Line{long, 16}) },
			"Normalise":           func() { s.Normalise(Image{long, 0}, short, Image{}, long, shape) },
			"Normalise, margin":   func() { s.Normalise(Image{make([]float32, 40), 16}, long, Image{}, long, Shape{2, 1, 16}) },
			"Rectify":             func() { s.Rectify(long, short, nil, Image{long, 0}, long, long, make([]float64, 32), shape) },
			"Rectify, sums":       func() { s.Rectify(long, long, nil, Image{long, 0}, long, long, make([]float64, 31), shape) },
			"NormGradient":        func() { s.NormGradient(Image{long, 0}, long, long, short, shape) },
			"Moments":             func() { s.Moments(short, make([]float64, 32), 2, 16) },
			"SGD":                 func() { s.SGD(long, long, short, 1, 1, 1) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", what)
					}
				}()
				f()
			}()
		}
	})
}

// A number that is not one stays where training must notice it.
func TestNotANumber(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		nan := float32(math.NaN())
		x, dst := make([]float32, 16), make([]float32, 16)
		x[3] = nan
		s.Normalise(Image{dst, 0}, x, Image{}, make([]float32, 48), Shape{1, 1, 16})
		if dst[3] == dst[3] || dst[2] != 0 {
			t.Errorf("normalised: %v", dst)
		}
		sums := make([]float64, 32)
		s.Rectify(dst, numbers(1, 16), nil, Image{x, 0}, x, x, sums, Shape{1, 1, 16})
		if dst[3] == 0 || sums[16+3] == sums[16+3] {
			t.Errorf("gradient %v, sums %v", dst, sums)
		}
	})
}

// Every set makes the same step of SGD to the last bit: ranks on different
// machines keep equal parameters.
func TestSGDIsTheSameEverywhere(t *testing.T) {
	for _, n := range []int{1, 16, 33, 1000} {
		w, v, g := numbers(1, n), numbers(2, n), numbers(3, n)
		wantW, wantV := append([]float32(nil), w...), append([]float32(nil), v...)
		const rate, momentum, decay = float32(0.1), float32(0.9), float32(5e-4)
		// In double precision, rounded after each operation: for a single one that
		// is the same as single precision's rounding, and nothing can be fused.
		times := func(a, b float32) float32 { return float32(float64(a) * float64(b)) }
		plus := func(a, b float32) float32 { return float32(float64(a) + float64(b)) }
		for i := range w {
			wantV[i] = plus(times(momentum, wantV[i]), plus(g[i], times(decay, wantW[i])))
			wantW[i] = plus(wantW[i], -times(rate, wantV[i]))
		}
		eachSet(t, func(t *testing.T, s *Set) {
			w, v := append([]float32(nil), w...), append([]float32(nil), v...)
			s.SGD(w, v, g, rate, momentum, decay)
			for i := range w {
				if math.Float32bits(w[i]) != math.Float32bits(wantW[i]) || math.Float32bits(v[i]) != math.Float32bits(wantV[i]) {
					t.Fatalf("%d numbers: element %d is %v with velocity %v, want %v and %v", n, i, w[i], v[i], wantW[i], wantV[i])
				}
			}
		})
	}
}

func BenchmarkConvolution(b *testing.B) {
	for _, s := range Sets() {
		for _, c := range []struct{ side, channels int }{{32, 16}, {16, 32}, {8, 64}} {
			stride := (c.side + 2) * c.channels
			src, dst := numbers(1, (c.side+2)*stride), make([]float32, c.side*c.side*c.channels)
			k := 9 * c.channels
			m := Matrix{numbers(2, k*c.channels), Group, Group * k}
			flops := float64(2*k*c.channels) * float64(c.side*c.side)
			report := func(b *testing.B) {
				b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
			}
			b.Run(fmt.Sprintf("%s/forward/%d", s.Name(), c.channels), func(b *testing.B) {
				for b.Loop() {
					for y := range c.side {
						s.Correlate(Line{dst[y*c.side*c.channels:], c.channels}, Line{src[y*stride:], c.channels}, c.side, c.channels, Window{3, 3 * c.channels, stride}, m)
					}
				}
				report(b)
			})
			b.Run(fmt.Sprintf("%s/weights/%d", s.Name(), c.channels), func(b *testing.B) {
				lines := max(128/c.side, 1)
				for b.Loop() {
					for y := 0; y < c.side; y += lines {
						n := min(lines, c.side-y)
						for r := range 3 {
							part := m
							part.Data = m.Data[r*3*c.channels*Group:]
							s.Outer(part, 3*c.channels, c.channels, Points{src[(y+r)*stride:], stride, c.channels}, Points{dst[y*c.side*c.channels:], c.side * c.channels, c.channels}, n, c.side)
						}
					}
				}
				report(b)
			})
		}
	}
}
