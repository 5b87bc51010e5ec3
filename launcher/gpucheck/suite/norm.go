//go:build cgo

package suite

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

const (
	epsilon  = 1e-5
	momentum = 0.1
)

// reduced sums rows of sums until few are left, as an engine does.
func (b *bench) reduced(from cuda.Pointer, rows, columns, chunk int32) (cuda.Pointer, int32) {
	b.Helper()
	left := ptx.Chunks(rows, chunk)
	to := room[float64](b, int(left*columns))
	b.did(b.SumRows(b.stream, ptx.SumRows{From: from, To: to, Rows: rows, Columns: columns, Chunk: chunk}))
	return to, left
}

// units returns the forms of units that networks contain: without a shortcut, with one of the same shape, and
// with one that takes every second pixel and has fewer channels, for even and odd numbers of pixels.
func units() []unit {
	shape := ptx.Shape{Images: 3, Lines: 4, Points: 3, Channels: 6}
	return []unit{
		{name: "plain", shape: shape},
		{name: "one-line", shape: ptx.Shape{Images: 1, Lines: 1, Points: 5, Channels: 3}},
		{name: "many", shape: ptx.Shape{Images: 5, Lines: 9, Points: 8, Channels: 3}},
		{name: "same", shape: shape, shortcutShape: shape, stride: 1},
		{name: "widening", shape: shape, shortcutShape: ptx.Shape{Images: 3, Lines: 8, Points: 6, Channels: 2}, stride: 2},
		{name: "odd", shape: shape, shortcutShape: ptx.Shape{Images: 3, Lines: 7, Points: 5, Channels: 4}, stride: 2},
	}
}

// drawn draws a unit's parameters, shortcut and input: far from a mean of 0, where sums of squares in single
// precision would fail, and without values close to the ReLU's corner, where finite differences do not give the
// gradient.
func drawn(b *bench, u unit) (unit, []float64) {
	c := int(u.shape.Channels)
	u.epsilon = epsilon
	for {
		u.scale, u.shift = b.draw(c), b.draw(c)
		if u.stride > 0 {
			u.shortcut = b.draw(elements(u.shortcutShape))
		}
		y := b.draw(elements(u.shape))
		for i := range y {
			y[i] = float64(float32(30 + y[i]))
		}
		mean, variance := u.statistics(y)
		_, before := u.outcome(y, mean, variance)
		if !slices.ContainsFunc(before, func(v float64) bool { return math.Abs(v) < 1e-3 }) {
			return u, y
		}
	}
}

// Training: statistics, running averages and the outcome, and then all gradients,
// which are those that small changes of scale, shift, y and the shortcut have.
func norm(b *bench, u unit) {
	u, y := drawn(b, u)
	c := u.shape.Channels
	rows := int32(len(y)) / c
	count := float64(rows)
	chunk := ptx.Chunk(rows)

	mean, variance := u.statistics(y)
	outcome, _ := u.outcome(y, mean, variance)

	from, scale, shift := b.single(y), b.single(u.scale), b.single(u.shift)
	partial := room[float64](b, int(ptx.Chunks(rows, chunk)*2*c))
	b.did(b.Moments(b.stream, ptx.Moments{From: from, To: partial, Rows: rows, Channels: c, Chunk: chunk}))
	sums, left := b.reduced(partial, ptx.Chunks(rows, chunk), 2*c, chunk)
	averages := b.draw(2 * int(c))
	runningMean, runningVariance := b.single(averages[:c]), b.single(averages[c:])
	inverse, coefficients := room[float64](b, int(c)), room[float32](b, int(3*c))
	b.did(b.NormStatistics(b.stream, ptx.NormStatistics{Sums: sums, Scale: scale, Shift: shift, RunningMean: runningMean, RunningVariance: runningVariance,
		Inverse: inverse, Coefficients: coefficients, Count: count, Epsilon: epsilon, Momentum: momentum, Rows: left, Channels: c}))
	var wantInverse, wantMean, wantVariance []float64
	for i := range c {
		wantInverse = append(wantInverse, 1/math.Sqrt(variance[i]+epsilon))
		wantMean = append(wantMean, (1-momentum)*averages[i]+momentum*mean[i])
		wantVariance = append(wantVariance, (1-momentum)*averages[c+i]+momentum*variance[i]*count/(count-1))
	}
	near[float64](b, "inverse deviation", inverse, wantInverse, 1e-8)
	near[float32](b, "running mean", runningMean, wantMean, 1e-6)
	near[float32](b, "running variance", runningVariance, wantVariance, 1e-6)

	var shortcut cuda.Pointer
	if u.shortcut != nil {
		shortcut = b.single(u.shortcut)
	}
	to := room[float32](b, len(y))
	b.did(b.Normalise(b.stream, ptx.Normalise{From: from, Coefficients: coefficients, Shortcut: shortcut, To: to,
		Shape: u.shape, ShortcutShape: u.shortcutShape, Stride: int32(u.stride)}))
	near[float32](b, "outcome", to, outcome, 3e-5) // of 30, single precision leaves 2e-6, which scales enlarge

	// The loss is a weighted sum of the outcomes.
	weights := b.draw(len(y))
	loss := func() float64 {
		mean, variance := u.statistics(y)
		outcome, _ := u.outcome(y, mean, variance)
		return dot(weights, outcome)
	}
	g := room[float32](b, len(y))
	b.did(b.Rectify(b.stream, ptx.Rectify{From: b.single(weights), Outcome: to, To: g, Shape: u.shape}))
	inPlace := b.single(weights)
	b.did(b.Rectify(b.stream, ptx.Rectify{From: inPlace, Outcome: to, To: inPlace, Shape: u.shape}))
	same(b, "rectify in place", inPlace, get[float32](b, g, len(y)))
	gPartial := room[float64](b, int(ptx.Chunks(rows, chunk)*2*c))
	b.did(b.GradientMoments(b.stream, ptx.GradientMoments{Gradient: g, From: from, Mean: coefficients, To: gPartial, Rows: rows, Channels: c, Chunk: chunk}))
	gSums, gLeft := b.reduced(gPartial, ptx.Chunks(rows, chunk), 2*c, chunk)
	scaleGradient, shiftGradient, gCoefficients := room[float32](b, int(c)), room[float32](b, int(c)), room[float32](b, int(4*c))
	b.did(b.NormGradientCoefficients(b.stream, ptx.NormGradientCoefficients{Own: gSums, All: gSums, Inverse: inverse, Scale: scale, Mean: coefficients,
		ScaleGradient: scaleGradient, ShiftGradient: shiftGradient, Coefficients: gCoefficients, Count: count, OwnRows: gLeft, AllRows: gLeft, Channels: c}))
	near[float32](b, "gradient of scale", scaleGradient, derivative(u.scale, loss), 3e-5)
	near[float32](b, "gradient of shift", shiftGradient, derivative(u.shift, loss), 3e-5)
	dy := room[float32](b, len(y))
	b.did(b.NormGradient(b.stream, ptx.NormGradient{Gradient: g, From: from, Coefficients: gCoefficients, To: dy, Rows: rows, Channels: c}))
	near[float32](b, "gradient by y", dy, derivative(y, loss), 1e-4)
	b.did(b.NormGradient(b.stream, ptx.NormGradient{Gradient: inPlace, From: from, Coefficients: gCoefficients, To: inPlace, Rows: rows, Channels: c}))
	same(b, "norm_gradient in place", inPlace, get[float32](b, dy, len(y)))
	if u.shortcut == nil {
		return
	}

	// The shortcut's unit: its outcome is the shortcut, which has a gradient from
	// elsewhere too.
	for i := range u.shortcut {
		u.shortcut[i] = math.Abs(u.shortcut[i]) // an outcome that its own ReLU let through
	}
	elsewhere := b.draw(len(u.shortcut))
	changed := func() float64 {
		outcome, before := u.outcome(y, mean, variance)
		sum := 0.0
		for i := range outcome {
			sum += weights[i] * before[i] // g is of what the ReLU reads
		}
		return sum + dot(elsewhere, u.shortcut)
	}
	user := b.single(weights)
	want := derivative(u.shortcut, changed)
	for i := 0; i < len(want); i += 3 {
		u.shortcut[i], want[i] = 0, 0 // at every third element ReLU passes no gradient
	}
	both := room[float32](b, len(want))
	b.did(b.Rectify(b.stream, ptx.Rectify{From: b.single(elsewhere), Outcome: b.single(u.shortcut), User: user, To: both,
		Shape: u.shortcutShape, UserShape: u.shape, Stride: int32(u.stride)}))
	near[float32](b, "gradient by the shortcut", both, want, 1e-5)
}

// With statistics of all ranks, those are of the joined batch, while the gradients of
// scale and shift are a rank's share, and add up to the batch's.
func synchronisedNorm(b *bench) {
	const c, rows = 4, 6
	u := unit{shape: ptx.Shape{Images: 2, Lines: rows, Points: 1, Channels: c}, scale: b.draw(c), shift: b.draw(c), epsilon: epsilon}
	y, weights := b.draw(2*rows*c), b.draw(2*rows*c)
	scale, shift := b.single(u.scale), b.single(u.shift)
	loss := func() float64 {
		mean, variance := u.statistics(y)
		outcome, _ := u.outcome(y, mean, variance)
		return dot(weights, outcome)
	}
	// all holds the result of the ranks' all-reduce: both sums, as rows here.
	moments, gradients := room[float64](b, 2*2*c), room[float64](b, 2*2*c)
	row := func(p cuda.Pointer, rank int) cuda.Pointer { return p + cuda.Pointer(rank*2*c*8) }
	var from, g, dy, inverse [2]cuda.Pointer
	for rank := range from {
		from[rank] = b.single(y[rank*rows*c:][:rows*c])
		b.did(b.Moments(b.stream, ptx.Moments{From: from[rank], To: row(moments, rank), Rows: rows, Channels: c, Chunk: rows}))
	}
	coefficients := room[float32](b, 3*c)
	for rank := range from {
		inverse[rank] = room[float64](b, c)
		averages := b.single(make([]float64, 2*c))
		b.did(b.NormStatistics(b.stream, ptx.NormStatistics{Sums: moments, Scale: scale, Shift: shift, RunningMean: averages, RunningVariance: averages + 4*c,
			Inverse: inverse[rank], Coefficients: coefficients, Count: 2 * rows, Epsilon: epsilon, Momentum: momentum, Rows: 2, Channels: c}))
		outcome := room[float32](b, rows*c)
		shape := ptx.Shape{Images: 1, Lines: rows, Points: 1, Channels: c}
		b.did(b.Normalise(b.stream, ptx.Normalise{From: from[rank], Coefficients: coefficients, To: outcome, Shape: shape}))
		g[rank] = room[float32](b, rows*c)
		b.did(b.Rectify(b.stream, ptx.Rectify{From: b.single(weights[rank*rows*c:][:rows*c]), Outcome: outcome, To: g[rank], Shape: shape}))
		b.did(b.GradientMoments(b.stream, ptx.GradientMoments{Gradient: g[rank], From: from[rank], Mean: coefficients, To: row(gradients, rank), Rows: rows, Channels: c, Chunk: rows}))
	}
	wantScale, wantShift, wantY := derivative(u.scale, loss), derivative(u.shift, loss), derivative(y, loss)
	gotScale, gotShift := make([]float64, c), make([]float64, c)
	for rank := range from {
		scaleGradient, shiftGradient, k := room[float32](b, c), room[float32](b, c), room[float32](b, 4*c)
		b.did(b.NormGradientCoefficients(b.stream, ptx.NormGradientCoefficients{Own: row(gradients, rank), All: gradients, Inverse: inverse[rank], Scale: scale, Mean: coefficients,
			ScaleGradient: scaleGradient, ShiftGradient: shiftGradient, Coefficients: k, Count: 2 * rows, OwnRows: 1, AllRows: 2, Channels: c}))
		for i, v := range get[float32](b, scaleGradient, c) {
			gotScale[i] += float64(v)
		}
		for i, v := range get[float32](b, shiftGradient, c) {
			gotShift[i] += float64(v)
		}
		dy[rank] = room[float32](b, rows*c)
		b.did(b.NormGradient(b.stream, ptx.NormGradient{Gradient: g[rank], From: from[rank], Coefficients: k, To: dy[rank], Rows: rows, Channels: c}))
		near[float32](b, fmt.Sprintf("rank %d: gradient by y", rank), dy[rank], wantY[rank*rows*c:][:rows*c], 1e-5)
	}
	for i := range c {
		if math.Abs(gotScale[i]-wantScale[i]) > 1e-5 || math.Abs(gotShift[i]-wantShift[i]) > 1e-5 {
			b.Errorf("channel %d: gradients of scale and shift %v, %v; want %v, %v", i, gotScale[i], gotShift[i], wantScale[i], wantShift[i])
		}
	}
}

// Evaluation takes the running averages.
func normAverages(b *bench) {
	const c = 5
	mean, variance, scale, shift := b.draw(c), b.draw(c), b.draw(c), b.draw(c)
	want := slices.Clone(mean)
	for i := range c {
		variance[i] = float64(float32(math.Abs(variance[i])))
		want = append(want, scale[i]/math.Sqrt(variance[i]+epsilon))
	}
	want = append(want, shift...)
	to := room[float32](b, 3*c)
	b.did(b.NormAverages(b.stream, ptx.NormAverages{RunningMean: b.single(mean), RunningVariance: b.single(variance), Scale: b.single(scale), Shift: b.single(shift),
		Coefficients: to, Epsilon: epsilon, Channels: c}))
	near[float32](b, "coefficients", to, want, 1e-6)
}

// NaN stays NaN: an outcome of 0 would hide it.
func naNStays(b *bench) {
	nan := math.NaN()
	shape := ptx.Shape{Images: 1, Lines: 1, Points: 1, Channels: 2}
	to := room[float32](b, 2)
	b.did(b.Normalise(b.stream, ptx.Normalise{From: b.single([]float64{nan, -1}), Coefficients: b.single([]float64{0, 0, 1, 1, 0, 0}), To: to, Shape: shape}))
	if v := get[float32](b, to, 2); v[0] == v[0] || v[1] != 0 {
		b.Errorf("normalise: %v", v)
	}
	b.did(b.Bias(b.stream, ptx.Bias{From: b.single([]float64{nan, -1}), Bias: b.single([]float64{0, 0}), To: to, Rows: 1, Columns: 2, ReLU: 1}))
	if v := get[float32](b, to, 2); v[0] == v[0] || v[1] != 0 {
		b.Errorf("bias: %v", v)
	}
	inverse, coefficients, averages := room[float64](b, 1), room[float32](b, 3), b.single([]float64{0, 0})
	b.did(b.NormStatistics(b.stream, ptx.NormStatistics{Sums: put(b, []float64{nan, 1}), Scale: b.single([]float64{1}), Shift: b.single([]float64{1}),
		RunningMean: averages, RunningVariance: averages + 4, Inverse: inverse, Coefficients: coefficients, Count: 2, Epsilon: epsilon, Momentum: momentum, Rows: 1, Channels: 1}))
	if v := get[float64](b, inverse, 1); v[0] == v[0] {
		b.Errorf("norm_statistics: %v", v)
	}
}
