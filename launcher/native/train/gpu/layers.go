//go:build cgo

package gpu

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// A unit is the building block of convolutional networks:
//
//	y = convolution(x),  z = batch norm(y) + shortcut,  outcome = ReLU(z)
//
// A convolution is a matrix product of the inputs of each output pixel (columns) and the weights.
type unit struct {
	net      *network
	source   *unit // unit whose outcome is x; nil: x is the images
	shortcut *unit // or nil
	user     *unit // unit that uses this one as its shortcut, or nil
	place    int   // index in the chain of units
	in, out  ptx.Shape
	stride   int32

	weight, scale, shift         *parameter
	y, outcome                   cuda.Pointer
	g                            cuda.Pointer // gradient by z
	runningMean, runningVariance cuda.Pointer // see network.bindStatistics
	inverse                      cuda.Pointer // float64
	coefficients                 cuda.Pointer // coefficients of Normalise, means first
	gradientCoefficients         cuda.Pointer
}

const taps = 9

func (n *network) addUnit(image ptx.Shape, l netspec.Layer) {
	u := &unit{net: n, place: len(n.units), in: image, stride: int32(l.Stride)}
	if u.place > 0 {
		u.source = n.units[u.place-1]
		u.in = u.source.out
	}
	u.in.Images = 0 // a pass sets the number of images
	u.out = u.in.Convolved(int32(l.Outputs), u.stride)
	if l.Shortcut {
		u.shortcut = n.units[u.place-2]
		u.shortcut.user = u
	}
	c := l.Outputs
	u.weight, u.scale, u.shift = n.parameter(c*u.taps()), n.parameter(c), n.parameter(c)
	whole := n.whole(u.out)
	n.arena.floats(elements(whole), &u.y)
	n.arena.floats(elements(whole), &u.outcome)
	k := chain{u.out, u.place%2 == 1}
	if r := n.gradients[k]; r != nil {
		r.also(&u.g)
	} else {
		n.gradients[k] = n.arena.floats(elements(whole), &u.g)
	}
	n.arena.doubles(int64(c), &u.inverse)
	n.arena.floats(3*int64(c), &u.coefficients)
	n.arena.floats(4*int64(c), &u.gradientCoefficients)
	n.columns.need(rows(whole) * int64(u.taps()))
	n.delta.need(elements(whole))
	n.rounded[0].need(elements(whole))
	n.arriving.need(elements(whole))
	n.needSums(rows(whole), 2*c)
	n.units, n.layers = append(n.units, u), append(n.layers, u)
}

// taps returns the number of inputs of an output pixel.
func (u *unit) taps() int { return taps * int(u.in.Channels) }

func (u *unit) channels() int { return int(u.out.Channels) }

// x returns the convolution's input.
func (u *unit) x() cuda.Pointer {
	if u.source == nil {
		return u.net.images
	}
	return u.source.outcome
}

// shapes returns the shapes in a pass of that many images.
func (u *unit) shapes(images int32) (in, out ptx.Shape) {
	in, out = u.in, u.out
	in.Images, out.Images = images, images
	return in, out
}

// between returns the shortcut's stride in pixels.
func (u *unit) between() int32 {
	from, to := u.shortcut.out, u.out
	return max((from.Lines+to.Lines-1)/to.Lines, (from.Points+to.Points-1)/to.Points)
}

// gather computes the columns, in the form that products take.
func (u *unit) gather(in, out ptx.Shape) cuda.Matrix {
	n, columns := u.net, matrix(u.net.columns.at, rows(out), u.taps())
	a := ptx.Im2col{From: u.x(), To: columns.At, In: in, Out: out, Stride: u.stride}
	if n.narrow {
		columns.Type = cuda.BFloat16
		n.do(n.kernels.Im2colBfloat16(n.stream, ptx.Im2colBfloat16(a)))
		return columns
	}
	n.do(n.kernels.Im2col(n.stream, a))
	return columns
}

func (u *unit) forward(images int32, training bool) {
	n, c := u.net, u.channels()
	in, out := u.shapes(images)
	r := rows(out)
	n.product(matrix(u.y, r, c), u.gather(in, out), transposed(n.weight(u.weight, u.taps())))
	if training {
		chunk := ptx.Chunk(int32(r))
		n.do(n.kernels.Moments(n.stream, ptx.Moments{From: u.y, To: n.partial.at, Rows: int32(r), Channels: int32(c), Chunk: chunk}))
		sums, left := n.sums.at, n.sumUp(r, 2*c)
		if n.sumOverRanks != nil {
			_, sums = n.sumOfRanks(left, 2*c)
			left = 1
		}
		n.do(n.kernels.NormStatistics(n.stream, ptx.NormStatistics{
			Sums: sums, Rows: left, Channels: int32(c), Count: float64(r) * float64(n.ranks),
			Scale: u.scale.w, Shift: u.shift.w, RunningMean: u.runningMean, RunningVariance: u.runningVariance,
			Inverse: u.inverse, Coefficients: u.coefficients, Epsilon: cpu.NormEpsilon, Momentum: cpu.NormMomentum,
		}))
	} else {
		n.do(n.kernels.NormAverages(n.stream, ptx.NormAverages{
			RunningMean: u.runningMean, RunningVariance: u.runningVariance, Scale: u.scale.w, Shift: u.shift.w,
			Coefficients: u.coefficients, Epsilon: cpu.NormEpsilon, Channels: int32(c),
		}))
	}
	a := ptx.Normalise{From: u.y, Coefficients: u.coefficients, To: u.outcome, Shape: out, Stride: 1}
	if s := u.shortcut; s != nil {
		a.Shortcut, a.Stride = s.outcome, u.between()
		_, a.ShortcutShape = s.shapes(images)
	}
	n.do(n.kernels.Normalise(n.stream, a))
}

func (u *unit) backward(images int32) {
	n, c := u.net, u.channels()
	in, out := u.shapes(images)
	r := rows(out)
	chunk := ptx.Chunk(int32(r))
	n.do(n.kernels.GradientMoments(n.stream, ptx.GradientMoments{Gradient: u.g, From: u.y, Mean: u.coefficients, To: n.partial.at, Rows: int32(r), Channels: int32(c), Chunk: chunk}))
	own := n.sums.at
	left := n.sumUp(r, 2*c)
	all := own
	if n.sumOverRanks != nil {
		own, all = n.sumOfRanks(left, 2*c)
		left = 1
	}
	n.do(n.kernels.NormGradientCoefficients(n.stream, ptx.NormGradientCoefficients{
		Own: own, All: all, OwnRows: left, AllRows: left, Channels: int32(c), Count: float64(r) * float64(n.ranks),
		Inverse: u.inverse, Scale: u.scale.w, Mean: u.coefficients,
		ScaleGradient: u.scale.g, ShiftGradient: u.shift.g, Coefficients: u.gradientCoefficients,
	}))
	n.do(n.kernels.NormGradient(n.stream, ptx.NormGradient{Gradient: u.g, From: u.y, Coefficients: u.gradientCoefficients, To: n.delta.at, Rows: int32(r), Channels: int32(c)}))
	delta := n.factor(matrix(n.delta.at, r, c), 0)
	n.product(matrix(u.weight.g, int64(c), u.taps()), transposed(delta), u.gather(in, out))
	if u.source == nil {
		return // the gradient by the images is not needed
	}
	n.product(matrix(n.columns.at, r, u.taps()), delta, n.weight(u.weight, u.taps()))
	n.do(n.kernels.Col2im(n.stream, ptx.Col2im{From: n.columns.at, To: n.arriving.at, In: in, Out: out, Stride: u.stride}))
	u.source.arrive(images)
}

// arrive computes the gradient by z from the gradient by the outcome, which the next layer stored
// in n.arriving. It adds the gradient through the shortcut if another unit uses this one as its
// shortcut.
func (u *unit) arrive(images int32) {
	_, out := u.shapes(images)
	a := ptx.Rectify{From: u.net.arriving.at, Outcome: u.outcome, To: u.g, Shape: out, Stride: 1}
	if s := u.user; s != nil {
		a.User, a.Stride = s.g, s.between()
		_, a.UserShape = s.shapes(images)
	}
	u.net.do(u.net.kernels.Rectify(u.net.stream, a))
}

// pool averages each channel over the whole image.
type pool struct {
	net *network
	in  *unit
	out *tensor
}

func (n *network) addPool(in *unit) *tensor {
	p := &pool{net: n, in: in, out: n.tensor(in.channels())}
	n.layers = append(n.layers, p)
	return p.out
}

func (p *pool) forward(images int32, _ bool) {
	_, shape := p.in.shapes(images)
	p.net.do(p.net.kernels.Pool(p.net.stream, ptx.Pool{From: p.in.outcome, To: p.out.data, Shape: shape}))
}

func (p *pool) backward(images int32) {
	_, shape := p.in.shapes(images)
	p.net.do(p.net.kernels.PoolGradient(p.net.stream, ptx.PoolGradient{From: p.out.grad, To: p.net.arriving.at, Shape: shape}))
	p.in.arrive(images)
}

// dense is a fully connected layer, y = W·x + b, optionally followed by a ReLU.
type dense struct {
	net          *network
	in, out      *tensor
	relu         bool
	weight, bias *parameter
}

func (n *network) addDense(in *tensor, outputs int, relu bool) *tensor {
	d := &dense{net: n, in: in, out: n.tensor(outputs), relu: relu}
	d.weight, d.bias = n.parameter(outputs*in.size), n.parameter(outputs)
	n.needSums(int64(n.batch), outputs)
	n.rounded[0].need(int64(n.batch) * int64(outputs))
	n.rounded[1].need(int64(n.batch) * int64(in.size))
	n.layers = append(n.layers, d)
	return d.out
}

// x returns the layer's input.
func (d *dense) x() cuda.Pointer {
	if d.in.data == 0 {
		return d.net.images
	}
	return d.in.data
}

func (d *dense) forward(images int32, _ bool) {
	n, m, k := d.net, d.out.size, d.in.size
	r := int64(images)
	n.product(matrix(d.out.data, r, m), n.factor(matrix(d.x(), r, k), 1), transposed(n.weight(d.weight, k)))
	a := ptx.Bias{From: d.out.data, Bias: d.bias.w, To: d.out.data, Rows: images, Columns: int32(m)}
	if d.relu {
		a.ReLU = 1
	}
	n.do(n.kernels.Bias(n.stream, a))
}

func (d *dense) backward(images int32) {
	n, m, k := d.net, d.out.size, d.in.size
	r := int64(images)
	if d.relu {
		shape := ptx.Shape{Images: images, Lines: 1, Points: 1, Channels: int32(m)}
		n.do(n.kernels.Rectify(n.stream, ptx.Rectify{From: d.out.grad, Outcome: d.out.data, To: d.out.grad, Shape: shape, Stride: 1}))
	}
	n.do(n.kernels.ColumnSums(n.stream, ptx.ColumnSums{From: d.out.grad, To: n.partial.at, Rows: images, Columns: int32(m), Chunk: ptx.Chunk(images)}))
	left := n.sumUp(r, m)
	n.do(n.kernels.BiasGradient(n.stream, ptx.BiasGradient{From: n.sums.at, To: d.bias.g, Rows: left, Columns: int32(m)}))
	gradient := n.factor(matrix(d.out.grad, r, m), 0)
	n.product(matrix(d.weight.g, int64(m), k), transposed(gradient), n.factor(matrix(d.x(), r, k), 1))
	if d.in.grad != 0 {
		n.product(matrix(d.in.grad, r, k), gradient, n.weight(d.weight, k))
	}
}
