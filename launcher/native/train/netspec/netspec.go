// Package netspec describes the networks that the native trainer has, as data.
// Nothing is computed here: each engine builds from a description what its
// device needs, and all engines have the same models.
package netspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Form is which sort of layer it is.
type Form int

const (
	// Convolution is 3×3 over an image padded by one pixel of zeros, without a
	// bias, then batch normalisation, and a ReLU.
	Convolution Form = iota
	// AveragePool is the mean of each channel over the image.
	AveragePool
	// Dense is a fully connected layer with a bias.
	Dense
)

// A Layer is one after the other, from the image to the logits.
type Layer struct {
	Form    Form
	Outputs int // channels of a convolution, outputs of a dense layer; a pool has its input's channels
	Stride  int // of a convolution
	// Shortcut adds to a convolution, between its batch normalisation and its
	// ReLU, the output of the layer two before. It has no parameters (option A
	// of He et al. 2016): where it has more pixels than the sum, every second of
	// every second row is taken, and where it has fewer channels, there are
	// zeros on both sides of them.
	Shortcut bool
	ReLU     bool // behind a dense layer; a convolution always has one
}

// models are those by the name that a study gives as workload.model.
var models = map[string]func(classes int) []Layer{
	"resnet20": func(classes int) []Layer { return resnet(3, classes) },
	"resnet32": func(classes int) []Layer { return resnet(5, classes) },
	"resnet44": func(classes int) []Layer { return resnet(7, classes) },
	"resnet56": func(classes int) []Layer { return resnet(9, classes) },
	"cnn":      cnn,
	"mlp":      mlp,
}

// Names lists the models, sorted.
func Names() []string { return slices.Sorted(maps.Keys(models)) }

// Find describes a model for so many classes.
func Find(name string, classes int) ([]Layer, error) {
	m, ok := models[name]
	if !ok {
		return nil, fmt.Errorf("unknown model %q; the native trainer has: %s", name, strings.Join(Names(), ", "))
	}
	return m(classes), nil
}

// resnet is the CIFAR network of He et al. 2016, section 4.2, of 6·blocks + 2
// layers: a convolution, three stages of residual blocks with 16, 32 and 64
// channels on images of 32, 16 and 8 pixels, the average over the image, and a
// fully connected layer.
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

// cnn is a small network for quick studies: three convolutions of stride 2 with
// 16, 32 and 64 channels, the average over the image, and a fully connected
// layer; 24,346 parameters for 10 classes.
func cnn(classes int) (list []Layer) {
	for _, channels := range []int{16, 32, 64} {
		list = append(list, Layer{Form: Convolution, Outputs: channels, Stride: 2})
	}
	return append(list, Layer{Form: AveragePool}, Layer{Form: Dense, Outputs: classes})
}

// mlp is a wide network without convolutions or batch normalisation: hidden
// layers of 1024 and 512 with ReLU; 3,676,682 parameters for 10 classes. Its
// gradient of 14.7 MB beside little computation makes communication matter.
func mlp(classes int) []Layer {
	return []Layer{
		{Form: Dense, Outputs: 1024, ReLU: true},
		{Form: Dense, Outputs: 512, ReLU: true},
		{Form: Dense, Outputs: classes},
	}
}
