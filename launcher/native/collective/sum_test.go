package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Sums of all lengths around the vector length, at every alignment of dst, equal scalar sums,
// and nothing beyond the end is written.
func TestFloat32(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 4*block + 3 {
		for offset := range 3 {
			a, b, dst := make([]float32, offset+n+1), make([]float32, offset+n+1), make([]float32, offset+n+1)
			for i := range a {
				a[i], b[i], dst[i] = float32(random.NormFloat64()), float32(random.NormFloat64()), -7
			}
			want := make([]float32, n)
			for i := range want {
				want[i] = a[offset+i] + b[offset+i]
			}
			sumFloat32(dst[offset:offset+n], a[offset:], b[offset:])
			check(t, fmt.Sprintf("%d elements at %d", n, offset), dst[offset:offset+n], want)
			if dst[offset+n] != -7 {
				t.Errorf("%d elements at %d: the one behind was written", n, offset)
			}
			sumFloat32(a[offset:offset+n], a[offset:], b[offset:])
			check(t, fmt.Sprintf("%d elements at %d in place", n, offset), a[offset:offset+n], want)
		}
	}
}

func check(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

func TestOthers(t *testing.T) {
	f := []float64{1, 2.5, math.Inf(1)}
	sumFloat64(f, f, []float64{0.25, -2.5, 1})
	if f[0] != 1.25 || f[1] != 0 || !math.IsInf(f[2], 1) {
		t.Errorf("float64: %v", f)
	}
	i := []int64{math.MaxInt64, 3}
	sumInt64(i, i, []int64{1, 4})
	if i[0] != math.MinInt64 || i[1] != 7 {
		t.Errorf("int64: %v", i)
	}
}

func BenchmarkFloat32(b *testing.B) {
	x, y := make([]float32, 8<<10), make([]float32, 8<<10)
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		sumFloat32(x, x, y)
	}
}
