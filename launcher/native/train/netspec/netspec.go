// Package netspec describes the native trainer's networks as data. It computes nothing: each engine
// builds a network for its device from a description, so all engines have the same models.
package netspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Form is the kind of a layer.
type Form int

const (
	// Convolution is a 3×3 convolution without bias, with zero padding of one pixel, followed by
	// batch normalisation and a ReLU.
	Convolution Form = iota
	// AveragePool computes the mean of each channel over the image.
	AveragePool
	// Dense is a fully connected layer with a bias.
	Dense
)

// A Layer describes one layer. The layers of a network lead from the image to the logits.
type Layer struct {
	Form    Form
	Outputs int // channels of a convolution, outputs of a dense layer; a pool has its input's channels
	Stride  int // stride of a convolution
	// Shortcut adds the output of the layer two before to a convolution, between its batch
	// normalisation and its ReLU. It has no parameters (option A of He et al. 2016). If that output
	// has more pixels, every second pixel of every second row is used; if it has fewer channels,
	// zeros are added on both sides.
	Shortcut bool
	ReLU     bool // a dense layer is followed by ReLU; convolutions always are
}

// models are the models by name, as in workload.model.
var models = map[string]func(classes int) []Layer{
	"resnet20": func(classes int) []Layer { return resnet(3, classes) },
	"resnet32": func(classes int) []Layer { return resnet(5, classes) },
	"resnet44": func(classes int) []Layer { return resnet(7, classes) },
	"resnet56": func(classes int) []Layer { return resnet(9, classes) },
	"cnn":      cnn,
	"mlp":      mlp,
}

// Names returns the sorted names of the models.
func Names() []string { return slices.Sorted(maps.Keys(models)) }

// Find returns the layers of a model for this number of classes.
func Find(name string, classes int) ([]Layer, error) {
	m, ok := models[name]
	if !ok {
		return nil, fmt.Errorf("unknown model %q; the native trainer has: %s", name, strings.Join(Names(), ", "))
	}
	return m(classes), nil
}

// resnet returns the CIFAR network of He et al. 2016, section 4.2, of 6·blocks + 2 layers: a
// convolution, three stages of residual blocks with 16, 32 and 64 channels on images of 32, 16 and
// 8 pixels, the average over the image, and a fully connected layer.
func resnet(blocks, classes int) []Layer {
	list := []Layer{{Form: Convolution, Outputs: 16, Stride: 1}}
	for stage, channels := range []int{16, 32, 64} {
		for block := range blocks {
			stride := 1
			if stage > 0 && block == 0 {
				stride = 2
			}
			list = append(list, Layer{Form: Convolution, Outputs: channels, Stride: stride},
				Layer{Form: Convolution, Outputs: channels, Stride: 1, Shortcut: true})
		}
	}
	return append(list, Layer{Form: AveragePool}, Layer{Form: Dense, Outputs: classes})
}

// cnn returns a small network for quick studies: three convolutions of stride 2 with 16, 32 and 64
// channels, the average over the image, and a fully connected layer; 24,346 parameters for 10
// classes.
func cnn(classes int) (list []Layer) {
	for _, channels := range []int{16, 32, 64} {
		list = append(list, Layer{Form: Convolution, Outputs: channels, Stride: 2})
	}
	return append(list, Layer{Form: AveragePool}, Layer{Form: Dense, Outputs: classes})
}

// mlp returns a wide network without convolutions or batch normalisation: hidden layers of 1024 and
// 512 with ReLU; 3,676,682 parameters for 10 classes. Its gradient is large (14.7 MB) relative to
// its computation, so that communication matters.
func mlp(classes int) []Layer {
	return []Layer{
		{Form: Dense, Outputs: 1024, ReLU: true},
		{Form: Dense, Outputs: 512, ReLU: true},
		{Form: Dense, Outputs: classes},
	}
}
