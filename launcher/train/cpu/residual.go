package cpu

// residual is the end of a residual block: out = ReLU(branch + shortcut(in)).
// The shortcut has no parameters (option A of He et al. 2016): where the block
// halves the image, it takes every second pixel of every second row, and where
// it widens, it puts channels of zeros on both sides.
//
// Branch and output share the memory of their gradient. Backward sets the
// input's gradient; the block's first convolution, which comes later in the
// backward pass, adds to it.
type residual struct {
	net             *network
	in, branch, out *tensor
	stride, pad     int
}

func (n *network) residual(in, branch *tensor) *residual {
	r := &residual{net: n, in: in, branch: branch, stride: in.h / branch.h, pad: (branch.c - in.c) / 2}
	r.out = n.tensor(branch.h, branch.w, branch.c, false)
	r.out.grad = branch.grad
	n.add(r)
	return r
}

// pixels calls f with where each output pixel of the images begins, and the
// input pixel that its shortcut comes from.
func (r *residual) pixels(from, to int, f func(out, in int)) {
	at := from * r.out.size()
	for image := from; image < to; image++ {
		for y := range r.out.h {
			for x := range r.out.w {
				f(at, ((image*r.in.h+y*r.stride)*r.in.w+x*r.stride)*r.in.c)
				at += r.out.c
			}
		}
	}
}

func (r *residual) forward(n int, _ bool) error {
	size := r.out.size()
	r.net.threads.each(n, func(_, from, to int) {
		copy(r.out.data[from*size:to*size], r.branch.data[from*size:to*size])
		r.pixels(from, to, func(out, in int) {
			row := r.out.data[out+r.pad : out+r.pad+r.in.c]
			for i, v := range r.in.data[in : in+r.in.c] {
				row[i] += v
			}
		})
		out := r.out.data[from*size : to*size]
		for i, v := range out {
			out[i] = max(v, 0)
		}
	})
	return nil
}

func (r *residual) backward(n int) error {
	r.net.maskReLU(r.out, n)
	r.net.threads.each(n, func(_, from, to int) {
		clear(r.in.grad[from*r.in.size() : to*r.in.size()])
		r.pixels(from, to, func(out, in int) {
			copy(r.in.grad[in:in+r.in.c], r.out.grad[out+r.pad:out+r.pad+r.in.c])
		})
	})
	return nil
}

// pool averages each channel over the whole image.
type pool struct {
	net     *network
	in, out *tensor
}

func (n *network) pool(in *tensor) *pool {
	p := &pool{net: n, in: in, out: n.tensor(1, 1, in.c, true)}
	n.add(p)
	return p
}

func (p *pool) forward(n int, _ bool) error {
	c, size, pixels := p.in.c, p.in.size(), float32(p.in.h*p.in.w)
	p.net.threads.each(n, func(_, from, to int) {
		for image := from; image < to; image++ {
			out := p.out.data[image*c : (image+1)*c]
			clear(out)
			for x := p.in.data[image*size : (image+1)*size]; len(x) > 0; x = x[c:] {
				for i, v := range x[:c] {
					out[i] += v
				}
			}
			for i := range out {
				out[i] /= pixels
			}
		}
	})
	return nil
}

func (p *pool) backward(n int) error {
	c, size, pixels := p.in.c, p.in.size(), float32(p.in.h*p.in.w)
	p.net.threads.each(n, func(_, from, to int) {
		for image := from; image < to; image++ {
			out := p.out.grad[image*c : (image+1)*c]
			for d := p.in.grad[image*size : (image+1)*size]; len(d) > 0; d = d[c:] {
				for i, v := range out {
					d[i] = v / pixels
				}
			}
		}
	})
	return nil
}
