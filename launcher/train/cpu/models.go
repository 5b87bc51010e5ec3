package cpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// models builds each network from the input to the logits. Names are what a
// study gives as workload.model.
var models = map[string]func(n *network, classes int) *tensor{
	"resnet20": func(n *network, classes int) *tensor { return resnet(n, 3, classes) },
	"resnet32": func(n *network, classes int) *tensor { return resnet(n, 5, classes) },
	"resnet44": func(n *network, classes int) *tensor { return resnet(n, 7, classes) },
	"resnet56": func(n *network, classes int) *tensor { return resnet(n, 9, classes) },
	"cnn":      cnn,
	"mlp":      mlp,
}

// Models lists the names of the models, sorted.
func Models() []string { return slices.Sorted(maps.Keys(models)) }

func unknownModel(name string) error {
	return fmt.Errorf("there is no model %q; the native trainer has: %s", name, strings.Join(Models(), ", "))
}

// resnet is the CIFAR network of He et al. 2016, section 4.2, of 6·blocks + 2
// layers: a convolution, three stages of residual blocks with 16, 32 and 64
// channels on images of 32, 16 and 8 pixels, the average over the image, and a
// fully connected layer.
func resnet(n *network, blocks, classes int) *tensor {
	x := n.unit(nil, 16, 1, nil)
	for stage, channels := range []int{16, 32, 64} {
		for block := range blocks {
			stride := 1
			if stage > 0 && block == 0 {
				stride = 2
			}
			x = n.unit(n.unit(x, channels, stride, nil), channels, 1, x)
		}
	}
	return n.dense(n.pool(x).out, classes, false).out
}

// cnn is a small network for quick studies: three convolutions of stride 2 with
// 16, 32 and 64 channels, each with batch normalisation and ReLU, the average
// over the image, and a fully connected layer; 24,346 parameters for 10 classes.
func cnn(n *network, classes int) *tensor {
	var x *unit
	for _, channels := range []int{16, 32, 64} {
		x = n.unit(x, channels, 2, nil)
	}
	return n.dense(n.pool(x).out, classes, false).out
}

// mlp is a wide network without convolutions or batch normalisation: hidden
// layers of 1024 and 512 with ReLU; 3,676,682 parameters for 10 classes. Its
// gradient of 14.7 MB beside little computation makes communication matter.
func mlp(n *network, classes int) *tensor {
	x := n.dense(n.input(), 1024, true).out
	x = n.dense(x, 512, true).out
	return n.dense(x, classes, false).out
}
