package cpu

import (
	"fmt"
	"sync"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// Trained returns the model for evaluation: its parameters and the running averages of batch normalisation,
// which are this rank's until AverageStatistics. The error is for engines that store them elsewhere.
func (e *Engine) Trained() (*netspec.Trained, error) {
	t := &netspec.Trained{Model: e.o.Model, Classes: e.o.Classes, Height: e.o.Height, Width: e.o.Width, Channels: e.o.Channels}
	for _, own := range e.net.tensors() {
		own.Data = append([]float32(nil), own.Data...)
		t.Tensors = append(t.Tensors, own)
	}
	return t, nil
}

// Untrained returns a model with the initial parameters of a training.
func Untrained(name string, classes, height, width, channels int, seed int64) (*netspec.Trained, error) {
	t := &netspec.Trained{Model: name, Classes: classes, Height: height, Width: width, Channels: channels}
	kernels, err := simd.Choose("")
	if err != nil {
		return nil, err
	}
	n, err := forwardNetwork(t, kernels)
	if err != nil {
		return nil, err
	}
	n.initialise(seed)
	t.Tensors = n.tensors()
	return t, nil
}

// tensors returns all numbers that an evaluation uses, without copying.
func (n *network) tensors() (list []netspec.Tensor) {
	for i, l := range n.layers {
		add := func(name string, data []float32, shape ...int) {
			list = append(list, netspec.Tensor{Name: fmt.Sprintf("layer%d.%s", i+1, name), Shape: shape, Data: data})
		}
		switch l := l.(type) {
		case *unit:
			c := l.conv.out.Channels
			add("weight", l.weight.w, c, taps, taps, l.conv.in.Channels)
			add("norm.scale", l.scale.w, c)
			add("norm.shift", l.shift.w, c)
			add("norm.mean", l.runningMean, c)
			add("norm.variance", l.runningVariance, c)
		case *dense:
			add("weight", l.weight.w, l.out.size, l.in.size)
			add("bias", l.bias.w, l.out.size)
		}
	}
	return list
}

// piece is the number of images that go through the network together. With more images, the weights
// of fully connected layers are read less often; with fewer, activations stay in a cache.
const piece = 8

// forwardNetwork returns the network of a model, for one thread and without gradients.
func forwardNetwork(t *netspec.Trained, kernels *simd.Set) (*network, error) {
	layers, err := netspec.Find(t.Model, t.Classes)
	switch {
	case err != nil:
		return nil, err
	case t.Height < 1 || t.Width < 1 || t.Channels < 1 || t.Classes < 2 || max(t.Height, t.Width, t.Channels, t.Classes) > 1<<12:
		return nil, fmt.Errorf("images of %d×%d×%d in %d classes; want 1 to 4096 of each, and at least 2 classes", t.Height, t.Width, t.Channels, t.Classes)
	}
	n := newNetwork(kernels, piece, 1, simd.Shape{Lines: t.Height, Points: t.Width, Channels: t.Channels})
	n.forwardOnly = true
	if n.logits = n.build(layers); n.err != nil {
		return nil, fmt.Errorf("images of %d×%d×%d: %w", t.Height, t.Width, t.Channels, n.err)
	}
	n.bind(make([]float32, n.size()), nil)
	return n, nil
}

// freeze computes, once for all passes, the values that depend only on parameters and statistics.
func (n *network) freeze() {
	for _, l := range n.layers {
		if u, ok := l.(*unit); ok {
			u.pack(u.weight.w, 0, u.groups())
			u.useAverages()
		}
	}
}

// share makes a network use the frozen values of another network of the same model.
func (n *network) share(of *network) {
	for i, p := range of.parameters {
		n.parameters[i].w = p.w
	}
	for i, l := range of.layers {
		if u, ok := l.(*unit); ok {
			own := n.layers[i].(*unit)
			own.packed, own.coefficients = u.packed, u.coefficients
		}
	}
}

// A Classifier runs images through a trained model on several threads at once. The threads share
// the model's parameters; each has separate activations. Any free thread takes the next piece of up
// to 8 images, in order of arrival, so one call with enough images uses several threads. The logits
// of an image do not depend on the threads.
type Classifier struct {
	inputs, outputs int // of an image
	pieces          chan pieceOfWork
	threads         sync.WaitGroup
}

type pieceOfWork struct {
	images, logits []float32
	done           *sync.WaitGroup
}

// NewClassifier starts the threads, which Close ends. kernels is the name of a
// simd.Set; "" is the fastest.
func NewClassifier(t *netspec.Trained, threads int, kernels string) (*Classifier, error) {
	set, err := simd.Choose(kernels)
	if err != nil {
		return nil, err
	}
	c := &Classifier{pieces: make(chan pieceOfWork)}
	var first *network
	for range max(threads, 1) {
		n, err := forwardNetwork(t, set)
		if err == nil && first == nil {
			first = n
			if err = t.Fill(n.tensors()); err == nil {
				n.freeze()
			}
		}
		if err != nil {
			c.Close()
			return nil, err
		}
		n.share(first)
		c.inputs, c.outputs = n.image.Size(), n.logits.size
		c.threads.Go(func() { c.work(n) })
	}
	return c, nil
}

func (c *Classifier) work(n *network) {
	for p := range c.pieces {
		copy(n.images, p.images)
		_ = n.forward(len(p.images)/c.inputs, false) // only training over several ranks can fail
		copy(p.logits, n.logits.data)
		p.done.Done()
	}
}

// Logits runs normalised NHWC images through the model and returns the logits of each; the largest
// marks the likeliest class. It may be called from several goroutines at once. It panics if images
// is not a whole number of images.
func (c *Classifier) Logits(images []float32) []float32 {
	if len(images)%c.inputs != 0 {
		panic(fmt.Sprintf("cpu: %d numbers are no images of %d", len(images), c.inputs))
	}
	logits := make([]float32, len(images)/c.inputs*c.outputs)
	var done sync.WaitGroup
	for rest := logits; len(rest) > 0; {
		n := min(piece, len(rest)/c.outputs)
		done.Add(1)
		c.pieces <- pieceOfWork{images[:n*c.inputs], rest[:n*c.outputs], &done}
		images, rest = images[n*c.inputs:], rest[n*c.outputs:]
	}
	done.Wait()
	return logits
}

// Close ends the threads, when all calls have returned.
func (c *Classifier) Close() {
	close(c.pieces)
	c.threads.Wait()
}
