package cpu

import "github.com/scalebench/scalebench/launcher/native/train/cpu/simd"

// A unit is the building block of convolutional networks:
//
//	y = convolution(x),  z = batch norm(y) + shortcut,  outcome = ReLU(z)
//
// It stores y and recomputes its outcome when needed. A batch is far larger than a cache, so a pass
// over its memory costs more than the arithmetic; all work on an image is therefore done while the
// image is in the cache. Forward, an image's outcome is computed right before the next convolution
// reads it, and its y is added to the statistics right after it is written. Backward, the gradient
// by y is computed right before the convolution's backward pass reads it, and the result is at once
// masked and summed for the previous batch norm.
//
// An outcome is stored only if it is another unit's shortcut. The shortcut has no parameters
// (option A of He et al. 2016): where the unit's block halves the image, it takes every second
// pixel of every second row, and where it widens the image, it adds channels of zeros on both
// sides.
type unit struct {
	*conv
	*norm
	net      *network
	source   *unit // unit whose outcome is x; nil: x is the images
	weight   *parameter
	shortcut *unit // or nil
	user     *unit // unit that uses this one as its shortcut, or nil
	place    int   // index in the chain of units

	y    []float32 // of all images
	g    []float32 // gradient by z, of all images
	kept []float32 // padded outcomes of all images, or nil

	// State of the running pass, and the functions for its parts.
	images                                int
	training                              bool
	doPack, doForward, doBackward, doJoin work
}

// unit adds a unit after source, or after the images if source is nil.
func (n *network) unit(source *unit, channels, stride int, shortcut *unit) *unit {
	u := &unit{net: n, source: source, shortcut: shortcut}
	shape := n.image
	if source != nil {
		shape, u.place = source.out, source.place+1
	}
	u.conv = newConv(n.kernels, shape, channels, stride)
	k := u.conv.rows()
	u.weight = n.parameter(channels*k, k, 0)
	u.norm = newNorm(n, channels)
	u.y = make([]float32, n.batch*u.out.Size())
	u.g = n.gradient(u.place, u.out)
	n.needPartial(channels * k)
	n.needRoom(shape)
	n.needRoom(u.out)
	if shortcut != nil {
		size, _ := padded(shortcut.out)
		shortcut.user, shortcut.kept = u, make([]float32, n.batch*size)
	}
	u.doPack, u.doForward, u.doBackward, u.doJoin = u.packPart, u.forwardPart, u.backwardPart, u.joinPart
	n.add(u)
	return u
}

// image returns the part of data that belongs to image i.
func image(data []float32, i, size int) []float32 { return data[i*size : (i+1)*size] }

func (u *unit) forward(images int, training bool) error {
	u.images, u.training = images, training
	if u.net.forwardOnly {
		u.net.threads.each(images, u.doForward) // the rest was done by freeze
		return nil
	}
	u.net.threads.each(u.groups(), u.doPack)
	u.net.threads.each(images, u.doForward)
	if !training {
		u.useAverages()
		return nil
	}
	return u.useBatch(images * u.out.Lines * u.out.Points)
}

func (u *unit) packPart(_, from, to int) { u.pack(u.weight.w, from, to) }

func (u *unit) forwardPart(part, from, to int) {
	sums := u.partial[part]
	clear(sums)
	for i := from; i < to; i++ {
		y := image(u.y, i, u.out.Size())
		u.conv.forward(u.input(part, i, true), y)
		if u.training {
			u.kernels.Moments(y, sums, u.out.Lines*u.out.Points, u.out.Channels)
		}
	}
}

// input returns the padded image i that the convolution reads; first is set when it is needed for the first
// time in this pass.
func (u *unit) input(part, i int, first bool) []float32 {
	if u.source != nil {
		return u.source.outcome(part, i, first)
	}
	dst, from := u.net.roomFor(u.conv.in, roomInput)[part], image(u.net.images, i, u.conv.in.Size())
	_, line := padded(u.conv.in)
	to := inside(dst, u.conv.in).Data
	for n := u.conv.in.Points * u.conv.in.Channels; len(from) > 0; from = from[n:] {
		copy(to, from[:n])
		to = to[min(line, len(to)):]
	}
	return dst
}

// outcome returns the unit's result for image i, with a margin. If u.kept is set, it lies there. Otherwise it is
// in a buffer that the thread's next call for the same shape overwrites.
func (u *unit) outcome(part, i int, first bool) []float32 {
	var dst []float32
	if u.kept == nil {
		dst = u.net.roomFor(u.out, roomInput)[part]
	} else {
		size, _ := padded(u.out)
		dst = image(u.kept, i, size)
		if !first {
			return dst
		}
	}
	var add simd.Image
	if u.shortcut != nil {
		add = u.added(part, i)
	}
	u.kernels.Normalise(inside(dst, u.out), image(u.y, i, u.out.Size()), add, u.coefficients, u.out)
	return dst
}

// margins returns how many channels of zeros the shortcut adds on each side, and its stride in
// pixels.
func (u *unit) margins() (channels, stride int) {
	from, to := u.shortcut.out, u.out
	return (to.Channels - from.Channels) / 2, max((from.Lines+to.Lines-1)/to.Lines, (from.Points+to.Points-1)/to.Points)
}

// added returns the image that the shortcut adds to image i.
func (u *unit) added(part, i int) simd.Image {
	from := u.shortcut.out
	size, line := padded(from)
	whole := inside(image(u.shortcut.kept, i, size), from)
	if from == u.out {
		return whole
	}
	dst := u.net.roomFor(u.out, roomShortcut)[part][:u.out.Size()]
	clear(dst)
	u.eachShortcut(line, func(out, in int) { copy(dst[out:out+from.Channels], whole.Data[in:]) })
	return simd.Image{Data: dst}
}

// eachShortcut calls f for each pixel of the shortcut, with the index of its first channel in the
// outcome's image and in the source image, whose lines have the given length.
func (u *unit) eachShortcut(line int, f func(out, in int)) {
	channels, stride := u.margins()
	for y := range u.out.Lines {
		for x := range u.out.Points {
			f((y*u.out.Points+x)*u.out.Channels+channels, y*stride*line+x*stride*u.shortcut.out.Channels)
		}
	}
}

// arrive receives the gradient d by the outcome of image i from the next layer. It adds the
// gradient through the shortcut if another unit uses this one as its shortcut.
func (u *unit) arrive(part, i int, d, outcome []float32) {
	size := u.out.Size()
	var add []float32
	if s := u.user; s != nil {
		add = image(s.g, i, s.out.Size())
		if s.out != u.out {
			from := add
			add = u.net.roomFor(u.out, roomShortcut)[part][:size]
			clear(add)
			s.eachShortcut(u.out.Points*u.out.Channels, func(out, in int) { copy(add[in:in+u.out.Channels], from[out:]) })
		}
	}
	u.kernels.Rectify(image(u.g, i, size), d, add, inside(outcome, u.out), image(u.y, i, size), u.mean(), u.partial[part], u.out)
}

func (u *unit) backward(images int) error {
	u.images = images
	if err := u.gradients(); err != nil {
		return err
	}
	if u.source != nil {
		u.packGradient(u.weight.w, 0, u.groups())
	}
	u.net.threads.each(images, u.doBackward)
	u.net.threads.each(u.groups(), u.doJoin)
	return nil
}

func (u *unit) backwardPart(part, from, to int) {
	total := u.net.partial[part][:len(u.weight.g)]
	clear(total)
	dy := u.net.roomFor(u.out, roomGradient)[part]
	var dx []float32
	if u.source != nil {
		clear(u.source.partial[part])
		dx = u.net.roomFor(u.conv.in, roomOutcome)[part][:u.conv.in.Size()]
	}
	size := u.out.Size()
	for i := from; i < to; i++ {
		u.kernels.NormGradient(inside(dy, u.out), image(u.g, i, size), image(u.y, i, size), u.gradientCoefficients, u.out)
		x := u.input(part, i, false)
		u.weights(x, dy, total)
		if u.source != nil {
			u.gradient(dy, dx)
			u.source.arrive(part, i, dx, x)
		}
	}
}

// joinPart adds up the threads' sums for some groups of channels, in order.
func (u *unit) joinPart(_, from, to int) {
	begin, end := from*u.packed.Block, to*u.packed.Block
	total := u.net.partial[0][begin:end]
	for _, partial := range u.net.partial[1:] {
		for i, v := range partial[begin:end] {
			total[i] += v
		}
	}
	u.unpack(u.net.partial[0], u.weight.g, from, to)
}

// pool averages each channel over the whole image.
type pool struct {
	net                   *network
	in                    *unit
	out                   *tensor
	sums                  [][]float64 // by thread
	doForward, doBackward work
}

func (n *network) pool(in *unit) *pool {
	p := &pool{net: n, in: in, out: n.tensor(in.out.Channels, true)}
	for range n.threads.n {
		p.sums = append(p.sums, make([]float64, 2*in.out.Channels))
	}
	p.doForward, p.doBackward = p.forwardPart, p.backwardPart
	n.add(p)
	return p
}

func (p *pool) pixels() float64 { return float64(p.in.out.Lines * p.in.out.Points) }

func (p *pool) forward(images int, _ bool) error {
	p.net.threads.each(images, p.doForward)
	return nil
}

func (p *pool) forwardPart(part, from, to int) {
	sums := p.sums[part]
	for i := from; i < to; i++ {
		clear(sums)
		x := p.in.outcome(part, i, true) // the margin is zero and does not change the sum
		p.net.kernels.Moments(x, sums, len(x)/p.out.size, p.out.size)
		for c, out := 0, image(p.out.data, i, p.out.size); c < len(out); c++ {
			out[c] = float32(sums[c] / p.pixels())
		}
	}
}

func (p *pool) backward(images int) error {
	p.net.threads.each(images, p.doBackward)
	return nil
}

func (p *pool) backwardPart(part, from, to int) {
	clear(p.in.partial[part])
	d := p.net.roomFor(p.in.out, roomOutcome)[part][:p.in.out.Size()]
	for i := from; i < to; i++ {
		for c, v := range image(p.out.grad, i, p.out.size) {
			d[c] = float32(float64(v) / p.pixels())
		}
		for at := p.out.size; at < len(d); at *= 2 {
			copy(d[at:], d[:at])
		}
		p.in.arrive(part, i, d, p.in.outcome(part, i, false))
	}
}
