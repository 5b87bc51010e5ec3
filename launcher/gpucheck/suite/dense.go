//go:build cgo

package suite

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

func bias(b *bench) {
	for _, relu := range []int32{0, 1} {
		const rows, columns = 37, 11
		x, bias := b.draw(rows*columns), b.draw(columns)
		want := make([]float64, len(x))
		for i, v := range x {
			if want[i] = v + bias[i%columns]; relu == 1 {
				want[i] = max(want[i], 0)
			}
		}
		p := b.single(x)
		b.did(b.Bias(b.stream, ptx.Bias{From: p, Bias: b.single(bias), To: p, Rows: rows, Columns: columns, ReLU: relu}))
		near[float32](b, fmt.Sprintf("ReLU %d", relu), p, want, 1e-6)
	}
}

func columnSums(b *bench) {
	for _, size := range [][2]int32{{1, 1}, {1, 10}, {37, 11}, {128, 3}, {1000, 1}} {
		rows, columns := size[0], size[1]
		x := b.draw(int(rows * columns))
		want := make([]float64, columns)
		for i, v := range x {
			want[i%int(columns)] += v
		}
		for _, chunk := range []int32{1, ptx.Chunk(rows), rows, rows + 1} {
			n := ptx.Chunks(rows, chunk)
			partial := room[float64](b, int(n*columns))
			b.did(b.ColumnSums(b.stream, ptx.ColumnSums{From: b.single(x), To: partial, Rows: rows, Columns: columns, Chunk: chunk}))
			sums, left := b.reduced(partial, n, columns, chunk)
			to := room[float32](b, int(columns))
			b.did(b.BiasGradient(b.stream, ptx.BiasGradient{From: sums, To: to, Rows: left, Columns: columns}))
			near[float32](b, fmt.Sprintf("%d × %d in chunks of %d", rows, columns, chunk), to, want, 1e-6)
		}
	}
}

// crossEntropyGradient returns the softmax, less 1 for the label.
func crossEntropyGradient(logits []float64, label int, scale float64) []float64 {
	list := make([]float64, len(logits))
	for j := range logits {
		list[j] = scale * math.Exp(-crossEntropy(logits, j))
	}
	list[label] -= scale
	return list
}

func crossEntropies(b *bench) {
	for _, classes := range []int{2, 10, 257} {
		const images, scale = 300, 0.125
		logits := b.draw(images * classes)
		labels := make([]uint8, images)
		var wantGradient, want []float64
		for i := range images {
			labels[i] = uint8(b.random.IntN(min(classes, 256)))
			own := logits[i*classes:][:classes]
			for j := range own {
				own[j] = float64(float32(math.Exp(float64(i%9)) / 10 * own[j])) // up to a few hundreds
			}
			if i%7 == 0 {
				own[classes-1] = own[0] // equals, of which the first counts
			}
			label := int(labels[i])
			right := 0.0
			if slices.Index(own, slices.Max(own)) == label {
				right = 1
			}
			want = append(want, crossEntropy(own, label), right)
			slopes := crossEntropyGradient(own, label, scale)
			wantGradient = append(wantGradient, slopes...)
			if i >= 9 {
				continue
			}
			for j, v := range derivative(own, func() float64 { return scale * crossEntropy(own, label) }) {
				if math.Abs(slopes[j]-v) > 1e-6 {
					b.Fatalf("image %d, class %d: the reference's own gradient is %v, and by differences %v", i, j, slopes[j], v)
				}
			}
		}
		to, gradient := room[float64](b, 2*images), room[float32](b, images*classes)
		args := ptx.CrossEntropy{Logits: b.single(logits), Labels: put(b, labels), Gradient: gradient, To: to, Scale: scale, Images: images, Classes: int32(classes)}
		b.did(b.CrossEntropy(b.stream, args))
		what := fmt.Sprintf("%d classes: ", classes)
		// Differences of logits are of single precision.
		near[float64](b, what+"losses", to, want, 2e-7)
		near[float32](b, what+"gradients", gradient, wantGradient, 1e-6)
		args.Gradient, args.To = 0, room[float64](b, 2*images)
		b.did(b.CrossEntropy(b.stream, args))
		near[float64](b, what+"losses alone", args.To, want, 2e-7)
	}
}

// exp and log are written out in the kernel: with two classes, whose logits are 0 and
// −x, the loss is log(1 + exp(−x)), and the gradient by the second exp(−x)/(1 + exp(−x)).
func exponentialAndLogarithm(b *bench) {
	const images = 20000
	logits, labels := make([]float32, 2*images), make([]uint8, images)
	var want, wantGradient []float64
	for i := range images {
		x := float32(i) * 0.04 // up to 800, where exp underflows
		logits[2*i+1] = -x
		p := math.Exp(-float64(x))
		want, wantGradient = append(want, math.Log(1+p), 1), append(wantGradient, -p/(1+p), p/(1+p))
	}
	to, gradient := room[float64](b, 2*images), room[float32](b, 2*images)
	b.did(b.CrossEntropy(b.stream, ptx.CrossEntropy{Logits: put(b, logits), Labels: put(b, labels), Gradient: gradient, To: to, Scale: 1, Images: images, Classes: 2}))
	near[float64](b, "losses", to, want, 4e-16)
	// Relative to the gradient, not to 1, down to single precision's smallest normal
	// number. (The label's own is a difference from 1.)
	for i, v := range get[float32](b, gradient, 2*images) {
		if w := wantGradient[i]; i%2 == 1 && w > 1.2e-38 && math.Abs(float64(v)-w) > 6e-8*w {
			b.Fatalf("x = %v: a gradient of %v, want %v", -logits[i], v, w)
		}
	}
}

// Logits and labels that are wrong give no loss that looks right.
func crossEntropyOfNonsense(b *bench) {
	nan, infinite := math.NaN(), math.Inf(1)
	logits := []float64{0, nan, 1, nan, 0, 1, 0, 1, nan, infinite, 0, infinite, 0, 1, 2}
	labels := []uint8{0, 0, 2, 1, 3}
	to, gradient := room[float64](b, 10), room[float32](b, 15)
	b.did(b.CrossEntropy(b.stream, ptx.CrossEntropy{Logits: b.single(logits), Labels: put(b, labels), Gradient: gradient, To: to, Scale: 1, Images: 5, Classes: 3}))
	for i, v := range get[float64](b, to, 10) {
		if i%2 == 0 && !math.IsNaN(v) || i%2 == 1 && v != 0 {
			b.Errorf("image %d: %v", i/2, v)
		}
	}
	if loss := get[float64](b, to, 1)[0]; !math.IsNaN(loss) {
		b.Errorf("a loss of %v", loss)
	}
}
