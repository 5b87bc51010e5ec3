package cpu

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// build creates the layers of a description, and returns the logits. If this engine does not
// support a layer, it sets n.err.
func (n *network) build(layers []netspec.Layer) *tensor {
	var units []*unit // the convolutions so far
	var flat *tensor  // activations after the last image layer
	for i, l := range layers {
		switch {
		case l.Form == netspec.Convolution && flat == nil:
			var in, shortcut *unit
			if i > 0 {
				in = units[i-1]
			}
			if l.Shortcut {
				if i < 2 {
					return n.cannot(i, "has no layer two before it for its shortcut")
				}
				shortcut = units[i-2]
			}
			units = append(units, n.unit(in, l.Outputs, l.Stride, shortcut))
		case l.Form == netspec.AveragePool && flat == nil && i > 0:
			flat = n.pool(units[i-1]).out
		case l.Form == netspec.Dense && (flat != nil || i == 0):
			if flat == nil {
				flat = n.input()
			}
			flat = n.dense(flat, l.Outputs, l.ReLU).out
		default:
			return n.cannot(i, "is of a kind that cannot follow the one before it")
		}
	}
	if last := len(layers) - 1; last < 0 || layers[last].Form != netspec.Dense {
		return n.cannot(last, "is the last layer, but not a dense layer that gives logits")
	}
	return flat
}

func (n *network) cannot(layer int, why string) *tensor {
	if n.err == nil {
		n.err = fmt.Errorf("layer %d of the model %s", layer+1, why)
	}
	return nil
}
