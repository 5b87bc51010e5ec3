package cpu

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// A description that this engine cannot build is refused, and says which layer.
func TestBuildRefuses(t *testing.T) {
	convolution, pool, dense := netspec.Layer{Form: netspec.Convolution, Outputs: 16, Stride: 1}, netspec.Layer{Form: netspec.AveragePool}, netspec.Layer{Form: netspec.Dense, Outputs: 10}
	shortcut := convolution
	shortcut.Shortcut = true
	kernels, err := simd.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		layers []netspec.Layer
		want   string // "" builds
	}{
		{"a block", []netspec.Layer{convolution, convolution, shortcut, pool, dense}, ""},
		{"dense alone", []netspec.Layer{dense}, ""},
		{"empty", nil, "gives logits"},
		{"no logits", []netspec.Layer{convolution}, "layer 1 of the model is the last layer, but not a dense layer"},
		{"no logits but a pool", []netspec.Layer{convolution, pool}, "layer 2 of the model is the last layer, but not a dense layer"},
		{"shortcut to nowhere", []netspec.Layer{convolution, shortcut, pool, dense}, "layer 2 of the model has no layer two before it"},
		{"convolution of a vector", []netspec.Layer{convolution, pool, convolution}, "layer 3 of the model is of a kind"},
		{"dense without pool", []netspec.Layer{convolution, dense}, "layer 2 of the model is of a kind"},
		{"pool of nothing", []netspec.Layer{pool, dense}, "layer 1 of the model is of a kind"},
		{"unknown", []netspec.Layer{{Form: 99}}, "layer 1 of the model is of a kind"},
	} {
		n := newNetwork(kernels, 2, 1, simd.Shape{Lines: 8, Points: 8, Channels: 3})
		logits := n.build(test.layers)
		switch {
		case test.want == "" && (n.err != nil || logits == nil || logits.size != 10):
			t.Errorf("%s: %v, %v", test.name, logits, n.err)
		case test.want != "" && (n.err == nil || !strings.Contains(n.err.Error(), test.want)):
			t.Errorf("%s: error %v, want %q", test.name, n.err, test.want)
		}
		n.threads.close()
	}
}
